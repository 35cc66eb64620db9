#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arm_spe.h"
#include "arm_spe_ring.h"
#include "err.h"
#include "mem_answer.h"
#include "perf_pmu.h"
#include "strbuf.h"
#include "vec.h"

/*
 * Sampled accesses to memory: the CPU notes for one in many which cache or memory answered. Intel's loads
 * (PEBS, event mem-loads), AMD's operations (IBS), Arm's loads and stores (SPE).
 */

/** @param data_src union perf_mem_data_src of linux/perf_event.h */
enum mem_answer mem_answer_of(uint64_t data_src);

/** How this machine samples. */
struct mem_sampler {
	const char *name; /**< "mem-loads", "ibs_op", "arm_spe"; static */
	uint32_t type;
	uint64_t config[3];
	bool has_leader; /**< Intel since Sapphire Rapids: another event has to lead the group */
	uint64_t leader_config[3];
	uint64_t period;
	unsigned precise;
	bool is_spe;		   /**< the CPU writes records of its own into an AUX area */
	const struct idrange *cpus; /**< that it is for; NULL: all. Borrowed of the PMU */
};

/** @return 0, or -ENOENT with a reason: the CPUs of @p p do not, or not in a way that is known here */
int mem_sampler_find(const struct pmus *p, struct mem_sampler *ret, struct err *e);

/**
 * Go through records of a ring buffer, as perf_event_open(2) describes them, of events with sample_type
 * PERF_SAMPLE_TID | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC. The weight is the latency
 * in cycles: of PEBS from when the load was issued, of IBS from when the first cache missed (since kernel 6.1).
 *
 * @param ret_lost samples that the kernel had no room for are added
 * @return bytes that made whole records
 */
size_t mem_records(const uint8_t *buf, size_t size, void (*cb)(void *ctx, const struct mem_access *a), void *ctx,
		   uint64_t *ret_lost);

/** Ring buffers of all CPUs. */
struct mem_rings {
	VEC(struct mem_ring {
		int fd;
		int leader; /* -1: none */
		void *map;
		void *aux; /* SPE: what the CPU writes; else NULL */
		enum spe_codes codes;
	}) v;
	uint64_t lost;
	struct spe_stats spe;
};

/** Open on a CPU. @param codes of its data sources, for SPE. @return 0, or -errno */
int mem_rings_add(struct mem_rings *r, const struct mem_sampler *s, uint32_t cpu, enum spe_codes codes, struct err *e);
/** What came since the last call. */
void mem_rings_read(struct mem_rings *r, void (*cb)(void *ctx, const struct mem_access *a), void *ctx);
void mem_rings_done(struct mem_rings *r);

/**
 * Whether what came can be used. What cannot, and why, is added to @p b, after "; " when there is something.
 *
 * @param named accesses to memory of which the thread is known
 * @param timed those of them whose latency is
 * @return "ok", "reduced", or "off": none can be; static
 */
const char *mem_rings_state(const struct mem_rings *r, uint64_t named, uint64_t timed, struct strbuf *b);
