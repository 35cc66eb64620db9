/* Hot threads as text for people and as Markdown: who is hot, why, and what the file cannot tell.
 */
#include <inttypes.h>
#include <string.h>

#include "render_hot_parts.h"
#include "text.h"

#define USUAL        10 /* threads in a report */
#define CHAINS_USUAL 6  /* items of each list of waits */
#define LIST_USUAL   3  /* items of a list within a thread */
#define NODES_MOST   6

const char *hot_page_thread(struct hot *h, uint32_t node, struct strbuf *b)
{
	const struct node *n = h->g->nodes.v[node], *p;

	strbuf_clear(b);
	if (n->type != &thread_type) {
		strbuf_add(b, n->type == &wait_object_type && HAS(wait_object, n, kind)
				  ? GET(wait_object, n, kind)
				  : graph_node_id(h->g, node));
		return b->s;
	}
	p = HAS(thread, n, process) ? h->g->nodes.v[GET(thread, n, process)] : NULL;
	strbuf_addf(b, "%s[%" PRIu64 "]",
		    HAS(thread, n, name)         ? GET(thread, n, name)
		    : p && HAS(process, p, name) ? GET(process, p, name)
						 : "?",
		    GET(thread, n, tid));
	if (p && HAS(process, p, pid) && GET(process, p, pid) != GET(thread, n, tid))
		strbuf_addf(b, " of %s[%" PRIu64 "]",
			    HAS(process, p, name) ? GET(process, p, name) : "?",
			    GET(process, p, pid));
	return b->s;
}

uint64_t hot_page_most(const struct hot_view *v, uint64_t usual)
{
	return v->limit ? v->limit : usual;
}

static void add_number(struct page *p, const char *before, double v, const char *after,
		       bool *ret_some)
{
	if (!hot_has(v))
		return;
	strbuf_addf(p->b, "%s%s%.1f%s", *ret_some ? ", " : "", before, v, after);
	*ret_some = true;
}

static void add_times(struct page *p, const struct hot_thread *t)
{
	bool some = false;

	if (!t->base_ns)
		return;
	page_item(p, 1);
	add_number(p, "CPU ", t->cpu_pct, " %", &some);
	if (hot_has(t->user_pct))
		strbuf_addf(p->b, " (%.0f %% of it user mode)", t->user_pct);
	add_number(p, "run queue ", t->runq_pct, " %", &some);
	add_number(p, "blocked ", t->blocked_pct, " %", &some);
	if (t->observed_ns && t->observed_ns != t->base_ns) {
		strbuf_add(p->b, ", lived ");
		text_time(p->b, (double)t->observed_ns);
	}
	page_end(p);
	if (!hot_has(t->switches_s))
		return;
	some = false;
	page_item(p, 1);
	add_number(p, "switches ", t->voluntary_s, "/s to wait", &some);
	add_number(p, "", t->involuntary_s, "/s pre-empted", &some);
	add_number(p, "migrations ", t->migrations_s, "/s", &some);
	add_number(p, "minor page faults ", t->minor_faults_s, "/s", &some);
	if (hot_has(t->major_faults_s) && t->major_faults_s > 0)
		add_number(p, "major ", t->major_faults_s, "/s", &some);
	page_end(p);
}

static void add_counters(struct page *p, const struct hot_thread *t)
{
	bool some = false;

	if (!hot_has(t->ipc) && !hot_has(t->llc_miss_pct))
		return;
	page_item(p, 1);
	if (hot_has(t->ipc)) {
		strbuf_addf(p->b, "%.2f instructions a cycle", t->ipc);
		some = true;
	}
	add_number(p, "last-level cache misses ", t->llc_miss_pct, " % of references", &some);
	page_end(p);
}

static void add_since(struct page *p, const struct hot_thread *t)
{
	const struct hot_since_start *s = &t->since;
	bool some = false;

	if (t->base_ns || (s->voluntary == UINT64_MAX && s->run_ns == UINT64_MAX))
		return;
	page_item(p, 1);
	strbuf_add(p->b, "since it started, no rate: ");
	if (s->run_ns != UINT64_MAX) {
		strbuf_add(p->b, "CPU time ");
		text_time(p->b, (double)s->run_ns);
		some = true;
	}
	if (s->voluntary != UINT64_MAX)
		strbuf_addf(p->b, "%s%" PRIu64 " switches to wait", some ? ", " : "", s->voluntary);
	if (s->involuntary != UINT64_MAX)
		strbuf_addf(p->b, ", %" PRIu64 " pre-empted", s->involuntary);
	page_end(p);
}

