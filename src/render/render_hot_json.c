/* The analysis of threads as JSON: docs/json.md. */
#include <string.h>

#include "graph_meta.h"
#include "render_hot.h"
#include "render_waitfor.h"
#include "text.h"

static void key_f64(struct json_writer *w, const char *key, double v)
{
	json_write_key(w, key);
	json_write_f64(w, v); /* null when it was not measured */
}

static void key_known(struct json_writer *w, const char *key, uint64_t v, bool known)
{
	json_write_key(w, key);
	if (known)
		json_write_u64(w, v);
	else
		json_write_null(w);
}

static void write_party(struct hot *h, const char *key, uint32_t node, struct json_writer *w)
{
	const struct node *n = h->g->nodes.v[node], *p = NULL;

	json_write_key(w, key);
	json_write_object(w);
	json_key_str(w, "id", graph_node_id(h->g, node));
	json_key_str(w, "type", n->type->name);
	if (n->type == &thread_type) {
		p = HAS(thread, n, process) ? h->g->nodes.v[GET(thread, n, process)] : NULL;
		key_known(w, "pid", p ? GET(process, p, pid) : 0, p && HAS(process, p, pid));
		key_known(w, "tid", GET(thread, n, tid), true);
		json_key_str(w, "name",
			     HAS(thread, n, name)         ? GET(thread, n, name)
			     : p && HAS(process, p, name) ? GET(process, p, name)
							  : NULL);
	}
	json_write_object_end(w);
}

