/* The page's rows of the machine, of who exchanges data, and of the links between them. */
#include <math.h>
#include <string.h>

#include "page_parts.h"
#include "utf8.h"
#include "value_json.h"

void page_key_text(struct json_writer *w, const char *key, const char *s)
{
	size_t n = s ? strlen(s) : 0, at = 0;

	if (!n)
		return;
	/* Not within a character: what is left of it would be none. */
	while (at < n) {
		int len = utf8_seq((const unsigned char *)s + at, n - at);

		len = len < 1 ? 1 : len;
		if (at + (size_t)len > PAGE_TEXT_MAX)
			break;
		at += (size_t)len;
	}
	json_write_key(w, key);
	json_write_strn(w, s, at);
}

void page_key_row(struct json_writer *w, const char *key, uint32_t row)
{
	if (row != PAGE_NONE)
		json_key_u64(w, key, row);
}

void page_key_f64(struct json_writer *w, const char *key, double v)
{
	json_write_key(w, key);
	json_write_f64(w, v);
}

void page_write_known(struct graph *g, const struct node *n, uint64_t but, struct json_writer *w)
{
	for (int i = 0; i < n->type->nfields; i++) {
		const struct field *f = &n->type->fields[i];
		struct value v;

		if (!(n->measured & ~but & 1ull << i))
			continue;
		v = field_get(f, n->data);
		json_write_key(w, f->name);
		if (!value_write_json(&v, w))
			json_write_str(w, graph_node_id(g, v.ref));
	}
}

/* The numbers of a type that the page treats by their units. */
static void write_fields(struct page *p, const struct node *n, uint64_t but, struct json_writer *w)
{
	json_write_key(w, "fields");
	json_write_object(w);
	page_write_known(p->g, n, but, w);
	json_write_object_end(w);
}

static void write_units_of(const struct type *t, struct json_writer *w)
{
	json_write_key(w, t->name);
	json_write_object(w);
	for (int i = 0; i < t->nfields; i++)
		if (t->fields[i].unit != NONE)
			json_key_str(w, t->fields[i].name, unit_name(t->fields[i].unit));
	json_write_object_end(w);
}

static void write_units(struct json_writer *w)
{
	const struct type *const shown[] = {&host_type, &numa_type, &container_type, &gpu_type,
					    &npu_type};

	json_write_key(w, "units");
	json_write_object(w);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		write_units_of(shown[i], w);
	json_write_object_end(w);
}

