/* What changed between two recordings, as text, Markdown and JSON. */
#include <inttypes.h>
#include <math.h>

#include "page.h"
#include "render_compare.h"
#include "text.h"
#include "units.h"

#define ROWS 20

static uint64_t most(const struct compare_view *v)
{
	return v->limit ? v->limit : ROWS;
}

static void add_pct(struct page *p, const struct page_column *c, double v)
{
	if (isnan(v))
		page_cell(p, c, "-");
	else
		page_cellf(p, c, "%.1f", v);
}

static const char *verdict_of(const struct change *c)
{
	return c->significant ? "yes" : isnan(c->t) ? "not known" : "no";
}

static void add_side(struct page *p, const char *which, const char *file, uint64_t window_ns,
		     size_t intervals)
{
	page_item(p, 0);
	strbuf_addf(p->b, "%s: ", which);
	page_text(p, file, 0);
	if (window_ns) {
		strbuf_add(p->b, ", ");
		text_time(p->b, (double)window_ns);
		strbuf_addf(p->b, " in %zu intervals", intervals);
	} else {
		strbuf_add(p->b, ", without a window: no rates");
	}
	page_end(p);
}

static void add_finding(struct page *p, const struct finding_change *f)
{
	const struct finding *now = f->b ? f->b : f->a;

	page_item(p, 0);
	strbuf_addf(p->b, "%s: ", finding_fate_name(f->fate));
	if (f->fate == FATE_WORSE || f->fate == FATE_BETTER)
		strbuf_addf(p->b, "%s, was %s: ", severity_name(f->b->severity),
			    severity_name(f->a->severity));
	else
		strbuf_addf(p->b, "%s: ", severity_name(now->severity));
	strbuf_addf(p->b, "%s: ", now->rule);
	page_text(p, now->title, 0);
	if (!isnan(f->a_lost_pct) || !isnan(f->b_lost_pct)) {
		strbuf_add(p->b, "; time lost, of the window: ");
		if (!isnan(f->a_lost_pct))
			units_add_pct(p->b, f->a_lost_pct);
		else
			strbuf_add(p->b, f->a ? "not known" : "none");
		strbuf_add(p->b, " then, ");
		if (!isnan(f->b_lost_pct))
			units_add_pct(p->b, f->b_lost_pct);
		else
			strbuf_add(p->b, f->b ? "not known" : "none");
		strbuf_add(p->b, " now");
	}
	page_end(p);
}

static void add_findings(struct page *p, const struct compare *c, const struct compare_view *v)
{
	uint64_t shown = 0, same = 0;

	page_heading(p, "FINDINGS");
	vec_for(&c->findings, f) {
		if (f->fate == FATE_SAME && !v->all) {
			same++;
			continue;
		}
		if (shown++ < most(v))
			add_finding(p, f);
	}
	if (shown > most(v))
		page_left_out(p, most(v), shown);
	if (!shown) {
		page_item(p, 0);
		strbuf_add(p->b, "none is new, gone, better or worse");
		page_end(p);
	}
	if (same) {
		page_item(p, 0);
		strbuf_addf(p->b, "%" PRIu64 " are as before", same);
		page_end(p);
	}
}

static bool thread_changed(const struct thread_change *t)
{
	return t->cpu_pct.significant || t->runq_pct.significant || t->switches_s.significant;
}

static void add_threads(struct page *p, const struct compare *c, const struct compare_view *v)
{
	static const struct page_column columns[] = {{"threads", 40, false},
						     {"number", 9, false},
						     {"CPU % then", 10, true},
						     {"now", 8, true},
						     {"run queue % then", 16, true},
						     {"now", 8, true},
						     {"switches/s then", 15, true},
						     {"now", 8, true},
						     {"CPU changed", 11, false},
						     {"run queue changed", 17, false},
						     {NULL, 0, false}};
	uint64_t shown = 0, changed = 0;

	page_heading(p, "THREADS whose time changed");
	vec_for(&c->threads, t)
		changed += v->all || thread_changed(t);
	if (!changed) {
		page_item(p, 0);
		strbuf_addf(p->b, "none of %zu by more than chance", c->threads.n);
		page_end(p);
		return;
	}
	page_table(p, columns);
	vec_for(&c->threads, t) {
		if ((!v->all && !thread_changed(t)) || shown++ >= most(v))
			continue;
		page_cell(p, columns, t->name);
		page_cellf(p, columns, "%u > %u", t->a_n, t->b_n);
		add_pct(p, columns, t->cpu_pct.a);
		add_pct(p, columns, t->cpu_pct.b);
		add_pct(p, columns, t->runq_pct.a);
		add_pct(p, columns, t->runq_pct.b);
		page_cellf(p, columns, "%.0f", t->switches_s.a);
		page_cellf(p, columns, "%.0f", t->switches_s.b);
		page_cell(p, columns, verdict_of(&t->cpu_pct));
		page_cell(p, columns, verdict_of(&t->runq_pct));
		page_row_end(p);
	}
	if (changed > most(v))
		page_left_out(p, most(v), changed);
}

