/* Figures of the observed system: the largest of each kind, and one for the rest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
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
};

#define NS_TO_S	  1e-9
#define PCT	  0.01
#define REST	  "other"
#define NAME_MOST 64 /* bytes of a name of the host in a label */

static const struct row rows[] = {
	{&host_type, "cpus", "witty_host_cpus", "1", "CPUs online.", AS_IS, 1},
	{&host_type, "memory_bytes", "witty_host_memory_bytes", "By", "Memory that the kernel manages.", AS_IS, 1},
	{&host_type, "memory_available_bytes", "witty_host_memory_available_bytes", "By",
	 "Memory available without swapping.", AS_IS, 1},
	{&host_type, "load1", "witty_host_load1", "1", "Load average over one minute.", AS_IS, 1},
	{&host_type, "cpu_busy_ns", "witty_host_cpu_busy_cores", "1", "CPUs busy on average of the window.", PER_SECOND,
	 NS_TO_S},
	{&host_type, "context_switches", "witty_host_context_switches_per_second", "1/s",
	 "Context switches of all CPUs.", PER_SECOND, 1},
	{&host_type, "forks", "witty_host_forks_per_second", "1/s", "Tasks made.", PER_SECOND, 1},
	{&process_type, "cpu_ns", "witty_process_cpu_cores", "1", "CPUs that a process used on average of the window.",
	 PER_SECOND, NS_TO_S},
	{&process_type, "rss_bytes", "witty_process_resident_memory_bytes", "By",
	 "Resident memory of a process; pages that are shared count for each.", AS_IS, 1},
	{&thread_type, "run_ns", "witty_thread_run_ratio", "1", "Share of the window that a thread was on a CPU.",
	 PER_SECOND, NS_TO_S},
	{&thread_type, "runq_ns", "witty_thread_run_queue_ratio", "1",
	 "Share of the window that a thread was runnable but not running.", PER_SECOND, NS_TO_S},
	{&thread_type, "involuntary_switches", "witty_thread_involuntary_switches_per_second", "1/s",
	 "Times that a thread was taken off its CPU.", PER_SECOND, 1},
	{&container_type, "cpu_ns", "witty_container_cpu_cores", "1", "CPUs that a container used on average.",
	 PER_SECOND, NS_TO_S},
	{&container_type, "memory_bytes", "witty_container_memory_bytes", "By", "Memory charged to a container.",
	 AS_IS, 1},
	{&container_type, "throttled_ns", "witty_container_throttled_cores", "1",
	 "Threads that a container's quota held back on average.", PER_SECOND, NS_TO_S},
	{&numa_type, "memory_bytes", "witty_numa_memory_bytes", "By", "Memory of a NUMA node.", AS_IS, 1},
	{&numa_type, "free_bytes", "witty_numa_free_bytes", "By", "Memory of a NUMA node that is free.", AS_IS, 1},
	{&numa_type, "miss_pages", "witty_numa_miss_pages_per_second", "1/s",
	 "Pages given by a node though another one was preferred.", PER_SECOND, 1},
	{&numa_type, "other_pages", "witty_numa_other_pages_per_second", "1/s",
	 "Pages given by a node to CPUs of another one.", PER_SECOND, 1},
	{&gpu_type, "utilization_pct", "witty_gpu_utilization_ratio", "1", "Time with a kernel running.", AS_IS, PCT},
	{&gpu_type, "memory_used_bytes", "witty_gpu_memory_used_bytes", "By", "Device memory in use.", AS_IS, 1},
	{&gpu_type, "memory_total_bytes", "witty_gpu_memory_bytes", "By", "Device memory.", AS_IS, 1},
	{&gpu_type, "power_mw", "witty_gpu_power_watts", "W", "Power drawn.", AS_IS, 1e-3},
	{&gpu_type, "temperature_c", "witty_gpu_temperature_celsius", "Cel", "Temperature.", AS_IS, 1},
	{&npu_type, "utilization_pct", "witty_npu_utilization_ratio", "1", "Use of the AI cores.", AS_IS, PCT},
	{&npu_type, "memory_used_bytes", "witty_npu_memory_used_bytes", "By", "Device memory in use.", AS_IS, 1},
	{&npu_type, "memory_total_bytes", "witty_npu_memory_bytes", "By", "Device memory.", AS_IS, 1},
	{&npu_type, "power_mw", "witty_npu_power_watts", "W", "Power drawn.", AS_IS, 1e-3},
	{&npu_type, "temperature_c", "witty_npu_temperature_celsius", "Cel", "Temperature.", AS_IS, 1},
	{&nic_type, "rx_bytes", "witty_nic_receive_bytes_per_second", "By/s", "Bytes received.", PER_SECOND, 1},
	{&nic_type, "tx_bytes", "witty_nic_transmit_bytes_per_second", "By/s", "Bytes sent.", PER_SECOND, 1},
	{&nic_type, "rx_drops", "witty_nic_receive_drops_per_second", "1/s", "Packets dropped on receipt.", PER_SECOND,
	 1},
	{&block_device_type, "read_bytes", "witty_block_read_bytes_per_second", "By/s", "Bytes read.", PER_SECOND, 1},
	{&block_device_type, "written_bytes", "witty_block_written_bytes_per_second", "By/s", "Bytes written.",
	 PER_SECOND, 1},
	{&block_device_type, "busy_ns", "witty_block_busy_ratio", "1", "Share of time with a request under way.",
	 PER_SECOND, NS_TO_S},
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

/* In a graph of several hosts: on which one. */
static const char *host_of(const struct node *n)
{
	return strcmp(n->ns, "local") ? n->ns : NULL;
}

/* Labels by which people know one of that type. */
static void add_sample(struct metrics *m, struct metric *f, struct graph *g, const struct node *n, double v)
{
	char name[NAME_MOST * 4 + 1] = "", id[24] = "", other[NAME_MOST * 4 + 1] = "";
	const char *host = host_of(n), *also = host ? "host" : NULL;

	if (n->type == &host_type) {
		metrics_sample(m, f, v, also, host, NULL);
	} else if (n->type == &process_type) {
		name_label(name, sizeof(name), HAS(process, n, name) ? GET(process, n, name) : "");
		name_label(other, sizeof(other), container_of(g, n->index));
		snprintf(id, sizeof(id), "%llu", (unsigned long long)GET(process, n, pid));
		metrics_sample(m, f, v, "pid", id, "process", name, "container", other, also, host, NULL);
	} else if (n->type == &thread_type) {
		name_label(name, sizeof(name), HAS(thread, n, name) ? GET(thread, n, name) : "");
		snprintf(id, sizeof(id), "%llu", (unsigned long long)GET(thread, n, tid));
		if (HAS(thread, n, process)) {
			const struct node *p = g->nodes.v[GET(thread, n, process)];

			name_label(other, sizeof(other), HAS(process, p, name) ? GET(process, p, name) : "");
		}
		metrics_sample(m, f, v, "tid", id, "thread", name, "process", other, also, host, NULL);
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
		/* The printed id ends in it. */
		if (host && strlen(name) > strlen(host) && name[strlen(name) - strlen(host) - 1] == '@' &&
		    !strcmp(name + strlen(name) - strlen(host), host))
			name[strlen(name) - strlen(host) - 1] = '\0';
		metrics_sample(m, f, v, n->type == &numa_type ? "node" : n->type == &container_type ? "container" : "device", name, also,
			       host, NULL);
	}
}

static void add_rest(struct metrics *m, struct metric *f, const struct type *t, double v)
{
	if (t == &host_type)
		metrics_sample(m, f, v, "host", REST, NULL);
	else if (t == &process_type)
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

static bool comes_before(const struct ranked *x, const struct ranked *y)
{
	if (x->value != y->value)
		return x->value > y->value;
	return x->item < y->item;
}

/* The largest of any number, largest first, and the sum of all others. */
struct largest {
	struct ranked v[METRICS_TOP];
	size_t n;
	double rest;
	bool has_rest;
};

static void largest_add(struct largest *l, uint32_t item, double value)
{
	struct ranked r = {item, value};
	size_t i = l->n;

	if (l->n == METRICS_TOP) {
		l->has_rest = true;
		if (!comes_before(&r, &l->v[METRICS_TOP - 1])) {
			l->rest += value;
			return;
		}
		l->rest += l->v[METRICS_TOP - 1].value;
		i--;
	} else {
		l->n++;
	}
	for (; i && comes_before(&r, &l->v[i - 1]); i--)
		l->v[i] = l->v[i - 1];
	l->v[i] = r;
}

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool can_tell(const struct row *r, int field, double window_s)
{
	return field >= 0 && (r->figure != PER_SECOND || window_s > 0);
}

/* Nodes are gone through once: rows of one type stand together. */
static void add_rows(struct metrics *m, struct graph *g, double window_s)
{
	struct largest *of = mem_alloc(ROWS * sizeof(*of));
	const struct type *type = NULL;
	size_t first = 0, end = 0;
	int field[ROWS];

	for (size_t i = 0; i < ROWS; i++)
		field[i] = type_field(rows[i].type, rows[i].field);
	vec_for(&g->nodes, n) {
		if ((*n)->type != type) {
			type = (*n)->type;
			for (first = 0; first < ROWS && rows[first].type != type; first++)
				;
			for (end = first; end < ROWS && rows[end].type == type; end++)
				;
		}
		for (size_t i = first; i < end; i++) {
			double v;

			if (!can_tell(&rows[i], field[i], window_s) || !((*n)->measured & 1ull << field[i]))
				continue;
			v = number(&type->fields[field[i]], (*n)->data) * rows[i].factor;
			largest_add(&of[i], (*n)->index, rows[i].figure == PER_SECOND ? v / window_s : v);
		}
	}
	for (size_t i = 0; i < ROWS; i++) {
		struct metric *f;

		if (!can_tell(&rows[i], field[i], window_s))
			continue;
		f = metrics_family(m, METRIC_GAUGE, rows[i].name, rows[i].unit, rows[i].help);
		for (size_t k = 0; k < of[i].n; k++)
			add_sample(m, f, g, g->nodes.v[of[i].v[k].item], of[i].v[k].value);
		if (of[i].has_rest)
			add_rest(m, f, rows[i].type, of[i].rest);
	}
	free(of);
}

static void end_label(struct graph *g, uint32_t node, char *ret, size_t size)
{
	const struct node *n = g->nodes.v[node];
	char name[NAME_MOST * 4 + 1];

	if (n->type == &process_type) {
		name_label(name, sizeof(name), HAS(process, n, name) ? GET(process, n, name) : "");
		snprintf(ret, size, "%s[%llu]%s%s", name, (unsigned long long)GET(process, n, pid), host_of(n) ? "@" : "",
			 host_of(n) ?: "");
	} else {
		name_label(ret, size, graph_node_id(g, node));
	}
}

static void add_flows(struct metrics *m, struct graph *g, double window_s)
{
	struct metric *f = metrics_family(m, METRIC_GAUGE, "witty_flow_bytes_per_second", "By/s",
					  "Data from one process to another, or to or from outside.");
	struct largest list = {0};

	vec_for(&g->edges, d)
		if ((*d)->type == &flow_type && HAS(flow, *d, bytes) && GET(flow, *d, bytes))
			largest_add(&list, (*d)->index, (double)GET(flow, *d, bytes) / window_s);
	for (size_t k = 0; k < list.n; k++) {
		const struct edge *d = g->edges.v[list.v[k].item];
		char from[400], to[400];

		end_label(g, d->source, from, sizeof(from));
		end_label(g, d->target, to, sizeof(to));
		metrics_sample(m, f, list.v[k].value, "source", from, "target", to, "kind", GET(flow, d, kind), NULL);
	}
	if (list.has_rest)
		metrics_sample(m, f, list.rest, "source", REST, "target", REST, "kind", "", NULL);
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
	struct largest list = {0};

	vec_for(&g->edges, d)
		if ((*d)->type == &numa_access_type && HAS(numa_access, *d, local_share))
			largest_add(&list, (*d)->source, 1 - GET(numa_access, *d, local_share));
	for (size_t k = 0; k < list.n; k++)
		add_sample(m, f, g, g->nodes.v[list.v[k].item], list.v[k].value);
}

void metrics_add_graph(struct metrics *m, struct graph *g)
{
	double window_s = (double)g->meta.window_ns / 1e9;

	add_rows(m, g, window_s);
	if (window_s > 0) {
		add_flows(m, g, window_s);
		add_waits(m, g, window_s);
	}
	add_remote(m, g);
}
