/* Lists and reports for people: aligned columns, scaled units, nothing that depends on clock or locale. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clean.h"
#include "cleanup.h"
#include "render.h"
#include "render_findings.h"
#include "render_hot.h"
#include "render_topology.h"
#include "text.h"
#include "utf8.h"

void text_bytes(struct strbuf *b, double v)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	int u = 0;

	for (; v >= 1024 && u < 5; u++)
		v /= 1024;
	strbuf_addf(b, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

void text_time(struct strbuf *b, double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	int u = 0;

	for (; ns >= 1000 && u < 3; u++)
		ns /= 1000;
	strbuf_addf(b, u ? "%.2f %s" : "%.0f %s", ns, units[u]);
}

/* Names from the host may hold anything: a report stays one line a row, of valid UTF-8 that controls no terminal. */
void text_clean(struct strbuf *b, const char *s, size_t most)
{
	size_t n = strlen(s), at = 0;

	while (at < n) {
		const unsigned char *p = (const unsigned char *)s + at;
		int len = utf8_seq(p, n - at);
		size_t step = len > 0 ? (size_t)len : 1;

		if (at + step > most)
			break;
		if (len > 0 && clean_is_plain(utf8_decode(p, len)))
			strbuf_addn(b, p, step);
		else
			strbuf_addc(b, '?');
		at += step;
	}
	if (at < n)
		strbuf_add(b, "...");
}

void text_finish(struct strbuf *b, size_t start)
{
	CLEANUP_FREE char *raw = mem_strdup(strbuf_str(b) + start);
	char *line = raw, *end;

	b->n = start;
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		text_clean(b, line, SIZE_MAX);
		strbuf_addc(b, '\n');
	}
	text_clean(b, line, SIZE_MAX);
}

void text_pad(struct strbuf *b, size_t start, size_t width)
{
	size_t n = b->n - start;

	strbuf_pad(b, ' ', n < width ? width - n : 1);
}

static void add_scaled(struct strbuf *b, const struct field *f, const struct value *v)
{
	double d = f->type == T_F64 ? v->f64 : f->type == T_I64 ? (double)v->i64 : (double)v->u64;

	if (f->unit == BYTES)
		text_bytes(b, d);
	else if (f->unit == NS && f->merge == SUM)
		text_time(b, d);
	else if (f->type == T_F64)
		strbuf_addf(b, "%.6g%s%s", d, f->unit == NONE ? "" : " ", unit_name(f->unit));
	else
		strbuf_add_i64(b, v->i64);
}

static void add_value(struct graph *g, struct strbuf *b, const struct field *f, const uint64_t *data)
{
	struct value v = field_get(f, data);

	if (f->type == T_BOOL)
		strbuf_add(b, v.b ? "yes" : "no");
	else if (f->type == T_STR || f->type == T_JSON)
		text_clean(b, v.str, 160);
	else if (f->type == T_REF)
		strbuf_add(b, graph_node_id(g, v.ref));
	else
		add_scaled(b, f, &v);
}

static void add_fields(struct graph *g, struct strbuf *b, const struct type *t, uint64_t measured,
		       const uint64_t *data)
{
	for (int i = 0; i < t->nfields; i++) {
		if (!(measured & (1ull << i)) || t->fields[i].key == KEY_SHOWN)
			continue;
		strbuf_addf(b, "  %s=", t->fields[i].name);
		add_value(g, b, &t->fields[i], data);
	}
}

static void add_node(struct graph *g, struct strbuf *b, const struct node *n)
{
	strbuf_add(b, graph_node_id(g, n->index));
	add_fields(g, b, n->type, n->measured, n->data);
	strbuf_addc(b, '\n');
}

static void add_edge(struct graph *g, struct strbuf *b, const struct edge *d)
{
	strbuf_addf(b, "%s -%s-> ", graph_node_id(g, d->source), d->type->name);
	strbuf_add(b, graph_node_id(g, d->target));
	if (d->type == &flow_type)
		strbuf_addf(b, "  kind=%s", GET(flow, d, kind));
	add_fields(g, b, d->type, d->measured, d->data);
	strbuf_addc(b, '\n');
}

