/* The analysis of waits as text for people and as Markdown: who waits for whom, and why. */
#include <inttypes.h>
#include <string.h>

#include "render_waitfor.h"
#include "text.h"

struct page {
	const struct waitfor *w;
	struct graph *g;
	const struct waitfor_view *v;
	struct strbuf *b;
	bool md;
};

static uint64_t most(const struct page *p, uint64_t usual)
{
	return p->v->limit ? p->v->limit : usual;
}

static void heading(const struct page *p, const char *title)
{
	unsigned level = p->v->level ? p->v->level : 2;

	if (!p->md) {
		strbuf_addf(p->b, "%s%s\n", p->b->n ? "\n" : "", title);
		return;
	}
	strbuf_add(p->b, "\n");
	strbuf_pad(p->b, '#', level);
	strbuf_addf(p->b, " %s\n\n", title);
}

static void item(const struct page *p, unsigned depth)
{
	strbuf_pad(p->b, ' ', (p->md ? 0 : 2) + 2 * (size_t)depth);
	if (p->md)
		strbuf_add(p->b, "- ");
}

static void left_out(const struct page *p, unsigned depth, uint64_t n, const char *what)
{
	if (!n)
		return;
	item(p, depth);
	strbuf_addf(p->b, "+%" PRIu64 " %s\n", n, what);
}

static void put_text(const struct page *p, const char *s)
{
	text_clean(p->b, s, 240);
}

static void put_time(const struct page *p, uint64_t ns)
{
	text_time(p->b, (double)ns);
}

static void put_pct(const struct page *p, uint64_t part, uint64_t whole)
{
	if (whole)
		strbuf_addf(p->b, "%.0f %%", (double)part * 100 / (double)whole);
}

static void put_node(const struct page *p, uint32_t node)
{
	const struct node *n = p->g->nodes.v[node];

	if (n->type == &thread_type && HAS(thread, n, name)) {
		text_clean(p->b, GET(thread, n, name), 16);
		strbuf_addf(p->b, "[%" PRIu64 "]", GET(thread, n, tid));
	} else {
		text_clean(p->b, graph_node_id(p->g, node), 80);
	}
}

static void put_role(const struct page *p, uint32_t role)
{
	put_text(p, p->w->roles.v[role].text);
}

/* "EngineCore[4711] of vllm[4700]", or the one of several that accounts for most. */
static void put_root(const struct page *p, const struct wait_part *part)
{
	const struct wait_role *r = &p->w->roles.v[part->role];

	put_role(p, part->role);
	if (r->threads.n > 1 && part->threads == 1) {
		strbuf_add(p->b, " (");
		put_node(p, part->thread);
		strbuf_addc(p->b, ')');
	} else if (r->threads.n > 1) {
		strbuf_add(p->b, " (most: ");
		put_node(p, part->thread);
		strbuf_addc(p->b, ')');
	}
}

static void add_part(const struct page *p, const struct wait_chain *c, const struct wait_part *part)
{
	size_t start;
	bool self = part->role == c->role && !part->via.n && part->state != STATE_RUN &&
		    part->state != STATE_RUNQ && part->state != STATE_CYCLE;

	item(p, 1);
	start = p->b->n;
	put_time(p, part->ns);
	text_pad(p->b, start, p->md ? 0 : 12);
	start = p->b->n;
	put_pct(p, part->ns, c->waited_ns);
	text_pad(p->b, start, p->md ? 0 : 6);
	if (self) {
		strbuf_addf(p->b, "%s", wait_state_text(part->state));
	} else {
		strbuf_addf(p->b, "%s: ", part->held ? "lock" : wait_cause_name(part->cause));
		put_root(p, part);
		strbuf_addf(p->b, ", %s", wait_state_text(part->state));
	}
	if (part->object != NODE_NONE) {
		strbuf_add(p->b, " (");
		put_node(p, part->object);
		strbuf_addc(p->b, ')');
	}
	vec_for(&part->via, via) {
		strbuf_add(p->b, via == part->via.v ? ", through " : ", then ");
		put_role(p, *via);
	}
	if (part->idle)
		strbuf_add(p->b, part->state == STATE_BLOCKED ? "; not known whether anybody is late" : "; nobody is late");
	strbuf_addc(p->b, '\n');
}