void hot_page_nodes(struct strbuf *b, const struct by_node *v)
{
	double sum = 0;
	unsigned shown = 0;

	vec_for(&v->v, x)
		sum += x->amount;
	if (sum <= 0)
		strbuf_add(b, "?");
	vec_for(&v->v, x) {
		if (sum <= 0 || x->amount * 200 < sum)
			continue;
		if (shown++ < NODES_MOST)
			strbuf_addf(b, "%s%u:%.0f%%", shown > 1 ? " " : "", x->node,
				    x->amount * 100 / sum);
	}
	if (shown > NODES_MOST)
		strbuf_addf(b, " +%u", shown - NODES_MOST);
}

static void add_place(struct page *p, const struct hot_thread *t)
{
	if (!t->cpu.v.n && !t->cpus_allowed)
		return;
	page_item(p, 1);
	strbuf_add(p->b, "runs on NUMA nodes ");
	hot_page_nodes(p->b, &t->cpu);
	strbuf_add(p->b, ", memory on ");
	hot_page_nodes(p->b, &t->memory);
	if (hot_has(t->similarity))
		strbuf_addf(p->b, ", similarity %.3f, remote %.0f %%%s", t->similarity,
			    t->remote_pct, t->remote_measured ? " by samples" : "");
	if (t->cpus_used_n)
		strbuf_addf(p->b, "; on %u CPU%s", t->cpus_used_n, t->cpus_used_n == 1 ? "" : "s");
	if (t->cpus_allowed)
		page_addf(p, ", allowed %s", t->cpus_allowed);
	page_end(p);
}

static void add_waits(struct page *p, struct hot *h, const struct hot_thread *t)
{
	struct strbuf name = {0};

	for (size_t i = 0; i < t->waits.n && i < LIST_USUAL; i++) {
		const struct hot_wait *w = &t->waits.v[i];

		page_item(p, 1);
		page_addf(p, "waits for %s %.1f %%", w->cause, hot_share_of(t, w->waited_ns));
		strbuf_addf(p->b, ", %" PRIu64 " %s, longest ", w->waits,
			    w->waits == 1 ? "time" : "times");
		text_time(p->b, (double)w->longest_ns);
		page_addf(p, ", %s%s", graph_node_id(h->g, w->object),
			  w->idle ? " (nobody is late)" : "");
		page_end(p);
	}
	for (size_t i = 0; i < t->wakers.n && i < LIST_USUAL; i++) {
		const struct hot_party *w = &t->wakers.v[i];

		page_item(p, 1);
		page_addf(p, "woken by %s", hot_page_thread(h, w->node, &name));
		strbuf_addf(p->b, ": %" PRIu64 " %s, after %.1f %% of the time", w->wakeups,
			    w->wakeups == 1 ? "time" : "times", hot_share_of(t, w->waited_ns));
		page_addf(p, " (%s)", w->cause);
		page_end(p);
	}
	strbuf_done(&name);
}

static void add_waiters(struct page *p, struct hot *h, const struct hot_thread *t)
{
	struct strbuf name = {0};

	for (size_t i = 0; i < t->waiters.n && i < LIST_USUAL; i++) {
		const struct hot_party *w = &t->waiters.v[i];

		page_item(p, 1);
		page_addf(p, "%s waited for it %.1f %%", hot_page_thread(h, w->node, &name),
			  hot_share_of(t, w->waited_ns));
		strbuf_addf(p->b, ", %" PRIu64 " %s, longest ", w->wakeups,
			    w->wakeups == 1 ? "time" : "times");
		text_time(p->b, (double)w->longest_ns);
		page_addf(p, " (%s%s)", w->cause,
			  w->idle_ns == w->waited_ns ? ", nobody is late" : "");
		page_end(p);
	}
	if (t->waiters.n > LIST_USUAL) {
		page_item(p, 1);
		strbuf_addf(p->b, "and %zu more waited for it", t->waiters.n - LIST_USUAL);
		page_end(p);
	}
	strbuf_done(&name);
}

