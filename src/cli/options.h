#pragma once

#include <stddef.h>
#include <stdint.h>

#include "verb.h"

/** What an option is followed by, and so what its value is. */
enum option_kind {
	OPTION_FLAG,	  /**< nothing; bool */
	OPTION_TEXT,	  /**< anything; const char *, which points into argv */
	OPTION_TEXTS,	  /**< likewise, each time it is given; struct option_texts */
	OPTION_CHOICE,	  /**< one of the words of @c words; const char * */
	OPTION_NUMBER,	  /**< whole and decimal; uint64_t */
	OPTION_COUNT,	  /**< likewise; uint32_t */
	OPTION_TIME,	  /**< "10s", "500ms"; uint64_t, in ns */
	OPTION_SIZE,	  /**< "64M"; uint64_t, in bytes */
	OPTION_PID,	  /**< of a process; uint32_t */
	OPTION_PIDS,	  /**< likewise, each time it is given; struct option_pids */
	OPTION_HOST_NAME, /**< what hosts.h takes for one; const char * */
	OPTION_SEVERITY,  /**< notice, warning or critical; enum severity */
	OPTION_SET,	  /**< what @c set takes; what that makes of it */
};

/** To be freed with vec_done(). */
struct option_texts {
	const char **v; /**< [n], into argv */
	size_t n, cap;
};

/** To be freed with vec_done(). */
struct option_pids {
	uint32_t *v; /**< [n] */
	size_t n, cap;
};

/** An option of a verb. A list of them ends with one without a name. */
struct verb_option {
	const char *name;     /**< the long one, without "--" */
	char letter;	      /**< the short one; 0: none */
	enum option_kind kind;
	void *value;	      /**< of the type that the kind says; untouched when it is not given */
	const char *words;    /**< OPTION_CHOICE: "text, md or json" */
	uint64_t least, most; /**< of a number or time; a @c most of 0: any */
	/** OPTION_SET: @p value is that of the option. @return 0, or an exit code: what is wrong was told */
	int (*set)(void *value, const char *text);
};

/** At most so many options has a verb. */
#define VERB_OPTIONS_MOST 64

/**
 * Read the options of a command line; wrong ones are told on standard error.
 *
 * @param ret_first where in argv the first word is that belongs to no option
 * @return 0, or an exit code
 */
int parse_options(const struct verb *v, const struct verb_option *options, int argc, char **argv,
		  int *ret_first);

/** One option by its long name; @p text has to live as long as the values. @return 0, an exit code, or -ENOENT */
int set_option(const struct verb *v, const struct verb_option *options, const char *name, const char *text);

struct limits;

/** Limits by --preset and --limits, either may be NULL; what is wrong is told. @return 0, or an exit code */
int choose_limits(const struct verb *v, const char *preset, const char *file, struct limits *ret);

/** Write the result of a verb and free it, or tell why there is none. @param rc <0: e says why. @return the exit code */
int end_with(int rc, const char *output, bool force, struct strbuf *b, struct err *e);
