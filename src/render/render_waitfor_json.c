/* The analysis of waits as JSON. */
#include "render_waitfor.h"
#include "text.h"

struct out {
	const struct waitfor *w;
	struct graph *g;
	const struct waitfor_view *v;
	struct json_writer *j;
};

static void number(const struct out *o, const char *key, uint64_t v)
{
	json_write_key(o->j, key);
	json_write_u64(o->j, v);
}

static void flag(const struct out *o, const char *key, bool v)
{
	json_write_key(o->j, key);
	json_write_bool(o->j, v);
}

static void node(const struct out *o, const char *key, uint32_t n)
{
	json_key_str(o->j, key, n == NODE_NONE ? NULL : graph_node_id(o->g, n));
}

static bool is_full(const struct out *o, uint64_t n)
{
	return o->v->limit && n >= o->v->limit;
}

static void role(const struct out *o, const char *key, uint32_t role)
{
	const struct wait_role *r = &o->w->roles.v[role];

	json_write_key(o->j, key);
	json_write_object(o->j);
	json_key_str(o->j, "text", r->text);
	json_key_str(o->j, "name", r->name);
	node(o, "process", r->process);
	number(o, "threads", r->threads.n);
	node(o, "first_thread", r->threads.v[0]);
	json_write_object_end(o->j);
}

static void part(const struct out *o, const struct wait_part *p)
{
	json_write_object(o->j);
	number(o, "ns", p->ns);
	json_key_str(o->j, "cause", wait_cause_name(p->cause));
	node(o, "waits_for", p->first_object);
	flag(o, "lock", p->held);
	json_write_key(o->j, "through");
	json_write_array(o->j);
	vec_for(&p->via, via)
		json_write_str(o->j, o->w->roles.v[*via].text);
	json_write_array_end(o->j);
	role(o, "root", p->role);
	node(o, "thread", p->thread);
	number(o, "threads", p->threads);
	json_key_str(o->j, "state", wait_state_name(p->state));
	node(o, "object", p->object);
	flag(o, "idle", p->idle);
	json_write_object_end(o->j);
}

static void chains(const struct out *o)
{
	uint64_t n = 0;

	json_write_key(o->j, "chains");
	json_write_array(o->j);
	vec_for(&o->w->chains, c) {
		if (is_full(o, n++))
			break;
		json_write_object(o->j);
		role(o, "waiter", c->role);
		number(o, "waited_ns", c->waited_ns);
		number(o, "late_ns", c->late_ns);
		number(o, "unknown_ns", c->unknown_ns);
		number(o, "seen_pct", c->seen_pct);
		json_write_key(o->j, "parts");
		json_write_array(o->j);
		vec_for(&c->parts, p)
			part(o, p);
		json_write_array_end(o->j);
		json_write_object_end(o->j);
	}
	json_write_array_end(o->j);
}

static void roots(const struct out *o)
{
	uint64_t n = 0;

	json_write_key(o->j, "roots");
	json_write_array(o->j);
	vec_for(&o->w->roots, r) {
		if (is_full(o, n++))
			break;
		json_write_object(o->j);
		node(o, "thread", r->thread);
		json_key_str(o->j, "state", wait_state_name(r->state));
		node(o, "object", r->object);
		flag(o, "lock", r->held);
		flag(o, "idle", r->idle);
		number(o, "waiters", r->waiters);
		number(o, "waited_ns", r->waited_ns);
		number(o, "own_ns", r->own_ns);
		json_write_key(o->j, "wall_ns");
		if (r->wall_ns)
			json_write_u64(o->j, r->wall_ns);
		else
			json_write_null(o->j);
		json_write_key(o->j, "roles");
		json_write_array(o->j);
		vec_for(&r->roles, it)
			json_write_str(o->j, o->w->roles.v[*it].text);
		json_write_array_end(o->j);
		json_write_object_end(o->j);
	}
	json_write_array_end(o->j);
}