static void add_chain(const struct page *p, const struct wait_chain *c)
{
	const struct wait_role *r = &p->w->roles.v[c->role];
	uint64_t shown = 0, limit = most(p, 6), rest = 0, hidden = 0;

	item(p, 0);
	put_role(p, c->role);
	strbuf_add(p->b, r->threads.n > 1 ? " waited " : " waited ");
	put_time(p, c->waited_ns);
	if (p->w->window_ns) {
		strbuf_add(p->b, ", ");
		put_pct(p, c->waited_ns, p->w->window_ns * r->threads.n);
		strbuf_add(p->b, r->threads.n > 1 ? " of the window each" : " of the window");
	}
	if (c->late_ns < c->waited_ns) {
		strbuf_add(p->b, "; ");
		put_time(p, c->late_ns);
		strbuf_add(p->b, " of it late");
	}
	if (c->unknown_ns * 100 >= c->waited_ns) {
		strbuf_add(p->b, ", not known of ");
		put_time(p, c->unknown_ns);
	}
	if (c->seen_pct < 90)
		strbuf_addf(p->b, "; %u %% seen one by one, the rest by proportion", c->seen_pct);
	strbuf_add(p->b, "\n");
	vec_for(&c->parts, part) {
		if (shown < limit) {
			add_part(p, c, part);
			shown++;
		} else {
			rest += part->ns;
			hidden++;
		}
	}
	if (hidden) {
		item(p, 1);
		put_time(p, rest);
		strbuf_addf(p->b, " in %" PRIu64 " more ways\n", hidden);
	}
}

static void add_chains(const struct page *p)
{
	uint64_t shown = 0, hidden = 0, limit = most(p, 12), unknown = 0;

	heading(p, "WHO WAITS FOR WHOM");
	vec_for(&p->w->chains, c) {
		unknown += c->unknown_ns;
		bool wanted = p->v->idle || c->late_ns * 1000 >= p->w->window_ns;

		if (!wanted || shown >= limit)
			hidden++;
		else
			add_chain(p, c);
		shown += wanted;
	}
	if (!shown) {
		item(p, 0);
		if (unknown * 1000 >= p->w->window_ns && unknown) {
			strbuf_add(p->b, "nobody is known to be late because of others; what threads waited for is not known of ");
			put_time(p, unknown);
			strbuf_addc(p->b, '\n');
		} else {
			strbuf_add(p->b, "nobody is late because of others\n");
		}
	}
	left_out(p, 0, hidden, "roles that waited less, or without being late");
}

static void add_root(const struct page *p, const struct wait_root *r)
{
	item(p, 0);
	put_node(p, r->thread);
	strbuf_addf(p->b, ", %s", wait_state_text(r->state));
	if (r->object != NODE_NONE) {
		strbuf_add(p->b, " (");
		put_node(p, r->object);
		strbuf_addc(p->b, ')');
	}
	if (r->held)
		strbuf_add(p->b, ", with a lock");
	if (r->waiters) {
		strbuf_addf(p->b, ": %" PRIu32 " thread%s waited ", r->waiters, r->waiters == 1 ? "" : "s");
		put_time(p, r->waited_ns);
		if (r->wall_ns && p->w->window_ns) {
			strbuf_add(p->b, ", at least one for ");
			put_pct(p, r->wall_ns, p->w->window_ns);
			strbuf_add(p->b, " of the window");
		}
	} else {
		strbuf_add(p->b, ": itself for ");
		put_time(p, r->own_ns);
	}
	strbuf_add(p->b, "\n");
}

static void add_roots(const struct page *p)
{
	uint64_t shown = 0, hidden = 0, limit = most(p, 12);

	heading(p, "ROOTS");
	vec_for(&p->w->roots, r) {
		bool wanted = (p->v->idle || !r->idle) && (r->waited_ns + r->own_ns) * 1000 >= p->w->window_ns;

		if (wanted && shown < limit)
			add_root(p, r);
		else
			hidden += !r->idle || p->v->idle;
		shown += wanted;
	}
	if (!shown) {
		item(p, 0);
		strbuf_add(p->b, "none: nobody makes others wait for a thousandth of the window\n");
	}
	left_out(p, 0, hidden, "more");
}