void text_omitted(struct strbuf *b, uint64_t shown, uint64_t all)
{
	if (shown < all)
		strbuf_addf(b, "+%" PRIu64 " more; --limit 0 shows all\n", all - shown);
}

/* What comes behind the part that was shown. */
static void add_rest(struct strbuf *b, size_t end, size_t all)
{
	if (end < all)
		strbuf_addf(b, "+%zu more; --after %zu goes on, --limit 0 shows all\n", all - end, end);
}

void render_entities_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	struct index_list list;
	size_t end;

	entities_selected(g, s, &list);
	end = selection_end(s, list.v.n);
	for (size_t i = s->after; i < end; i++)
		add_node(g, b, g->nodes.v[list.v.v[i]]);
	add_rest(b, end, list.v.n);
	vec_done(&list.v);
}

void render_edges_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	struct index_list list;
	size_t end;

	edges_selected(g, s, &list);
	end = selection_end(s, list.v.n);
	for (size_t i = s->after; i < end; i++)
		add_edge(g, b, g->edges.v[list.v.v[i]]);
	add_rest(b, end, list.v.n);
	vec_done(&list.v);
}

void render_entity_text(struct graph *g, uint32_t node, struct strbuf *b)
{
	struct edge_list out = graph_out(g, node), in = graph_in(g, node);

	add_node(g, b, g->nodes.v[node]);
	for (size_t i = 0; i < out.n; i++)
		add_edge(g, b, g->edges.v[out.v[i]]);
	for (size_t i = 0; i < in.n; i++)
		add_edge(g, b, g->edges.v[in.v[i]]);
}

void text_end(struct graph *g, struct strbuf *b, uint32_t node)
{
	const struct node *n = g->nodes.v[node];

	if (n->type == &process_type && HAS(process, n, name)) {
		text_clean(b, GET(process, n, name), 15);
		strbuf_addf(b, "[%" PRIu64 "]", GET(process, n, pid));
	} else {
		text_clean(b, graph_node_id(g, node), 40);
	}
}

static const char *own_name(const struct node *n)
{
	if (n->type == &container_type && HAS(container, n, container_name))
		return GET(container, n, container_name);
	if (n->type == &block_device_type && HAS(block_device, n, name))
		return GET(block_device, n, name);
	return n->type == &nic_type && HAS(nic, n, name) ? GET(nic, n, name) : NULL;
}

void text_party(struct graph *g, struct strbuf *b, uint32_t node)
{
	const struct node *n = g->nodes.v[node], *p = NULL;

	if (own_name(n)) {
		text_clean(b, own_name(n), 40);
		return;
	}
	if (n->type != &thread_type) {
		text_end(g, b, node);
		return;
	}
	if (HAS(thread, n, process))
		p = g->nodes.v[GET(thread, n, process)];
	if (HAS(thread, n, name))
		text_clean(b, GET(thread, n, name), 15);
	else
		text_clean(b, p && HAS(process, p, name) ? GET(process, p, name) : "?", 15);
	strbuf_addf(b, "[%" PRIu64 "]", GET(thread, n, tid));
	if (p && HAS(process, p, pid) && GET(process, p, pid) != GET(thread, n, tid)) {
		strbuf_add(b, " of ");
		text_end(g, b, p->index);
	}
}