static void nodes(const struct out *o, const char *key, const uint32_t *v, size_t n)
{
	json_write_key(o->j, key);
	json_write_array(o->j);
	for (size_t i = 0; i < n; i++)
		json_write_str(o->j, graph_node_id(o->g, v[i]));
	json_write_array_end(o->j);
}

static void real(const struct out *o, const char *key, double v)
{
	json_write_key(o->j, key);
	json_write_f64(o->j, v);
}

static void texts(const struct out *o, unsigned pct, const char *text, const char *why)
{
	number(o, "confidence_pct", pct);
	json_key_str(o->j, "text", text);
	json_key_str(o->j, "why", why);
	json_write_object_end(o->j);
}

static void patterns(const struct out *o)
{
	json_write_key(o->j, "patterns");
	json_write_array(o->j);
	vec_for(&o->w->patterns, p) {
		json_write_object(o->j);
		json_key_str(o->j, "kind", wait_pattern_name(p->kind));
		node(o, "object", p->object);
		node(o, "root", p->root);
		nodes(o, "threads", p->threads.v, p->threads.n);
		number(o, "ns", p->ns);
		number(o, "events", p->events);
		real(o, "root_pct", p->root_pct);
		texts(o, p->confidence_pct, p->text, p->why);
	}
	json_write_array_end(o->j);
}

static void ranks(const struct out *o)
{
	json_write_key(o->j, "ranks");
	json_write_array(o->j);
	vec_for(&o->w->stragglers, s) {
		json_write_object(o->j);
		nodes(o, "ranks", s->ranks.v, s->ranks.n);
		number(o, "period_ns", s->period_ns);
		real(o, "period_pct", s->period_pct);
		number(o, "steps", s->steps);
		flag(o, "uneven", s->uneven);
		flag(o, "fixed", s->fixed);
		node(o, "last", s->uneven ? s->ranks.v[s->last] : NODE_NONE);
		node(o, "thread", s->uneven ? s->thread : NODE_NONE);
		json_write_key(o->j, "last_count");
		json_write_array(o->j);
		vec_for(&s->last_count, n)
			json_write_u64(o->j, *n);
		json_write_array_end(o->j);
		json_write_key(o->j, "wait_ns");
		json_write_array(o->j);
		vec_for(&s->wait_ns, n)
			json_write_u64(o->j, *n);
		json_write_array_end(o->j);
		json_key_str(o->j, "extra_state", s->fixed ? wait_state_name(s->extra) : NULL);
		number(o, "extra_ns", s->extra_ns);
		texts(o, s->confidence_pct, s->text, s->why);
	}
	json_write_array_end(o->j);
}

static void hangs(const struct out *o)
{
	json_write_key(o->j, "hangs");
	json_write_array(o->j);
	vec_for(&o->w->hangs, h) {
		json_write_object(o->j);
		json_key_str(o->j, "kind", hang_name(h->kind));
		node(o, "thread", h->thread);
		node(o, "object", h->object);
		nodes(o, "threads", h->threads.v, h->threads.n);
		number(o, "since_ns", h->since_ns);
		texts(o, h->confidence_pct, h->text, h->why);
	}
	json_write_array_end(o->j);
}

static void path_part(const struct out *o, uint32_t thread, enum wait_state state, uint32_t object)
{
	json_write_object(o->j);
	node(o, "thread", thread);
	json_key_str(o->j, "state", wait_state_name(state));
	node(o, "object", object);
}

static void path(const struct out *o, const struct wait_path *p, bool steps)
{
	json_write_object(o->j);
	node(o, "thread", p->thread);
	number(o, "from_ns", p->from_ns);
	number(o, "to_ns", p->to_ns);
	number(o, "rounds", p->rounds);
	number(o, "not_followed_ns", p->cut_ns);
	json_write_key(o->j, "parts");
	json_write_array(o->j);
	vec_for(&p->parts, part) {
		path_part(o, part->thread, part->state, part->object);
		number(o, "ns", part->ns);
		json_write_object_end(o->j);
	}
	json_write_array_end(o->j);
	if (steps) {
		json_write_key(o->j, "steps");
		json_write_array(o->j);
		vec_for(&p->steps, s) {
			path_part(o, s->thread, s->state, s->object);
			number(o, "from_ns", s->from_ns);
			number(o, "to_ns", s->to_ns);
			json_write_object_end(o->j);
		}
		json_write_array_end(o->j);
	}
	json_write_object_end(o->j);
}

