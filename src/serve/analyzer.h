#pragma once

#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/*
 * The thread that analyses snapshots: topology, threads, waits, findings. It takes the newest one that
 * there is, so that it falls behind rather than pile up work, and rests as long as its work took, four times; that of a fleet,
 * which has its machine to itself, once, and no longer than until the next graph is due. Of a fleet several threads work, and
 * what was found on a host of which nothing else is told since is not sought again.
 */
struct analyzer;
struct server;

struct analyzer_counts {
	uint64_t analyses;
	uint64_t last_ns, busy_ns; /**< what the last one took, and all together */
	uint64_t rest_ns;	   /**< between the last one's end and the next one's begin, at least */
	uint64_t newest_ns;	   /**< end of the window that was analysed last, since 1970; 0: none yet */
	uint64_t hosts, hosts_looked; /**< of the last one, with several: hosts, and those of which something else was told than before */
	uint64_t raised, cleared;  /**< findings that came and went */
	unsigned current[4];	   /**< findings there are, by severity */
};

/**
 * Findings of Notice and above that held at any time between two, those that are over first: when, in how many analyses, and what they
 * said when they came up, as a JSON array appended to @p b. The newest thousand that are over are kept.
 *
 * @param from_ns,to_ns since 1970
 * @return since when all of them are known, since 1970
 */
uint64_t analyzer_between(struct analyzer *z, uint64_t from_ns, uint64_t to_ns, struct strbuf *b);

int analyzer_start(struct analyzer **ret, struct server *s, struct err *e);
/** board_stop() comes first. NULL is fine. */
void analyzer_stop(struct analyzer *z);
void analyzer_get(struct analyzer *z, struct analyzer_counts *ret);
