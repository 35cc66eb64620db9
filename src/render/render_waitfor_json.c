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

void render_waitfor_json(const struct waitfor *w, struct graph *g, const struct waitfor_view *v,
			 struct json_writer *j)
{
	const struct out o = {w, g, v, j};

	json_write_object(j);
	number(&o, "window_ns", w->window_ns);
	json_write_key(j, "seen_from_ns");
	if (w->seen_from_ns)
		json_write_u64(j, w->seen_from_ns);
	else
		json_write_null(j);
	number(&o, "not_followed_ns", w->cut_ns);
	number(&o, "false_wakeups", w->merged);
	chains(&o);
	roots(&o);
	json_write_object_end(j);
}
