/* The report of a whole analysis as Markdown: summary, seven layers, advice by priority, what it
 * rests on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "page.h"
#include "render_findings.h"
#include "render_hot.h"
#include "rule.h"
#include "text.h"
#include "units.h"

struct report {
	const struct study *s;
	const struct findings *f;
	const struct findings_view *v;
	struct page p;
};

static const enum severity priorities[] = {SEVERITY_CRITICAL, SEVERITY_WARNING, SEVERITY_NOTICE};
#define NPRIORITIES (sizeof(priorities) / sizeof(priorities[0]))

static void line(struct report *r, const char *label, const char *text)
{
	page_item(&r->p, 0);
	strbuf_addf(r->p.b, "**%s**: ", label);
	page_text(&r->p, text, 0);
	page_end(&r->p);
}

static void add_time(struct strbuf *b, uint64_t ns_1970)
{
	time_t t = (time_t)(ns_1970 / 1000000000);
	struct tm tm;
	char text[40];

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	strbuf_add(b, text);
}

static void add_header(struct report *r)
{
	const struct graph *g = r->s->g;
	struct strbuf b = {0};

	strbuf_add(r->p.b, "# Bottleneck report\n\n");
	if (g->meta.start_ns)
		add_time(&b, g->meta.start_ns);
	else
		strbuf_add(&b, "not known");
	line(r, "Time", b.s);
	strbuf_clear(&b);
	vec_for(&g->nodes, n) {
		if ((*n)->type != &host_type)
			continue;
		strbuf_addf(&b, "%s%s", b.n ? "; " : "", GET(host, *n, hostname));
		if (HAS(host, *n, os))
			strbuf_addf(&b, ", %s", GET(host, *n, os));
		if (HAS(host, *n, kernel))
			strbuf_addf(&b, ", kernel %s", GET(host, *n, kernel));
		if (HAS(host, *n, cpus))
			strbuf_addf(&b, ", %" PRIu64 " CPUs", GET(host, *n, cpus));
	}
	line(r, "System", b.n ? b.s : "not in this file");
	line(r, "Scope", r->v->file ? r->v->file : "one recording");
	if (g->meta.options)
		line(r, "Recorded with", g->meta.options);
	strbuf_done(&b);
}

static const struct finding *top_of(const struct findings *f, enum severity s)
{
	vec_for(&f->v, fi)
		if (fi->severity == s)
			return fi;
	return NULL;
}

static void add_summary(struct report *r)
{
	const struct topology *t = r->s->t;
	size_t nodes = 0;
	struct strbuf b = {0};

	page_heading(&r->p, "Summary");
	vec_for(&r->s->g->nodes, n)
		nodes += (*n)->type == &numa_type;
	strbuf_addf(&b, "%zu NUMA node%s, %zu accelerator%s, %zu processes", nodes,
		    nodes == 1 ? "" : "s", t ? t->devices.n : 0, t && t->devices.n == 1 ? "" : "s",
		    t ? t->n_processes : 0);
	line(r, "Machine", b.s);
	strbuf_clear(&b);
	if (t)
		vec_for(&t->groups, gr)
			if (gr->patterns.n && gr->name)
				strbuf_addf(&b, "%s%s: %s (%u %%)", b.n ? "; " : "", gr->name,
					    gr->patterns.v[0].text, gr->patterns.v[0].pct);
	line(r, "Job", b.n ? b.s : "no parallel job is recognised");
	strbuf_clear(&b);
	if (r->f->window_ns)
		text_time(&b, (double)r->f->window_ns);
	else
		strbuf_add(&b, "no window: counters are totals since the start of each process");
	line(r, "Observed for", b.s);
	for (size_t i = 0; i < NPRIORITIES; i++) {
		const struct finding *top = top_of(r->f, priorities[i]);

		strbuf_clear(&b);
		strbuf_addf(&b, "%u", r->f->counts[priorities[i]]);
		if (top)
			strbuf_addf(&b, "; first of them: %s", top->title);
		line(r, severity_priority(priorities[i]), b.s);
	}
	strbuf_done(&b);
}

static void add_values(struct report *r, const struct finding *fi)
{
	for (size_t i = 0; i < fi->values.n && i < 16; i++) {
		struct strbuf b = {0};

		finding_value_text(r->s, &fi->values.v[i], &b);
		page_item(&r->p, 1);
		page_text(&r->p, b.s, 0);
		page_end(&r->p);
		strbuf_done(&b);
	}
}

static void add_item(struct report *r, const struct finding *fi, unsigned layer, unsigned number)
{
	struct strbuf b = {0};

	strbuf_addf(r->p.b, "\n### %u.%u ", layer + 1, number);
	page_text(&r->p, fi->title, 0);
	strbuf_add(r->p.b, "\n\n");
	page_item(&r->p, 0);
	strbuf_addf(r->p.b, "**Severity**: %s (%s), confidence %u %%, by: %s",
		    severity_name(fi->severity), severity_priority(fi->severity),
		    fi->confidence_pct, fi->severity_basis);
	page_end(&r->p);
	line(r, "Evidence", fi->why[0] ? fi->why : fi->title);
	add_values(r, fi);
	strbuf_clear(&b);
	if (fi->root != NODE_NONE)
		text_party(r->s->g, &b, fi->root);
	else
		strbuf_add(&b, "no single one");
	line(r, "Root", b.s);
	for (size_t i = 0; i < fi->also.n && i < 6; i++)
		line(r, "Same root", fi->also.v[i].title);
	if (fi->also.n > 6) {
		strbuf_clear(&b);
		strbuf_addf(&b, "and %zu more", fi->also.n - 6);
		line(r, "Same root", b.s);
	}
	strbuf_clear(&b);
	if (fi->lost_basis) {
		text_time(&b, (double)fi->lost_ns);
		strbuf_addf(&b, ": %s", fi->lost_basis);
	} else {
		strbuf_add(&b, "time lost cannot be estimated from this file");
	}
	line(r, "Impact", b.s);
	for (size_t i = 0; i < fi->advice.n && i < 6; i++)
		line(r, "Advice", fi->advice.v[i]);
	if (fi->commands.n) {
		/* Of a name that has three back ticks in it, no block could be made. */
		strbuf_add(r->p.b, "\n```\n");
		for (size_t i = 0; i < fi->commands.n && i < 12; i++) {
			struct strbuf text = {0};

			text_clean(&text, fi->commands.v[i], 400);
			for (char *at = text.s; at && (at = strstr(at, "```")); at += 3)
				memcpy(at, "'''", 3);
			strbuf_addf(r->p.b, "%s\n", strbuf_str(&text));
			strbuf_done(&text);
		}
		strbuf_add(r->p.b, "```\n\n");
	}
	if (fi->expectation)
		line(r, "Expect", fi->expectation);
	strbuf_done(&b);
}

