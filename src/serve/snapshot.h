#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "amounts.h"
#include "encoding.h"
#include "graph.h"
#include "strbuf.h"
#include "timeline.h"

/*
 * What was observed up to one instant, for many readers: once published a snapshot does not change. It
 * is counted by those who hold it and freed with the last of them, so that whoever answers a request
 * never waits for the collection, nor the collection for them.
 *
 * Texts that many ask for are rendered at the first question and kept with the snapshot.
 */

/** Texts that are kept. */
enum rendering {
	RENDER_GRAPH,	   /**< the older graph JSON in its envelope */
	RENDER_GRAPH_FULL, /**< likewise, with all types and fields */
	RENDER_DESCRIBE,   /**< the older text of a graph */
	RENDER_SUMMARY,
	RENDER_TOPOLOGY,   /**< from here to RENDER_FINDINGS: of the analysis */
	RENDER_WAITFOR,
	RENDER_HOTSPOTS,
	RENDER_BOTTLENECKS,
	RENDER_FINDINGS,
	RENDER_PAGE,
	RENDER_PAGE_DATA,
	RENDER_METRICS,    /**< of the observed, in Prometheus' format */
	RENDER_COUNT
};

/** A text, and the same packed. */
struct rendered {
	pthread_mutex_t lock; /**< also while it is made; taken before that of the snapshot */
	struct strbuf plain; /**< empty: only the one packed with zstd is kept, until somebody asks for another */
	struct strbuf packed[ENCODING_COUNT]; /**< empty: not made, or not smaller */
	unsigned tried;                       /**< a bit for each encoding */
	bool made;
};

struct snapshot {
	atomic_uint refs;
	uint64_t seq;		   /**< 1, 2, … since the program started */
	uint64_t start_ns, end_ns; /**< of the window, since 1970 */
	atomic_size_t bytes;       /**< of the graph, the timeline and the texts */
	size_t entities, edges;	   /**< in the graph when it was sealed; analyses may add to it */
	struct graph g;		   /**< whoever calls what takes a `struct graph *` holds @p lock */
	struct timeline time;      /**< of g: what happened when */
	struct interval_amounts amounts; /**< likewise: what was sent, waited and moved when; kinds are in g */
	pthread_mutex_t lock;
	atomic_bool analysed; /**< the texts of the analysis are there */
	struct rendered texts[RENDER_COUNT];
};

/** An empty one, held by the caller; fill in the graph, then snapshot_derive(), the timeline, then
 * snapshot_seal(). */
struct snapshot *snapshot_new(void);
/** The graph is complete: what follows from it and its indexes are made. */
void snapshot_derive(struct snapshot *s);
/** Nothing is added any more. */
void snapshot_seal(struct snapshot *s);

struct snapshot *snapshot_ref(struct snapshot *s);
void snapshot_unref(struct snapshot *s);

/**
 * The text @p what, rendered by @p make at the first question, which may take the snapshot's lock.
 *
 * @param want what is small or does not shrink comes plain
 * @return borrowed, as long as the snapshot is held; NULL: @p make is NULL and it is not there
 */
const struct strbuf *snapshot_text(struct snapshot *s, enum rendering what,
				   void (*make)(void *ctx, struct snapshot *s, struct strbuf *b),
				   void *ctx, enum encoding want, enum encoding *ret_encoding);

/** Texts that were taken out of a snapshot. */
struct snapshot_texts {
	struct strbuf v[RENDER_COUNT][1 + ENCODING_COUNT];
};

/**
 * Take out those that can be made again: of the analysis, what is kept packed as well. Only when nobody else holds the snapshot, nor can get it.
 *
 * @param ret snapshot_texts_done(), only after true
 * @return false: there are none
 */
bool snapshot_take_texts(struct snapshot *s, struct snapshot_texts *ret);
void snapshot_texts_done(struct snapshot_texts *t);

/** Keep @p b, which is emptied, as the text @p what: a large one packed. Only before `analysed` is set. */
void snapshot_keep_text(struct snapshot *s, enum rendering what, struct strbuf *b);
