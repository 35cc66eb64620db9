/* Rules of compact text: what follows from the rest of a graph. */
#include "text_derive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "idrange.h"
#include "json.h"
#include "strbuf.h"

#define NODES      1024 /* NUMA nodes that a kernel can have */
#define LIST_BYTES 512  /* of a list of CPUs or nodes; longer ones are written in full */
#define NONE_YET   UINT32_MAX

struct numa_key {
	const char *ns;
	uint64_t id;
	uint32_t node;
};

struct text_deriver {
	struct graph *g;
	VEC(struct numa_key) numa; /* ascending by host, then number */
	uint32_t *first; /* [nodes] relation access_with_proc_status of a process' threads … */
	uint32_t *next;  /* [edges] … and the one after that */
	uint32_t *main;  /* [nodes] that of a process' main thread */
	const char *
	    *text; /* [nodes] made already: CPU shares of a process, CPUs of a set; "": none */
	uint64_t work, work_max; /* ids of sets that were looked at: a short text can name many */
};

static int numa_cmp(const void *a, const void *b)
{
	const struct numa_key *x = a, *y = b;

	if (x->ns != y->ns)
		return (uintptr_t)x->ns < (uintptr_t)y->ns ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* @return the first NUMA node of @p ns from number @p id on, or where it would be */
static size_t numa_from(const struct text_deriver *v, const char *ns, uint64_t id)
{
	const struct numa_key want = {.ns = ns, .id = id};
	size_t lo = 0, hi = v->numa.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (numa_cmp(&v->numa.v[mid], &want) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool numa_within(const struct text_deriver *v, size_t i, const char *ns, uint64_t last)
{
	return i < v->numa.n && v->numa.v[i].ns == ns && v->numa.v[i].id <= last;
}

static void index_threads(struct text_deriver *v)
{
	struct graph *g = v->g;

	for (size_t i = g->edges.n; i-- > 0;) {
		const struct edge *d = g->edges.v[i];
		const struct node *t = g->nodes.v[d->source], *p;

		if (d->type != &access_with_proc_status_type || t->type != &thread_type ||
		    !HAS(thread, t, process))
			continue;
		p = g->nodes.v[GET(thread, t, process)];
		v->next[i] = v->first[p->index];
		v->first[p->index] = (uint32_t)i;
		if (p->type == &process_type && HAS(process, p, pid) && HAS(thread, t, tid) &&
		    GET(process, p, pid) == GET(thread, t, tid))
			v->main[p->index] = (uint32_t)i;
	}
}

struct text_deriver *text_deriver_new(struct graph *g, uint64_t work_max)
{
	struct text_deriver *v = mem_alloc(sizeof(*v));

	v->g = g;
	v->work_max = work_max;
	v->first = mem_alloc((g->nodes.n + 1) * sizeof(*v->first));
	v->main = mem_alloc((g->nodes.n + 1) * sizeof(*v->main));
	v->next = mem_alloc((g->edges.n + 1) * sizeof(*v->next));
	v->text = mem_alloc((g->nodes.n + 1) * sizeof(*v->text));
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.v[i];

		v->first[i] = v->main[i] = NONE_YET;
		if (n->type == &numa_type && HAS(numa, n, numa_id))
			vec_push(&v->numa,
				 ((struct numa_key){n->ns, GET(numa, n, numa_id), (uint32_t)i}));
	}
	if (v->numa.n)
		qsort(v->numa.v, v->numa.n, sizeof(*v->numa.v), numa_cmp);
	index_threads(v);
	return v;
}

void text_deriver_free(struct text_deriver *v)
{
	if (!v)
		return;
	free(v->first);
	free(v->next);
	free(v->main);
	free(v->text);
	vec_done(&v->numa);
	free(v);
}

/* A map of node to count, or a list, as an array. @return entries up to the highest, -1: neither */
static int read_numbers(const char *json, double a[NODES])
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "", NULL);
	int kind, token, n = 0, at = 0;
	struct err e;

	kind = json_next(r, &e);
	while ((token = json_next(r, &e)) == JSON_KEY ||
	       (kind == JSON_ARRAY && token == JSON_NUMBER)) {
		if (token == JSON_KEY) {
			at = atoi(json_text(r, NULL));
			token = json_next(r, &e);
		}
		if (token != JSON_NUMBER || at < 0 || at >= NODES)
			break;
		while (n <= at)
			a[n++] = 0;
		/* Larger ones are not exact, and no counts of this world. */
		if (json_get_f64(r, &a[at]) || !(a[at] >= 0 && a[at] < 9e15))
			break;
		at++;
	}
	json_reader_free(r);
	return token == JSON_OBJECT_END || token == JSON_ARRAY_END ? n : -1;
}

