#pragma once

#include <stdint.h>

#include "verb.h"

/** What an option is followed by, and so what its value is. */
enum option_kind {
	OPTION_FLAG,	 /**< nothing; bool */
	OPTION_TEXT,	 /**< anything; const char *, which points into argv */
	OPTION_CHOICE,	 /**< one of the words of @c words; const char * */
	OPTION_NUMBER,	 /**< whole and decimal; uint64_t */
	OPTION_POSITIVE, /**< likewise, and not 0 */
	OPTION_SEVERITY, /**< notice, warning or critical; enum severity */
};

/** An option of a verb. A list of them ends with one without a name. */
struct verb_option {
	const char *name;  /**< the long one, without "--" */
	char letter;	   /**< the short one; 0: none */
	enum option_kind kind;
	void *value;	   /**< of the type that the kind says; untouched when it is not given */
	const char *words; /**< OPTION_CHOICE: "text, md or json" */
};

/** At most so many options has a verb that uses parse_options(). */
#define VERB_OPTIONS_MOST 16

/**
 * Read the options of a command line; wrong ones are told on standard error.
 *
 * @param ret_first where in argv the first word is that belongs to no option
 * @return 0, or EXIT_USAGE
 */
int parse_options(const struct verb *v, const struct verb_option *options, int argc, char **argv,
		  int *ret_first);

struct limits;

/** Limits by --preset and --limits, either may be NULL; what is wrong is told. @return 0, or an exit code */
int choose_limits(const struct verb *v, const char *preset, const char *file, struct limits *ret);

/** Write the result of a verb and free it, or tell why there is none. @param rc <0: e says why. @return the exit code */
int end_with(int rc, const char *output, bool force, struct strbuf *b, struct err *e);
