/* The page's waits: which threads others wait for, and the ways from who waits to what holds it up.
 */
#include "page_parts.h"
#include "waitfor.h"

#define ROOTS_MAX  40
#define CHAINS_MAX 300
#define PARTS_MAX  5 /* of one chain */

static const char *object_of(struct page *p, uint32_t node)
{
	const struct node *n;

	if (node == NODE_NONE)
		return NULL;
	n = p->g->nodes.v[node];
	if (n->type == &wait_object_type && HAS(wait_object, n, name) &&
	    GET(wait_object, n, name)[0])
		return GET(wait_object, n, name);
	return graph_node_id(p->g, node);
}

static void key_thread(struct page *p, struct json_writer *w, uint32_t thread)
{
	if (thread == NODE_NONE)
		return;
	page_key_row(w, "thread", p->thread_row[thread]);
	json_key_str(w, "id", graph_node_id(p->g, thread));
}

static void write_root(struct page *p, const struct waitfor *wf, const struct wait_root *r,
		       struct json_writer *w)
{
	json_write_object(w);
	key_thread(p, w, r->thread);
	json_key_str(w, "state", wait_state_text(r->state));
	page_key_text(w, "object", object_of(p, r->object));
	json_key_u64(w, "waiters", r->waiters);
	json_key_u64(w, "waited_ns", r->waited_ns);
	if (r->wall_ns)
		json_key_u64(w, "wall_ns", r->wall_ns);
	json_write_key(w, "idle");
	json_write_bool(w, r->idle);
	json_write_key(w, "roles");
	json_write_array(w);
	for (size_t i = 0; i < r->roles.n && i < 4; i++)
		json_write_str(w, wf->roles.v[r->roles.v[i]].text);
	json_write_array_end(w);
	json_write_object_end(w);
}

static void write_role(struct page *p, const struct wait_role *r, struct json_writer *w)
{
	json_write_object(w);
	page_key_text(w, "text", r->text);
	if (r->threads.n)
		key_thread(p, w, r->threads.v[0]);
	json_write_object_end(w);
}

static void write_part(struct page *p, const struct waitfor *wf, const struct wait_part *part,
		       struct json_writer *w)
{
	json_write_object(w);
	json_key_u64(w, "ns", part->ns);
	json_key_str(w, "cause", wait_cause_name(part->cause));
	page_key_text(w, "object", object_of(p, part->first_object));
	json_key_str(w, "state", wait_state_text(part->state));
	page_key_text(w, "root_object", object_of(p, part->object));
	json_write_key(w, "idle");
	json_write_bool(w, part->idle);
	json_write_key(w, "via");
	json_write_array(w);
	vec_for(&part->via, v)
		write_role(p, &wf->roles.v[*v], w);
	json_write_array_end(w);
	json_write_key(w, "root");
	json_write_object(w);
	page_key_text(w, "text", wf->roles.v[part->role].text);
	key_thread(p, w, part->thread);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void write_chain(struct page *p, const struct waitfor *wf, const struct wait_chain *c,
			struct json_writer *w)
{
	const struct wait_role *r = &wf->roles.v[c->role];

	json_write_object(w);
	page_key_text(w, "text", r->text);
	json_write_key(w, "threads");
	json_write_array(w);
	vec_for(&r->threads, t)
		if (p->thread_row[*t] != PAGE_NONE)
			json_write_u64(w, p->thread_row[*t]);
	json_write_array_end(w);
	json_key_u64(w, "waited_ns", c->waited_ns);
	json_key_u64(w, "late_ns", c->late_ns);
	json_key_u64(w, "seen_pct", c->seen_pct);
	json_write_key(w, "parts");
	json_write_array(w);
	for (size_t i = 0; i < c->parts.n && i < PARTS_MAX; i++)
		write_part(p, wf, &c->parts.v[i], w);
	json_write_array_end(w);
	json_write_object_end(w);
}

void page_write_waits(struct page *p, struct json_writer *w)
{
	const struct waitfor *wf = p->s->w;

	json_write_key(w, "roots");
	json_write_array(w);
	for (size_t i = 0; wf && i < wf->roots.n && i < ROOTS_MAX; i++)
		write_root(p, wf, &wf->roots.v[i], w);
	json_write_array_end(w);
	json_write_key(w, "chains");
	json_write_array(w);
	for (size_t i = 0; wf && i < wf->chains.n && i < CHAINS_MAX; i++)
		write_chain(p, wf, &wf->chains.v[i], w);
	json_write_array_end(w);
}