static const char *text_of(struct graph *g, const double *a, int n, bool map)
{
	struct strbuf b = {0};
	const char *text;

	strbuf_addc(&b, map ? '{' : '[');
	for (int i = 0; i < n; i++) {
		if (map && !a[i])
			continue;
		if (b.n > 1)
			strbuf_addc(&b, ',');
		if (map)
			strbuf_addf(&b, "\"%d\":", i);
		strbuf_add_u64(&b, (uint64_t)a[i]);
	}
	strbuf_addc(&b, map ? '}' : ']');
	text = graph_strn(g, b.s, b.n);
	strbuf_done(&b);
	return text;
}

static enum text_follows as_text(const char *s, struct value *ret)
{
	ret->type = T_JSON;
	ret->str = s;
	return *s ? FOLLOWS_VALUE : FOLLOWS_NOT;
}

static enum text_follows total_pages(struct graph *g, const struct edge *d, struct value *ret)
{
	double sum[NODES], other[NODES];
	int a = 0, b = 0;

	if (!HAS(numa_access, d, read_only_pages) && !HAS(numa_access, d, dirty_anon_pages))
		return FOLLOWS_NOT;
	if (HAS(numa_access, d, read_only_pages))
		a = read_numbers(GET(numa_access, d, read_only_pages), sum);
	if (HAS(numa_access, d, dirty_anon_pages))
		b = read_numbers(GET(numa_access, d, dirty_anon_pages), other);
	if (a < 0 || b < 0)
		return FOLLOWS_NOT;
	for (; a < b; a++)
		sum[a] = 0;
	for (int i = 0; i < b; i++)
		sum[i] += other[i];
	return as_text(text_of(g, sum, a, true), ret);
}

static enum text_follows local_share(const double *pages, int n, const struct edge *d,
				     struct value *ret)
{
	double cpu[NODES], total = 0, share = 0;
	int ncpu;

	if (!HAS(numa_access, d, cpu_runtime_pct_in_each_numa))
		return FOLLOWS_NOT;
	ncpu = read_numbers(GET(numa_access, d, cpu_runtime_pct_in_each_numa), cpu);
	for (int i = 0; i < n; i++)
		total += pages[i];
	if (total <= 0)
		return FOLLOWS_NOT;
	/* In this order, because the result has to have the same last bit. */
	for (int i = 0; i < n && i < ncpu; i++)
		share += cpu[i] * pages[i] / total;
	ret->type = T_F64;
	ret->f64 = share;
	return ncpu < 0 ? FOLLOWS_NOT : FOLLOWS_VALUE;
}

/* Add the CPU time of a thread to its process', by position of the NUMA node on its host. */
static bool add_runtime(const struct text_deriver *v, const struct edge *d, size_t lo, int n,
			double sum[NODES])
{
	double one[NODES];
	int most;

	if (!HAS(access_with_proc_status, d, numa_index_to_cpu_runtime))
		return true;
	most = read_numbers(GET(access_with_proc_status, d, numa_index_to_cpu_runtime), one);
	for (int id = 0; id < most; id++) {
		size_t at = one[id] ? numa_from(v, v->numa.v[lo].ns, (uint64_t)id) : lo;

		if (!one[id])
			continue;
		if (at >= lo + (size_t)n || v->numa.v[at].id != (uint64_t)id)
			return false;
		sum[at - lo] += one[id];
	}
	return most >= 0;
}

static const char *shares_of(struct graph *g, const double *sum, int n)
{
	struct strbuf b = {0};
	const char *text;
	double total = 0;

	for (int i = 0; i < n; i++)
		total += sum[i];
	for (int i = 0; i < n; i++) {
		strbuf_addc(&b, i ? ',' : '[');
		strbuf_add_f64(&b, total > 0 ? sum[i] / total : 0);
	}
	strbuf_addc(&b, ']');
	text = graph_strn(g, b.s, b.n);
	strbuf_done(&b);
	return text;
}

