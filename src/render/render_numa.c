/* Where processes and threads run and where their memory lies, as text and JSON. */
#include <inttypes.h>
#include <string.h>

#include "numa_rows.h"
#include "render.h"
#include "text.h"

#define ROWS_IN_REPORT 20
#define NODES_IN_ROW   6
#define SHARE_LEAST    0.005

static void add_rate(struct strbuf *b, const char *name, double per_s)
{
	if (per_s >= 0)
		strbuf_addf(b, ", %s %.0f/s", name, per_s);
}

/* Instructions for each cycle, and misses of the last level, where they were counted. */
static void add_counters(struct graph *g, struct strbuf *b, const struct node *n)
{
	struct numa_counters c;

	numa_counters_of(g, n, &c);
	if (c.ipc >= 0)
		strbuf_addf(b, ", %.2f instructions a cycle", c.ipc);
	if (c.llc_miss_pct >= 0)
		strbuf_addf(b, ", %.1f %% of last-level cache references missed", c.llc_miss_pct);
	if (c.memory_bytes_s >= 0) {
		strbuf_add(b, ", memory traffic ");
		text_bytes(b, c.memory_bytes_s);
		strbuf_add(b, "/s");
	}
	if (c.peak_pct >= 0)
		strbuf_addf(b, ", %.0f %% of its peak", c.peak_pct);
	if (c.peak_bytes_s > 0) {
		strbuf_add(b, ", peak ");
		text_bytes(b, c.peak_bytes_s);
		strbuf_addf(b, "/s (%s)", HAS(numa, n, peak_source) ? GET(numa, n, peak_source) : "?");
	}
	for (size_t i = 0; i < sizeof(c.rates) / sizeof(c.rates[0]); i++)
		if (c.rates[i])
			strbuf_addf(b, "\n    %s %s", c.rate_names[i], c.rates[i]);
}

static void add_machine_node(struct graph *g, struct strbuf *b, const struct node *n)
{
	strbuf_addf(b, "  node %" PRIu64 ": ", GET(numa, n, numa_id));
	if (HAS(numa, n, cpu_set) && GET(numa, n, cpu_set)[0])
		strbuf_addf(b, "CPUs %s", GET(numa, n, cpu_set));
	else
		strbuf_add(b, "no CPUs");
	if (HAS(numa, n, memory_bytes)) {
		strbuf_add(b, ", ");
		text_bytes(b, (double)GET(numa, n, memory_bytes));
		strbuf_add(b, HAS(numa, n, kind) ? " of " : " of memory");
		strbuf_add(b, HAS(numa, n, kind) ? GET(numa, n, kind) : "");
	}
	if (HAS(numa, n, free_bytes)) {
		strbuf_add(b, ", ");
		text_bytes(b, (double)GET(numa, n, free_bytes));
		strbuf_add(b, " free");
	}
	add_rate(b, "pages for its CPUs", numa_rate(g, n, numa_f_local_pages));
	add_rate(b, "for CPUs of other nodes", numa_rate(g, n, numa_f_other_pages));
	add_rate(b, "wanted here but given elsewhere", numa_rate(g, n, numa_f_foreign_pages));
	add_counters(g, b, n);
	strbuf_addc(b, '\n');
}

static void add_vector(struct strbuf *b, const char *name, const struct by_node *v)
{
	double sum = 0;
	unsigned shown = 0;

	for (size_t i = 0; i < v->v.n; i++)
		sum += v->v.v[i].amount;
	strbuf_addf(b, "  %s", name);
	if (sum <= 0)
		strbuf_add(b, " not known");
	for (size_t i = 0; sum > 0 && i < v->v.n; i++) {
		double share = v->v.v[i].amount / sum;

		if (share < SHARE_LEAST)
			continue;
		if (shown++ < NODES_IN_ROW)
			strbuf_addf(b, " %u:%.0f %%", v->v.v[i].node, share * 100);
	}
	if (shown > NODES_IN_ROW)
		strbuf_addf(b, " +%u nodes", shown - NODES_IN_ROW);
}

static double error_of(const struct graph *g, const struct numa_row *r)
{
	const struct edge *d = g->edges.v[r->edge];

	return d->type == &numa_access_type && HAS(numa_access, d, share_error) ? GET(numa_access, d, share_error) : -1;
}

static void add_row(struct graph *g, struct strbuf *b, const struct numa_row *r)
{
	const struct node *n = g->nodes.v[r->node];
	size_t start = b->n;
	double error = error_of(g, r);

	strbuf_add(b, "  ");
	if (n->type == &thread_type) {
		strbuf_addf(b, "%" PRIu64 " ", GET(thread, n, tid));
		text_clean(b, HAS(thread, n, name) ? GET(thread, n, name) : "", 20);
		strbuf_add(b, " of ");
		text_end(g, b, GET(thread, n, process));
	} else {
		text_end(g, b, r->node);
	}
	text_pad(b, start, 40);
	start = b->n;
	if (r->score.known)
		strbuf_addf(b, "%s, similarity %.3f, remote %.0f %%", r->verdict, r->score.similarity,
			    r->score.remote_share * 100);
	else
		strbuf_add(b, "not known");
	if (r->measured >= 0)
		strbuf_addf(b, ", measured %.0f %% of %" PRIu64 " samples", r->measured * 100, r->samples);
	text_pad(b, start, 40);
	add_vector(b, "CPU", &r->cpu);
	add_vector(b, "memory", &r->memory);
	if (error > 0)
		strbuf_addf(b, " (+-%.1f %%)", error * 100);
	strbuf_addc(b, '\n');
}

