/* What the options of most verbs have in common: their table is read here. */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "finding.h"
#include "hosts.h"
#include "limits_file.h"
#include "vec.h"

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

/* "0", "50ms", "10s" */
static void add_time(struct strbuf *b, uint64_t ns)
{
	if (ns % 1000000000)
		strbuf_addf(b, "%" PRIu64 "ms", ns / 1000000);
	else
		strbuf_addf(b, "%" PRIu64 "s", ns / 1000000000);
}

static void add_bound(struct strbuf *b, const struct verb_option *o, uint64_t v)
{
	if (o->kind == OPTION_TIME)
		add_time(b, v);
	else
		strbuf_addf(b, "%" PRIu64, v);
}

/* A number or a time that is none, or out of range. */
static int not_in_range(const struct verb *v, const struct verb_option *o, const char *text)
{
	CLEANUP(strbuf_done) struct strbuf range = {0};

	if (o->most) {
		strbuf_add(&range, " from ");
		add_bound(&range, o, o->least);
		strbuf_add(&range, " to ");
		add_bound(&range, o, o->most);
	} else if (o->least) {
		strbuf_add(&range, " of at least ");
		add_bound(&range, o, o->least);
	}
	return usage_error(v, "'%s' is no %s%s for --%s", text,
			   o->kind == OPTION_TIME ? "time (10s, 500ms, 2m)" : "number", strbuf_str(&range), o->name);
}

static int set_amount(const struct verb *v, const struct verb_option *o, const char *text, uint64_t *ret)
{
	uint64_t n;

	if ((o->kind == OPTION_TIME ? parse_duration(text, &n) : parse_number(text, &n)) || n < o->least ||
	    (o->most && n > o->most))
		return not_in_range(v, o, text);
	*ret = n;
	return 0;
}

static int set_count(const struct verb *v, const struct verb_option *o, const char *text)
{
	struct verb_option fits = *o;
	uint64_t n;
	int rc;

	if (!fits.most)
		fits.most = UINT32_MAX;
	rc = set_amount(v, &fits, text, &n);
	if (!rc)
		*(uint32_t *)o->value = (uint32_t)n;
	return rc;
}

static int set_size(const struct verb *v, const struct verb_option *o, const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	unsigned shift = !strcmp(end, "K") ? 10 : !strcmp(end, "M") ? 20 : !strcmp(end, "G") ? 30 : 0;

	if (*text < '0' || *text > '9' || (*end && !shift) || n > UINT64_MAX >> 31)
		return usage_error(v, "'%s' is no size (64M, 1G) for --%s", text, o->name);
	*(uint64_t *)o->value = (uint64_t)n << shift;
	return 0;
}

static int read_pid(const struct verb *v, const char *text, uint32_t *ret)
{
	uint64_t n;

	if (parse_number(text, &n) || !n || n > UINT32_MAX)
		return usage_error(v, "'%s' is no process id", text);
	*ret = (uint32_t)n;
	return 0;
}

static int add_pid(const struct verb *v, const char *text, struct option_pids *to)
{
	uint32_t pid = 0;
	int rc = read_pid(v, text, &pid);

	if (!rc)
		vec_push(to, pid);
	return rc;
}

/* @return 0, or an exit code */
static int set_value(const struct verb *v, const struct verb_option *o, const char *text)
{
	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)o->value = true;
		return 0;
	case OPTION_CHOICE:
		if (!is_word_of(o->words, text))
			return usage_error(v, "--%s takes %s, not '%s'", o->name, o->words, text);
		break;
	case OPTION_HOST_NAME:
		if (!is_host_name(text))
			return usage_error(v, "'%s' is no name of a host: letters, digits, . _ - : only, at most 64", text);
		break;
	case OPTION_TEXT:
		break;
	case OPTION_TEXTS:
		vec_push((struct option_texts *)o->value, text);
		return 0;
	case OPTION_NUMBER:
	case OPTION_TIME:
		return set_amount(v, o, text, o->value);
	case OPTION_COUNT:
		return set_count(v, o, text);
	case OPTION_SIZE:
		return set_size(v, o, text);
	case OPTION_PID:
		return read_pid(v, text, o->value);
	case OPTION_PIDS:
		return add_pid(v, text, o->value);
	case OPTION_SEVERITY:
		if (severity_find(text, o->value) || *(enum severity *)o->value == SEVERITY_INFO)
			return usage_error(v, "no severity '%s': notice, warning or critical", text);
		return 0;
	case OPTION_SET:
		return o->set(o->value, text);
	}
	*(const char **)o->value = text;
	return 0;
}

static int wrong_option(const struct verb *v, const char *option)
{
	const char *instead = v->instead ? v->instead(option) : NULL;

	if (!instead)
		return usage_error(v, "wrong option '%s'", option);
	fprintf(stderr, "error: %s: '%s' is the older program's; now: %s\n", v->name, option, instead);
	return EXIT_USAGE;
}

int parse_options(const struct verb *v, const struct verb_option *options, int argc, char **argv,
		  int *ret_first)
{
	struct option all[VERB_OPTIONS_MOST + 1] = {0};
	char letters[1 + 2 * VERB_OPTIONS_MOST + 1] = "";
	size_t n = 0, at = 0;
	int opt, rc = 0;

	if (v->has_command)
		letters[at++] = '+';
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
	while (!rc && (opt = getopt_long(argc, argv, letters, all, NULL)) != -1) {
		const struct verb_option *o = options;

		if (opt == '?')
			return wrong_option(v, argv[optind - 1]);
		if (opt >= 256)
			o = options + (opt - 256);
		else
			while (o->letter != opt)
				o++;
		rc = set_value(v, o, optarg);
	}
	*ret_first = optind;
	return rc;
}

int set_option(const struct verb *v, const struct verb_option *options, const char *name, const char *text)
{
	for (const struct verb_option *o = options; o->name; o++)
		if (!strcmp(o->name, name))
			return set_value(v, o, text);
	return -ENOENT;
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