/* The share of each NUMA node in the CPU time of a process' threads. */
static enum text_follows cpu_shares(struct text_deriver *v, const struct node *p, struct value *ret)
{
	size_t lo = numa_from(v, p->ns, 0);
	double sum[NODES] = {0};
	int n = 0;

	if (p->type != &process_type)
		return FOLLOWS_NOT;
	if (v->text[p->index])
		return as_text(v->text[p->index], ret);
	while (n < NODES && numa_within(v, lo + (size_t)n, p->ns, UINT64_MAX))
		n++;
	v->text[p->index] = "";
	if (!n || n == NODES)
		return FOLLOWS_NOT;
	for (uint32_t i = v->first[p->index]; i != NONE_YET; i = v->next[i])
		if (!add_runtime(v, v->g->edges.v[i], lo, n, sum))
			return FOLLOWS_NOT;
	v->text[p->index] = shares_of(v->g, sum, n);
	return as_text(v->text[p->index], ret);
}

/* The older tool's process figures are those of its main thread. */
static enum text_follows of_main_thread(struct text_deriver *v, const struct edge *d, int field,
					struct value *ret)
{
	int twin = type_field(&access_with_proc_status_type, numa_access_type.fields[field].name);
	uint32_t main = v->main[d->source];
	const struct edge *x;

	if (twin < 0 || main == NONE_YET)
		return FOLLOWS_NOT;
	x = v->g->edges.v[main];
	if (!(x->measured & (1ull << twin)))
		return FOLLOWS_UNMEASURED;
	*ret = field_get(&access_with_proc_status_type.fields[twin], x->data);
	return FOLLOWS_VALUE;
}

static enum text_follows numa_access(struct text_deriver *v, const struct edge *d, int field,
				     struct value *ret)
{
	double pages[NODES], list[NODES];
	int n;

	if (field == numa_access_f_total_pages)
		return total_pages(v->g, d, ret);
	if (field == numa_access_f_cpu_runtime_pct_in_each_numa)
		return cpu_shares(v, v->g->nodes.v[d->source], ret);
	if (field != numa_access_f_total_dirty_anon_pages &&
	    field != numa_access_f_mem_pages_in_each_numa && field != numa_access_f_local_share)
		return of_main_thread(v, d, field, ret);
	if (!HAS(numa_access, d, dirty_anon_pages) ||
	    (n = read_numbers(GET(numa_access, d, dirty_anon_pages), pages)) < 0)
		return FOLLOWS_NOT;
	if (field == numa_access_f_local_share)
		return local_share(pages, n, d, ret);
	if (field == numa_access_f_total_dirty_anon_pages) {
		*ret = (struct value){.type = T_U64};
		for (int i = 0; i < n; i++)
			ret->u64 += (uint64_t)pages[i];
		return FOLLOWS_VALUE;
	}
	if (!HAS(numa_access, d, cpu_runtime_pct_in_each_numa))
		return FOLLOWS_NOT;
	for (int want = read_numbers(GET(numa_access, d, cpu_runtime_pct_in_each_numa), list);
	     n < want;)
		pages[n++] = 0;
	return as_text(text_of(v->g, pages, n, false), ret);
}

/* Sets of ids that are cheap to hold: none has more than four digits. */
static bool parse_ids(struct text_deriver *v, const char *s, struct idrange *ret)
{
	size_t digits = 0;
	struct err e;

	if (v->work > v->work_max)
		return false;

	for (size_t i = 0; s[i]; i++) {
		digits = s[i] >= '0' && s[i] <= '9' ? digits + 1 : 0;
		if (digits > 4 || i == LIST_BYTES)
			return false;
	}
	if (idrange_parse(s, ret, &e) < 0)
		return false;
	v->work += strlen(s) + 64 * ret->words;
	return true;
}

/* The numbers of the NUMA nodes in a set. */
static bool members_of(struct text_deriver *v, const struct node *set, struct idrange *ret)
{
	const struct field *f = &numa_set_type.fields[numa_set_f_numa_id_str];

	return set->type == &numa_set_type && HAS(numa_set, set, numa_id_str) &&
	       parse_ids(v, field_get(f, set->data).str, ret);
}

