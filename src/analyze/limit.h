#pragma once

#include <stddef.h>

#include "err.h"
#include "field.h"
#include "strbuf.h"

/*
 * Thresholds of the analyses: named, with unit and reason, declared once in limits.def. A file or a
 * preset may replace them, so that no analysis has a number of its own.
 */

enum limit {
#define LIMIT(id, name, unit, v, hpc, server, doc, why) LIMIT_##id,
#include "limits.def"
#undef LIMIT
	LIMIT_COUNT
};

struct limit_type {
	const char *name; /**< "p0-1.llc-miss" */
	enum unit unit;   /**< PERCENT, RATIO, COUNT, COUNT_S, BYTES, BYTES_S or NS */
	double usual, hpc, server;
	const char *doc; /**< what is compared with it */
	const char *why; /**< where it comes from */
};

extern const struct limit_type limit_types[LIMIT_COUNT];

/** Values by enum limit, finite and >= 0. */
struct limits {
	double v[LIMIT_COUNT];
	const char *preset; /**< "default", "hpc" or "server" */
	size_t changed;     /**< values that a file replaced */
};

/** The defaults. */
void limits_init(struct limits *l);

/** Take a preset: "default", "hpc" or "server". @return 0, or -EINVAL for another name */
int limits_preset(struct limits *l, const char *name, struct err *e);

/**
 * Replace values by those of a text: lines `NAME = VALUE [UNIT]`, "#" begins a comment. Units: %
 * for PERCENT; /s; B, KiB, MiB, GiB with or without /s; ns, us, ms, s. Without one the value is in
 * the unit of the limit (ns for durations).
 *
 * @param text [n] of a file; @param file its name, for messages
 * @return 0; -EBADMSG: unknown or repeated name, no number, wrong unit or out of range ("FILE:LINE:
 * …").
 *         @p l is untouched then
 */
int limits_read(struct limits *l, const char *text, size_t n, const char *file, struct err *e);

/** Value and unit as limits_read() takes it: "80 %", "1 MiB/s", "0.5". */
void limit_format(struct strbuf *b, enum limit id, double v);

/** All limits with comments, as limits_read() reads it. */
void limits_write(const struct limits *l, struct strbuf *b);