static void add_flow(struct graph *g, struct strbuf *b, const struct edge *d)
{
	size_t start = b->n;

	strbuf_add(b, "  ");
	text_end(g, b, d->source);
	text_pad(b, start, 32);
	strbuf_add(b, "-> ");
	start = b->n;
	text_end(g, b, d->target);
	text_pad(b, start, 32);
	start = b->n;
	strbuf_add(b, GET(flow, d, kind));
	text_pad(b, start, 6);
	start = b->n;
	text_bytes(b, (double)GET(flow, d, bytes));
	text_pad(b, start, 12);
	start = b->n;
	if (g->meta.window_ns) {
		text_bytes(b, (double)GET(flow, d, bytes) * 1e9 / (double)g->meta.window_ns);
		strbuf_add(b, "/s");
	} else {
		strbuf_addc(b, '?');
	}
	text_pad(b, start, 14);
	strbuf_addf(b, "%" PRIu64 " messages", GET(flow, d, messages));
	if (HAS(flow, d, estimated) && GET(flow, d, estimated))
		strbuf_add(b, "  (split estimated)");
	if (HAS(flow, d, blind) && *GET(flow, d, blind))
		strbuf_addf(b, "  (%s)", GET(flow, d, blind));
	strbuf_addc(b, '\n');
}

void render_flows_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	struct index_list list;
	size_t end;

	flows_selected(g, s, &list);
	end = selection_end(s, list.v.n);
	for (size_t i = s->after; i < end; i++)
		add_flow(g, b, g->edges.v[list.v.v[i]]);
	add_rest(b, end, list.v.n);
	if (!list.v.n)
		strbuf_add(b, "  none\n");
	vec_done(&list.v);
}

static void add_counts(struct strbuf *b, const char *title, const struct type *const *types, size_t n,
		       const uint64_t *counts)
{
	strbuf_addf(b, "%s:", title);
	for (size_t i = 0; i < n; i++)
		if (counts[i])
			strbuf_addf(b, " %s %" PRIu64, types[i]->name, counts[i]);
	strbuf_addc(b, '\n');
}

static void add_about(struct graph *g, struct strbuf *b)
{
	char when[32];
	time_t t = (time_t)(g->meta.start_ns / 1000000000ull);
	struct tm tm;

	if (!g->meta.window_ns)
		return;
	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	strbuf_addf(b, "window: %.3f s from %s, %" PRIu64 " intervals%s\n", (double)g->meta.window_ns / 1e9,
		    when, g->meta.intervals, g->meta.complete ? "" : ", cut off");
}

static void add_losses(struct graph *g, struct strbuf *b)
{
	strbuf_add(b, "lost:   ");
	if (!g->losses.n)
		strbuf_add(b, "nothing");
	vec_for(&g->losses, l)
		strbuf_addf(b, "%s%s %s %" PRIu64, l == g->losses.v ? "" : ", ", l->source, l->cause, l->count);
	strbuf_addc(b, '\n');
	vec_for(&g->status, s) {
		if (!strcmp(s->state, "ok"))
			continue;
		strbuf_addf(b, "%s: %s%s%s: %s\n", s->state, s->source, s->rung ? " by " : "",
			    s->rung ? s->rung : "", s->reason ? s->reason : "");
	}
}

static void add_costs(struct graph *g, struct strbuf *b)
{
	if (!g->costs.n)
		return;
	strbuf_add(b, "cost:   ");
	vec_for(&g->costs, c) {
		strbuf_addf(b, "%s%s ", c == g->costs.v ? "" : ", ", c->name);
		if (!strcmp(c->unit, "bytes"))
			text_bytes(b, c->value);
		else if (!strcmp(c->unit, "ns"))
			text_time(b, c->value);
		else
			strbuf_addf(b, "%.0f", c->value);
		if (!strcmp(c->name, "cpu") && g->meta.window_ns)
			strbuf_addf(b, " (%.2f %% of a core)", c->value * 100 / (double)g->meta.window_ns);
	}
	strbuf_addc(b, '\n');
}

void render_summary_text(struct graph *g, const uint64_t *entities, const uint64_t *edges,
			 struct strbuf *b)
{
	add_counts(b, "entities", entity_types, n_entity_types, entities);
	add_counts(b, "edges", edge_types, n_edge_types, edges);
	add_about(g, b);
	if (g->meta.window_ns) {
		add_losses(g, b);
		add_costs(g, b);
	}
}

