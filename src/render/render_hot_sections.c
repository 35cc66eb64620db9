/* NUMA affinity and context switches of threads, as text for people and as Markdown. */
#include <inttypes.h>
#include <string.h>

#include "render_hot_parts.h"
#include "text.h"

#define ROWS_USUAL 20

static double error_of(const struct hot *h, const struct numa_row *r)
{
	const struct edge *d = h->g->edges.v[r->edge];

	return d->type == &numa_access_type && HAS(numa_access, d, share_error)
		   ? GET(numa_access, d, share_error)
		   : -1;
}

/* Where processes run and have their memory: their threads' is the same memory. */
static void add_processes(struct page *p, struct hot *h, uint64_t most)
{
	static const struct page_column columns[] = {{"process", 30, false},
						     {"runs on nodes", 26, false},
						     {"memory on nodes", 30, false},
						     {"similarity", 10, true},
						     {"remote", 7, true},
						     {"mode", 6, false},
						     {NULL}};
	struct strbuf cell = {0};
	uint64_t shown = 0, all = 0;

	vec_for(&h->processes.v, r)
		all += r->score.known;
	if (!all)
		return;
	page_table(p, columns);
	vec_for(&h->processes.v, r) {
		if (!r->score.known || shown >= most)
			continue;
		strbuf_clear(&cell);
		text_end(h->g, &cell, r->node);
		page_cell(p, columns, cell.s);
		strbuf_clear(&cell);
		hot_page_nodes(&cell, &r->cpu);
		page_cell(p, columns, cell.s);
		strbuf_clear(&cell);
		hot_page_nodes(&cell, &r->memory);
		if (error_of(h, r) > 0)
			strbuf_addf(&cell, " (+-%.1f%%)", error_of(h, r) * 100);
		page_cell(p, columns, cell.s);
		page_cellf(p, columns, "%.3f", r->score.similarity);
		page_cellf(p, columns, "%.0f %%", r->score.remote_share * 100);
		page_cell(p, columns, r->verdict);
		page_row_end(p);
		shown++;
	}
	page_left_out(p, shown, all);
	strbuf_done(&cell);
}

static void add_threads(struct page *p, struct hot *h, uint64_t most)
{
	static const struct page_column columns[] = {{"thread", 38, false},
						     {"CPU", 7, true},
						     {"runs on nodes", 26, false},
						     {"memory on nodes", 28, false},
						     {"similarity", 10, true},
						     {"remote", 7, true},
						     {"mode", 6, false},
						     {"severity", 8, false},
						     {NULL}};
	struct strbuf cell = {0};
	uint64_t shown = 0;

	page_table(p, columns);
	for (; shown < h->affinity.n && shown < most; shown++) {
		const struct hot_thread *t = &h->threads.v[h->affinity.v[shown]];

		page_cell(p, columns, hot_page_thread(h, t->node, &cell));
		if (hot_has(t->cpu_pct))
			page_cellf(p, columns, "%.1f %%", t->cpu_pct);
		else
			page_cell(p, columns, "?");
		strbuf_clear(&cell);
		hot_page_nodes(&cell, &t->cpu);
		page_cell(p, columns, cell.s);
		strbuf_clear(&cell);
		hot_page_nodes(&cell, &t->memory);
		page_cell(p, columns, cell.s);
		page_cellf(p, columns, "%.3f", t->similarity);
		page_cellf(p, columns, "%.0f %%", t->remote_pct);
		page_cell(p, columns, t->affinity.mode);
		page_cell(p, columns, t->affinity.band);
		page_row_end(p);
	}
	page_left_out(p, shown, h->affinity.n);
	for (uint64_t i = 0; i < shown; i++) {
		const struct hot_thread *t = &h->threads.v[h->affinity.v[i]];

		if (!t->affinity.why)
			continue;
		page_item(p, 0);
		page_addf(p, "%s: %s", hot_page_thread(h, t->node, &cell), t->affinity.why);
		if (t->affinity.advice) {
			page_end(p);
			page_item(p, 1);
			page_text(p, t->affinity.advice, 0);
		}
		page_end(p);
	}
	strbuf_done(&cell);
}