static void add_flows(struct page *p, const struct compare *c, const struct compare_view *v)
{
	static const struct page_column columns[] = {
	    {"from", 28, false},        {"to", 28, false}, {"kind", 10, false},
	    {"bytes/s then", 12, true}, {"now", 12, true}, {"messages/s then", 15, true},
	    {"now", 10, true},          {NULL, 0, false}};
	uint64_t shown = 0, changed = 0;

	page_heading(p, "FLOWS whose amount changed");
	vec_for(&c->flows, f)
		changed += v->all || f->bytes_s.significant;
	if (!changed) {
		page_item(p, 0);
		strbuf_addf(p->b, "none of %zu by a fifth or more", c->flows.n);
		page_end(p);
		return;
	}
	page_table(p, columns);
	vec_for(&c->flows, f) {
		if ((!v->all && !f->bytes_s.significant) || shown++ >= most(v))
			continue;
		page_cell(p, columns, f->from);
		page_cell(p, columns, f->to);
		page_cell(p, columns, f->kind);
		page_cellf(p, columns, "%.0f", f->bytes_s.a);
		page_cellf(p, columns, "%.0f", f->bytes_s.b);
		page_cellf(p, columns, "%.1f", f->messages_s.a);
		page_cellf(p, columns, "%.1f", f->messages_s.b);
		page_row_end(p);
	}
	if (changed > most(v))
		page_left_out(p, most(v), changed);
}

static const char *const basis[] = {
    "processes are matched by what they run and their container, threads by their name without "
    "numbers; equal ones are added up",
    "threads: Welch's t over the intervals, two-sided 99 %, and at least 2 points and a tenth of "
    "the larger value",
    "flows: at least a fifth of the larger amount, and ten messages; how far their number is from "
    "chance is in the JSON"};

void render_compare_text(const struct compare *c, const struct compare_view *v, bool md,
			 struct strbuf *b)
{
	struct page p = {.b = b, .md = md};

	page_heading(&p, "WHAT CHANGED");
	add_side(&p, "then", v->a, c->a_window_ns, c->a_intervals);
	add_side(&p, "now", v->b, c->b_window_ns, c->b_intervals);
	add_findings(&p, c, v);
	add_threads(&p, c, v);
	add_flows(&p, c, v);
	page_heading(&p, "BASIS");
	for (size_t i = 0; i < sizeof(basis) / sizeof(basis[0]); i++) {
		page_item(&p, 0);
		strbuf_add(b, basis[i]);
		page_end(&p);
	}
}

static void key_change(struct json_writer *w, const char *key, const struct change *c)
{
	json_write_key(w, key);
	json_write_object(w);
	json_write_key(w, "then");
	json_write_f64(w, c->a);
	json_write_key(w, "now");
	json_write_f64(w, c->b);
	json_write_key(w, "t");
	json_write_f64(w, c->t);
	json_write_key(w, "significant");
	json_write_bool(w, c->significant);
	json_write_object_end(w);
}

static void json_side(struct json_writer *w, const char *key, const char *file, uint64_t window_ns,
		      size_t intervals)
{
	json_write_key(w, key);
	json_write_object(w);
	json_key_str(w, "file", file);
	json_write_key(w, "window_ns");
	if (window_ns)
		json_write_u64(w, window_ns);
	else
		json_write_null(w);
	json_key_u64(w, "intervals", intervals);
	json_write_object_end(w);
}

static void json_finding(struct json_writer *w, const struct finding_change *f)
{
	const struct finding *now = f->b ? f->b : f->a;

	json_write_object(w);
	json_key_str(w, "change", finding_fate_name(f->fate));
	json_key_str(w, "rule", now->rule);
	json_key_str(w, "layer", layer_name(now->layer));
	json_key_str(w, "who", f->who);
	json_key_str(w, "title", now->title);
	json_key_str(w, "severity_then", f->a ? severity_name(f->a->severity) : NULL);
	json_key_str(w, "severity_now", f->b ? severity_name(f->b->severity) : NULL);
	json_write_key(w, "lost_pct_then");
	json_write_f64(w, f->a_lost_pct);
	json_write_key(w, "lost_pct_now");
	json_write_f64(w, f->b_lost_pct);
	json_write_object_end(w);
}

void render_compare_json(const struct compare *c, const struct compare_view *v,
			 struct json_writer *w)
{
	uint64_t limit = v->limit ? v->limit : UINT64_MAX, n = 0;

	json_write_object(w);
	json_key_u64(w, "schema_version", 1);
	json_side(w, "then", v->a, c->a_window_ns, c->a_intervals);
	json_side(w, "now", v->b, c->b_window_ns, c->b_intervals);
	json_write_key(w, "findings");
	json_write_array(w);
	vec_for(&c->findings, f)
		if (n++ < limit)
			json_finding(w, f);
	json_write_array_end(w);
	json_write_key(w, "threads");
	json_write_array(w);
	n = 0;
	vec_for(&c->threads, t) {
		if (n++ >= limit)
			break;
		json_write_object(w);
		json_key_str(w, "name", t->name);
		json_key_u64(w, "threads_then", t->a_n);
		json_key_u64(w, "threads_now", t->b_n);
		key_change(w, "cpu_pct", &t->cpu_pct);
		key_change(w, "runq_pct", &t->runq_pct);
		key_change(w, "blocked_late_pct", &t->blocked_late_pct);
		key_change(w, "switches_s", &t->switches_s);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "flows");
	json_write_array(w);
	n = 0;
	vec_for(&c->flows, f) {
		if (n++ >= limit)
			break;
		json_write_object(w);
		json_key_str(w, "from", f->from);
		json_key_str(w, "to", f->to);
		json_key_str(w, "kind", f->kind);
		key_change(w, "bytes_s", &f->bytes_s);
		key_change(w, "messages_s", &f->messages_s);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
}
