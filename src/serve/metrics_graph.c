/* Figures of the observed system: the largest of each kind, and one for the rest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

/* How a field becomes a figure. */
enum figure {
	AS_IS,	    /* times the factor */
	PER_SECOND, /* of the window, times the factor */
};

struct row {
	const struct type *type;
	const char *field;
	const char *name, *unit, *help;
	enum figure figure;
	double factor;
	bool top; /* there may be any number of them */
};

#define NS_TO_S	  1e-9
#define PCT	  0.01
#define REST	  "other"
#define NAME_MOST 64 /* bytes of a name of the host in a label */

static const struct row rows[] = {
	{&host_type, "cpus", "witty_host_cpus", "1", "CPUs online.", AS_IS, 1, false},
	{&host_type, "memory_bytes", "witty_host_memory_bytes", "By", "Memory that the kernel manages.", AS_IS, 1, false},
	{&host_type, "memory_available_bytes", "witty_host_memory_available_bytes", "By",
	 "Memory available without swapping.", AS_IS, 1, false},
	{&host_type, "load1", "witty_host_load1", "1", "Load average over one minute.", AS_IS, 1, false},
	{&host_type, "cpu_busy_ns", "witty_host_cpu_busy_cores", "1", "CPUs busy on average of the window.", PER_SECOND,
	 NS_TO_S, false},
	{&host_type, "context_switches", "witty_host_context_switches_per_second", "1/s",
	 "Context switches of all CPUs.", PER_SECOND, 1, false},
	{&host_type, "forks", "witty_host_forks_per_second", "1/s", "Tasks made.", PER_SECOND, 1, false},
	{&process_type, "cpu_ns", "witty_process_cpu_cores", "1", "CPUs that a process used on average of the window.",
	 PER_SECOND, NS_TO_S, true},
	{&process_type, "rss_bytes", "witty_process_resident_memory_bytes", "By",
	 "Resident memory of a process; pages that are shared count for each.", AS_IS, 1, true},
	{&thread_type, "run_ns", "witty_thread_run_ratio", "1", "Share of the window that a thread was on a CPU.",
	 PER_SECOND, NS_TO_S, true},
	{&thread_type, "runq_ns", "witty_thread_run_queue_ratio", "1",
	 "Share of the window that a thread was runnable but not running.", PER_SECOND, NS_TO_S, true},
	{&thread_type, "involuntary_switches", "witty_thread_involuntary_switches_per_second", "1/s",
	 "Times that a thread was taken off its CPU.", PER_SECOND, 1, true},
	{&container_type, "cpu_ns", "witty_container_cpu_cores", "1", "CPUs that a container used on average.",
	 PER_SECOND, NS_TO_S, true},
	{&container_type, "memory_bytes", "witty_container_memory_bytes", "By", "Memory charged to a container.",
	 AS_IS, 1, true},
	{&container_type, "throttled_ns", "witty_container_throttled_cores", "1",
	 "Threads that a container's quota held back on average.", PER_SECOND, NS_TO_S, true},
	{&numa_type, "memory_bytes", "witty_numa_memory_bytes", "By", "Memory of a NUMA node.", AS_IS, 1, true},
	{&numa_type, "free_bytes", "witty_numa_free_bytes", "By", "Memory of a NUMA node that is free.", AS_IS, 1, true},
	{&numa_type, "miss_pages", "witty_numa_miss_pages_per_second", "1/s",
	 "Pages given by a node though another one was preferred.", PER_SECOND, 1, true},
	{&numa_type, "other_pages", "witty_numa_other_pages_per_second", "1/s",
	 "Pages given by a node to CPUs of another one.", PER_SECOND, 1, true},
	{&gpu_type, "utilization_pct", "witty_gpu_utilization_ratio", "1", "Time with a kernel running.", AS_IS, PCT,
	 true},
	{&gpu_type, "memory_used_bytes", "witty_gpu_memory_used_bytes", "By", "Device memory in use.", AS_IS, 1, true},
	{&gpu_type, "memory_total_bytes", "witty_gpu_memory_bytes", "By", "Device memory.", AS_IS, 1, true},
	{&gpu_type, "power_mw", "witty_gpu_power_watts", "W", "Power drawn.", AS_IS, 1e-3, true},
	{&gpu_type, "temperature_c", "witty_gpu_temperature_celsius", "Cel", "Temperature.", AS_IS, 1, true},
	{&npu_type, "utilization_pct", "witty_npu_utilization_ratio", "1", "Use of the AI cores.", AS_IS, PCT, true},
	{&npu_type, "memory_used_bytes", "witty_npu_memory_used_bytes", "By", "Device memory in use.", AS_IS, 1, true},
	{&npu_type, "memory_total_bytes", "witty_npu_memory_bytes", "By", "Device memory.", AS_IS, 1, true},
	{&npu_type, "power_mw", "witty_npu_power_watts", "W", "Power drawn.", AS_IS, 1e-3, true},
	{&npu_type, "temperature_c", "witty_npu_temperature_celsius", "Cel", "Temperature.", AS_IS, 1, true},
	{&nic_type, "rx_bytes", "witty_nic_receive_bytes_per_second", "By/s", "Bytes received.", PER_SECOND, 1, true},
	{&nic_type, "tx_bytes", "witty_nic_transmit_bytes_per_second", "By/s", "Bytes sent.", PER_SECOND, 1, true},
	{&nic_type, "rx_drops", "witty_nic_receive_drops_per_second", "1/s", "Packets dropped on receipt.", PER_SECOND,
	 1, true},
	{&block_device_type, "read_bytes", "witty_block_read_bytes_per_second", "By/s", "Bytes read.", PER_SECOND, 1,
	 true},
	{&block_device_type, "written_bytes", "witty_block_written_bytes_per_second", "By/s", "Bytes written.",
	 PER_SECOND, 1, true},
	{&block_device_type, "busy_ns", "witty_block_busy_ratio", "1", "Share of time with a request under way.",
	 PER_SECOND, NS_TO_S, true},
};

