/* A graph as openEuler's tool describes it: its names and its forms of lines. */
#include "render_describe.h"

#include <inttypes.h>
#include <string.h>

#include "json.h"
#include "text.h"

#define TEXT_MOST 4096 /* bytes of one value from the host */

static void add_clean(struct strbuf *b, const char *s)
{
	text_clean(b, s ?: "None", TEXT_MOST);
}

/* A JSON value as Python prints it. */
static void add_python(struct strbuf *b, const char *json)
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "value", NULL);
	struct err e;
	bool first = true, after_key = false;
	int t;

	while ((t = json_next(r, &e)) > JSON_EOF) {
		bool closes = t == JSON_OBJECT_END || t == JSON_ARRAY_END;

		if (!first && !closes && !after_key)
			strbuf_add(b, ", ");
		after_key = false;
		first = t == JSON_OBJECT || t == JSON_ARRAY;
		switch (t) {
		case JSON_OBJECT:
			strbuf_addc(b, '{');
			break;
		case JSON_OBJECT_END:
			strbuf_addc(b, '}');
			break;
		case JSON_ARRAY:
			strbuf_addc(b, '[');
			break;
		case JSON_ARRAY_END:
			strbuf_addc(b, ']');
			break;
		case JSON_KEY:
		case JSON_STRING:
			strbuf_addc(b, '\'');
			add_clean(b, json_text(r, NULL));
			strbuf_add(b, t == JSON_KEY ? "': " : "'");
			after_key = t == JSON_KEY;
			break;
		case JSON_TRUE:
			strbuf_add(b, "True");
			break;
		case JSON_FALSE:
			strbuf_add(b, "False");
			break;
		case JSON_NULL:
			strbuf_add(b, "None");
			break;
		default:
			strbuf_add(b, json_text(r, NULL));
		}
	}
	json_reader_free(r);
}

static void add_number(struct strbuf *b, bool has, uint64_t v)
{
	if (has)
		strbuf_add_u64(b, v);
	else
		strbuf_add(b, "-1");
}

#define NUMBER(b, T, n, f) add_number(b, HAS(T, n, f), GET(T, n, f))
#define TEXT(T, n, f)	   (HAS(T, n, f) ? GET(T, n, f) : NULL)

/* What stands in the brackets of a global id, for types that have one of their own. */
static bool add_unique(struct strbuf *b, const struct node *n)
{
	if (n->type == &process_type) {
		strbuf_add(b, "pid=");
		NUMBER(b, process, n, pid);
		strbuf_add(b, ",ppid=");
		NUMBER(b, process, n, ppid);
	} else if (n->type == &thread_type) {
		strbuf_add(b, "tid=");
		NUMBER(b, thread, n, tid);
	} else if (n->type == &socket_type) {
		add_clean(b, TEXT(socket, n, socket_addr));
		strbuf_addc(b, ':');
		NUMBER(b, socket, n, socket_port);
		strbuf_addc(b, '(');
		add_clean(b, TEXT(socket, n, socket_type));
		strbuf_addc(b, ')');
	} else if (n->type == &container_type) {
		/* The older tool keeps 8 characters. */
		for (const char *s = TEXT(container, n, container_id) ?: "unknown", *end = s + 8; *s && s < end; s++)
			strbuf_addc(b, *s < ' ' ? '?' : *s);
	} else if (n->type == &npu_type) {
		strbuf_add(b, "id=");
		NUMBER(b, npu, n, id);
		strbuf_add(b, ",cpu_affinity=");
		add_clean(b, TEXT(npu, n, cpu_affinity));
	} else if (n->type == &gpu_type) {
		strbuf_add(b, "id=");
		NUMBER(b, gpu, n, id);
		strbuf_add(b, ",pci_bus_id=");
		add_clean(b, TEXT(gpu, n, pci_bus_id));
	} else if (n->type == &shared_memory_type) {
		strbuf_add(b, "name=");
		add_clean(b, TEXT(shared_memory, n, shm_name));
		strbuf_add(b, ",size=");
		NUMBER(b, shared_memory, n, shm_size);
	} else if (n->type == &numa_type) {
		strbuf_add(b, "numa");
		NUMBER(b, numa, n, numa_id);
	} else if (n->type == &numa_set_type) {
		strbuf_addc(b, '{');
		strbuf_add(b, TEXT(numa_set, n, numa_id_str) ?: "");
		strbuf_addc(b, '}');
	} else {
		return false;
	}
	return true;
}

