/* A topology within a budget of tokens: shorter lists first, then fewer parts, and a word on what
 * is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "render_topology.h"

#define TOKEN_BYTES 4

static const char *const names[PART_COUNT] = {"overview", "problems",     "groups",    "paths",
					      "devices",  "not observed", "processes", "placement",
					      "links",    "more"};

static void render_one(struct topology *t, const struct topology_view *v,
		       enum topology_format format, struct strbuf *b)
{
	struct json_writer w;
	struct err e;

	if (format != TOPOLOGY_JSON) {
		render_topology_text(t, v, format == TOPOLOGY_MD, b);
		return;
	}
	json_writer_init_strbuf(&w, b, JSON_INDENT);
	render_topology_json(t, v, &w);
	json_writer_finish(&w, &e);
	strbuf_addc(b, '\n');
}

static void say(struct strbuf *note, const struct topology_view *v, unsigned wanted,
		uint64_t tokens)
{
	bool some = false;

	strbuf_clear(note);
	strbuf_addf(note, "to fit %" PRIu64 " tokens, ", tokens);
	if (v->limit)
		strbuf_addf(note, "lists were cut to %" PRIu64, v->limit);
	for (unsigned i = 0; i < PART_COUNT; i++) {
		if (v->parts & 1u << i || !(wanted & 1u << i))
			continue;
		strbuf_addf(note, "%s%s",
			    some       ? ", "
			    : v->limit ? "; left out: "
				       : "left out: ",
			    names[i]);
		some = true;
	}
}

/* @return whether it fits */
static bool try_view(struct topology *t, struct topology_view *v, unsigned wanted,
		     enum topology_format format, uint64_t tokens, struct strbuf *b)
{
	struct strbuf note = {0};
	bool fits;

	say(&note, v, wanted, tokens);
	v->note = note.s;
	strbuf_clear(b);
	render_one(t, v, format, b);
	fits = b->n <= tokens * TOKEN_BYTES;
	v->note = NULL;
	strbuf_done(&note);
	return fits;
}

/* Text that is too long even so ends with its last whole line that fits. JSON cannot be cut. */
static void cut_text(struct strbuf *b, uint64_t tokens)
{
	static const char end[] = "... cut to fit the budget\n";
	size_t most = tokens * TOKEN_BYTES, n;

	if (b->n <= most)
		return;
	n = most > sizeof(end) ? most - sizeof(end) : 0;
	while (n && b->s[n - 1] != '\n')
		n--;
	b->n = n;
	b->s[n] = '\0';
	strbuf_add(b, end);
}

static void fit(struct topology *t, const struct topology_view *wanted, enum topology_format format,
		uint64_t tokens, struct strbuf *b)
{
	static const uint64_t limits[] = {64, 32, 16, 8, 4, 2, 1};
	struct topology_view v = *wanted;

	render_one(t, &v, format, b);
	if (b->n <= tokens * TOKEN_BYTES)
		return;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (wanted->limit && limits[i] > wanted->limit)
			continue;
		v.limit = limits[i];
		if (try_view(t, &v, wanted->parts, format, tokens, b))
			return;
		/* With the less important half gone, lists need not be that short. */
		if (limits[i] > 4)
			continue;
		v.parts &= ~(1u << PART_MORE | 1u << PART_LINKS | 1u << PART_PLACES);
		if (try_view(t, &v, wanted->parts, format, tokens, b))
			return;
	}
	for (unsigned part = PART_COUNT; part-- > 1;) {
		v.parts &= ~(1u << part);
		if (try_view(t, &v, wanted->parts, format, tokens, b))
			return;
	}
	if (format != TOPOLOGY_JSON)
		cut_text(b, tokens);
}

void render_topology(struct topology *t, const struct topology_view *v, enum topology_format format,
		     uint64_t tokens, struct strbuf *b)
{
	struct strbuf own = {0};

	if (!tokens) {
		render_one(t, v, format, b);
		return;
	}
	fit(t, v, format, tokens, &own);
	strbuf_addn(b, own.s, own.n);
	strbuf_done(&own);
}