static void add_layer(struct report *r, enum layer l)
{
	unsigned number = 0;
	char title[64];

	snprintf(title, sizeof(title), "Layer %d: %s", l + 1, layer_name(l));
	page_heading(&r->p, title);
	vec_for(&r->f->v, fi)
		if (fi->layer == l && fi->severity >= r->v->least)
			add_item(r, fi, (unsigned)l, ++number);
	if (!number)
		strbuf_add(r->p.b, "No finding.\n");
	strbuf_addc(r->p.b, '\n');
	vec_for(&r->f->verdicts, v) {
		if (v->rule->layer != l || v->verdict == VERDICT_FIRED)
			continue;
		page_item(&r->p, 0);
		strbuf_addf(r->p.b, "`%s` %s: ", v->rule->id, verdict_name(v->verdict));
		page_text(&r->p, v->evidence, 0);
		if (v->how) {
			strbuf_add(r->p.b, "; to get it: ");
			page_text(&r->p, v->how, 0);
		}
		page_end(&r->p);
	}
}

/* What kind of work the first advice is. */
static const char *effort_of(const struct finding *fi)
{
	if (fi->layer == LAYER_CONTROL || fi->layer == LAYER_DATA || !strcmp(fi->family, "thread"))
		return "a change of the program";
	if (!strcmp(fi->family, "cpu") || !strcmp(fi->family, "placement") ||
	    !strcmp(fi->family, "memory"))
		return "a setting; often a restart";
	if (fi->layer == LAYER_STORAGE)
		return "a setting, or a change of the program";
	return "settings, or hardware";
}

