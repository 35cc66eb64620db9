/* Hosts side by side in one graph. */
#include "hosts.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const struct node *n, unsigned field)
{
	return n->measured & 1ull << field ? field_get(&n->type->fields[field], n->data).str : NULL;
}

struct host_identity host_identity_of(const struct graph *g)
{
	struct host_identity ret = {0};

	vec_for(&g->nodes, n) {
		if ((*n)->type != &host_type || strcmp((*n)->ns, "local") != 0)
			continue;
		ret.host_id = text_of(*n, host_f_host_id);
		ret.hostname = text_of(*n, host_f_hostname);
		ret.machine_id = text_of(*n, host_f_machine_id);
		ret.boot_id = text_of(*n, host_f_boot_id);
		break;
	}
	return ret;
}

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

bool is_host_name(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-");

	return n && n <= 64 && !s[n];
}

bool host_is_same(const struct host_identity *a, const struct host_identity *b)
{
	if (a->host_id || b->host_id)
		return same(a->host_id, b->host_id);
	return same(a->boot_id, b->boot_id) ||
	       (same(a->machine_id, b->machine_id) && same(a->hostname, b->hostname));
}

static const char *of_host(struct graph *into, const char *name, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", name, what);
	return graph_str(into, text);
}

static void add_meta(struct graph *into, const struct graph *from)
{
	struct snapshot_meta *m = &into->meta;
	const struct snapshot_meta *f = &from->meta;
	uint64_t end = m->start_ns + m->window_ns, from_end = f->start_ns + f->window_ns;

	if (!f->window_ns)
		return;
	m->complete = f->complete && (m->complete || !m->window_ns);
	if (!m->window_ns || f->start_ns < m->start_ns)
		m->start_ns = f->start_ns;
	m->window_ns = (from_end > end ? from_end : end) - m->start_ns;
	m->intervals = f->intervals > m->intervals ? f->intervals : m->intervals;
	if (f->tool)
		m->tool = graph_str(into, f->tool);
}

void hosts_copy_about(struct graph *into, const struct graph *from)
{
	vec_for(&from->status, s)
		graph_add_status(into, s->source, s->state, s->rung, s->reason);
	vec_for(&from->losses, l)
		graph_add_loss(into, l->source, l->cause, l->count);
	vec_for(&from->costs, c)
		graph_add_cost(into, c->name, c->unit, c->value);
	add_meta(into, from);
}

void hosts_add(struct graph *into, const struct graph *from, const char *name)
{
	graph_merge_host(into, from, name);
	for (size_t i = into->nodes.n; from->meta.window_ns && i-- > 0;) {
		struct node *n = into->nodes.v[i];

		if (n->type != &host_type || strcmp(n->ns, name) != 0)
			continue;
		SET(host, n, window_ns, from->meta.window_ns);
		break;
	}
	vec_for(&from->status, s)
		graph_add_status(into, of_host(into, name, s->source), s->state, s->rung,
				 s->reason);
	vec_for(&from->losses, l)
		graph_add_loss(into, of_host(into, name, l->source), l->cause, l->count);
	vec_for(&from->costs, c)
		graph_add_cost(into, of_host(into, name, c->name), c->unit, c->value);
	add_meta(into, from);
}