static double number(const struct field *f, const uint64_t *data)
{
	struct value v = field_get(f, data);

	return f->type == T_F64 ? v.f64 : f->type == T_I64 ? (double)v.i64 : (double)v.u64;
}

static void name_label(char *ret, size_t size, const char *s)
{
	size_t n = strnlen(s, NAME_MOST);

	/* Not within a character. */
	while (n && n == NAME_MOST && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	snprintf(ret, size, "%.*s", (int)n, s);
}

static const char *container_of(struct graph *g, uint32_t process)
{
	struct edge_list out = graph_out(g, process);

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = g->edges.v[out.v[i]];
		const struct node *c = g->nodes.v[d->target];

		if (d->type == &run_on_type && c->type == &container_type && HAS(container, c, container_name))
			return GET(container, c, container_name);
	}
	return "";
}

/* Labels by which people know one of that type. */
static void add_sample(struct metrics *m, struct metric *f, struct graph *g, const struct node *n, double v)
{
	char name[NAME_MOST * 4 + 1] = "", id[24] = "", other[NAME_MOST * 4 + 1] = "";

	if (n->type == &host_type) {
		metrics_sample(m, f, v, NULL);
	} else if (n->type == &process_type) {
		name_label(name, sizeof(name), HAS(process, n, name) ? GET(process, n, name) : "");
		name_label(other, sizeof(other), container_of(g, n->index));
		snprintf(id, sizeof(id), "%llu", (unsigned long long)GET(process, n, pid));
		metrics_sample(m, f, v, "pid", id, "process", name, "container", other, NULL);
	} else if (n->type == &thread_type) {
		name_label(name, sizeof(name), HAS(thread, n, name) ? GET(thread, n, name) : "");
		snprintf(id, sizeof(id), "%llu", (unsigned long long)GET(thread, n, tid));
		if (HAS(thread, n, process)) {
			const struct node *p = g->nodes.v[GET(thread, n, process)];

			name_label(other, sizeof(other), HAS(process, p, name) ? GET(process, p, name) : "");
		}
		metrics_sample(m, f, v, "tid", id, "thread", name, "process", other, NULL);
	} else {
		const char *gid = graph_node_id(g, n->index), *colon = strchr(gid, ':');

		if (n->type == &container_type && HAS(container, n, container_name))
			colon = NULL;
		if (n->type == &block_device_type && HAS(block_device, n, name))
			name_label(name, sizeof(name), GET(block_device, n, name));
		else if (n->type == &container_type && !colon)
			name_label(name, sizeof(name), GET(container, n, container_name));
		else
			name_label(name, sizeof(name), colon ? colon + 1 : gid);
		metrics_sample(m, f, v, n->type == &numa_type ? "node" : n->type == &container_type ? "container" : "device", name, NULL);
	}
}

static void add_rest(struct metrics *m, struct metric *f, const struct type *t, double v)
{
	if (t == &process_type)
		metrics_sample(m, f, v, "pid", "", "process", REST, "container", "", NULL);
	else if (t == &thread_type)
		metrics_sample(m, f, v, "tid", "", "thread", REST, "process", "", NULL);
	else
		metrics_sample(m, f, v, t == &numa_type ? "node" : t == &container_type ? "container" : "device", REST, NULL);
}

struct ranked {
	uint32_t item;
	double value;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return x->item < y->item ? -1 : x->item > y->item;
}