static void add_rows(struct graph *g, const struct type *type, uint64_t limit, struct strbuf *b)
{
	struct numa_rows rows;
	uint64_t shown = 0, known = 0;

	numa_rows_of(g, type, &rows);
	vec_for(&rows.v, r) {
		bool tells = r->score.known || r->measured >= 0;

		known += tells;
		if (!tells || (limit && shown >= limit))
			continue;
		add_row(g, b, r);
		shown++;
	}
	text_omitted(b, shown, known);
	if (!known)
		strbuf_add(b, "  not known: no CPU time or no memory by node was recorded\n");
	numa_rows_done(&rows);
}

/* Of each host that has nodes; one file has mostly one. */
static void add_sums(struct graph *g, struct strbuf *b)
{
	const char *ns = NULL;

	vec_for(&g->nodes, n) {
		struct numa_sums sums;

		if ((*n)->type != &numa_type || (*n)->ns == ns)
			continue;
		ns = (*n)->ns;
		numa_sums_of(g, ns, &sums);
		if (sums.segments)
			strbuf_addf(b, "  memory of processes, and of %zu shared segment%s, counted once:\n", sums.segments,
				    sums.segments == 1 ? "" : "s");
		for (size_t i = 0; sums.segments && i < sums.v.n; i++) {
			strbuf_addf(b, "    node %" PRIu32 ": ", sums.v.v[i].node);
			text_bytes(b, sums.v.v[i].private_bytes);
			strbuf_add(b, " private, ");
			text_bytes(b, sums.v.v[i].shared_bytes);
			strbuf_add(b, " shared\n");
		}
		vec_done(&sums.v);
	}
}

void render_numa_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	uint64_t limit = s->limit ? s->limit : ROWS_IN_REPORT;
	size_t nodes = 0;

	vec_for(&g->nodes, n)
		if ((*n)->type == &numa_type) {
			add_machine_node(g, b, *n);
			nodes++;
		}
	if (nodes < 2) {
		strbuf_add(b, nodes ? "  one node: all memory is local\n" : "  nodes are not known\n");
		return;
	}
	add_sums(g, b);
	strbuf_add(b, "  processes, those first that ran longest away from their memory:\n");
	add_rows(g, &process_type, limit, b);
	strbuf_add(b, "  threads, likewise:\n");
	add_rows(g, &thread_type, limit, b);
}

static void write_vector(struct json_writer *w, const char *name, const struct by_node *v)
{
	json_write_key(w, name);
	json_write_array(w);
	for (size_t i = 0; i < v->v.n; i++) {
		json_write_object(w);
		json_write_key(w, "node");
		json_write_u64(w, v->v.v[i].node);
		json_write_key(w, "amount");
		json_write_f64(w, v->v.v[i].amount);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_known(struct json_writer *w, const char *name, bool known, double v)
{
	json_write_key(w, name);
	if (known)
		json_write_f64(w, v);
	else
		json_write_null(w);
}

static void write_sums(struct graph *g, struct json_writer *w)
{
	const char *ns = NULL;

	json_write_key(w, "memory");
	json_write_array(w);
	vec_for(&g->nodes, n) {
		struct numa_sums sums;

		if ((*n)->type != &numa_type || (*n)->ns == ns)
			continue;
		ns = (*n)->ns;
		numa_sums_of(g, ns, &sums);
		vec_for(&sums.v, x) {
			json_write_object(w);
			json_key_str(w, "host", ns);
			json_write_key(w, "node");
			json_write_u64(w, x->node);
			json_write_key(w, "private_bytes");
			json_write_f64(w, x->private_bytes);
			write_known(w, "shared_bytes", sums.segments != 0, x->shared_bytes);
			json_write_object_end(w);
		}
		vec_done(&sums.v);
	}
	json_write_array_end(w);
}

static void write_row(struct graph *g, const struct numa_row *r, struct json_writer *w)
{
	double error = error_of(g, r);

	json_write_object(w);
	json_key_str(w, "id", graph_node_id(g, r->node));
	json_key_str(w, "verdict", r->verdict);
	write_known(w, "similarity", r->score.known, r->score.similarity);
	write_known(w, "local_share", r->score.known, r->score.local_share);
	write_known(w, "remote_share", r->score.known, r->score.remote_share);
	write_known(w, "measured_remote_share", r->measured >= 0, r->measured);
	json_key_u64(w, "memory_samples", r->samples);
	write_known(w, "share_error", error >= 0, error);
	write_known(w, "run_ns", r->run_ns > 0, r->run_ns);
	write_known(w, "remote_ns", (r->score.known || r->measured >= 0) && r->run_ns > 0, r->remote_ns);
	write_vector(w, "cpu", &r->cpu);
	write_vector(w, "memory", &r->memory);
	json_write_object_end(w);
}

static void write_rows(struct graph *g, const char *name, const struct type *type, const struct selection *s,
		       struct json_writer *w)
{
	struct numa_rows rows;

	numa_rows_of(g, type, &rows);
	json_write_key(w, name);
	json_write_array(w);
	for (size_t i = 0; i < rows.v.n && (!s->limit || i < s->limit); i++)
		write_row(g, &rows.v.v[i], w);
	json_write_array_end(w);
	numa_rows_done(&rows);
}

void render_numa_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct selection nodes = {.type = &numa_type};

	json_write_object(w);
	json_write_key(w, "nodes");
	render_entities_json(g, &nodes, w);
	write_sums(g, w);
	write_rows(g, "processes", &process_type, s, w);
	write_rows(g, "threads", &thread_type, s, w);
	json_write_object_end(w);
}