static void write_nodes_of(struct page *p, const char *key, const struct type *t, uint64_t but,
			   struct json_writer *w)
{
	json_write_key(w, key);
	json_write_array(w);
	vec_for(&p->g->nodes, it) {
		if ((*it)->type != t)
			continue;
		json_write_object(w);
		json_key_str(w, "id", graph_node_id(p->g, (*it)->index));
		json_key_str(w, "ns", (*it)->ns);
		write_fields(p, *it, but, w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_cpus(struct page *p, struct json_writer *w)
{
	json_write_key(w, "cpus");
	json_write_array(w);
	vec_for(&p->g->nodes, it) {
		const struct node *n = *it;

		if (n->type != &cpu_type || !HAS(cpu, n, cpu_id))
			continue;
		json_write_object(w);
		json_key_str(w, "ns", n->ns);
		json_key_u64(w, "cpu", GET(cpu, n, cpu_id));
		if (HAS(cpu, n, node))
			json_key_u64(w, "node", GET(cpu, n, node));
		if (HAS(cpu, n, busy_ns))
			json_key_u64(w, "busy_ns", GET(cpu, n, busy_ns));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_containers(struct page *p, struct json_writer *w)
{
	json_write_key(w, "containers");
	json_write_array(w);
	vec_for(&p->containers, it) {
		const struct node *n = p->g->nodes.v[*it];

		json_write_object(w);
		json_key_str(w, "id", graph_node_id(p->g, *it));
		json_key_str(w, "ns", n->ns);
		page_key_text(w, "name",
			      HAS(container, n, container_name) ? GET(container, n, container_name)
								: GET(container, n, container_id));
		write_fields(p, n, 0, w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void page_write_machine(struct page *p, struct json_writer *w)
{
	write_units(w);
	write_nodes_of(p, "hosts", &host_type, 0, w);
	write_nodes_of(p, "numa", &numa_type,
		       FIELD_BIT(numa, mem_info) | FIELD_BIT(numa, memory_set), w);
	write_cpus(p, w);
	write_containers(p, w);
}

static void write_shares(struct json_writer *w, const char *key, const struct topo_share *v,
			 size_t n)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++) {
		json_write_array(w);
		json_write_u64(w, v[i].node);
		json_write_f64(w, round(v[i].share * 1e4) / 1e4);
		json_write_u64(w, v[i].amount);
		json_write_array_end(w);
	}
	json_write_array_end(w);
}

static void write_place(struct page *p, uint32_t actor, struct json_writer *w)
{
	const struct topo_place *place = &p->t->places.v[actor];

	if (!place->cpu.n && !place->memory.n && !place->cpus_allowed)
		return;
	json_write_key(w, "place");
	json_write_object(w);
	write_shares(w, "cpu", place->cpu.v, place->cpu.n);
	write_shares(w, "memory", place->memory.v, place->memory.n);
	page_key_text(w, "allowed", place->cpus_allowed);
	if (place->cosine >= 0)
		page_key_f64(w, "cosine", place->cosine);
	if (place->remote >= 0)
		page_key_f64(w, "remote", place->remote);
	page_key_text(w, "mode", place->mode);
	json_write_object_end(w);
}

static void write_process(struct page *p, uint32_t actor, const struct node *n,
			  struct json_writer *w)
{
	const struct topo_actor *a = &p->t->actors.v[actor];

	json_key_u64(w, "pid", GET(process, n, pid));
	page_key_text(w, "name", HAS(process, n, name) ? GET(process, n, name) : NULL);
	page_key_text(w, "cmdline", HAS(process, n, cmdline) ? GET(process, n, cmdline) : NULL);
	if (a->parent != TOPO_NONE)
		page_key_row(w, "parent", p->row_of[a->parent]);
	if (HAS(process, n, cpu_ns))
		json_key_u64(w, "cpu_ns", GET(process, n, cpu_ns));
	if (HAS(process, n, rss_bytes))
		json_key_u64(w, "rss_bytes", GET(process, n, rss_bytes));
	if (HAS(process, n, threads))
		json_key_u64(w, "threads", GET(process, n, threads));
	if (HAS(process, n, end_ns)) {
		json_write_key(w, "ended");
		json_write_bool(w, true);
	}
	if (a->role != ROLE_UNKNOWN) {
		json_key_str(w, "role", role_name(a->role));
		json_key_u64(w, "role_pct", a->role_pct);
		page_key_text(w, "role_why", a->role_why);
	}
	if (a->group != TOPO_NONE) {
		json_key_u64(w, "group", a->group);
		json_key_u64(w, "rank", a->rank);
	}
	write_place(p, actor, w);
}

static void write_device(struct page *p, const struct topo_device *d, struct json_writer *w)
{
	const struct node *n = p->g->nodes.v[d->node];

	json_key_str(w, "type", n->type->name);
	page_key_text(w, "near", d->numa);
	page_key_text(w, "affinity", d->cpu_affinity);
	json_write_key(w, "users");
	json_write_array(w);
	vec_for(&d->users, u)
		json_write_u64(w, p->row_of[*u]);
	json_write_array_end(w);
	write_fields(p, n, 0, w);
}

static void write_actor(struct page *p, uint32_t actor, struct json_writer *w)
{
	const struct topo_actor *a = &p->t->actors.v[actor];
	const struct node *n = p->g->nodes.v[a->node];
	bool by_label = a->kind == ACTOR_OUTSIDE || a->kind == ACTOR_STORAGE;

	json_write_object(w);
	json_key_str(w, "id", by_label ? a->label : graph_node_id(p->g, a->node));
	json_key_str(w, "kind", actor_kind_name(a->kind));
	page_key_text(w, "label", a->label);
	json_key_str(w, "ns", n->ns);
	page_key_row(w, "numa", page_numa_of(p, actor));
	page_key_row(w, "container", p->container_of[actor]);
	json_key_u64(w, "bytes_in", a->bytes_in);
	json_key_u64(w, "bytes_out", a->bytes_out);
	page_key_text(w, "program", a->program);
	if (a->kind == ACTOR_PROCESS)
		write_process(p, actor, n, w);
	if (a->kind == ACTOR_DEVICE)
		write_device(p, &p->t->devices.v[a->rank], w);
	json_write_object_end(w);
}

static void write_fold(struct page *p, const struct page_fold *f, struct json_writer *w)
{
	const struct topo_actor *a = &p->t->actors.v[f->first];
	struct strbuf id = {0};

	strbuf_addf(&id, "more:%zu", (size_t)(f - p->folds.v));
	json_write_object(w);
	json_key_str(w, "id", strbuf_str(&id));
	json_key_str(w, "kind", actor_kind_name(a->kind));
	page_key_text(w, "program", a->program);
	json_key_str(w, "ns", p->g->nodes.v[a->node]->ns);
	json_key_u64(w, "stands_for", f->count);
	page_key_row(w, "numa", page_numa_of(p, f->first));
	page_key_row(w, "container", p->container_of[f->first]);
	json_key_u64(w, "bytes_in", f->bytes_in);
	json_key_u64(w, "bytes_out", f->bytes_out);
	if (f->cpu_ns)
		json_key_u64(w, "cpu_ns", f->cpu_ns);
	json_write_object_end(w);
	strbuf_done(&id);
}

/* Devices that nobody uses take no part in flows, but they have a place. */
static void write_unused(struct page *p, struct json_writer *w)
{
	size_t n = 0;

	json_write_key(w, "unused_devices");
	json_write_array(w);
	vec_for(&p->t->devices, d) {
		if (p->t->actor_of[d->node] != TOPO_NONE || n++ >= PAGE_DEVICES_MAX)
			continue;
		json_write_object(w);
		json_key_str(w, "id", graph_node_id(p->g, d->node));
		json_key_str(w, "kind", actor_kind_name(ACTOR_DEVICE));
		page_key_text(w, "label", d->label);
		json_key_str(w, "ns", p->g->nodes.v[d->node]->ns);
		page_key_row(w, "numa", d->numa_node);
		json_key_u64(w, "bytes_in", 0);
		json_key_u64(w, "bytes_out", 0);
		write_device(p, d, w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void page_write_actors(struct page *p, struct json_writer *w)
{
	json_write_key(w, "actors");
	json_write_array(w);
	vec_for(&p->kept, it)
		write_actor(p, *it, w);
	vec_for(&p->folds, it)
		write_fold(p, it, w);
	json_write_array_end(w);
	write_unused(p, w);
	if (p->t->main_actor != TOPO_NONE)
		page_key_row(w, "main", p->row_of[p->t->main_actor]);
}

void page_write_links(struct page *p, struct json_writer *w)
{
	json_write_key(w, "links");
	json_write_array(w);
	vec_for(&p->links, l) {
		int asks = topo_who_asks(p->t, l->one->from, l->one->to);

		json_write_object(w);
		json_key_u64(w, "from", l->from);
		json_key_u64(w, "to", l->to);
		json_key_str(w, "kind", l->one->kind);
		if (l->measured)
			json_key_u64(w, "bytes", l->bytes);
		if (l->messages)
			json_key_u64(w, "messages", l->messages);
		if (l->waited_ns)
			json_key_u64(w, "waited_ns", l->waited_ns);
		if (asks) {
			json_write_key(w, "asks");
			json_write_bool(w, asks > 0);
		}
		if (l->shared) {
			json_write_key(w, "shared");
			json_write_bool(w, true);
		}
		json_write_object_end(w);
	}
	json_write_array_end(w);
}