static void add_row(struct metrics *m, struct graph *g, const struct row *r, double window_s)
{
	int i = type_field(r->type, r->field);
	VEC(struct ranked) list = {0};
	struct metric *f;
	double rest = 0;

	if (i < 0 || (r->figure == PER_SECOND && window_s <= 0))
		return;
	vec_for(&g->nodes, n) {
		double v;

		if ((*n)->type != r->type || !((*n)->measured & (1ull << i)))
			continue;
		v = number(&r->type->fields[i], (*n)->data) * r->factor;
		vec_push(&list, ((struct ranked){(*n)->index, r->figure == PER_SECOND ? v / window_s : v}));
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_value);
	f = metrics_family(m, METRIC_GAUGE, r->name, r->unit, r->help);
	for (size_t k = 0; k < list.n; k++) {
		if (k < METRICS_TOP)
			add_sample(m, f, g, g->nodes.v[list.v[k].item], list.v[k].value);
		else
			rest += list.v[k].value;
	}
	if (list.n > METRICS_TOP)
		add_rest(m, f, r->type, rest);
	vec_done(&list);
}

static void end_label(struct graph *g, uint32_t node, char *ret, size_t size)
{
	const struct node *n = g->nodes.v[node];
	char name[NAME_MOST * 4 + 1];

	if (n->type == &process_type) {
		name_label(name, sizeof(name), HAS(process, n, name) ? GET(process, n, name) : "");
		snprintf(ret, size, "%s[%llu]", name, (unsigned long long)GET(process, n, pid));
	} else {
		name_label(ret, size, graph_node_id(g, node));
	}
}

static void add_flows(struct metrics *m, struct graph *g, double window_s)
{
	struct metric *f = metrics_family(m, METRIC_GAUGE, "witty_flow_bytes_per_second", "By/s",
					  "Data from one process to another, or to or from outside.");
	VEC(struct ranked) list = {0};
	double rest = 0;

	vec_for(&g->edges, d)
		if ((*d)->type == &flow_type && HAS(flow, *d, bytes) && GET(flow, *d, bytes))
			vec_push(&list, ((struct ranked){(*d)->index, (double)GET(flow, *d, bytes) / window_s}));
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_value);
	for (size_t k = 0; k < list.n; k++) {
		const struct edge *d = g->edges.v[list.v[k].item];
		char from[400], to[400];

		if (k >= METRICS_TOP) {
			rest += list.v[k].value;
			continue;
		}
		end_label(g, d->source, from, sizeof(from));
		end_label(g, d->target, to, sizeof(to));
		metrics_sample(m, f, list.v[k].value, "source", from, "target", to, "kind", GET(flow, d, kind), NULL);
	}
	if (list.n > METRICS_TOP)
		metrics_sample(m, f, rest, "source", REST, "target", REST, "kind", "", NULL);
	vec_done(&list);
}

/* Causes are a fixed list of the registry. */
static void add_waits(struct metrics *m, struct graph *g, double window_s)
{
	struct metric *f = metrics_family(m, METRIC_GAUGE, "witty_waiting_threads", "1",
					  "Threads blocked on average of the window, by what they waited for.");
	struct {
		const char *cause;
		double ns;
	} sums[32] = {0};
	size_t n = 0, k;

	vec_for(&g->edges, d) {
		const char *cause;

		if ((*d)->type != &waits_for_type || !HAS(waits_for, *d, waited_ns))
			continue;
		cause = GET(waits_for, *d, cause);
		for (k = 0; k < n && strcmp(sums[k].cause, cause); k++)
			;
		if (k == n && n < 32)
			sums[n++].cause = cause;
		if (k < n)
			sums[k].ns += (double)GET(waits_for, *d, waited_ns);
	}
	for (k = 0; k < n; k++)
		metrics_sample(m, f, sums[k].ns / 1e9 / window_s, "cause", sums[k].cause, NULL);
}

static void add_remote(struct metrics *m, struct graph *g)
{
	struct metric *f = metrics_family(m, METRIC_GAUGE, "witty_process_numa_remote_ratio", "1",
					  "Share of a process's memory accesses that leave the node, if all of its "
					  "pages are used alike: the largest.");
	VEC(struct ranked) list = {0};

	vec_for(&g->edges, d)
		if ((*d)->type == &numa_access_type && HAS(numa_access, *d, local_share))
			vec_push(&list, ((struct ranked){(*d)->source, 1 - GET(numa_access, *d, local_share)}));
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_value);
	for (size_t k = 0; k < list.n && k < METRICS_TOP; k++)
		add_sample(m, f, g, g->nodes.v[list.v[k].item], list.v[k].value);
	vec_done(&list);
}

void metrics_add_graph(struct metrics *m, struct graph *g)
{
	double window_s = (double)g->meta.window_ns / 1e9;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add_row(m, g, &rows[i], window_s);
	if (window_s > 0) {
		add_flows(m, g, window_s);
		add_waits(m, g, window_s);
	}
	add_remote(m, g);
}