static void add_nodes(struct page *p, struct hot *h)
{
	static const struct page_column columns[] = {{"node", 6, true},
						     {"threads", 8, true},
						     {"CPU, sum", 10, true},
						     {"remote threads", 14, true},
						     {NULL}};

	if (!h->nodes.n)
		return;
	page_table(p, columns);
	vec_for(&h->nodes, s) {
		page_cellf(p, columns, "%u", s->numa);
		page_cellf(p, columns, "%u", s->threads);
		if (hot_has(s->cpu_pct))
			page_cellf(p, columns, "%.1f %%", s->cpu_pct);
		else
			page_cell(p, columns, "?");
		page_cellf(p, columns, "%u", s->remote);
		page_row_end(p);
	}
}

void hot_page_affinity(struct page *p, struct hot *h, const struct hot_view *v)
{
	uint64_t most = hot_page_most(v, ROWS_USUAL);

	page_heading(p, "NUMA AFFINITY");
	if (h->numa_nodes == 1) {
		page_item(p, 0);
		strbuf_add(p->b, "one NUMA node: all memory is local");
		page_end(p);
		return;
	}
	add_processes(p, h, most);
	add_nodes(p, h);
	if (h->affinity.n) {
		add_threads(p, h, most);
	} else {
		page_item(p, 0);
		page_addf(p,
			  "of no thread with %.0f %% of the CPU time or more both places are known",
			  h->limits.v[LIMIT_numa_cpu]);
		page_end(p);
	}
	if (h->affinity.n || h->processes.v.n) {
		page_item(p, 0);
		strbuf_add(p->b, "memory is that of the whole process: which thread uses which "
				 "part of it is not known");
		page_end(p);
	}
}

void hot_page_switching(struct page *p, struct hot *h, const struct hot_view *v)
{
	static const struct page_column columns[] = {
	    {"thread", 36, false},  {"switches", 10, true},
	    {"to wait", 10, true},  {"pre-empted", 10, true},
	    {"run queue", 9, true}, {"cause", 15, false},
	    {"severity", 8, false}, {NULL}};
	uint64_t most = hot_page_most(v, ROWS_USUAL), shown = 0;
	struct strbuf name = {0};

	page_heading(p, "CONTEXT SWITCHES");
	if (!h->switching.n) {
		page_item(p, 0);
		strbuf_add(p->b,
			   h->window_ns && !h->has_switches
			       ? "not recorded: the scheduler was not observed"
			   : h->window_ns
			       ? "no thread switches often, or waits for a CPU"
			       : "not known: switches since the start of a thread are no rate");
		page_end(p);
		return;
	}
	page_table(p, columns);
	for (; shown < h->switching.n && shown < most; shown++) {
		const struct hot_thread *t = &h->threads.v[h->switching.v[shown]];

		page_cell(p, columns, hot_page_thread(h, t->node, &name));
		page_cellf(p, columns, "%.0f/s", t->switches_s);
		page_cellf(p, columns, "%.0f/s", t->voluntary_s);
		page_cellf(p, columns, "%.0f/s", t->involuntary_s);
		if (hot_has(t->runq_pct))
			page_cellf(p, columns, "%.1f %%", t->runq_pct);
		else
			page_cell(p, columns, "?");
		page_cell(p, columns, t->switching.cause);
		page_cell(p, columns, t->switching.band);
		page_row_end(p);
	}
	for (uint64_t i = 0; i < shown; i++) {
		const struct hot_thread *t = &h->threads.v[h->switching.v[i]];

		if (!t->switching.proof && !t->switching.advice)
			continue;
		page_item(p, 0);
		page_addf(p, "%s: %s", hot_page_thread(h, t->node, &name),
			  t->switching.proof ?: "");
		if (t->switching.advice)
			page_addf(p, "%sadvice: %s", t->switching.proof ? "; " : "",
				  t->switching.advice);
		page_end(p);
	}
	page_left_out(p, shown, h->switching.n);
	strbuf_done(&name);
}
