/* Findings as text for people and as Markdown, with what became of each rule. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "page.h"
#include "render_findings.h"
#include "rule.h"
#include "text.h"
#include "units.h"

/* What other findings brought into one is cut: it is for people to read. */
#define MOST_PARTS 6

static void add_number(struct strbuf *b, double v, enum unit unit)
{
	if (unit == BYTES)
		text_bytes(b, v);
	else if (unit == NS)
		text_time(b, v);
	else if (unit == BYTES_S && v >= 0)
		units_add_rate(b, v);
	else if (unit == PERCENT)
		units_add_pct(b, v);
	else if ((unit == COUNT || unit == COUNT_S) && v >= 0)
		units_add_count(b, (uint64_t)llround(fmin(v, 9e18)));
	else
		strbuf_addf(b, "%.3g%s%s", v, unit == NONE || unit == RATIO ? "" : " ",
			    unit == RATIO ? "" : unit_name(unit));
	if (unit == COUNT_S)
		strbuf_add(b, "/s");
}

void finding_value_text(const struct study *s, const struct finding_value *v, struct strbuf *b)
{
	if (v->node != NODE_NONE) {
		text_party(s->g, b, v->node);
		strbuf_add(b, ": ");
	}
	strbuf_addf(b, "%s ", v->name);
	add_number(b, v->value, v->unit);
	if (isnan(v->limit))
		return;
	strbuf_add(b, " (limit ");
	add_number(b, v->limit, v->unit);
	strbuf_addf(b, ", %s)", v->limit_name);
}

static void add_value(struct page *p, const struct study *s, const struct finding_value *v)
{
	struct strbuf b = {0};

	finding_value_text(s, v, &b);
	page_item(p, 2);
	page_text(p, b.s, 0);
	page_end(p);
	strbuf_done(&b);
}

static void labelled(struct page *p, const char *label, const char *text)
{
	page_item(p, 1);
	strbuf_addf(p->b, "%s: ", label);
	page_text(p, text, 0);
	page_end(p);
}

static void add_lost(struct page *p, const struct findings *f, const struct finding *fi)
{
	struct strbuf b = {0};

	if (!fi->lost_basis) {
		labelled(p, "time lost", "not estimable from this file");
		return;
	}
	text_time(&b, (double)fi->lost_ns);
	if (f->window_ns)
		strbuf_addf(&b, " in a window of ");
	if (f->window_ns)
		text_time(&b, (double)f->window_ns);
	strbuf_addf(&b, "; %s", fi->lost_basis);
	labelled(p, "time lost", b.s);
	strbuf_done(&b);
}

/* A command is copied as it is: in Markdown it stands in code. */
static void add_command(struct page *p, const char *text)
{
	page_item(p, 2);
	if (p->md && !strchr(text, '`')) {
		strbuf_addc(p->b, '`');
		text_clean(p->b, text, 400);
		strbuf_addc(p->b, '`');
	} else {
		text_clean(p->b, text, 400);
	}
	page_end(p);
}

static void add_finding(struct page *p, const struct study *s, const struct findings *f,
			const struct finding *fi, size_t number)
{
	page_item(p, 0);
	strbuf_addf(p->b, "%zu. %s: ", number, severity_name(fi->severity));
	page_text(p, fi->title, 0);
	page_end(p);
	page_item(p, 1);
	strbuf_addf(p->b, "%s layer, rule %s, confidence %u %%", layer_name(fi->layer), fi->rule,
		    fi->confidence_pct);
	page_end(p);
	if (fi->root != NODE_NONE) {
		struct strbuf b = {0};

		text_party(s->g, &b, fi->root);
		labelled(p, "root", b.s);
		strbuf_done(&b);
	}
	add_lost(p, f, fi);
	if (fi->why[0])
		labelled(p, "evidence", fi->why);
	for (size_t i = 0; i < fi->values.n && i < 12; i++)
		add_value(p, s, &fi->values.v[i]);
	for (size_t i = 0; i < fi->also.n && i < MOST_PARTS; i++) {
		labelled(p, "same root", fi->also.v[i].title);
		if (fi->also.v[i].why[0]) {
			page_item(p, 2);
			page_text(p, fi->also.v[i].why, 0);
			page_end(p);
		}
	}
	if (fi->also.n > MOST_PARTS) {
		page_item(p, 1);
		strbuf_addf(p->b, "and %zu more with the same root; --format json has all",
			    fi->also.n - MOST_PARTS);
		page_end(p);
	}
	for (size_t i = 0; i < fi->advice.n && i < MOST_PARTS; i++)
		labelled(p, "advice", fi->advice.v[i]);
	for (size_t i = 0; i < fi->commands.n && i < 2 * MOST_PARTS; i++)
		add_command(p, fi->commands.v[i]);
	if (fi->expectation)
		labelled(p, "expect", fi->expectation);
}