void render_wait_path_json(const struct wait_path *p, struct graph *g, struct json_writer *j)
{
	const struct out o = {NULL, g, NULL, j};

	path(&o, p, true);
}

static void paths(const struct out *o)
{
	json_write_key(o->j, "paths");
	json_write_array(o->j);
	vec_for(&o->w->paths, p)
		path(o, p, false);
	json_write_array_end(o->j);
	json_write_key(o->j, "what_ifs");
	json_write_array(o->j);
	vec_for(&o->w->what_ifs, v) {
		json_write_object(o->j);
		node(o, "thread", v->thread);
		json_key_str(o->j, "state", wait_state_name(v->state));
		number(o, "now_ns", v->now_ns);
		number(o, "then_ns", v->then_ns);
		json_key_str(o->j, "text", v->text);
		json_key_str(o->j, "assumes", v->assumes);
		json_write_object_end(o->j);
	}
	json_write_array_end(o->j);
}

static void links(const struct out *o)
{
	uint64_t n = 0;

	json_write_key(o->j, "links");
	json_write_array(o->j);
	vec_for(&o->w->links, l) {
		if (is_full(o, n++))
			break;
		json_write_object(o->j);
		json_key_str(o->j, "waiter", o->w->roles.v[l->waiter].text);
		json_key_str(o->j, "waker", o->w->roles.v[l->waker].text);
		json_key_str(o->j, "cause", wait_cause_name(l->cause));
		number(o, "waits", l->waits);
		number(o, "ns", l->ns);
		json_write_object_end(o->j);
	}
	json_write_array_end(o->j);
	json_write_key(o->j, "knots");
	json_write_array(o->j);
	vec_for(&o->w->knots, k) {
		json_write_object(o->j);
		json_write_key(o->j, "roles");
		json_write_array(o->j);
		vec_for(&k->roles, r)
			json_write_str(o->j, o->w->roles.v[*r].text);
		json_write_array_end(o->j);
		number(o, "ns", k->ns);
		json_write_object_end(o->j);
	}
	json_write_array_end(o->j);
}

static void serial(const struct out *o)
{
	uint64_t n = 0;

	json_write_key(o->j, "serial");
	json_write_array(o->j);
	vec_for(&o->w->serial, s) {
		if (is_full(o, n++))
			break;
		json_write_object(o->j);
		node(o, "process", s->process);
		number(o, "threads", s->threads);
		real(o, "mean_active", s->mean_active);
		real(o, "serial_pct", s->serial_pct);
		json_write_key(o->j, "one_active_pct");
		if (s->one_active_pct >= 0)
			json_write_f64(o->j, s->one_active_pct);
		else
			json_write_null(o->j);
		node(o, "alone", s->top);
		json_write_object_end(o->j);
	}
	json_write_array_end(o->j);
}

void render_waitfor_json(const struct waitfor *w, struct graph *g, const struct waitfor_view *v,
			 struct json_writer *j)
{
	const struct out o = {w, g, v, j};

	json_write_object(j);
	number(&o, "window_ns", w->window_ns);
	flag(&o, "recorded", w->recorded);
	json_write_key(j, "seen_from_ns");
	if (w->seen_from_ns)
		json_write_u64(j, w->seen_from_ns);
	else
		json_write_null(j);
	number(&o, "not_followed_ns", w->cut_ns);
	number(&o, "false_wakeups", w->merged);
	chains(&o);
	roots(&o);
	patterns(&o);
	ranks(&o);
	hangs(&o);
	paths(&o);
	links(&o);
	serial(&o);
	json_write_object_end(j);
}