static void add_host(struct graph *g, struct strbuf *b)
{
	vec_for(&g->nodes, it) {
		const struct node *n = *it;

		if (n->type != &host_type)
			continue;
		strbuf_addf(b, "host:   %s, %s, kernel %s %s, %" PRIu64 " CPUs, ", GET(host, n, hostname),
			    HAS(host, n, os) ? GET(host, n, os) : "?", GET(host, n, kernel),
			    GET(host, n, arch), GET(host, n, cpus));
		text_bytes(b, (double)GET(host, n, memory_bytes));
		strbuf_addc(b, '\n');
	}
}

/* The tree by parent edges; parents come before their children in the graph only by chance. */
static void add_tree(struct graph *g, struct strbuf *b, uint32_t node, unsigned depth, uint8_t *done)
{
	const struct node *n = g->nodes.v[node];
	struct edge_list out = graph_out(g, node);

	if (done[node] || depth > 64)
		return;
	done[node] = 1;
	strbuf_pad(b, ' ', 2 + 2 * (size_t)depth);
	text_end(g, b, node);
	if (HAS(process, n, cpu_ns)) {
		strbuf_add(b, "  cpu ");
		text_time(b, (double)GET(process, n, cpu_ns));
	}
	if (HAS(process, n, end_ns))
		strbuf_add(b, "  ended");
	if (HAS(process, n, cmdline)) {
		strbuf_add(b, "  ");
		text_clean(b, GET(process, n, cmdline), 90);
	}
	strbuf_addc(b, '\n');
	for (size_t i = 0; i < out.n; i++)
		if (g->edges.v[out.v[i]]->type == &parent_of_type)
			add_tree(g, b, g->edges.v[out.v[i]]->target, depth + 1, done);
}

static bool has_parent(struct graph *g, uint32_t node)
{
	struct edge_list in = graph_in(g, node);

	for (size_t i = 0; i < in.n; i++)
		if (g->edges.v[in.v[i]]->type == &parent_of_type)
			return true;
	return false;
}

/* Kernel threads are left out of the tree: they are many, and each is in the thread list when busy. */
static void add_processes(struct graph *g, struct strbuf *b)
{
	uint8_t *done = mem_alloc(g->nodes.n + 1);
	uint64_t kernel = 0;

	vec_for(&g->nodes, n)
		if ((*n)->type == &process_type && HAS(process, *n, kthread) && GET(process, *n, kthread)) {
			done[(*n)->index] = 1;
			kernel++;
		}
	vec_for(&g->nodes, n)
		if ((*n)->type == &process_type && !has_parent(g, (*n)->index))
			add_tree(g, b, (*n)->index, 0, done);
	if (kernel)
		strbuf_addf(b, "  and %" PRIu64 " kernel threads\n", kernel);
	free(done);
}

static void add_threads(struct graph *g, const struct selection *s, struct strbuf *b)
{
	struct index_list list;
	size_t i = 0, most = s->limit ? s->limit : 20;

	threads_by_time(g, &list);
	for (; i < list.v.n && i < most; i++) {
		const struct node *n = g->nodes.v[list.v.v[i]];
		size_t start = b->n;

		strbuf_add(b, "  ");
		text_clean(b, HAS(thread, n, name) ? GET(thread, n, name) : "?", 15);
		strbuf_addf(b, "[%" PRIu64 "]", GET(thread, n, tid));
		text_pad(b, start, 30);
		if (g->meta.window_ns)
			strbuf_addf(b, "%5.1f %% cpu  ", (double)GET(thread, n, run_ns) * 100 / (double)g->meta.window_ns);
		text_time(b, (double)GET(thread, n, run_ns));
		if (HAS(thread, n, runq_ns)) {
			strbuf_add(b, ", run queue ");
			text_time(b, (double)GET(thread, n, runq_ns));
			strbuf_addf(b, ", switches %" PRIu64 " voluntary %" PRIu64 " involuntary",
				    GET(thread, n, voluntary_switches), GET(thread, n, involuntary_switches));
		}
		strbuf_addc(b, '\n');
	}
	text_omitted(b, i, list.v.n);
	vec_done(&list.v);
}