static bool add_cpus(struct text_deriver *v, const struct node *n, struct idrange *all)
{
	struct idrange cpus = {0};
	bool good = HAS(numa, n, cpu_set) && parse_ids(v, GET(numa, n, cpu_set), &cpus);

	for (int64_t cpu = -1; good && (cpu = idrange_next(&cpus, cpu + 1)) >= 0;)
		idrange_add(all, (uint32_t)cpu);
	idrange_done(&cpus);
	return good;
}

/* A thread that is bound to NUMA nodes may use the CPUs of these. */
static enum text_follows cpus_of_set(struct text_deriver *v, const struct node *set,
				     struct value *ret)
{
	struct idrange ids = {0}, cpus = {0};
	struct strbuf b = {0};
	bool good;

	if (set->type != &numa_set_type)
		return FOLLOWS_NOT;
	ret->type = T_STR;
	ret->str = v->text[set->index];
	if (ret->str)
		return *ret->str ? FOLLOWS_VALUE : FOLLOWS_NOT;
	v->text[set->index] = "";
	good = members_of(v, set, &ids) && idrange_count(&ids) <= 64;
	for (int64_t id = -1; good && (id = idrange_next(&ids, id + 1)) >= 0;) {
		size_t at = numa_from(v, set->ns, (uint64_t)id);

		good = numa_within(v, at, set->ns, (uint64_t)id) &&
		       add_cpus(v, v->g->nodes.v[v->numa.v[at].node], &cpus);
	}
	if (good) {
		idrange_format(&cpus, &b);
		ret->str = v->text[set->index] = graph_str(v->g, strbuf_str(&b));
	}
	strbuf_done(&b);
	idrange_done(&ids);
	idrange_done(&cpus);
	return good ? FOLLOWS_VALUE : FOLLOWS_NOT;
}

enum text_follows text_derive_relation(struct text_deriver *v, const struct edge *d, int field,
				       struct value *ret)
{
	if (d->type == &numa_access_type)
		return numa_access(v, d, field, ret);
	if (d->type == &access_with_proc_status_type &&
	    field == access_with_proc_status_f_cpus_allowed_list)
		return cpus_of_set(v, v->g->nodes.v[d->target], ret);
	return FOLLOWS_NOT;
}

enum text_follows text_derive_entity(struct text_deriver *v, const struct node *n, int field,
				     struct value *ret)
{
	const struct node *p;

	/* A thread is called as its process until it takes a name of its own. */
	if (n->type != &thread_type || field != thread_f_name || !HAS(thread, n, process))
		return FOLLOWS_NOT;
	p = v->g->nodes.v[GET(thread, n, process)];
	if (p->type != &process_type || !HAS(process, p, name))
		return FOLLOWS_NOT;
	ret->type = T_STR;
	ret->str = GET(process, p, name);
	return FOLLOWS_VALUE;
}

/* From each member to the first NUMA node that is no smaller, and on to the member after that. */
static int visit_members(const struct text_deriver *v, const struct node *set,
			 const struct idrange *ids,
			 int (*visit)(void *ctx, uint32_t source, uint32_t target), void *ctx)
{
	int64_t id = idrange_next(ids, 0);
	int rc = 0;

	while (!rc && id >= 0) {
		size_t at = numa_from(v, set->ns, (uint64_t)id);

		if (!numa_within(v, at, set->ns, IDRANGE_MAX))
			break;
		if (v->numa.v[at].id == (uint64_t)id)
			rc = visit(ctx, set->index, v->numa.v[at].node);
		id = idrange_next(ids,
				  (int64_t)v->numa.v[at].id + (v->numa.v[at].id == (uint64_t)id));
	}
	return rc;
}

bool text_derives_relations(const struct type *t)
{
	return t == &numa_set_contain_type;
}

int text_derive_relations(struct text_deriver *v, const struct type *t,
			  int (*visit)(void *ctx, uint32_t source, uint32_t target), void *ctx)
{
	int rc = 0;

	if (!text_derives_relations(t))
		return 0;
	for (size_t i = 0; !rc && i < v->g->nodes.n; i++) {
		const struct node *set = v->g->nodes.v[i];
		struct idrange ids = {0};

		if (!members_of(v, set, &ids))
			continue;
		rc = visit_members(v, set, &ids, visit, ctx);
		idrange_done(&ids);
	}
	return rc ?: v->work > v->work_max ? -E2BIG : 0;
}
