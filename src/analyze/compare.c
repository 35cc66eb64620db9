/* Comparison of two recordings: findings, threads and flows, matched by what they are. */
#include "compare.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hot.h"
#include "strbuf.h"

#define LEAST_POINTS    2.0 /* percentage points */
#define LEAST_PART      0.1
#define LEAST_FLOW_PART 0.2
#define FLOW_ERRORS     3.0
#define LEAST_INTERVALS 3
/* Rows with less than this on both sides are left out. */
#define LEAST_CPU_PCT 0.5
#define LEAST_BYTES_S 1000.0

/* --- names --- */

/* Numbers in names are ranks, places in a pool, or pids. */
static void add_plain(struct strbuf *b, const char *s)
{
	for (; *s; s++)
		if (!isdigit((unsigned char)*s))
			strbuf_addc(b, *s);
}

static const struct topo_actor *actor_of(const struct study *s, uint32_t node)
{
	uint32_t at = s->t && node < s->g->nodes.n ? s->t->actor_of[node] : TOPO_NONE;

	return at == TOPO_NONE ? NULL : &s->t->actors.v[at];
}

static void add_process(struct strbuf *b, const struct study *s, uint32_t node)
{
	const struct topo_actor *a = actor_of(s, node);
	const struct node *n = s->g->nodes.v[node];

	if (a && a->program)
		add_plain(b, a->program);
	else if (n->type == &process_type && HAS(process, n, name))
		add_plain(b, GET(process, n, name));
	else if (a)
		strbuf_add(b, a->label);
	else
		strbuf_add(b, graph_node_id(s->g, node));
	if (a && a->container)
		strbuf_addf(b, " in %s", a->container);
}

static char *key_of(const struct study *s, uint32_t node)
{
	const struct node *n = s->g->nodes.v[node];
	struct strbuf b = {0};

	if (n->type == &thread_type) {
		uint32_t p = HAS(thread, n, process) ? GET(thread, n, process) : NODE_NONE;

		add_plain(&b, HAS(thread, n, name) ? GET(thread, n, name) : "?");
		if (p != NODE_NONE) {
			strbuf_add(&b, " of ");
			add_process(&b, s, p);
		}
	} else if (n->type == &process_type || actor_of(s, node)) {
		add_process(&b, s, node);
	} else {
		strbuf_add(&b, graph_node_id(s->g, node));
	}
	return b.s ? b.s : mem_strdup("?");
}

/* --- significance --- */

/* Two-sided 99 % point of Student's t. */
static double t_point(double df)
{
	static const double points[] = {63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50,
					3.36,  3.25, 3.17, 3.11, 3.05, 3.01, 2.98,
					2.95,  2.92, 2.90, 2.88, 2.86, 2.85};
	size_t n = sizeof(points) / sizeof(points[0]);

	if (!(df >= 1))
		return INFINITY;
	return df < (double)n ? points[(size_t)df - 1] : 2.58 + 5.2 / df;
}

