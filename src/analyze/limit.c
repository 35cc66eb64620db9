/* Thresholds of the analyses: the table, presets, and reading them from a file. */
#include "limit.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MOST 512

#define LIMIT(id, name, unit, v, hpc, server, doc, why) {name, unit, v, hpc, server, doc, why},
const struct limit_type limit_types[LIMIT_COUNT] = {
#include "limits.def"
};
#undef LIMIT

static const struct {
	const char *name;
	enum unit unit;
	double factor;
} words[] = {
    {"%", PERCENT, 1},
    {"/s", COUNT_S, 1},
    {"B", BYTES, 1},
    {"KiB", BYTES, 1024},
    {"MiB", BYTES, 0x1p20},
    {"GiB", BYTES, 0x1p30},
    {"B/s", BYTES_S, 1},
    {"KiB/s", BYTES_S, 1024},
    {"MiB/s", BYTES_S, 0x1p20},
    {"GiB/s", BYTES_S, 0x1p30},
    {"ns", NS, 1},
    {"us", NS, 1e3},
    {"ms", NS, 1e6},
    {"s", NS, 1e9},
};
#define NWORDS (sizeof(words) / sizeof(words[0]))

void limits_init(struct limits *l)
{
	l->preset = "default";
	l->changed = 0;
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		l->v[i] = limit_types[i].usual;
}

int limits_preset(struct limits *l, const char *name, struct err *e)
{
	bool hpc = !strcmp(name, "hpc"), server = !strcmp(name, "server");

	if (!hpc && !server && strcmp(name, "default"))
		return err_msg(e, -EINVAL, "no preset '%s': default, hpc or server", name);
	limits_init(l);
	l->preset = hpc ? "hpc" : server ? "server" : "default";
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		l->v[i] = hpc ? limit_types[i].hpc : server ? limit_types[i].server : l->v[i];
	return 0;
}

/* What is being read, for messages. */
struct place {
	const char *file;
	size_t line;
	struct err *e;
};

static int find(const struct place *p, const char *name)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (!strcmp(name, limit_types[i].name))
			return i;
	err_msg(p->e, -EBADMSG, "limits '%s' line %zu: no limit '%.60s'", p->file, p->line, name);
	return err_hint(p->e, "witty-profiler hotspots --list-limits names them all");
}

static double factor_of(const char *word, enum unit unit)
{
	if (!*word)
		return 1;
	for (size_t i = 0; i < NWORDS; i++)
		if (words[i].unit == unit && !strcmp(word, words[i].name))
			return words[i].factor;
	return -1;
}

static int take_value(const struct place *p, int id, const char *text, double *ret)
{
	const struct limit_type *t = &limit_types[id];
	char *end;
	double v, factor;

	v = strtod(text, &end);
	/* strtod() knows signs, "inf", "nan" and hexadecimal numbers, too. */
	if (!*text || !strchr("0123456789.", *text) || end == text ||
	    strcspn(text, "xX") < (size_t)(end - text))
		return err_msg(p->e, -EBADMSG, "limits '%s' line %zu: '%.60s' is no number >= 0",
			       p->file, p->line, text);
	end += strspn(end, " \t");
	factor = factor_of(end, t->unit);
	if (factor < 0)
		return err_msg(
		    p->e, -EBADMSG, "limits '%s' line %zu: '%s' is in %s, not in '%.30s'", p->file,
		    p->line, t->name, *unit_name(t->unit) ? unit_name(t->unit) : "no unit", end);
	v *= factor;
	if (!isfinite(v) || v > 1e18)
		return err_msg(p->e, -EBADMSG, "limits '%s' line %zu: '%.60s' is too large",
			       p->file, p->line, text);
	*ret = v;
	return 0;
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r");
	n = strlen(s);
	while (n && strchr(" \t\r", s[n - 1]))
		s[--n] = '\0';
	return s;
}

/* @param seen [LIMIT_COUNT] names that were set before */
static int take_line(const struct place *p, char *line, bool *seen, struct limits *l)
{
	char *value, *name;
	int id;

	line[strcspn(line, "#")] = '\0';
	line = trim(line);
	if (!*line)
		return 0;
	value = strchr(line, '=');
	if (!value)
		return err_msg(p->e, -EBADMSG, "limits '%s' line %zu: not NAME = VALUE", p->file,
			       p->line);
	*value++ = '\0';
	name = trim(line);
	id = find(p, name);
	if (id < 0)
		return id;
	if (seen[id])
		return err_msg(p->e, -EBADMSG, "limits '%s' line %zu: '%s' was set before", p->file,
			       p->line, name);
	seen[id] = true;
	l->changed++;
	return take_value(p, id, trim(value), &l->v[id]);
}

int limits_read(struct limits *l, const char *text, size_t n, const char *file, struct err *e)
{
	struct place p = {.file = file, .e = e};
	bool seen[LIMIT_COUNT] = {0};
	struct limits copy = *l;
	char line[LINE_MOST];
	int rc;

	for (size_t at = 0; at < n;) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t length = end ? (size_t)(end - text) - at : n - at;

		p.line++;
		if (length >= sizeof(line) || memchr(text + at, '\0', length))
			return err_msg(e, -EBADMSG,
				       "limits '%s' line %zu: no text of less than %d bytes", file,
				       p.line, LINE_MOST);
		memcpy(line, text + at, length);
		line[length] = '\0';
		rc = take_line(&p, line, seen, &copy);
		if (rc < 0)
			return rc;
		at += length + 1;
	}
	*l = copy;
	return 0;
}

void limit_format(struct strbuf *b, enum limit id, double v)
{
	double factor = 1;
	const char *word = "";

	/* The largest unit that leaves a whole number. */
	for (size_t i = 0; i < NWORDS; i++) {
		if (words[i].unit != limit_types[id].unit ||
		    (v > 0 && fmod(v, words[i].factor) != 0))
			continue;
		if (!*word || words[i].factor <= v) {
			word = words[i].name;
			factor = words[i].factor;
		}
	}
	if (!*word)
		for (size_t i = NWORDS; i-- > 0;)
			if (words[i].unit == limit_types[id].unit && words[i].factor == 1)
				word = words[i].name;
	strbuf_add_f64(b, v / factor);
	if (b->n > 2 && !strcmp(b->s + b->n - 2, ".0"))
		b->s[b->n -= 2] = '\0';
	strbuf_add(b, *word ? " " : "");
	strbuf_add(b, word);
}

void limits_write(const struct limits *l, struct strbuf *b)
{
	strbuf_addf(
	    b, "# Limits of the analyses, preset %s. Lines that are left out keep their values.\n",
	    l->preset);
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		strbuf_addf(b, "\n# %s\n# (%s)\n%s = ", limit_types[i].doc, limit_types[i].why,
			    limit_types[i].name);
		limit_format(b, (enum limit)i, l->v[i]);
		strbuf_addc(b, '\n');
	}
}