static void add_bytes(struct page *p, struct hot *h, const struct hot_thread *t)
{
	if (t->bytes.n) {
		page_item(p, 1);
		strbuf_add(p->b, "data: ");
		for (size_t i = 0; i < t->bytes.n && i < NODES_MOST; i++) {
			const struct hot_bytes *x = &t->bytes.v[i];

			strbuf_addf(p->b, "%s%s in ", i ? "; " : "", x->kind);
			text_bytes(p->b, (double)x->in_bytes);
			strbuf_add(p->b, ", out ");
			text_bytes(p->b, (double)x->out_bytes);
			strbuf_addf(p->b, " in %" PRIu64 " calls", x->calls);
		}
		page_end(p);
	}
	if (t->devices.n) {
		page_item(p, 1);
		strbuf_add(p->b, "devices of its process:");
		for (size_t i = 0; i < t->devices.n && i < NODES_MOST; i++)
			page_addf(p, " %s", graph_node_id(h->g, t->devices.v[i]));
		page_end(p);
	}
}

static void add_class(struct page *p, const struct hot_thread *t)
{
	page_item(p, 1);
	strbuf_addf(p->b, "class %s", thread_class_name(t->class));
	if (t->class == CLASS_MIXED)
		strbuf_addf(p->b, " (%s and %s)", thread_class_name(t->mix[0]),
			    thread_class_name(t->mix[1]));
	if (t->class_why)
		page_addf(p, ": %s", t->class_why);
	page_end(p);
	page_item(p, 1);
	strbuf_addf(p->b, "cause: %s", hot_cause_name(t->cause));
	if (t->cause_why)
		page_addf(p, ": %s", t->cause_why);
	if (t->root_why)
		page_addf(p, "; following the waits: %s", t->root_why);
	page_end(p);
}

static bool said_for_all(const struct hot *h, const char *missing)
{
	vec_for(&h->missing, m)
		if (*m == missing)
			return true;
	return false;
}

static void add_reasons(struct page *p, const struct hot *h, const struct hot_thread *t)
{
	vec_for(&t->reasons, r) {
		page_item(p, 1);
		if (r->points)
			strbuf_addf(p->b, "+%u ", r->points);
		page_text(p, r->text, 0);
		page_end(p);
	}
	vec_for(&t->rules, r) {
		page_item(p, 1);
		strbuf_addf(p->b, "%s (%u %%) ", r->rule, r->pct);
		page_addf(p, "%s; %s", r->text, r->advice);
		page_end(p);
	}
	vec_for(&t->missing, m) {
		if (said_for_all(h, *m))
			continue;
		page_item(p, 1);
		page_addf(p, "not known: %s", *m);
		page_end(p);
	}
}

static void add_thread(struct page *p, struct hot *h, const struct hot_thread *t)
{
	struct strbuf name = {0};

	page_item(p, 0);
	strbuf_addf(p->b, "%s %u/%u", hot_level_name(t->level), t->points, t->possible);
	/* One point that is missing says little; with most of them missing, so does the level. */
	if (t->possible <= 3 && t->level_most != t->level)
		strbuf_addf(p->b, " (up to %s)", hot_level_name(t->level_most));
	strbuf_add(p->b, "  ");
	page_text(p, hot_page_thread(h, t->node, &name), 0);
	page_end(p);
	add_reasons(p, h, t);
	add_times(p, t);
	add_counters(p, t);
	add_since(p, t);
	add_class(p, t);
	add_place(p, t);
	add_waits(p, h, t);
	add_waiters(p, h, t);
	add_bytes(p, h, t);
	strbuf_done(&name);
}

