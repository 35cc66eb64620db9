#pragma once

#include "amounts.h"
#include "json.h"
#include "study.h"

/* Private to the page: which rows it has, and the parts of its JSON. */

#define PAGE_NONE UINT32_MAX

/* What one page holds at most: with more, a browser becomes slow and nobody reads it. */
#define PAGE_PROCESSES_MAX 2500
#define PAGE_ENDS_MAX      400 /* addresses outside */
#define PAGE_STORAGE_MAX   200
#define PAGE_DEVICES_MAX   512
#define PAGE_FOLDS_MAX     600
#define PAGE_LINKS_MAX     8000
#define PAGE_THREADS_MAX   6000
#define PAGE_FINDINGS_MAX  150
#define PAGE_SUBJECTS_MAX  100 /* of one finding */
#define PAGE_WAITS_OF_ONE  8   /* objects and wakers of each thread */
#define PAGE_CPUS_OF_ONE   256 /* CPUs of each thread */
#define PAGE_TEXT_MAX      400 /* bytes of a command line */

/** Actors that are too many, as one row: same host, kind, node, container and program. */
struct page_fold {
	uint32_t first; /**< one of the actors */
	uint32_t count;
	uint64_t cpu_ns, bytes_in, bytes_out;
};

/** All data from one row to another by one kind of path. */
struct page_link {
	uint32_t from, to;           /**< rows */
	const struct topo_link *one; /**< the first of them */
	uint64_t bytes, messages, waited_ns;
	bool measured, shared;
};

/** Rows of the page. Actors come first, in the order of `kept`, then folds. */
struct page {
	const struct study *s;
	struct graph *g;
	const struct topology *t;
	const struct interval_amounts *amounts; /**< NULL: none */
	size_t buckets;                         /**< steps of series */
	VEC(uint32_t) kept;                     /**< actors */
	VEC(struct page_fold) folds;
	uint32_t *row_of;            /**< [t->actors.n] row of each actor */
	VEC(struct page_link) links; /**< most bytes first, those of unknown amount behind */
	VEC(uint32_t) threads;       /**< nodes */
	uint32_t *thread_row;        /**< [g->nodes.n], PAGE_NONE: not a thread, or left out */
	VEC(uint32_t) containers;    /**< nodes */
	uint32_t *container_row;     /**< [g->nodes.n] */
	uint32_t *container_of;      /**< [t->actors.n] row of its container, or PAGE_NONE */
	size_t threads_all, links_all, actors_all[4], actors_kept[4]; /* by enum actor_kind */
};

/** @param f NULL: none; what findings are about is kept before anything else */
void page_init(struct page *p, const struct study *s, const struct findings *f);
void page_done(struct page *p);

/** NUMA node that an actor mostly runs on, or that a device is near to; PAGE_NONE: not known. */
uint32_t page_numa_of(const struct page *p, uint32_t actor);

void page_write_machine(struct page *p, struct json_writer *w); /* hosts, numa, cpus, containers */
void page_write_actors(struct page *p, struct json_writer *w);  /* actors */
void page_write_links(struct page *p, struct json_writer *w);   /* links */
void page_write_threads(struct page *p, struct json_writer *w); /* threads */
void page_write_findings(struct page *p, const struct findings *f, struct json_writer *w);
void page_write_waits(struct page *p, struct json_writer *w); /* roots, chains */
void page_write_time(struct page *p, struct json_writer *w);  /* time, where there is any */
/** Members of a thread. */
void page_write_profile(struct page *p, uint32_t thread, struct json_writer *w);

/** As json_key_str(), but at most PAGE_TEXT_MAX bytes, cut between characters; NULL: nothing. */
void page_key_text(struct json_writer *w, const char *key, const char *s);
/** Members for all fields that are measured, but for keys whose number is in @p but. */
void page_write_known(struct graph *g, const struct node *n, uint64_t but, struct json_writer *w);
void page_key_row(struct json_writer *w, const char *key, uint32_t row);
void page_key_f64(struct json_writer *w, const char *key, double v);
