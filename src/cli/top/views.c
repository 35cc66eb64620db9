/* Tables of the live view: threads, processes, flows, devices, findings. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "top_views.h"

const char *const view_names[VIEW_COUNT] = {"threads", "processes", "flows", "devices", "findings"};

static const struct column thread_columns[] = {
	{"TID", CELL_ID, 7, 0},	      {"PROCESS", CELL_TEXT, 15, 0}, {"THREAD", CELL_TEXT, 15, 0},
	{"CPU%", CELL_PCT, 6, 0},     {"RUNQ%", CELL_PCT, 5, 0},     {"WAIT%", CELL_PCT, 5, 0},
	{"HOT", CELL_TEXT, 3, 0},     {"NODE", CELL_ID, 4, 110},     {"SWITCH/s", CELL_COUNT, 8, 120},
	{"BYTES/s", CELL_RATE, 11, 132}, {"CLASS", CELL_TEXT, 13, 150}, {"HELD UP BY", CELL_TEXT, 0, 0},
};
static const struct column process_columns[] = {
	{"PID", CELL_ID, 7, 0},		{"CPU%", CELL_PCT, 6, 0},     {"THR", CELL_COUNT, 5, 0},
	{"MEMORY", CELL_BYTES, 10, 0},	{"IN", CELL_RATE, 11, 0},     {"OUT", CELL_RATE, 11, 0},
	{"ROLE", CELL_TEXT, 16, 110},	{"CONTAINER", CELL_TEXT, 20, 132}, {"PROCESS", CELL_TEXT, 0, 0},
};
static const struct column flow_columns[] = {
	{"RATE", CELL_RATE, 11, 0},    {"BYTES", CELL_BYTES, 10, 0}, {"MESSAGES", CELL_COUNT, 8, 100},
	{"KIND", CELL_TEXT, 9, 0},     {"WAITED", CELL_NS, 9, 110},  {"FROM", CELL_TEXT, 22, 0},
	{"TO", CELL_TEXT, 0, 0},
};
static const struct column device_columns[] = {
	{"DEVICE", CELL_TEXT, 18, 0}, {"KIND", CELL_TEXT, 7, 0},   {"USE%", CELL_PCT, 6, 0},
	{"MEMORY", CELL_BYTES, 10, 0}, {"IN", CELL_RATE, 11, 0},   {"OUT", CELL_RATE, 11, 0},
	{"NOTE", CELL_TEXT, 0, 0},
};
static const struct column finding_columns[] = {
	{"SEVERITY", CELL_TEXT, 8, 0}, {"LAYER", CELL_TEXT, 13, 0}, {"LOST", CELL_NS, 9, 0},
	{"SURE%", CELL_ID, 5, 100},    {"FINDING", CELL_TEXT, 0, 0},
};

#define START(table, list) table_init(table, list, sizeof(list) / sizeof((list)[0]))

__attribute__((format(printf, 2, 3))) static const char *text(struct table *t, const char *fmt, ...)
{
	char s[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	return arena_strdup(&t->arena, s);
}

static struct cell number(double v)
{
	return (struct cell){.v = v};
}

static struct cell known(bool has, double v)
{
	return (struct cell){.v = has ? v : NAN};
}

/* A wait that began before the window is counted where it ends. */
static double at_most_all(double pct)
{
	return pct > 100 ? 100 : pct;
}

static const char *process_name(const struct graph *g, uint32_t node)
{
	const struct node *n = node == HOT_NONE ? NULL : g->nodes.v[node];

	return n && HAS(process, n, name) ? GET(process, n, name) : "?";
}

static const char *held_up_by(struct table *t, const struct hot_thread *x)
{
	const char *cause = x->cause == HOT_CAUSE_NONE ? "" : hot_cause_name(x->cause);

	if (x->waits.n && !x->waits.v[0].idle)
		return text(t, "%s%s%s", cause, *cause ? ": " : "", x->waits.v[0].cause);
	return *cause ? cause : x->waits.n ? text(t, "(%s)", x->waits.v[0].cause) : "";
}

static bool is_of(struct sight *s, uint32_t node, const char *process)
{
	return !process || (node != HOT_NONE && !strcmp(graph_node_id(&s->g, node), process));
}

