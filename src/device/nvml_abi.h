#pragma once

#include <stdint.h>

/* The part of NVML's binary interface that is used, after NVIDIA's public reference manual. */

typedef struct nvml_device_opaque *nvml_device;

enum nvml_return {
	NVML_OK = 0,
	NVML_NO_DRIVER = 9,
	NVML_LOST = 15,
	NVML_MISMATCH = 18,
	NVML_INSUFFICIENT = 7,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_PCIE_TX = 0, NVML_PCIE_RX = 1 };
enum { NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0 };
enum { NVML_FIELD_LINK_TX_KIB = 138, NVML_FIELD_LINK_RX_KIB = 139 };

#define NVML_LINKS_MOST 18
#define NVML_UNKNOWN	(~0ull)

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

struct nvml_utilization {
	unsigned gpu, memory;
};

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)

struct nvml_process {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

struct nvml_process_utilization {
	unsigned pid;
	unsigned long long time_us;
	unsigned sm, memory, encoder, decoder;
};

struct nvml_field_value {
	unsigned field, scope;
	long long time_us, latency_us;
	int type, rc;
	union {
		double d;
		unsigned u;
		unsigned long long ull;
	} value;
};