static void add_topology(struct graph *g, const struct selection *s, struct strbuf *b)
{
	/* The report has processes and flows of its own. */
	struct topology_view v = {.parts = PARTS_ALL & ~(1u << PART_PROCESSES | 1u << PART_LINKS | 1u << PART_PLACES),
				  .limit = s->limit, .focus = TOPO_NONE, .has_header = true};
	struct topology t;

	if (s->study && s->study->t) {
		render_topology_text((struct topology *)s->study->t, &v, false, b);
		return;
	}
	topology_init(&t, g);
	render_topology_text(&t, &v, false, b);
	topology_done(&t);
}

static void add_findings(const struct selection *s, struct strbuf *b)
{
	struct findings_view v = {.limit = s->limit ? s->limit : 10, .brief = true};

	if (s->study && s->findings)
		render_findings_text(s->study, s->findings, &v, false, b);
}

static void add_hot(struct graph *g, const struct selection *s, struct strbuf *b)
{
	struct hot_view v = {.limit = s->limit ? s->limit : 8};
	struct hot h;

	if (s->study && s->study->hot) {
		render_hot_text((struct hot *)s->study->hot, &v, false, b);
		return;
	}
	hot_init(&h, g, s->limits);
	render_hot_text(&h, &v, false, b);
	hot_done(&h);
}

void render_report_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	struct selection flows = {.limit = s->limit ? s->limit : 30};
	struct selection shared = {.limit = s->limit ? s->limit : 20};

	add_host(g, b);
	add_about(g, b);
	add_losses(g, b);
	add_costs(g, b);
	add_findings(s, b);
	add_topology(g, s, b);
	strbuf_add(b, "\nPROCESSES\n");
	add_processes(g, b);
	strbuf_add(b, "\nFLOWS between processes, largest first\n");
	render_flows_text(g, &flows, b);
	strbuf_add(b, "\nSHARED MEMORY that several processes map, largest first\n");
	render_shared_paths_text(g, &shared, b);
	strbuf_add(b, "\nNUMA\n");
	render_numa_text(g, &shared, b);
	strbuf_add(b, "\nWHO WAITS FOR WHOM, waits that ended, longest first\n");
	render_wakes_text(g, &shared, b);
	strbuf_add(b, "\nBUSIEST THREADS\n");
	add_threads(g, s, b);
	add_hot(g, s, b);
}

static void add_type_schema(struct strbuf *b, const struct type *t)
{
	strbuf_addf(b, "\n### `%s`\n\n%s. openEuler name: `%s`%s.", t->name, t->doc, t->old_name,
		    t->is_new ? " (new: that tool does not know it)" : "");
	if (t->kind == KIND_EDGE)
		strbuf_addf(b, " From `%s` to `%s`.", t->source, t->target);
	strbuf_add(b, "\n");
	if (t->nfields)
		strbuf_add(b, "\n| field | type | unit | merge | openEuler | meaning |\n"
			      "| --- | --- | --- | --- | --- | --- |\n");
	for (int i = 0; i < t->nfields; i++) {
		const struct field *f = &t->fields[i];

		strbuf_addf(b, "| `%s`%s | %s | %s | %s | %s%s%s | %s |\n", f->name,
			    f->key == KEY_SHOWN ? " (key, in the id)" : f->key == KEY_HIDDEN ? " (key)" : "",
			    field_type_name(f->type), unit_name(f->unit), f->key ? "" : merge_name(f->merge),
			    f->old_name ? "`" : "", f->old_name ? f->old_name : "", f->old_name ? "`" : "", f->doc);
	}
}

void render_schema_md(struct strbuf *b)
{
	strbuf_add(b, "# Schema\n\nMade by `witty-profiler schema` from the registry in src/model; a test keeps it current.\n"
		      "A value that was not measured is `null` in JSON and NULL in a recording, never 0.\n\n## Entities\n");
	for (size_t i = 0; i < n_entity_types; i++)
		add_type_schema(b, entity_types[i]);
	strbuf_add(b, "\n## Relations\n");
	for (size_t i = 0; i < n_edge_types; i++)
		add_type_schema(b, edge_types[i]);
}