static void add_threads(struct table *t, struct sight *s, const char *process)
{
	START(t, thread_columns);
	vec_for(&s->hot.threads, x) {
		const struct node *n = s->g.nodes.v[x->node];
		size_t c = 0;
		struct row *r;

		if (!is_of(s, x->process, process))
			continue;
		r = table_add(t, graph_node_id(&s->g, x->node), x->node, (uint32_t)(x - s->hot.threads.v));
		r->severity = x->level == LEVEL_SEVERE ? 3 : x->level == LEVEL_MODERATE ? 2 : 0;
		r->cells[c++] = number((double)GET(thread, n, tid));
		r->cells[c++].s = process_name(&s->g, x->process);
		r->cells[c++].s = HAS(thread, n, name) ? GET(thread, n, name) : "?";
		r->cells[c++] = number(x->cpu_pct);
		r->cells[c++] = number(at_most_all(x->runq_pct));
		r->cells[c++] = number(at_most_all(x->blocked_pct));
		r->cells[c].s = x->possible ? text(t, "%u/%u", x->points, x->possible) : "-";
		/* Texts of numbers sort as numbers, from the most. */
		r->cells[c++].v = x->points;
		r->cells[c++] = known(x->cpu_node != HOT_NONE, x->cpu_node);
		r->cells[c++] = number(x->switches_s);
		r->cells[c++] = number(x->bytes_s);
		r->cells[c++].s = thread_class_name(x->class);
		r->cells[c++].s = held_up_by(t, x);
	}
}

static double rate(const struct sight *s, uint64_t amount)
{
	return s->g.meta.window_ns ? (double)amount * 1e9 / (double)s->g.meta.window_ns : NAN;
}

static void add_processes(struct table *t, struct sight *s)
{
	START(t, process_columns);
	t->tree_column = sizeof(process_columns) / sizeof(process_columns[0]) - 1;
	for (uint32_t i = 0; i < s->t.n_processes; i++) {
		const struct topo_actor *a = &s->t.actors.v[i];
		const struct node *n = s->g.nodes.v[a->node];
		struct row *r;
		size_t c = 0;

		r = table_add(t, graph_node_id(&s->g, a->node), a->node, i);
		r->parent = a->parent;
		r->cells[c++] = number((double)GET(process, n, pid));
		r->cells[c++] = known(HAS(process, n, cpu_ns), rate(s, GET(process, n, cpu_ns)) / 1e7);
		r->cells[c++] = known(HAS(process, n, threads), (double)GET(process, n, threads));
		r->cells[c++] = known(HAS(process, n, rss_bytes), (double)GET(process, n, rss_bytes));
		r->cells[c++] = number(rate(s, a->bytes_in));
		r->cells[c++] = number(rate(s, a->bytes_out));
		r->cells[c++].s = a->role == ROLE_UNKNOWN ? "" : role_name(a->role);
		r->cells[c++].s = a->container ?: "";
		r->cells[c++].s = HAS(process, n, cmdline) && *GET(process, n, cmdline)
					  ? text(t, "%s  %s", process_name(&s->g, a->node), GET(process, n, cmdline))
					  : process_name(&s->g, a->node);
	}
}

static void add_flows(struct table *t, struct sight *s)
{
	START(t, flow_columns);
	for (uint32_t i = 0; i < s->t.links.n; i++) {
		const struct topo_link *l = &s->t.links.v[i];
		const struct topo_actor *from = &s->t.actors.v[l->from], *to = &s->t.actors.v[l->to];
		struct row *r = table_add(t, text(t, "%s>%s>%s", from->label, to->label, l->kind), from->node, i);
		size_t c = 0;

		r->cells[c++] = known(l->measured, rate(s, l->bytes));
		r->cells[c++] = known(l->measured, (double)l->bytes);
		r->cells[c++] = known(l->measured, (double)l->messages);
		r->cells[c++].s = l->kind;
		r->cells[c++] = number((double)l->waited_ns);
		r->cells[c++].s = from->label;
		r->cells[c++].s = to->label;
	}
}

static void put_device(struct table *t, struct sight *s, const struct node *n, const char *name, const char *kind,
		       struct cell use, struct cell memory, struct cell in, struct cell out, const char *note)
{
	struct row *r = table_add(t, graph_node_id(&s->g, n->index), n->index, n->index);
	size_t c = 0;

	r->cells[c++].s = name;
	r->cells[c++].s = kind;
	r->cells[c++] = use;
	r->cells[c++] = memory;
	r->cells[c++] = in;
	r->cells[c++] = out;
	r->cells[c++].s = note ?: "";
}

static struct cell part(const struct sight *s, bool has, uint64_t amount)
{
	return known(has, rate(s, amount));
}

/* GPU and NPU have the same fields. */
#define PUT_ACCELERATOR(T, n)                                                                                  \
	put_device(t, s, n, graph_node_id(&s->g, (n)->index), #T,                                              \
		   known(HAS(T, n, utilization_pct), GET(T, n, utilization_pct)),                              \
		   known(HAS(T, n, memory_used_bytes), (double)GET(T, n, memory_used_bytes)),                  \
		   known(HAS(T, n, pcie_rx_bytes_s), GET(T, n, pcie_rx_bytes_s)),                              \
		   known(HAS(T, n, pcie_tx_bytes_s), GET(T, n, pcie_tx_bytes_s)),                              \
		   HAS(T, n, state) ? GET(T, n, state) : HAS(T, n, model) ? GET(T, n, model) : NULL)

