#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vec.h"

/*
 * What a vendor's library or tool tells of accelerators, alike for all vendors. The structs have no
 * pointers except the three arrays: they cross a pipe as they are.
 */

enum accel_kind { ACCEL_GPU, ACCEL_NPU };

/** Numbers that may or may not be known of a device. Exact as doubles: all are below 2^53. */
enum accel_fact {
	ACCEL_UTIL_PCT,	    /**< compute: 0 … 100 */
	ACCEL_MEM_UTIL_PCT, /**< time that the memory was read or written; NPU: HBM bandwidth in use */
	ACCEL_MEM_TOTAL_BYTES,
	ACCEL_MEM_USED_BYTES,
	ACCEL_POWER_MW,
	ACCEL_POWER_LIMIT_MW,
	ACCEL_TEMPERATURE_C,
	ACCEL_CLOCK_KHZ,
	ACCEL_CLOCK_MAX_KHZ,
	ACCEL_MEM_CLOCK_KHZ,
	ACCEL_THROTTLE_BITS, /**< as NVML defines them */
	ACCEL_PCIE_GEN,
	ACCEL_PCIE_GEN_MAX,
	ACCEL_PCIE_WIDTH,
	ACCEL_PCIE_WIDTH_MAX,
	ACCEL_PCIE_RX_BYTES_S, /**< towards the device */
	ACCEL_PCIE_TX_BYTES_S,
	ACCEL_LINK_RX_BYTES, /**< over links to other devices, since the driver started */
	ACCEL_LINK_TX_BYTES,
	ACCEL_ECC_ERRORS, /**< that could not be corrected, since the last reset */
	ACCEL_FACTS,
};

struct accel {
	enum accel_kind kind;
	uint32_t index;	 /**< card, as the vendor's tools count */
	uint32_t chip;	 /**< on a card with several; else 0 */
	int32_t minor;	 /**< of its file: /dev/nvidiaN, davinciN, dri/renderDN, accel/accelN; -1: not known */
	bool accel_class; /**< that is /dev/accel/accelN */
	int32_t parent;	 /**< in devices[]: this is a part of that one; -1: it is whole */
	char instance[24]; /**< name of the part: "gi3/ci0"; "": it is whole */
	char uuid[80], pci[20], model[96], health[48]; /**< "": not known */
	char cpus[256];	 /**< near it, as ranges; "": not told */
	char state[96];	 /**< why facts are missing: "lost"; "": nothing is wrong */
	uint32_t has;	 /**< bit per fact */
	double facts[ACCEL_FACTS];
};

/** A process that uses a device. The pid is in a namespace that the driver chose. */
struct accel_process {
	uint32_t device; /**< in devices[] */
	uint32_t pid;
	bool has_memory, has_util;
	uint64_t memory_bytes;
	double util_pct;
};

/** Links of one device to another. */
struct accel_link {
	uint32_t device; /**< in devices[] */
	char kind[16];	 /**< "NVLink", "HCCS", "XGMI", "PIX", "PHB" … */
	char peer_pci[20]; /**< "": it is peer_device */
	int32_t peer_device;
	uint32_t links, active; /**< 0, 0: a path that is not counted in links */
	uint32_t version;	/**< 0: not told */
};

enum accel_state { ACCEL_OK, ACCEL_REDUCED, ACCEL_ABSENT, ACCEL_FAILED };

struct accel_head {
	enum accel_state state;
	char rung[24];	 /**< "nvml", "nvidia-smi" … */
	char driver[80]; /**< version; "": not told */
	char why[320];	 /**< why not better; "": nothing is missing */
	uint64_t real_ns; /**< when it was read, since 1970 */
};

struct accel_report {
	struct accel_head head;
	VEC(struct accel) devices;
	VEC(struct accel_process) processes;
	VEC(struct accel_link) links;
};

void accel_report_done(struct accel_report *r);
void accel_set(struct accel *d, enum accel_fact f, double v);
static inline bool accel_has(const struct accel *d, enum accel_fact f)
{
	return d->has >> f & 1;
}
struct accel *accel_add(struct accel_report *r, enum accel_kind kind, uint32_t index);
/** "0000:3b:00.0" of what tools write: "00000000:3B:00.0", "3b:00.0"; "" when it is no address. */
void accel_pci(char ret[20], const char *text);
/** Copy with truncation, without blanks at the ends. */
void accel_text(char *ret, size_t size, const char *s, size_t n);
__attribute__((format(printf, 3, 4))) void accel_state(struct accel_report *r, enum accel_state s,
						       const char *why, ...);

/** A family of devices and what can tell of it. Functions run in a process of their own and may hang. */
struct accel_source {
	const char *name; /**< "nvidia": of its status rows */
	const char *gives;
	const char *how; /**< to get it */
	/**
	 * Read all there is.
	 *
	 * @param state  NULL at first; what the source wants to keep
	 * @param no_library the library hung before: use the tool only
	 */
	void (*read)(void **state, bool no_library, struct accel_report *ret);
};

/** All of them, in the order of their status rows. */
#define ACCEL_SOURCES 3
extern const struct accel_source *const accel_sources[ACCEL_SOURCES];

extern const struct accel_source accel_ascend;
extern const struct accel_source accel_drm;
extern const struct accel_source accel_nvidia;
