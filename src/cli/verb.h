#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/* Exit codes. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_FINDINGS = 3 };

/** One subcommand. */
struct verb {
	const char *name, *usage, *summary;
	const char *help; /**< options, one a line */
	void (*more_help)(void); /**< prints what a table tells, below that; NULL: nothing */
	int (*run)(int argc, char **argv); /**< argv[0] is the verb; @return exit code */
	bool has_command; /**< options end at the first other word: a command with options of its own */
	/** What to use instead of a wrong option, as of an older program. NULL: nothing; may be NULL itself */
	const char *(*instead)(const char *option);
};

extern const struct verb verb_record;
extern const struct verb verb_show;
extern const struct verb verb_report;
extern const struct verb verb_convert;
extern const struct verb verb_doctor;
extern const struct verb verb_capture;
extern const struct verb verb_schema;
extern const struct verb verb_merge;
extern const struct verb verb_topology;
extern const struct verb verb_top;
extern const struct verb verb_hotspots;
extern const struct verb verb_serve;
extern const struct verb verb_fleet;
extern const struct verb verb_mcp;
extern const struct verb verb_bottlenecks;
extern const struct verb verb_diff;

/** Print "error: …" and the hint. @return EXIT_FAILED */
int fail(const struct err *e);
/** Print what is wrong with the command line. @return EXIT_USAGE */
__attribute__((format(printf, 2, 3))) int usage_error(const struct verb *v, const char *fmt, ...);

/** "10s", "500ms", "2m", "1.5h"; a bare number is seconds. @return 0 or -EINVAL */
int parse_duration(const char *s, uint64_t *ret_ns);
/** Whole decimal number. @return 0, -EINVAL or -ERANGE */
int parse_number(const char *s, uint64_t *ret);

struct graph;

/** Whether the suffix of @p path is one of those that write_graph() knows: .wpdb, .json, .txt. */
bool can_write_graph(const char *path);
/** Write a graph into a file of that format. */
int write_graph(struct graph *g, const char *path, bool force, struct err *e);

/** Write a whole result to standard output or, if not NULL, to the file @p path. */
int write_output(const char *path, bool force, const struct strbuf *b, struct err *e);