static void put_disk(struct table *t, struct sight *s, const struct node *n)
{
	put_device(t, s, n, HAS(block_device, n, name) ? GET(block_device, n, name) : GET(block_device, n, dev), "disk",
		   known(HAS(block_device, n, busy_ns), rate(s, GET(block_device, n, busy_ns)) / 1e7), CELL_UNKNOWN,
		   part(s, HAS(block_device, n, written_bytes), GET(block_device, n, written_bytes)),
		   part(s, HAS(block_device, n, read_bytes), GET(block_device, n, read_bytes)),
		   HAS(block_device, n, model) ? GET(block_device, n, model) : NULL);
}

/* Of interfaces of the host it is known whether they are up; others tell in which namespace they are. */
static const char *nic_note(struct table *t, const struct node *n)
{
	if (HAS(nic, n, state))
		return GET(nic, n, state);
	return HAS(nic, n, netns) ? text(t, "in net namespace %" PRIu64, GET(nic, n, netns)) : NULL;
}

static void put_nic(struct table *t, struct sight *s, const struct node *n)
{
	double most = HAS(nic, n, rx_bytes) && HAS(nic, n, tx_bytes)
			      ? fmax((double)GET(nic, n, rx_bytes), (double)GET(nic, n, tx_bytes))
			      : NAN;
	double speed = HAS(nic, n, speed_bytes_s) ? (double)GET(nic, n, speed_bytes_s) : NAN;

	put_device(t, s, n, GET(nic, n, name), "nic",
		   number(s->g.meta.window_ns ? most * 1e11 / (double)s->g.meta.window_ns / speed : NAN), CELL_UNKNOWN,
		   part(s, HAS(nic, n, rx_bytes), GET(nic, n, rx_bytes)),
		   part(s, HAS(nic, n, tx_bytes), GET(nic, n, tx_bytes)), nic_note(t, n));
}

static void put_numa(struct table *t, struct sight *s, const struct node *n)
{
	struct cell used = known(HAS(numa, n, memory_bytes) && HAS(numa, n, free_bytes),
				 (double)GET(numa, n, memory_bytes) - (double)GET(numa, n, free_bytes));
	uint64_t busy = 0;
	unsigned cpus = 0;

	vec_for(&s->g.nodes, c)
		if ((*c)->type == &cpu_type && HAS(cpu, *c, node) && HAS(cpu, *c, busy_ns) &&
		    GET(cpu, *c, node) == GET(numa, n, numa_id)) {
			busy += GET(cpu, *c, busy_ns);
			cpus++;
		}
	put_device(t, s, n, graph_node_id(&s->g, n->index), "node", known(cpus, rate(s, busy) / 1e7 / cpus), used,
		   CELL_UNKNOWN, CELL_UNKNOWN, HAS(numa, n, cpu_set) ? text(t, "CPUs %s", GET(numa, n, cpu_set)) : NULL);
}

static void add_devices(struct table *t, struct sight *s)
{
	static const struct type *const order[] = {&gpu_type, &npu_type, &numa_type, &nic_type, &block_device_type};

	START(t, device_columns);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		vec_for(&s->g.nodes, it) {
			const struct node *n = *it;

			if (n->type != order[i])
				continue;
			if (n->type == &gpu_type)
				PUT_ACCELERATOR(gpu, n);
			else if (n->type == &npu_type)
				PUT_ACCELERATOR(npu, n);
			else if (n->type == &nic_type)
				put_nic(t, s, n);
			else if (n->type == &block_device_type)
				put_disk(t, s, n);
			else
				put_numa(t, s, n);
		}
}

static void add_findings(struct table *t, struct sight *s)
{
	START(t, finding_columns);
	for (uint32_t i = 0; s->has_findings && i < s->f.v.n; i++) {
		const struct finding *f = &s->f.v.v[i];
		struct row *r = table_add(t, text(t, "%s>%s", f->rule, f->title), f->root, i);
		size_t c = 0;

		r->severity = (unsigned)f->severity;
		r->cells[c].s = severity_name(f->severity);
		r->cells[c++].v = (double)f->severity;
		r->cells[c++].s = layer_name(f->layer);
		r->cells[c++] = known(f->lost_basis, (double)f->lost_ns);
		r->cells[c++] = number(f->confidence_pct);
		r->cells[c++].s = f->title;
	}
}

void view_table(struct table *t, enum view view, struct sight *s, const char *process)
{
	switch (view) {
	case VIEW_THREADS:
		add_threads(t, s, process);
		break;
	case VIEW_PROCESSES:
		add_processes(t, s);
		break;
	case VIEW_FLOWS:
		add_flows(t, s);
		break;
	case VIEW_DEVICES:
		add_devices(t, s);
		break;
	default:
		add_findings(t, s);
	}
}
