/* The page's rows of threads: time, what they waited for and on whom, and where they ran. */
#include <stdlib.h>
#include <string.h>

#include "numa_rows.h"
#include "page_parts.h"

/* One sum of an edge of the thread, the largest first. */
struct share {
	uint32_t edge;
	uint64_t ns;
};

struct share_list {
	VEC(struct share) v;
};

static int by_ns(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static void put_share(struct share_list *list, uint32_t edge, bool known, uint64_t ns)
{
	if (known && ns)
		vec_push(&list->v, ((struct share){edge, ns}));
}

static void sort_shares(struct share_list *list, size_t most)
{
	if (list->v.n)
		qsort(list->v.v, list->v.n, sizeof(*list->v.v), by_ns);
	if (list->v.n > most)
		list->v.n = most;
}

static const char *object_name(struct page *p, uint32_t node)
{
	const struct node *n = p->g->nodes.v[node];

	if (n->type == &wait_object_type && HAS(wait_object, n, name) &&
	    GET(wait_object, n, name)[0])
		return GET(wait_object, n, name);
	if (n->type == &wait_object_type && HAS(wait_object, n, kind))
		return GET(wait_object, n, kind);
	return graph_node_id(p->g, node);
}

/* Causes with their sums over all objects: what the bars show. */
static void write_causes(struct page *p, const struct share_list *list, struct json_writer *w)
{
	json_write_key(w, "causes");
	json_write_object(w);
	for (size_t i = 0; i < list->v.n; i++) {
		const char *cause = GET(waits_for, p->g->edges.v[list->v.v[i].edge], cause);
		uint64_t ns = 0;
		size_t k = 0;

		while (strcmp(GET(waits_for, p->g->edges.v[list->v.v[k].edge], cause), cause))
			k++;
		if (k < i)
			continue;
		for (; k < list->v.n; k++)
			if (!strcmp(GET(waits_for, p->g->edges.v[list->v.v[k].edge], cause), cause))
				ns += list->v.v[k].ns;
		json_key_u64(w, cause, ns);
	}
	json_write_object_end(w);
}

static void write_waits(struct page *p, struct share_list *list, struct json_writer *w)
{
	write_causes(p, list, w);
	sort_shares(list, PAGE_WAITS_OF_ONE);
	json_write_key(w, "waits");
	json_write_array(w);
	vec_for(&list->v, s) {
		const struct edge *d = p->g->edges.v[s->edge];

		json_write_object(w);
		page_key_text(w, "object", object_name(p, d->target));
		json_key_str(w, "cause", GET(waits_for, d, cause));
		json_key_u64(w, "ns", s->ns);
		if (HAS(waits_for, d, waits))
			json_key_u64(w, "waits", GET(waits_for, d, waits));
		if (HAS(waits_for, d, longest_ns))
			json_key_u64(w, "longest_ns", GET(waits_for, d, longest_ns));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_wakers(struct page *p, struct share_list *list, struct json_writer *w)
{
	sort_shares(list, PAGE_WAITS_OF_ONE);
	json_write_key(w, "wakers");
	json_write_array(w);
	vec_for(&list->v, s) {
		const struct edge *d = p->g->edges.v[s->edge];

		json_write_object(w);
		if (p->thread_row[d->source] != PAGE_NONE)
			json_key_u64(w, "thread", p->thread_row[d->source]);
		else
			page_key_text(w, "object", object_name(p, d->source));
		json_key_str(w, "cause", GET(wakes, d, cause));
		json_key_u64(w, "ns", s->ns);
		if (HAS(wakes, d, wakeups))
			json_key_u64(w, "wakeups", GET(wakes, d, wakeups));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_cpus(struct page *p, struct share_list *list, struct json_writer *w)
{
	sort_shares(list, PAGE_CPUS_OF_ONE);
	json_write_key(w, "cpus");
	json_write_array(w);
	vec_for(&list->v, s) {
		json_write_array(w);
		json_write_u64(w, GET(cpu, p->g->nodes.v[p->g->edges.v[s->edge]->target], cpu_id));
		json_write_u64(w, s->ns);
		json_write_array_end(w);
	}
	json_write_array_end(w);
}

static void write_relations(struct page *p, uint32_t node, struct json_writer *w)
{
	struct edge_list out = graph_out(p->g, node), in = graph_in(p->g, node);
	struct share_list waits = {0}, wakers = {0}, cpus = {0};

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = p->g->edges.v[out.v[i]];

		if (d->type == &waits_for_type)
			put_share(&waits, d->index, HAS(waits_for, d, waited_ns),
				  GET(waits_for, d, waited_ns));
		if (d->type == &ran_on_type)
			put_share(&cpus, d->index, HAS(ran_on, d, run_ns), GET(ran_on, d, run_ns));
	}
	for (size_t i = 0; i < in.n; i++) {
		const struct edge *d = p->g->edges.v[in.v[i]];

		if (d->type == &wakes_type)
			put_share(&wakers, d->index, HAS(wakes, d, waited_ns),
				  GET(wakes, d, waited_ns));
	}
	if (waits.v.n)
		write_waits(p, &waits, w);
	if (wakers.v.n)
		write_wakers(p, &wakers, w);
	if (cpus.v.n)
		write_cpus(p, &cpus, w);
	vec_done(&waits.v);
	vec_done(&wakers.v);
	vec_done(&cpus.v);
}

#define WRITE_KNOWN(w, n, f)                                                                       \
	do {                                                                                       \
		if (HAS(thread, n, f))                                                             \
			json_key_u64(w, #f, GET(thread, n, f));                                    \
	} while (0)

static void write_thread(struct page *p, uint32_t node, struct json_writer *w)
{
	const struct node *n = p->g->nodes.v[node];

	json_write_object(w);
	json_key_str(w, "id", graph_node_id(p->g, node));
	json_key_u64(w, "tid", GET(thread, n, tid));
	page_key_text(w, "name", HAS(thread, n, name) ? GET(thread, n, name) : NULL);
	json_key_u64(w, "process", p->row_of[p->t->actor_of[GET(thread, n, process)]]);
	WRITE_KNOWN(w, n, run_ns);
	WRITE_KNOWN(w, n, runq_ns);
	WRITE_KNOWN(w, n, blocked_ns);
	WRITE_KNOWN(w, n, observed_ns);
	WRITE_KNOWN(w, n, voluntary_switches);
	WRITE_KNOWN(w, n, involuntary_switches);
	WRITE_KNOWN(w, n, migrations);
	WRITE_KNOWN(w, n, wakeups);
	write_relations(p, node, w);
	page_write_profile(p, node, w);
	json_write_object_end(w);
}

/* CPU time by NUMA node of threads where no CPU was recorded: what graphs of the older tool have.
 */
static void write_nodes(struct page *p, struct json_writer *w)
{
	struct numa_rows rows;

	numa_rows_of(p->g, &thread_type, &rows);
	json_write_key(w, "thread_nodes");
	json_write_array(w);
	vec_for(&rows.v, r) {
		if (p->thread_row[r->node] == PAGE_NONE || !r->cpu.v.n)
			continue;
		json_write_object(w);
		json_key_u64(w, "thread", p->thread_row[r->node]);
		json_write_key(w, "cpu");
		json_write_array(w);
		vec_for(&r->cpu.v, a) {
			json_write_array(w);
			json_write_u64(w, a->node);
			json_write_f64(w, a->amount);
			json_write_array_end(w);
		}
		json_write_array_end(w);
		if (r->score.known)
			page_key_f64(w, "remote", r->score.remote_share);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	numa_rows_done(&rows);
}

void page_write_threads(struct page *p, struct json_writer *w)
{
	json_write_key(w, "threads");
	json_write_array(w);
	vec_for(&p->threads, it)
		write_thread(p, *it, w);
	json_write_array_end(w);
	write_nodes(p, w);
}
