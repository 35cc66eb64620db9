#pragma once

#include <stdint.h>

#include "arena.h"
#include "graph.h"
#include "strbuf.h"
#include "vec.h"

/*
 * Figures for monitoring systems, gathered once and written in their formats. However many processes and
 * threads there are, a family has at most METRICS_TOP of them and one sample for all others.
 */

#define METRICS_TOP    20
#define METRICS_LABELS 4

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER };

struct metric_label {
	const char *name, *value;
};

struct metric_sample {
	struct metric_label labels[METRICS_LABELS]; /**< ends with a NULL name */
	double value;
};

/** A family; names and units by Prometheus' conventions: seconds, bytes, ratios. */
struct metric {
	const char *name;
	const char *help;
	const char *unit; /**< in the notation of UCUM: "s", "By", "1"; for OTLP */
	enum metric_kind kind;
	VEC(struct metric_sample) samples;
};

struct metrics {
	struct arena arena;
	VEC(struct metric) v;
	uint64_t start_ns, now_ns; /**< since 1970: since when counters count, and their time */
};

struct server;

/** Gather everything; waits for nothing but the newest snapshot's readers. */
void metrics_init(struct metrics *m, struct server *s);
void metrics_done(struct metrics *m);

/** The same as Prometheus' text; what is of the newest snapshot is written once for each. */
void metrics_text(struct server *s, struct strbuf *b);

/** Add the figures of a graph. */
void metrics_add_graph(struct metrics *m, struct graph *g);

/** Begin a family. @return it, valid until the next one */
struct metric *metrics_family(struct metrics *m, enum metric_kind kind, const char *name, const char *unit,
			      const char *help);
/** Add a sample with labels `name, value, …, NULL`; values are copied. To one with the same labels it is added. */
void metrics_sample(struct metrics *m, struct metric *f, double value, ...);

/** Prometheus' text format 0.0.4. */
void metrics_prometheus(const struct metrics *m, struct strbuf *b);
/** An ExportMetricsServiceRequest of OTLP in JSON. */
void metrics_otlp(const struct metrics *m, const char *host, struct strbuf *b);