/* Keys by name, where the type has no form of its own: `qpn=5,pid=7`. */
static void add_keys(struct strbuf *b, const struct node *n)
{
	bool first = true;

	for (int i = 0; i < n->type->nfields; i++) {
		const struct field *f = &n->type->fields[i];
		struct value v = field_get(f, n->data);

		if (f->key != KEY_SHOWN)
			continue;
		strbuf_addf(b, "%s%s=", first ? "" : ",", f->name);
		first = false;
		if (!(n->measured & (1ull << i)))
			strbuf_add(b, "None");
		else if (f->type == T_STR)
			add_clean(b, v.str);
		else
			strbuf_add_i64(b, v.i64);
	}
}

/* `Process(pid=1,ppid=0)`; of another host `Process(ns=10.0.0.2,pid=1,ppid=0)`. */
static void add_global_id(struct strbuf *b, const struct node *n)
{
	const char *name = n->type->old_name;
	size_t len = strlen(name);

	if (len > 6 && !strcmp(name + len - 6, "Entity"))
		len -= 6;
	strbuf_addn(b, name, len);
	strbuf_addc(b, '(');
	if (strcmp(n->ns, "local")) {
		strbuf_add(b, "ns=");
		add_clean(b, n->ns);
		strbuf_addc(b, ',');
	}
	if (!add_unique(b, n))
		add_keys(b, n);
	strbuf_addc(b, ')');
}

static void add_process(struct strbuf *b, const struct node *n)
{
	const char *cmdline = TEXT(process, n, cmdline);

	strbuf_add(b, "ProcessEntity(pid=");
	NUMBER(b, process, n, pid);
	strbuf_add(b, ",ppid=");
	NUMBER(b, process, n, ppid);
	strbuf_add(b, ",name=");
	add_clean(b, TEXT(process, n, name));
	strbuf_add(b, ",cmdline=");
	/* Of longer ones the first 27 bytes and "...". */
	text_clean(b, cmdline ?: "None", cmdline && strlen(cmdline) > 30 ? 27 : 30);
	strbuf_addc(b, ')');
}

static void add_node(struct graph *g, struct strbuf *b, const struct node *n)
{
	strbuf_add(b, "\n  - ");
	if (n->type == &process_type) {
		add_process(b, n);
	} else if (n->type == &thread_type) {
		uint32_t p = HAS(thread, n, process) ? GET(thread, n, process) : NODE_NONE;

		strbuf_add(b, "Thread(pid=");
		add_number(b, p != NODE_NONE, p != NODE_NONE ? GET(process, g->nodes.v[p], pid) : 0);
		strbuf_add(b, ",tid=");
		NUMBER(b, thread, n, tid);
		strbuf_add(b, ",name=");
		add_clean(b, TEXT(thread, n, name));
		strbuf_addc(b, ')');
	} else if (n->type == &numa_type) {
		strbuf_add(b, "[Numa ");
		NUMBER(b, numa, n, numa_id);
		strbuf_add(b, "](cpus=");
		strbuf_add(b, TEXT(numa, n, cpu_set) ?: "");
		strbuf_add(b, ",mems=");
		strbuf_add(b, TEXT(numa, n, memory_set) ?: "");
		strbuf_add(b, ",distance_to_all_numa=");
		add_python(b, TEXT(numa, n, distance_to_all_numa) ?: "{}");
		strbuf_addc(b, ')');
	} else {
		add_global_id(b, n);
	}
}