static void write_amounts(const char *key, const struct by_node *v, struct json_writer *w)
{
	json_write_key(w, key);
	json_write_array(w);
	vec_for(&v->v, x) {
		json_write_object(w);
		json_key_u64(w, "node", x->node);
		key_f64(w, "amount", x->amount);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_waits(struct hot *h, const struct hot_thread *t, struct json_writer *w)
{
	json_write_key(w, "waits");
	json_write_array(w);
	vec_for(&t->waits, x) {
		json_write_object(w);
		json_key_str(w, "cause", x->cause);
		json_key_u64(w, "waits", x->waits);
		json_key_u64(w, "waited_ns", x->waited_ns);
		json_key_u64(w, "longest_ns", x->longest_ns);
		key_f64(w, "share_pct", hot_share_of(t, x->waited_ns));
		json_key_str(w, "object", graph_node_id(h->g, x->object));
		json_write_key(w, "idle");
		json_write_bool(w, x->idle);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_parties(struct hot *h, const char *key, const char *who,
			  const struct hot_party *v, size_t n, const struct hot_thread *t,
			  struct json_writer *w)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++) {
		json_write_object(w);
		write_party(h, who, v[i].node, w);
		json_key_str(w, "cause", v[i].cause);
		json_key_u64(w, "wakeups", v[i].wakeups);
		json_key_u64(w, "waited_ns", v[i].waited_ns);
		json_key_u64(w, "idle_ns", v[i].idle_ns);
		json_key_u64(w, "longest_ns", v[i].longest_ns);
		key_f64(w, "share_pct", hot_share_of(t, v[i].waited_ns));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_reasons(const struct hot_thread *t, struct json_writer *w)
{
	json_write_key(w, "reasons");
	json_write_array(w);
	vec_for(&t->reasons, r) {
		json_write_object(w);
		json_key_u64(w, "points", r->points);
		json_key_str(w, "text", r->text);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "rules");
	json_write_array(w);
	vec_for(&t->rules, r) {
		json_write_object(w);
		json_key_str(w, "rule", r->rule);
		json_key_u64(w, "points", r->points);
		json_key_u64(w, "confidence_pct", r->pct);
		json_key_str(w, "text", r->text);
		json_key_str(w, "advice", r->advice);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "missing");
	json_write_array(w);
	vec_for(&t->missing, m)
		json_write_str(w, *m);
	json_write_array_end(w);
}

static void write_rates(const struct hot_thread *t, struct json_writer *w)
{
	bool rates = t->base_ns != 0;

	key_known(w, "run_ns", t->run_ns, rates);
	key_known(w, "runq_ns", t->runq_ns, hot_has(t->runq_pct));
	key_known(w, "blocked_ns", t->blocked_ns, hot_has(t->blocked_pct));
	key_known(w, "observed_ns", t->observed_ns, t->observed_ns != 0);
	key_known(w, "base_ns", t->base_ns, rates);
	key_f64(w, "cpu_pct", t->cpu_pct);
	key_f64(w, "user_pct", t->user_pct);
	key_f64(w, "runq_pct", t->runq_pct);
	key_f64(w, "blocked_pct", t->blocked_pct);
	key_f64(w, "switches_s", t->switches_s);
	key_f64(w, "voluntary_s", t->voluntary_s);
	key_f64(w, "involuntary_s", t->involuntary_s);
	key_f64(w, "migrations_s", t->migrations_s);
	key_f64(w, "wakeups_s", t->wakeups_s);
	key_f64(w, "minor_faults_s", t->minor_faults_s);
	key_f64(w, "major_faults_s", t->major_faults_s);
	key_f64(w, "llc_miss_pct", t->llc_miss_pct);
	key_f64(w, "ipc", t->ipc);
	key_f64(w, "bytes_s", t->bytes_s);
	json_write_key(w, "since_start");
	json_write_object(w);
	key_known(w, "run_ns", t->since.run_ns, t->since.run_ns != UINT64_MAX);
	key_known(w, "voluntary_switches", t->since.voluntary, t->since.voluntary != UINT64_MAX);
	key_known(w, "involuntary_switches", t->since.involuntary,
		  t->since.involuntary != UINT64_MAX);
	json_write_object_end(w);
}

static void write_place(const struct hot_thread *t, struct json_writer *w)
{
	json_write_key(w, "remote_measured");
	json_write_bool(w, t->remote_measured);
	key_f64(w, "similarity", t->similarity);
	key_f64(w, "remote_pct", t->remote_pct);
	write_amounts("cpu", &t->cpu, w);
	write_amounts("memory", &t->memory, w);
	key_known(w, "cpu_node", t->cpu_node, t->cpu_node != HOT_NONE);
	key_known(w, "memory_node", t->memory_node, t->memory_node != HOT_NONE);
	json_key_str(w, "cpus_allowed", t->cpus_allowed);
	key_known(w, "cpus_used", t->cpus_used_n, t->cpus_used_n != 0);
}

static void write_data(struct hot *h, const struct hot_thread *t, struct json_writer *w)
{
	json_write_key(w, "data");
	json_write_array(w);
	vec_for(&t->bytes, x) {
		json_write_object(w);
		json_key_str(w, "kind", x->kind);
		json_key_u64(w, "in_bytes", x->in_bytes);
		json_key_u64(w, "out_bytes", x->out_bytes);
		json_key_u64(w, "calls", x->calls);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "devices");
	json_write_array(w);
	vec_for(&t->devices, d)
		json_write_str(w, graph_node_id(h->g, *d));
	json_write_array_end(w);
	json_write_key(w, "rivals");
	json_write_array(w);
	vec_for(&t->rivals, r) {
		json_write_object(w);
		write_party(h, "thread", r->node, w);
		json_key_u64(w, "run_ns", r->run_ns);
		json_key_u64(w, "times", r->times);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_thread(struct hot *h, const struct hot_thread *t, struct json_writer *w)
{
	json_write_object(w);
	write_party(h, "thread", t->node, w);
	json_key_str(w, "process", t->process == HOT_NONE ? NULL : graph_node_id(h->g, t->process));
	json_key_u64(w, "points", t->points);
	json_key_u64(w, "possible", t->possible);
	json_key_str(w, "level", hot_level_name(t->level));
	json_key_str(w, "level_most", hot_level_name(t->level_most));
	json_key_str(w, "class", thread_class_name(t->class));
	json_key_str(w, "class_why", t->class_why);
	json_write_key(w, "class_mix");
	json_write_array(w);
	for (int i = 0; i < 2 && t->class == CLASS_MIXED; i++)
		json_write_str(w, thread_class_name(t->mix[i]));
	json_write_array_end(w);
	json_key_str(w, "cause", hot_cause_name(t->cause));
	json_key_str(w, "cause_why", t->cause_why);
	json_key_str(w, "root", t->root == HOT_NONE ? NULL : graph_node_id(h->g, t->root));
	key_f64(w, "root_pct", t->root_pct);
	json_key_str(w, "root_why", t->root_why);
	write_reasons(t, w);
	write_rates(t, w);
	write_place(t, w);
	write_waits(h, t, w);
	write_parties(h, "wakers", "waker", t->wakers.v, t->wakers.n, t, w);
	write_parties(h, "waiters", "waiter", t->waiters.v, t->waiters.n, t, w);
	json_key_u64(w, "waited_for_ns", t->waited_for_ns);
	write_data(h, t, w);
	json_write_object_end(w);
}

static void write_limits(const struct limits *l, struct json_writer *w)
{
	json_write_key(w, "limits");
	json_write_object(w);
	json_key_str(w, "preset", l->preset);
	json_key_u64(w, "changed", l->changed);
	json_write_key(w, "values");
	json_write_object(w);
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		key_f64(w, limit_types[i].name, l->v[i]);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void write_sums(const struct hot *h, struct json_writer *w)
{
	json_write_key(w, "classes");
	json_write_array(w);
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		const struct hot_class_sum *s = &h->classes[c];

		json_write_object(w);
		json_key_str(w, "class", thread_class_name((enum thread_class)c));
		json_key_u64(w, "threads", s->threads);
		json_key_u64(w, "measured", s->measured);
		key_f64(w, "cpu_pct", s->measured ? s->cpu_pct : NAN);
		key_f64(w, "switches_s", s->measured ? s->switches_s : NAN);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "nodes");
	json_write_array(w);
	vec_for(&h->nodes, s) {
		json_write_object(w);
		json_key_u64(w, "node", s->numa);
		json_key_u64(w, "threads", s->threads);
		json_key_u64(w, "remote_threads", s->remote);
		key_f64(w, "cpu_pct", s->cpu_pct);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static uint64_t end_of(const struct hot_view *v, uint64_t n)
{
	return v->limit && v->limit < n ? v->limit : n;
}

static void write_affinity(struct hot *h, const struct hot_view *v, struct json_writer *w)
{
	json_write_key(w, "numa_affinity");
	json_write_object(w);
	json_write_key(w, "processes");
	json_write_array(w);
	for (uint64_t i = 0; i < end_of(v, h->processes.v.n); i++) {
		const struct numa_row *r = &h->processes.v.v[i];

		json_write_object(w);
		json_key_str(w, "id", graph_node_id(h->g, r->node));
		key_f64(w, "similarity", r->score.known ? r->score.similarity : NAN);
		key_f64(w, "remote_pct", r->score.known ? r->score.remote_share * 100 : NAN);
		json_key_str(w, "mode", r->verdict);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "threads");
	json_write_array(w);
	for (uint64_t i = 0; i < end_of(v, h->affinity.n); i++) {
		const struct hot_thread *t = &h->threads.v[h->affinity.v[i]];

		json_write_object(w);
		json_key_str(w, "id", graph_node_id(h->g, t->node));
		key_f64(w, "similarity", t->similarity);
		key_f64(w, "remote_pct", t->remote_pct);
		json_key_str(w, "mode", t->affinity.mode);
		json_key_str(w, "severity", t->affinity.band);
		json_key_str(w, "why", t->affinity.why);
		json_key_str(w, "advice", t->affinity.advice);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
}

static void write_switching(struct hot *h, const struct hot_view *v, struct json_writer *w)
{
	json_write_key(w, "context_switches");
	json_write_array(w);
	for (uint64_t i = 0; i < end_of(v, h->switching.n); i++) {
		const struct hot_thread *t = &h->threads.v[h->switching.v[i]];

		json_write_object(w);
		json_key_str(w, "id", graph_node_id(h->g, t->node));
		key_f64(w, "switches_s", t->switches_s);
		key_f64(w, "voluntary_s", t->voluntary_s);
		key_f64(w, "involuntary_s", t->involuntary_s);
		key_f64(w, "runq_pct", t->runq_pct);
		json_key_str(w, "cause", t->switching.cause);
		json_key_str(w, "severity", t->switching.band);
		json_key_str(w, "proof", t->switching.proof);
		json_key_str(w, "advice", t->switching.advice);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void render_hot_json(struct hot *h, const struct hot_view *v, struct json_writer *w)
{
	json_write_object(w);
	json_key_u64(w, "schema_version", GRAPH_SCHEMA_VERSION);
	key_known(w, "window_ns", h->window_ns, h->window_ns != 0);
	key_known(w, "observed_ns", h->observed_ns, h->observed_ns != 0);
	key_known(w, "cpus", h->cpus, h->cpus != 0);
	key_f64(w, "demand_pct", h->demand_pct);
	write_limits(&h->limits, w);
	json_write_key(w, "threads");
	json_write_array(w);
	for (uint64_t i = 0; i < end_of(v, h->threads.n); i++)
		write_thread(h, &h->threads.v[i], w);
	json_write_array_end(w);
	write_sums(h, w);
	write_affinity(h, v, w);
	write_switching(h, v, w);
	json_write_key(w, "waits");
	if (v->waits && h->has_waits)
		render_waitfor_json(v->waits, h->g, &(struct waitfor_view){.limit = v->limit}, w);
	else
		json_write_null(w);
	json_write_key(w, "not_known");
	json_write_array(w);
	vec_for(&h->unseen, u)
		json_write_str(w, *u);
	json_write_array_end(w);
	json_write_object_end(w);
}