static void add_summary(struct page *p, const struct findings *f)
{
	size_t by[3] = {0};

	vec_for(&f->verdicts, v)
		by[v->verdict]++;
	page_item(p, 0);
	strbuf_addf(p->b,
		    "%u critical, %u warning, %u notice; of %zu rules %zu fired, %zu are clear, "
		    "%zu could not be evaluated",
		    f->counts[SEVERITY_CRITICAL], f->counts[SEVERITY_WARNING],
		    f->counts[SEVERITY_NOTICE], f->verdicts.n, by[VERDICT_FIRED], by[VERDICT_CLEAR],
		    by[VERDICT_UNKNOWN]);
	page_end(p);
	if (!f->window_ns) {
		page_item(p, 0);
		strbuf_add(p->b, "this file has no window: its counters are totals since the start "
				 "of each process, and no rates are made "
				 "of them");
		page_end(p);
	}
}

static void add_unknown(struct page *p, const struct findings *f)
{
	page_heading(p, "RULES that could not be evaluated");
	vec_for(&f->verdicts, v) {
		if (v->verdict != VERDICT_UNKNOWN)
			continue;
		page_item(p, 0);
		strbuf_addf(p->b, "%s: not known: ", v->rule->id);
		page_text(p, v->evidence, 0);
		if (v->how) {
			strbuf_add(p->b, "; to get it: ");
			page_text(p, v->how, 0);
		}
		page_end(p);
	}
}

static void add_clear(struct page *p, const struct findings *f)
{
	page_heading(p, "RULES that are clear");
	vec_for(&f->verdicts, v) {
		if (v->verdict != VERDICT_CLEAR)
			continue;
		page_item(p, 0);
		strbuf_addf(p->b, "%s: looked at: ", v->rule->id);
		page_text(p, v->evidence, 0);
		page_end(p);
	}
}

static void add_sight(struct page *p, const struct findings *f)
{
	if (!f->limits_of_sight.n)
		return;
	page_heading(p, "WHAT THIS FILE CANNOT TELL");
	vec_for(&f->limits_of_sight, t) {
		page_item(p, 0);
		page_text(p, *t, 400);
		page_end(p);
	}
}

void render_findings_text(const struct study *s, const struct findings *f,
			  const struct findings_view *v, bool md, struct strbuf *b)
{
	struct page p = {.b = b, .md = md};
	uint64_t shown = 0, all = 0;

	page_heading(&p, "BOTTLENECKS, the gravest first");
	add_summary(&p, f);
	vec_for(&f->v, fi) {
		if (fi->severity < v->least)
			continue;
		all++;
		if (!v->limit || shown < v->limit)
			add_finding(&p, s, f, fi, ++shown);
	}
	page_left_out(&p, shown, all);
	if (!all) {
		page_item(&p, 0);
		strbuf_add(b, "no finding");
		page_end(&p);
	}
	add_unknown(&p, f);
	if (!v->brief) {
		add_clear(&p, f);
		add_sight(&p, f);
	}
}