static void add_evidence(const struct page *p, const char *text, unsigned pct, const char *why)
{
	item(p, 0);
	put_text(p, text);
	strbuf_addf(p->b, " (%u %%)\n", pct);
	item(p, 1);
	put_text(p, why);
	strbuf_addc(p->b, '\n');
}

static void add_hangs(const struct page *p)
{
	if (!p->w->hangs.n)
		return;
	heading(p, "NO PROGRESS");
	vec_for(&p->w->hangs, h)
		add_evidence(p, h->text, h->confidence_pct, h->why);
}

static void add_patterns(const struct page *p)
{
	uint64_t shown = 0, limit = most(p, 12);

	if (!p->w->patterns.n)
		return;
	heading(p, "PATTERNS");
	vec_for(&p->w->patterns, it) {
		if (shown++ >= limit)
			break;
		add_evidence(p, it->text, it->confidence_pct, it->why);
	}
	left_out(p, 0, p->w->patterns.n - (shown < p->w->patterns.n ? limit : p->w->patterns.n), "more");
}

static void add_ranks(const struct page *p)
{
	if (!p->w->stragglers.n)
		return;
	heading(p, "RANKS");
	vec_for(&p->w->stragglers, s)
		add_evidence(p, s->text, s->confidence_pct, s->why);
}

/* A thread of a critical path in a state: one line, as for chains. */
static void add_path_part(const struct page *p, const struct path_part *part, uint64_t whole)
{
	size_t start;

	item(p, 1);
	start = p->b->n;
	put_time(p, part->ns);
	text_pad(p->b, start, p->md ? 0 : 12);
	start = p->b->n;
	put_pct(p, part->ns, whole);
	text_pad(p->b, start, p->md ? 0 : 6);
	put_node(p, part->thread);
	strbuf_addf(p->b, ", %s", wait_state_text(part->state));
	if (part->object != NODE_NONE) {
		strbuf_add(p->b, " (");
		put_node(p, part->object);
		strbuf_addc(p->b, ')');
	}
	strbuf_addc(p->b, '\n');
}

static void add_path(const struct page *p, const struct wait_path *path)
{
	uint64_t shown = 0, rest = 0, limit = most(p, 8);

	item(p, 0);
	put_node(p, path->thread);
	if (path->rounds)
		strbuf_addf(p->b, " and its equals, over %" PRIu32 " steps", path->rounds);
	strbuf_add(p->b, ", ");
	put_time(p, path->to_ns - path->from_ns);
	strbuf_add(p->b, ":\n");
	vec_for(&path->parts, part) {
		if (shown++ < limit)
			add_path_part(p, part, path->to_ns - path->from_ns);
		else
			rest += part->ns;
	}
	if (rest) {
		item(p, 1);
		put_time(p, rest);
		strbuf_addf(p->b, " in %" PRIu64 " more parts\n", path->parts.n - limit);
	}
}

static void add_paths(const struct page *p)
{
	if (!p->w->paths.n)
		return;
	heading(p, "CRITICAL PATH");
	vec_for(&p->w->paths, path)
		add_path(p, path);
}

static void add_what_ifs(const struct page *p)
{
	uint64_t shown = 0, limit = most(p, 6);

	if (!p->w->what_ifs.n)
		return;
	heading(p, "WHAT IF");
	vec_for(&p->w->what_ifs, v) {
		if (shown++ >= limit)
			break;
		item(p, 0);
		put_text(p, v->text);
		strbuf_addc(p->b, '\n');
		item(p, 1);
		strbuf_addf(p->b, "assumes that %s\n", v->assumes);
	}
}

static void add_knots(const struct page *p)
{
	uint64_t shown = 0, limit = most(p, 6);

	if (!p->w->knots.n)
		return;
	heading(p, "KNOTS");
	vec_for(&p->w->knots, k) {
		if (shown++ >= limit)
			break;
		item(p, 0);
		for (size_t i = 0; i < k->roles.n && i < 6; i++) {
			strbuf_add(p->b, !i ? "" : i + 1 == k->roles.n ? " and " : ", ");
			put_role(p, k->roles.v[i]);
		}
		if (k->roles.n > 6)
			strbuf_addf(p->b, " and %zu more", k->roles.n - 6);
		strbuf_add(p->b, " wait for each other and for nobody else, ");
		put_time(p, k->ns);
		strbuf_addc(p->b, '\n');
	}
	left_out(p, 0, p->w->knots.n - (p->w->knots.n < limit ? p->w->knots.n : limit), "more");
}

