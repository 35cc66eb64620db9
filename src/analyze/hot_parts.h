#pragma once

#include "hot.h"

/* Private to the analysis of threads: its steps, a file each in hot/, in the order of hot_init().
 */

/** Text in the analysis' arena. */
__attribute__((format(printf, 2, 3), nonnull(2))) const char *hot_text(struct hot *h,
								       const char *fmt, ...);

/** How its remote share is known, as a word: "seen" in samples, or "expected" by placement. */
static inline const char *hot_remote_how(const struct hot_thread *t)
{
	return t->remote_measured ? "seen" : "expected";
}

/** Whether @p v is known and above a limit. */
static inline bool hot_above(const struct hot *h, double v, enum limit id)
{
	return hot_has(v) && v > h->limits.v[id];
}

/**
 * Whether the thread has the share of CPU time from which on affinity matters: of one CPU, or of
 * all threads' time since they started where there are no rates. True where neither is known.
 */
bool hot_runs(const struct hot *h, const struct hot_thread *t);

/** fill.c: times, switches, what it waited for, who woke it, what it moved. Needs threads and of.
 */
void hot_fill(struct hot *h);
/** place.c: nodes and CPUs of CPU time, nodes of memory, masks, scores of both. */
void hot_fill_places(struct hot *h);
/** rivals.c: who ran on the CPUs of those that did not get one. */
void hot_fill_rivals(struct hot *h);
/** classes.c */
void hot_classify(struct hot *h, struct hot_thread *t);
/** score.c: points, level and the rules P0–P2. */
void hot_score(struct hot *h, struct hot_thread *t);
/** cause.c */
void hot_find_cause(struct hot *h, struct hot_thread *t);
/** sections.c */
void hot_fill_affinity(struct hot *h, struct hot_thread *t);
void hot_fill_switching(struct hot *h, struct hot_thread *t);

/** class_names.c: class that a name stands for, CLASS_OTHER: none. @param ret_what what the name
 * means */
enum thread_class hot_class_of_name(const char *name, const char **ret_what);

/** The thread's name, else that of its process, else "?". */
const char *hot_name(const struct hot *h, uint32_t node);
/** A name from the host, bytes that are no text replaced, at most 32. */
void hot_add_name(struct strbuf *b, const char *name);
/** "name[tid]", bytes that are no text replaced. */
const char *hot_label(struct hot *h, uint32_t node);