static void add_overview(struct page *p, struct hot *h)
{
	size_t levels[4] = {0}, partial = 0;

	vec_for(&h->threads, t) {
		levels[t->level]++;
		partial += t->possible < 6;
	}
	page_item(p, 0);
	strbuf_addf(p->b, "%zu threads: %zu severe, %zu moderate, %zu light, %zu normal",
		    h->threads.n, levels[LEVEL_SEVERE], levels[LEVEL_MODERATE], levels[LEVEL_LIGHT],
		    levels[LEVEL_NORMAL]);
	if (partial)
		strbuf_addf(
		    p->b,
		    "; at least: %zu of them could not be given all 6 points, see score/possible",
		    partial);
	page_end(p);
	vec_for(&h->missing, m) {
		page_item(p, 0);
		page_addf(p, "known of no thread: %s", *m);
		page_end(p);
	}
	page_item(p, 0);
	if (h->window_ns) {
		strbuf_add(p->b, "rates are differences over ");
		text_time(p->b, (double)h->observed_ns);
	} else {
		strbuf_add(p->b, "no window: the file has no rates");
	}
	strbuf_addf(p->b, "; limits: preset %s", h->limits.preset);
	if (h->limits.changed)
		strbuf_addf(p->b, ", %zu changed by a file", h->limits.changed);
	page_end(p);
	if (hot_has(h->demand_pct)) {
		page_item(p, 0);
		strbuf_addf(p->b, "running and runnable time of all threads: %.0f %% of %u CPUs%s",
			    h->demand_pct, h->cpus,
			    h->demand_pct > h->limits.v[LIMIT_cpu_demand]
				? ", which is over-subscribed"
				: "");
		page_end(p);
	}
}

static void add_threads(struct page *p, struct hot *h, const struct hot_view *v)
{
	uint64_t most = hot_page_most(v, USUAL), shown = 0, all = 0;

	/* Those without a point or a reason are not hot; the first few are shown when there are no
	 * others. */
	vec_for(&h->threads, t)
		all += t->reasons.n != 0 || t->rules.n != 0;
	page_heading(p, "HOT THREADS");
	add_overview(p, h);
	vec_for(&h->threads, t) {
		if (shown >= most || (!t->reasons.n && !t->rules.n))
			continue;
		add_thread(p, h, t);
		shown++;
	}
	if (!all) {
		page_item(p, 0);
		strbuf_add(p->b,
			   h->window_ns ? "no thread is hot" : "no thread is known to be hot");
		page_end(p);
	}
	page_left_out(p, shown, all);
}

static void add_classes(struct page *p, struct hot *h)
{
	static const struct page_column columns[] = {{"class", 14, false},   {"threads", 8, true},
						     {"CPU, sum", 10, true}, {"mean CPU", 10, true},
						     {"switches", 12, true}, {NULL}};

	page_heading(p, "CLASSES of threads");
	page_table(p, columns);
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		const struct hot_class_sum *s = &h->classes[c];

		if (!s->threads)
			continue;
		page_cell(p, columns, thread_class_name((enum thread_class)c));
		page_cellf(p, columns, "%u", s->threads);
		if (s->measured) {
			page_cellf(p, columns, "%.1f %%", s->cpu_pct);
			page_cellf(p, columns, "%.1f %%", s->cpu_pct / s->measured);
			page_cellf(p, columns, "%.0f/s", s->switches_s);
		} else {
			for (int i = 0; i < 3; i++)
				page_cell(p, columns, "?");
		}
		page_row_end(p);
	}
}

static void add_unseen(struct page *p, struct hot *h)
{
	if (!h->unseen.n)
		return;
	page_heading(p, "NOT KNOWN of threads");
	vec_for(&h->unseen, u) {
		page_item(p, 0);
		page_text(p, *u, 0);
		page_end(p);
	}
}

void render_hot_text(struct hot *h, const struct hot_view *v, bool md, struct strbuf *b)
{
	struct page p = {.b = b, .md = md};

	add_threads(&p, h, v);
	if (v->waits && h->has_waits)
		render_waitfor_text(v->waits, h->g,
				    &(struct waitfor_view){.limit = v->limit ?: CHAINS_USUAL}, md,
				    b);
	p.in_table = false;
	add_classes(&p, h);
	hot_page_affinity(&p, h, v);
	hot_page_switching(&p, h, v);
	add_unseen(&p, h);
}
