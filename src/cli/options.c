/* What the options of most verbs have in common: their table is read here. */
#include "options.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#include "finding.h"
#include "limits_file.h"

/* Whether the word is one of "a, b or c". */
static bool is_word_of(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; n && *at; at += strspn(at, ", ")) {
		size_t length = strcspn(at, ", ");

		if (length == n && !strncmp(at, word, n) && strcmp(word, "or"))
			return true;
		at += length;
	}
	return false;
}

/* @return 0, or EXIT_USAGE */
static int set_value(const struct verb *v, const struct verb_option *o, const char *text)
{
	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)o->value = true;
		return 0;
	case OPTION_CHOICE:
		if (!is_word_of(o->words, text))
			return usage_error(v, "no %s '%s': %s", o->name, text, o->words);
		break;
	case OPTION_TEXT:
		break;
	case OPTION_NUMBER:
	case OPTION_POSITIVE:
		if (parse_number(text, o->value) ||
		    (o->kind == OPTION_POSITIVE && !*(uint64_t *)o->value))
			return usage_error(v, "'%s' is no number for --%s", text, o->name);
		return 0;
	case OPTION_SEVERITY:
		if (severity_find(text, o->value) || *(enum severity *)o->value == SEVERITY_INFO)
			return usage_error(v, "no severity '%s': notice, warning or critical",
					   text);
		return 0;
	}
	*(const char **)o->value = text;
	return 0;
}

int parse_options(const struct verb *v, const struct verb_option *options, int argc, char **argv,
		  int *ret_first)
{
	struct option all[VERB_OPTIONS_MOST + 1] = {0};
	char letters[2 * VERB_OPTIONS_MOST + 1] = "";
	size_t n = 0, at = 0;
	int opt;

	for (const struct verb_option *o = options; o->name; o++, n++) {
		int takes = o->kind == OPTION_FLAG ? no_argument : required_argument;

		assert(n < VERB_OPTIONS_MOST);
		/* Values that are no letter say which one it is. */
		all[n] = (struct option){o->name, takes, NULL, 256 + (int)n};
		if (!o->letter)
			continue;
		letters[at++] = o->letter;
		if (takes == required_argument)
			letters[at++] = ':';
	}
	opterr = 0;
	while ((opt = getopt_long(argc, argv, letters, all, NULL)) != -1) {
		const struct verb_option *o = options;

		if (opt == '?')
			return usage_error(v, "wrong option '%s'", argv[optind - 1]);
		if (opt >= 256)
			o = options + (opt - 256);
		else
			while (o->letter != opt)
				o++;
		if (set_value(v, o, optarg))
			return EXIT_USAGE;
	}
	*ret_first = optind;
	return 0;
}

int choose_limits(const struct verb *v, const char *preset, const char *file, struct limits *ret)
{
	struct err e;

	if (preset && limits_preset(ret, preset, &e) < 0)
		return usage_error(v, "%s", e.msg);
	return limits_load(ret, preset, file, &e) < 0 ? fail(&e) : 0;
}

int end_with(int rc, const char *output, bool force, struct strbuf *b, struct err *e)
{
	if (rc >= 0)
		rc = write_output(output, force, b, e);
	strbuf_done(b);
	return rc < 0 ? fail(e) : EXIT_DONE;
}
