/* What the older format says twice. */
#include "text_derive.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "strbuf.h"

#define NODES 1024 /* NUMA nodes that a kernel can have */

/* A map of node to pages, or a list, as an array. @return entries up to the highest, -1: neither */
static int read_numbers(const char *json, double v[NODES])
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "", NULL);
	struct err e;
	int kind = json_next(r, &e), token, n = 0, at = 0;

	memset(v, 0, NODES * sizeof(*v));
	while ((token = json_next(r, &e)) == JSON_KEY || (kind == JSON_ARRAY && token == JSON_NUMBER)) {
		if (token == JSON_KEY) {
			at = atoi(json_text(r, NULL));
			token = json_next(r, &e);
		}
		if (token != JSON_NUMBER || at < 0 || at >= NODES || json_get_f64(r, &v[at]))
			break;
		n = ++at > n ? at : n;
	}
	json_reader_free(r);
	return token == JSON_OBJECT_END || token == JSON_ARRAY_END ? n : -1;
}

static bool sum_pages(const struct edge *d, double v[NODES], int *ret_n)
{
	double other[NODES];
	int a, b;

	if (!HAS(numa_access, d, read_only_pages) && !HAS(numa_access, d, dirty_anon_pages))
		return false;
	a = HAS(numa_access, d, read_only_pages) ? read_numbers(GET(numa_access, d, read_only_pages), v)
						 : read_numbers("[]", v);
	b = HAS(numa_access, d, dirty_anon_pages)
		    ? read_numbers(GET(numa_access, d, dirty_anon_pages), other)
		    : read_numbers("[]", other);
	for (int i = 0; i < b; i++)
		v[i] += other[i];
	*ret_n = a > b ? a : b;
	return a >= 0 && b >= 0;
}

static bool text_of(struct graph *g, const double *v, int n, bool map, struct value *ret)
{
	struct strbuf b = {0};

	strbuf_addc(&b, map ? '{' : '[');
	for (int i = 0; i < n; i++) {
		if (map && !v[i])
			continue;
		if (b.n > 1)
			strbuf_addc(&b, ',');
		if (map)
			strbuf_addf(&b, "\"%d\":", i);
		strbuf_add_u64(&b, (uint64_t)v[i]);
	}
	strbuf_addc(&b, map ? '}' : ']');
	ret->type = T_JSON;
	ret->str = graph_strn(g, b.s, b.n);
	strbuf_done(&b);
	return true;
}

static bool local_share(const double *pages, int n, const struct edge *d, struct value *ret)
{
	double cpu[NODES], total = 0, share = 0;

	if (!HAS(numa_access, d, cpu_runtime_pct_in_each_numa) ||
	    read_numbers(GET(numa_access, d, cpu_runtime_pct_in_each_numa), cpu) < 0)
		return false;
	for (int i = 0; i < n; i++)
		total += pages[i];
	if (total <= 0)
		return false;
	for (int i = 0; i < n; i++)
		share += cpu[i] * (pages[i] / total);
	ret->type = T_F64;
	ret->f64 = share;
	return true;
}

/* The older tool's process figures are those of its main thread. */
static bool of_main_thread(struct graph *g, const struct edge *d, int field, struct value *ret)
{
	const struct node *p = g->nodes.v[d->source];
	int twin = type_field(&access_with_proc_status_type, numa_access_type.fields[field].name);

	for (size_t i = 0; twin >= 0 && i < g->edges.n; i++) {
		const struct edge *x = g->edges.v[i];
		const struct node *t = g->nodes.v[x->source];

		if (x->type != &access_with_proc_status_type || !(x->measured & (1ull << twin)) ||
		    GET(thread, t, process) != d->source || GET(thread, t, tid) != GET(process, p, pid))
			continue;
		*ret = field_get(&access_with_proc_status_type.fields[twin], x->data);
		return true;
	}
	return false;
}

bool text_derive(struct graph *g, const struct edge *d, int field, struct value *ret)
{
	double pages[NODES], list[NODES];
	int n;

	if (d->type != &numa_access_type)
		return false;
	if (field == numa_access_f_total_pages)
		return sum_pages(d, pages, &n) && text_of(g, pages, n, true, ret);
	if (!HAS(numa_access, d, dirty_anon_pages) ||
	    (n = read_numbers(GET(numa_access, d, dirty_anon_pages), pages)) < 0)
		return of_main_thread(g, d, field, ret);
	if (field == numa_access_f_total_dirty_anon_pages) {
		*ret = (struct value){.type = T_U64};
		for (int i = 0; i < n; i++)
			ret->u64 += (uint64_t)pages[i];
		return true;
	}
	if (field == numa_access_f_mem_pages_in_each_numa)
		return HAS(numa_access, d, cpu_runtime_pct_in_each_numa) &&
		       (n = read_numbers(GET(numa_access, d, cpu_runtime_pct_in_each_numa), list)) >= 0 &&
		       text_of(g, pages, n, false, ret);
	if (field == numa_access_f_local_share)
		return local_share(pages, n, d, ret);
	return of_main_thread(g, d, field, ret);
}