static void add_serial(const struct page *p)
{
	uint64_t shown = 0, limit = most(p, 6), hidden = 0;

	if (!p->w->serial.n)
		return;
	heading(p, "HOW PARALLEL");
	vec_for(&p->w->serial, s) {
		if (shown >= limit) {
			hidden++;
			continue;
		}
		shown++;
		item(p, 0);
		text_end(p->g, p->b, s->process);
		strbuf_addf(p->b, ": %.2f of %" PRIu32 " threads active on average", s->mean_active, s->threads);
		if (s->one_active_pct >= 0) {
			strbuf_addf(p->b, "; one alone in %.0f %% of its busy time", s->one_active_pct);
			if (s->top != NODE_NONE) {
				strbuf_add(p->b, ", mostly ");
				put_node(p, s->top);
			}
		}
		strbuf_addc(p->b, '\n');
	}
	left_out(p, 0, hidden, "more");
}

static void add_basis(const struct page *p)
{
	const struct waitfor *w = p->w;
	uint64_t start = p->g->meta.start_ns, seen = 0;

	heading(p, "BASIS");
	item(p, 0);
	if (!w->seen_from_ns) {
		strbuf_add(p->b, "no single waits in this file: how times split over roots goes by what threads did "
				 "on the whole\n");
		return;
	}
	if (w->seen_from_ns > start)
		seen = w->seen_from_ns - start;
	strbuf_add(p->b, "waits of 50 us or more are known one by one ");
	if (seen * 20 > w->window_ns) {
		strbuf_add(p->b, "from ");
		put_time(p, seen);
		strbuf_add(p->b, " on; how earlier ones split goes by these\n");
	} else {
		strbuf_add(p->b, "from the beginning\n");
	}
	if (w->cut_ns) {
		item(p, 0);
		put_time(p, w->cut_ns);
		strbuf_add(p->b, " was not followed to its root: too many waits\n");
	}
}

static void add_not_recorded(const struct page *p)
{
	heading(p, "WHO WAITS FOR WHOM");
	item(p, 0);
	strbuf_add(p->b, "not recorded: this file does not tell what threads wait for, nor who ends it\n");
	item(p, 0);
	strbuf_add(p->b, "to get it: record as root with probe 'sched'; 'witty-profiler doctor' says what is missing\n");
}

void render_waitfor_text(const struct waitfor *w, struct graph *g, const struct waitfor_view *v, bool md,
			 struct strbuf *b)
{
	const struct page p = {w, g, v, b, md};

	if (!w->recorded) {
		add_not_recorded(&p);
		return;
	}
	add_hangs(&p);
	add_chains(&p);
	add_roots(&p);
	add_patterns(&p);
	add_ranks(&p);
	add_paths(&p);
	add_what_ifs(&p);
	add_knots(&p);
	add_serial(&p);
	add_basis(&p);
}

void render_wait_path_text(const struct wait_path *path, struct graph *g, const struct waitfor_view *v, bool md,
			   struct strbuf *b)
{
	const struct page p = {NULL, g, v, b, md};
	uint64_t shown = 0, limit = most(&p, 20);

	heading(&p, "CRITICAL PATH");
	add_path(&p, path);
	heading(&p, "STEP BY STEP");
	vec_for(&path->steps, s) {
		if (shown++ >= limit)
			break;
		item(&p, 0);
		strbuf_addf(b, "+%.3f ms  ", (double)(s->from_ns - path->from_ns) / 1e6);
		put_time(&p, s->to_ns - s->from_ns);
		strbuf_add(b, "  ");
		put_node(&p, s->thread);
		strbuf_addf(b, ", %s", wait_state_text(s->state));
		if (s->object != NODE_NONE) {
			strbuf_add(b, " (");
			put_node(&p, s->object);
			strbuf_addc(b, ')');
		}
		strbuf_addc(b, '\n');
	}
	left_out(&p, 0, path->steps.n - (path->steps.n < limit ? path->steps.n : limit), "more");
}