/* `, 'name': VALUE` for each of these fields, in Python's form. */
static void add_payload(struct strbuf *b, const struct type *t, const struct edge *d, const char *const *names,
			size_t n)
{
	strbuf_addc(b, '{');
	for (size_t k = 0; k < n; k++) {
		int i = type_field(t, names[k]);
		const struct field *f = &t->fields[i];
		const char *dot = f->old_name ? strrchr(f->old_name, '.') : NULL;
		struct value v = field_get(f, d->data);

		strbuf_addf(b, "%s'%s': ", k ? ", " : "", dot ? dot + 1 : f->name);
		if (!(d->measured & (1ull << i)))
			add_python(b, f->old_absent ?: "null");
		else if (f->type == T_STR)
			strbuf_addf(b, "'%s'", v.str);
		else if (f->type == T_JSON)
			add_python(b, v.str);
		else if (f->type == T_F64)
			strbuf_add_f64(b, v.f64);
		else
			strbuf_add_i64(b, v.i64);
	}
	strbuf_addc(b, '}');
}

static void add_suffix(struct strbuf *b, const struct edge *d)
{
	static const char *const affinity[] = {"cpu_runtime_pct_in_each_numa", "mem_pages_in_each_numa",
					       "total_dirty_anon_pages", "similarity"};
	static const char *const status[] = {"voluntary_ctxt_switches", "involuntary_ctxt_switches",
					     "cpus_allowed_list", "cpus_accessed_list",
					     "numa_index_to_cpu_runtime"};

	if (d->type == &send_to_socket_type) {
		uint64_t start = GET(send_to_socket, d, start_time), end = GET(send_to_socket, d, end_time);

		strbuf_addf(b, "(total:data_size=%" PRIu64 ",packets_cnt=%" PRIu64 " (in ",
			    GET(send_to_socket, d, data_size), GET(send_to_socket, d, packets_cnt));
		strbuf_add_f64(b, end > start ? (double)(end - start) / 1e9 : 0);
		strbuf_add(b, " seconds))");
	} else if (d->type == &numa_access_type) {
		strbuf_add(b, "([NumaAffinity]");
		add_payload(b, &numa_access_type, d, affinity, sizeof(affinity) / sizeof(affinity[0]));
		strbuf_addc(b, ')');
	} else if (d->type == &access_with_proc_status_type) {
		strbuf_add(b, " with stats:([ProcStatus]");
		add_payload(b, &access_with_proc_status_type, d, status, sizeof(status) / sizeof(status[0]));
		strbuf_addc(b, ')');
	}
}

static bool is_old(const struct graph *g, const struct edge *d)
{
	return !d->type->is_new && !g->nodes.v[d->source]->type->is_new && !g->nodes.v[d->target]->type->is_new;
}

static void add_edge(const struct graph *g, struct strbuf *b, const struct edge *d)
{
	const char *name = d->type->old_name;
	size_t len = strlen(name);

	if (len > 4 && !strcmp(name + len - 4, "Edge"))
		len -= 4;
	strbuf_add(b, "\n  - relation: ");
	add_global_id(b, g->nodes.v[d->source]);
	strbuf_addc(b, ' ');
	strbuf_addn(b, name, len);
	strbuf_addc(b, ' ');
	add_global_id(b, g->nodes.v[d->target]);
	add_suffix(b, d);
}

void render_describe(struct graph *g, struct strbuf *b)
{
	size_t nodes = 0, edges = 0;

	vec_for(&g->nodes, n)
		nodes += !(*n)->type->is_new;
	vec_for(&g->edges, d)
		edges += is_old(g, *d);
	strbuf_addf(b, "Graph with %zu nodes and %zu edges\nNodes:", nodes, edges);
	vec_for(&g->nodes, n)
		if (!(*n)->type->is_new)
			add_node(g, b, *n);
	strbuf_add(b, "\nEdges:");
	/* It does not show this one. */
	vec_for(&g->edges, d)
		if (is_old(g, *d) && (*d)->type != &numa_set_contain_type)
			add_edge(g, b, *d);
}