static const struct page_column columns[] = {{"priority", 8, false}, {"finding", 40, false},
					     {"action", 60, false},  {"expected", 40, false},
					     {"effort", 20, false},  {NULL, 0, false}};

static void add_advice(struct report *r)
{
	page_heading(&r->p, "Advice by priority");
	if (!r->f->v.n) {
		strbuf_add(r->p.b, "Nothing to do.\n");
		return;
	}
	page_table(&r->p, columns);
	vec_for(&r->f->v, fi) {
		if (fi->severity < r->v->least)
			continue;
		page_cell(&r->p, columns, severity_priority(fi->severity));
		page_cell(&r->p, columns, fi->title);
		page_cell(&r->p, columns, fi->advice.n ? fi->advice.v[0] : "-");
		page_cell(&r->p, columns, fi->expectation ? fi->expectation : "-");
		page_cell(&r->p, columns, effort_of(fi));
		page_row_end(&r->p);
	}
}

static void add_roadmap(struct report *r)
{
	static const char *const when[] = {"Now (P0)", "This week (P1)", "This month (P2)"};

	page_heading(&r->p, "Roadmap");
	for (size_t i = 0; i < NPRIORITIES; i++) {
		size_t n = 0;

		strbuf_addf(r->p.b, "%s**%s**\n\n", i ? "\n" : "", when[i]);
		vec_for(&r->f->v, fi) {
			if (fi->severity != priorities[i])
				continue;
			n++;
			strbuf_add(r->p.b, "- [ ] ");
			page_text(&r->p, fi->advice.n ? fi->advice.v[0] : fi->title, 0);
			strbuf_addf(r->p.b, " (`%s`)\n", fi->rule);
		}
		if (!n)
			strbuf_add(r->p.b, "Nothing.\n");
	}
	strbuf_add(
	    r->p.b,
	    "\nRecord again after each step, and compare: `witty-profiler diff BEFORE AFTER`.\n");
}

static void add_appendix(struct report *r)
{
	const struct graph *g = r->s->g;

	page_heading(&r->p, "Appendix: what this rests on");
	vec_for(&g->status, st) {
		struct strbuf b = {0};

		strbuf_addf(&b, "%s: %s%s%s%s%s", st->source, st->state, st->rung ? " by " : "",
			    st->rung ? st->rung : "", st->reason ? ": " : "",
			    st->reason ? st->reason : "");
		page_item(&r->p, 0);
		page_text(&r->p, b.s, 300);
		page_end(&r->p);
		strbuf_done(&b);
	}
	vec_for(&g->losses, l) {
		page_item(&r->p, 0);
		strbuf_addf(r->p.b, "lost: %" PRIu64 " (%s, %s)", l->count, l->source, l->cause);
		page_end(&r->p);
	}
	vec_for(&r->f->limits_of_sight, t) {
		page_item(&r->p, 0);
		strbuf_add(r->p.b, "cannot be told: ");
		page_text(&r->p, *t, 400);
		page_end(&r->p);
	}
	page_item(&r->p, 0);
	strbuf_addf(
	    r->p.b,
	    "limits: preset %s, %zu replaced; rules and limits: docs/rules.md, docs/limits.md",
	    r->s->l ? r->s->l->preset : "default", r->s->l ? r->s->l->changed : 0);
	page_end(&r->p);
	strbuf_add(r->p.b, "\nMade by witty-profiler " WITTY_VERSION ".\n");
}

void render_findings_report(const struct study *s, const struct findings *f,
			    const struct findings_view *v, struct strbuf *b)
{
	struct report r = {.s = s, .f = f, .v = v, .p = {.b = b, .md = true}};
	struct hot_view hot = {.limit = v->limit ? v->limit : 8};

	add_header(&r);
	add_summary(&r);
	for (int l = 0; l < LAYER_COUNT; l++)
		add_layer(&r, l);
	if (s->hot) {
		strbuf_addc(b, '\n');
		render_hot_text((struct hot *)s->hot, &hot, true, b);
	}
	add_advice(&r);
	add_roadmap(&r);
	add_appendix(&r);
}
