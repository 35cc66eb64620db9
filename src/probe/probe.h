#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What all probes share. A probe is one BPF object: it loads and fails alone, picks for each of its
 * hooks the best rung of a ladder that this kernel and these privileges allow, and yields facts to
 * a callback. Probes know nothing of the graph. They are not thread-safe: one thread uses them.
 */

struct probe_options {
	/**
	 * Names of what is not to be used even where it works, for tests and for hosts where
	 * something misbehaves: a probe ("sched"), a rung ("tp_btf", "raw_tp", "fexit", "kprobe",
	 * "iter", "cgroup"), a rung of one probe ("sock.tp_btf"), a hook ("sock.unix_peer"), or a
	 * feature ("task_storage", "cookie"). Borrowed while open runs. May be NULL.
	 */
	const char *const *refuse;
	size_t nrefuse;
	uint32_t max_tasks; /**< threads to make room for; 0: from what the host runs now */
	/** sched: events of each CPU that sched_probe_count() will be given; 0: none are counted */
	uint32_t count_events;
	uint32_t max_flows; /**< socket flows per interval to make room for; 0: from max_tasks */
};

#define PROBE_HOOKS 16

/** One hook of a probe, as it came to be. Strings are static or in the struct. */
struct probe_hook {
	const char *name; /**< "switch", "send", "udp_peer" … */
	const char *rung; /**< "tp_btf", "fexit" …; "none" when not attached */
	bool attached;
	char why[160];	     /**< why not a better rung, or why none; empty: it is the best one */
	const char *missing; /**< what is not known when it is not attached; NULL: nothing */
	bool has_stats;	     /**< kernel.bpf_stats_enabled is or was on: the two below count */
	uint64_t run_count;
	uint64_t skipped; /**< events for which the kernel did not run it, as it was running there already */
	uint64_t run_ns; /**< in all runs; holds about 50 ns per run of the measurement itself */
};

#define PROBE_NOTES 8

struct probe_health {
	const char *probe;
	struct probe_hook hooks[PROBE_HOOKS];
	size_t nhooks;
	/* Since open. Every loss is counted here, whatever its cause. */
	uint64_t emitted;    /**< records handed to user space, or updates of a map */
	uint64_t ring_full;  /**< records lost: the ring buffer was full */
	uint64_t map_full;   /**< updates lost: a map was full */
	uint64_t skipped;    /**< events during which the kernel did not run a program: it interrupted itself */
	uint64_t read_fault; /**< memory of a task that could not be read */
	uint64_t map_bytes;  /**< kernel memory of all its maps */
	const char *notes[PROBE_NOTES]; /**< known blind spots of the rungs in use, static text */
	size_t nnotes;
};

/** Whether @p o (may be NULL) refuses @p name, bare or as "PROBE.NAME". */
bool probe_refused(const struct probe_options *o, const char *probe, const char *name);
