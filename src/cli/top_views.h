#pragma once

#include "finding.h"
#include "history.h"
#include "hot.h"
#include "study.h"
#include "top_table.h"
#include "topology.h"
#include "waitfor.h"

/* What the live view lists: the newest intervals as a graph, with the analyses of a file. */

/** A window with its analyses, which all lie in here: it must not be moved while it is open. */
struct sight {
	bool is_open;
	bool has_findings;
	uint64_t took_ns; /**< to make it */
	struct graph g;
	struct hot hot;
	struct topology t;
	struct waitfor w;
	struct findings f;
	struct study study;
};

/** @param findings evaluate all rules, too */
void sight_open(struct sight *s, struct history *h, uint64_t since_ns, const struct limits *l, bool findings);
/** One that is not open is fine. */
void sight_close(struct sight *s);

enum view { VIEW_THREADS, VIEW_PROCESSES, VIEW_FLOWS, VIEW_DEVICES, VIEW_FINDINGS, VIEW_COUNT };

extern const char *const view_names[VIEW_COUNT];

/**
 * The rows of a view, the most important first, unsorted otherwise. Texts live as long as table and sight.
 *
 * @param process only threads of this process, by its printed id; NULL: all
 */
void view_table(struct table *t, enum view view, struct sight *s, const char *process);

/** Lines of text, for what is no table. */
struct lines {
	VEC(const char *) v;
	struct arena arena;
};

void lines_init(struct lines *l);
void lines_done(struct lines *l);
__attribute__((format(printf, 2, 3))) void lines_add(struct lines *l, const char *fmt, ...);

/** More on one row: what a thread waits for and who for it, all fields of a device, a finding with its evidence. */
void view_detail(struct lines *l, enum view view, struct sight *s, const struct row *r);