static void moments(const double *v, size_t n, double *mean, double *variance)
{
	double m = 0, q = 0;

	for (size_t i = 0; i < n; i++)
		m += v[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		q += (v[i] - m) * (v[i] - m);
	*mean = m;
	*variance = n > 1 ? q / (double)(n - 1) : 0;
}

/* The values over the whole windows are what is shown; the intervals only tell how much they
 * scatter. */
static void judge(struct change *c, const double *a, size_t na, const double *b, size_t nb,
		  double least)
{
	double ma, mb, va, vb, ea, eb, df, d = fabs(c->b - c->a);

	c->t = NAN;
	if (na < LEAST_INTERVALS || nb < LEAST_INTERVALS || isnan(d))
		return;
	moments(a, na, &ma, &va);
	moments(b, nb, &mb, &vb);
	ea = va / (double)na;
	eb = vb / (double)nb;
	if (ea + eb <= 0) {
		/* No scatter at all, as for what is always or never there. */
		c->significant = d >= least && d >= LEAST_PART * fmax(c->a, c->b);
		return;
	}
	c->t = (mb - ma) / sqrt(ea + eb);
	df = (ea + eb) * (ea + eb) / (ea * ea / (double)(na - 1) + eb * eb / (double)(nb - 1));
	c->significant =
	    fabs(c->t) > t_point(df) && d >= least && d >= LEAST_PART * fmax(c->a, c->b);
}

/* --- threads --- */

enum figure { FIG_CPU, FIG_RUNQ, FIG_SWITCHES, FIG_COUNT };

struct side {
	uint32_t n;
	double sum[FIG_COUNT], late;
	double *series[FIG_COUNT]; /* [intervals], in the arena of the comparison */
};

struct row {
	char *key;
	struct side of[2];
};

struct rows {
	VEC(struct row) v;
};

static size_t whole_intervals(const struct study *s)
{
	return s->time ? s->time->intervals.n : 0;
}

static int compare_rows(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

static double interval_s(const struct timeline *t, size_t i)
{
	return (double)(t->intervals.v[i].end_ns - t->intervals.v[i].start_ns) / 1e9;
}

/* The first one is from when the hooks were attached, and the last one may be cut short. */
static bool is_whole(const struct timeline *t, size_t i)
{
	return i && interval_s(t, i) >= 0.05;
}

static void add_series(struct compare *c, const struct study *s, uint32_t thread, struct side *d)
{
	size_t n, intervals = whole_intervals(s);
	const struct thread_slice *v = s->time ? timeline_slices(s->time, thread, &n) : NULL;

	if (!intervals)
		return;
	for (int f = 0; f < FIG_COUNT; f++)
		d->series[f] = arena_alloc(&c->arena, intervals * sizeof(double));
	for (size_t i = 0; v && i < n; i++) {
		double len = interval_s(s->time, v[i].interval);

		if (!is_whole(s->time, v[i].interval))
			continue;
		d->series[FIG_CPU][v[i].interval] += (double)v[i].run_ns / len / 1e7;
		d->series[FIG_RUNQ][v[i].interval] += (double)v[i].runq_ns / len / 1e7;
		d->series[FIG_SWITCHES][v[i].interval] +=
		    (double)(v[i].voluntary + v[i].involuntary) / len;
	}
}

static void collect_threads(struct compare *c, const struct study *s, int which, struct rows *ret)
{
	double window_s = (double)s->g->meta.window_ns / 1e9;

	if (!s->hot || window_s <= 0)
		return;
	vec_for(&s->hot->threads, th) {
		struct row r = {0};
		struct side *d = &r.of[which];

		d->n = 1;
		d->sum[FIG_CPU] = (double)th->run_ns / window_s / 1e7;
		d->sum[FIG_RUNQ] = (double)th->runq_ns / window_s / 1e7;
		d->late = (double)th->late_blocked_ns / window_s / 1e7;
		d->sum[FIG_SWITCHES] = hot_has(th->switches_s)
					   ? th->switches_s * (double)th->base_ns / 1e9 / window_s
					   : 0;
		if (d->sum[FIG_CPU] + d->sum[FIG_RUNQ] <= 0)
			continue;
		r.key = key_of(s, th->node);
		add_series(c, s, th->node, d);
		vec_push(&ret->v, r);
	}
}

static void add_side(struct side *into, const struct side *from, size_t intervals)
{
	into->n += from->n;
	into->late += from->late;
	for (int f = 0; f < FIG_COUNT; f++) {
		into->sum[f] += from->sum[f];
		if (!into->series[f]) {
			into->series[f] = from->series[f];
			continue;
		}
		for (size_t i = 0; from->series[f] && i < intervals; i++)
			into->series[f][i] += from->series[f][i];
	}
}

/* Whole intervals only; series are packed in place. */
static size_t pack(const struct study *s, double *v)
{
	size_t n = 0;

	for (size_t i = 0; v && i < whole_intervals(s); i++)
		if (is_whole(s->time, i))
			v[n++] = v[i];
	return n;
}

static struct change change_of(const struct compare *c, const struct study *s[2], struct row *r,
			       int f, double least)
{
	struct change ch = {.a = c->a_window_ns ? r->of[0].sum[f] : NAN,
			    .b = c->b_window_ns ? r->of[1].sum[f] : NAN};
	double none[2][64] = {{0}};
	double *v[2] = {r->of[0].series[f], r->of[1].series[f]};
	size_t n[2];

	for (int k = 0; k < 2; k++) {
		n[k] = v[k] ? pack(s[k], v[k]) : 0;
		/* Not there at all: as often nothing as there were intervals. */
		if (!v[k] && !r->of[k].n) {
			v[k] = none[k];
			n[k] = whole_intervals(s[k]) < 64 ? whole_intervals(s[k]) : 64;
			n[k] -= n[k] > 0;
		}
	}
	judge(&ch, v[0], n[0], v[1], n[1], least);
	return ch;
}

static double weight(const struct thread_change *t)
{
	return fabs(t->cpu_pct.b - t->cpu_pct.a) + fabs(t->runq_pct.b - t->runq_pct.a);
}

static bool matters(const struct thread_change *t)
{
	return t->cpu_pct.significant || t->runq_pct.significant || t->switches_s.significant;
}

static int compare_threads(const void *a, const void *b)
{
	const struct thread_change *x = a, *y = b;

	if (matters(x) != matters(y))
		return matters(x) ? -1 : 1;
	if (weight(x) != weight(y))
		return weight(x) > weight(y) ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void add_threads(struct compare *c, const struct study *s[2])
{
	struct rows rows = {0};

	for (int k = 0; k < 2; k++)
		collect_threads(c, s[k], k, &rows);
	if (rows.v.n)
		qsort(rows.v.v, rows.v.n, sizeof(*rows.v.v), compare_rows);
	for (size_t i = 0, next; i < rows.v.n; i = next) {
		struct row *r = &rows.v.v[i];
		struct thread_change t = {0};

		for (next = i + 1; next < rows.v.n && !strcmp(rows.v.v[next].key, r->key); next++)
			for (int k = 0; k < 2; k++)
				if (rows.v.v[next].of[k].n)
					add_side(&r->of[k], &rows.v.v[next].of[k],
						 whole_intervals(s[k]));
		if (r->of[0].sum[FIG_CPU] + r->of[0].sum[FIG_RUNQ] < LEAST_CPU_PCT &&
		    r->of[1].sum[FIG_CPU] + r->of[1].sum[FIG_RUNQ] < LEAST_CPU_PCT)
			continue;
		t.name = arena_strdup(&c->arena, r->key);
		t.a_n = r->of[0].n;
		t.b_n = r->of[1].n;
		t.blocked_late_pct = (struct change){r->of[0].late, r->of[1].late, NAN, false};
		t.cpu_pct = change_of(c, s, r, FIG_CPU, LEAST_POINTS);
		t.runq_pct = change_of(c, s, r, FIG_RUNQ, LEAST_POINTS);
		t.switches_s = change_of(c, s, r, FIG_SWITCHES, 100);
		vec_push(&c->threads, t);
	}
	vec_for(&rows.v, r)
		free(r->key);
	vec_done(&rows.v);
	if (c->threads.n)
		qsort(c->threads.v, c->threads.n, sizeof(*c->threads.v), compare_threads);
}

/* --- flows --- */

struct flow_row {
	char *key; /* from, to and kind, each ended by a line feed */
	double bytes[2], messages[2];
};

static int compare_flow_rows(const void *a, const void *b)
{
	return strcmp(((const struct flow_row *)a)->key, ((const struct flow_row *)b)->key);
}

struct flow_rows {
	VEC(struct flow_row) v;
};

static void collect_flows(const struct study *s, int which, struct flow_rows *ret)
{
	if (!s->t)
		return;
	vec_for(&s->t->links, l) {
		struct flow_row r = {0};
		char *from = key_of(s, s->t->actors.v[l->from].node),
		     *to = key_of(s, s->t->actors.v[l->to].node);
		struct strbuf b = {0};

		strbuf_addf(&b, "%s\n%s\n%s", from, to, l->kind);
		free(from);
		free(to);
		r.key = b.s;
		r.bytes[which] = (double)l->bytes;
		r.messages[which] = (double)l->messages;
		vec_push(&ret->v, r);
	}
}

/* Counts of messages in both windows: the difference of rates against its standard error. */
static void judge_flow(struct flow_change *f, const struct flow_row *r, double wa, double wb)
{
	double a = r->messages[0] / wa, b = r->messages[1] / wb;
	double error =
	    sqrt(fmax(r->messages[0], 1) / (wa * wa) + fmax(r->messages[1], 1) / (wb * wb));
	double part = fabs(f->bytes_s.b - f->bytes_s.a) / fmax(fmax(f->bytes_s.a, f->bytes_s.b), 1);

	f->messages_s = (struct change){a, b, (b - a) / error, false};
	f->messages_s.significant =
	    fabs(f->messages_s.t) > FLOW_ERRORS && fabs(b - a) >= LEAST_FLOW_PART * fmax(a, b);
	f->bytes_s.t = f->messages_s.t;
	f->bytes_s.significant = part >= LEAST_FLOW_PART && r->messages[0] + r->messages[1] >= 10 &&
				 fmax(f->bytes_s.a, f->bytes_s.b) >= LEAST_BYTES_S;
}

static int compare_flows(const void *a, const void *b)
{
	const struct flow_change *x = a, *y = b;
	double dx = fabs(x->bytes_s.b - x->bytes_s.a), dy = fabs(y->bytes_s.b - y->bytes_s.a);
	int c;

	if (x->bytes_s.significant != y->bytes_s.significant)
		return x->bytes_s.significant ? -1 : 1;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	c = strcmp(x->from, y->from);
	c = c ? c : strcmp(x->to, y->to);
	return c ? c : strcmp(x->kind, y->kind);
}

static void add_flows(struct compare *c, const struct study *s[2])
{
	double wa = (double)c->a_window_ns / 1e9, wb = (double)c->b_window_ns / 1e9;
	struct flow_rows rows = {0};

	if (!c->a_window_ns || !c->b_window_ns)
		return;
	for (int k = 0; k < 2; k++)
		collect_flows(s[k], k, &rows);
	if (rows.v.n)
		qsort(rows.v.v, rows.v.n, sizeof(*rows.v.v), compare_flow_rows);
	for (size_t i = 0, next; i < rows.v.n; i = next) {
		struct flow_row *r = &rows.v.v[i];
		struct flow_change f = {0};
		char *text, *at;

		for (next = i + 1; next < rows.v.n && !strcmp(rows.v.v[next].key, r->key); next++)
			for (int k = 0; k < 2; k++) {
				r->bytes[k] += rows.v.v[next].bytes[k];
				r->messages[k] += rows.v.v[next].messages[k];
			}
		f.bytes_s = (struct change){r->bytes[0] / wa, r->bytes[1] / wb, NAN, false};
		if (f.bytes_s.a < LEAST_BYTES_S && f.bytes_s.b < LEAST_BYTES_S)
			continue;
		text = arena_strdup(&c->arena, r->key);
		f.from = strsep(&text, "\n");
		at = strsep(&text, "\n");
		f.to = at ? at : "";
		f.kind = text ? text : "";
		judge_flow(&f, r, wa, wb);
		vec_push(&c->flows, f);
	}
	vec_for(&rows.v, r)
		free(r->key);
	vec_done(&rows.v);
	if (c->flows.n)
		qsort(c->flows.v, c->flows.n, sizeof(*c->flows.v), compare_flows);
}

/* --- findings --- */

static char *who_of(const struct compared *x, const struct finding *f)
{
	uint32_t node = f->root != NODE_NONE ? f->root
			: f->subjects.n      ? f->subjects.v[0]
					     : NODE_NONE;

	return node == NODE_NONE ? mem_strdup("") : key_of(x->study, node);
}

static double lost_pct(const struct findings *f, const struct finding *fi)
{
	return fi->lost_basis && f->window_ns ? (double)fi->lost_ns * 100 / (double)f->window_ns
					      : NAN;
}

static const struct finding *take_match(const struct compared *b, bool *taken, const char *rule,
					const char *who)
{
	for (size_t i = 0; i < b->findings->v.n; i++) {
		const struct finding *f = &b->findings->v.v[i];
		char *other;
		bool same;

		if (taken[i] || strcmp(f->rule, rule))
			continue;
		other = who_of(b, f);
		same = !strcmp(other, who);
		free(other);
		if (same) {
			taken[i] = true;
			return f;
		}
	}
	return NULL;
}

static int compare_changes(const void *a, const void *b)
{
	const struct finding_change *x = a, *y = b;
	const struct finding *fx = x->b ? x->b : x->a, *fy = y->b ? y->b : y->a;

	if (x->fate != y->fate)
		return x->fate < y->fate ? -1 : 1;
	if (fx->severity != fy->severity)
		return fx->severity > fy->severity ? -1 : 1;
	if (fx->lost_ns != fy->lost_ns)
		return fx->lost_ns > fy->lost_ns ? -1 : 1;
	if (strcmp(fx->rule, fy->rule))
		return strcmp(fx->rule, fy->rule);
	return strcmp(x->who, y->who);
}

static void add_change(struct compare *c, const struct compared *a, const struct compared *b,
		       const struct finding *fa, const struct finding *fb, const char *who)
{
	struct finding_change ch = {.a = fa, .b = fb, .a_lost_pct = NAN, .b_lost_pct = NAN};

	ch.who = arena_strdup(&c->arena, who);
	if (fa)
		ch.a_lost_pct = lost_pct(a->findings, fa);
	if (fb)
		ch.b_lost_pct = lost_pct(b->findings, fb);
	ch.fate = !fa                           ? FATE_NEW
		  : !fb                         ? FATE_GONE
		  : fb->severity > fa->severity ? FATE_WORSE
		  : fb->severity < fa->severity ? FATE_BETTER
						: FATE_SAME;
	vec_push(&c->findings, ch);
}

static void add_findings(struct compare *c, const struct compared *a, const struct compared *b)
{
	bool *taken = mem_alloc(b->findings->v.n + 1);

	memset(taken, 0, b->findings->v.n + 1);
	vec_for(&a->findings->v, fa) {
		char *who = who_of(a, fa);

		add_change(c, a, b, fa, take_match(b, taken, fa->rule, who), who);
		free(who);
	}
	for (size_t i = 0; i < b->findings->v.n; i++) {
		char *who;

		if (taken[i])
			continue;
		who = who_of(b, &b->findings->v.v[i]);
		add_change(c, a, b, NULL, &b->findings->v.v[i], who);
		free(who);
	}
	free(taken);
	if (c->findings.n)
		qsort(c->findings.v, c->findings.n, sizeof(*c->findings.v), compare_changes);
}

void compare_init(struct compare *c, const struct compared *a, const struct compared *b)
{
	const struct study *s[2] = {a->study, b->study};

	memset(c, 0, sizeof(*c));
	arena_init(&c->arena);
	c->a_window_ns = a->study->g->meta.window_ns;
	c->b_window_ns = b->study->g->meta.window_ns;
	c->a_intervals = whole_intervals(a->study);
	c->b_intervals = whole_intervals(b->study);
	add_findings(c, a, b);
	add_threads(c, s);
	add_flows(c, s);
}

void compare_done(struct compare *c)
{
	vec_done(&c->threads);
	vec_done(&c->flows);
	vec_done(&c->findings);
	arena_done(&c->arena);
}

const char *finding_fate_name(enum finding_fate f)
{
	static const char *const names[] = {"new", "worse", "better", "gone", "same"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == FATE_COUNT, "a fate without a name");

	return names[f];
}

enum severity compare_worst(const struct compare *c)
{
	enum severity worst = SEVERITY_INFO;

	vec_for(&c->findings, f)
		if ((f->fate == FATE_NEW || f->fate == FATE_WORSE) && f->b->severity > worst)
			worst = f->b->severity;
	return worst;
}
