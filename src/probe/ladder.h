#pragma once

#include <bpf/libbpf.h>

#include "err.h"
#include "probe.h"

/* Private to the layer: choosing, loading and attaching programs, rung by rung. */

#define LADDER_RUNGS 3
#define LADDER_PROGS 20

/** One way to serve a hook: programs that are attached together. A program whose target this kernel
 * does not have is left out; the rung is usable when one of them is left. */
struct rung {
	/** tp_btf, raw_tp, fexit, kprobe, iter, cgroup: tells how it is tested */
	const char *name;
	const char *progs[LADDER_PROGS]; /**< NULL-terminated when shorter */
};

struct hook_def {
	const char *name;
	const char *missing; /**< what is unknown without it */
	bool needed;	     /**< the probe is useless without it */
	struct rung rungs[LADDER_RUNGS]; /**< best first; an empty name ends the list */
	/** map whose elements an iterator goes through; NULL: not those of a map */
	const char *iterated;
	bool is_called; /**< its program is not attached: user space runs it */
};

struct ladder_hook {
	const struct hook_def *def;
	int rung; /**< -1: none */
	unsigned failed; /**< bit per rung */
	char why[160];
	struct bpf_link *links[LADDER_PROGS];
	struct bpf_program *progs[LADDER_PROGS];
	size_t nprogs;
};

struct ladder {
	const char *probe;
	const struct probe_options *options;
	struct ladder_hook hooks[PROBE_HOOKS];
	size_t nhooks;
	struct bpf_object *obj;
	int cgroup_fd; /**< cgroup v2 root, -1: not open */
};

/** Prepares the object just opened: what depends on the choice of rungs; sizes maps. */
typedef int (*ladder_prepare)(void *ctx, struct bpf_object *obj, const struct ladder *l,
			      struct err *e);

void ladder_init(struct ladder *l, const char *probe, const struct hook_def *defs, size_t ndefs,
		 const struct probe_options *o);

/**
 * Open, load and attach @p elf, going down a rung of a hook whenever one fails.
 *
 * @return 0 with l->obj loaded; else nothing is left open
 */
int ladder_load(struct ladder *l, const void *elf, size_t size, ladder_prepare prepare, void *ctx,
		struct err *e);
void ladder_done(struct ladder *l);

/** Name of the rung in use for hook @p name, "none" when it is not served. */
const char *ladder_rung(const struct ladder *l, const char *name);

/**
 * Detach hook @p name, or attach it again with the programs that were loaded for it. A hook that is
 * not served stays so.
 */
int ladder_switch(struct ladder *l, const char *name, bool on, struct err *e);

/** Descriptor of the only program of hook @p name, < 0 when it is not served. */
int ladder_prog_fd(const struct ladder *l, const char *name);

/** Link of the only program of hook @p name, NULL when it is not served. */
const struct bpf_link *ladder_link(const struct ladder *l, const char *name);

/** Open the ring buffer @p map; @p ret is for ring_buffer__free(). */
int ladder_ring(const struct ladder *l, const char *map, ring_buffer_sample_fn cb, void *ctx,
		struct ring_buffer **ret, struct err *e);

/** What an iterator writes. */
struct ladder_records {
	size_t bytes; /**< of a record, of the smallest one when they are `sized` */
	bool sized;   /**< a record begins with its size, as uint32_t */
	/** 0: go on; else that ends it and is returned */
	int (*cb)(void *ctx, const void *record);
	void *ctx;
};

/**
 * Run the iterator of hook @p hook once.
 *
 * @return 0, -ENOTSUP: the hook is not served; -errno, or what the callback returned
 */
int ladder_iterate(const struct ladder *l, const char *hook, const struct ladder_records *r,
		   struct err *e);

/** Fills all but the notes; reads the map "health" of the object. */
void ladder_health(const struct ladder *l, struct probe_health *ret);

/** File descriptor of a map of the loaded object, < 0: no such map. */
int ladder_map_fd(const struct ladder *l, const char *name);

/** Map the programs' global variables into this process; @p ret is for ladder_globals_done(). */
int ladder_globals(const struct ladder *l, const char *map, void **ret, struct err *e);
void ladder_globals_done(void *globals);

/** Threads that the host runs now (from /proc/loadavg), or what @p o says. */
uint32_t probe_max_tasks(const struct probe_options *o);

/**
 * Two maps behind one: BPF programs use the inner map that is in slot 0 of the outer one. Putting
 * the other in makes the kernel wait until no program uses the first any more
 * (maybe_wait_bpf_programs, since v4.20, 1ae80cf31938), so what is drained then is complete.
 */
struct swap_map {
	int outer, inner[2];
	int current; /**< index of the one that programs use */
	size_t key_size, value_size;
	uint32_t max_entries;
	void *keys, *values, *next; /**< room for one batch */
};

int swap_map_init(struct swap_map *m, const struct ladder *l, const char *outer, const char *inner0,
		  const char *inner1, struct err *e);
void swap_map_done(struct swap_map *m);

/**
 * Switch and hand every entry to @p cb; the drained map is empty afterwards, whatever cb returns.
 */
int swap_map_drain(struct swap_map *m, int (*cb)(void *ctx, const void *key, const void *value),
		   void *ctx, struct err *e);
