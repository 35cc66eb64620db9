/* Where the memory of a process lies, from a stratified sample of its pages: see placement.h. */
#include "placement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "maps_regions.h"

#define BATCH	     512  /* addresses of one call; the kernel holds the map lock for 16 of them at a time */
#define LEAST	     64	  /* addresses of a class that has any pages */
#define ROUNDS_MOST  4
#define DENSE	     0.25 /* part of the addresses that have a page, from which on one sample is enough */
#define Z95	     1.96
#define CLOSE_SHARE  0.75 /* part of the second sample that looks where the first found pages */
#define SPARSE_TIMES 4	  /* a mapping so many times as large as all resident pages is mostly empty */
#define ENOUGH	     0.9  /* part of the resident pages that need not be looked for elsewhere */
#define STRATA	     4
#define PASSES	     8 /* over the addresses, each with every so manyth: one that is cut short has looked everywhere */

/* Part of the address range of a class: `share` of it, `asked` addresses, of which some had pages. */
struct stratum {
	double share;
	uint64_t asked, hits;
	uint64_t on[PLACEMENT_NODES]; /* by index in placement.nodes */
};

struct sampling {
	const struct placement_options *o;
	struct placement *p;
	const struct regions *r;
	enum page_class class;
	uint64_t page_bytes, until_ns, random;
	uint64_t class_pages, class_bytes; /* its address range, and what of it is resident */
	bool sparse;	/* of its mappings, now those that are mostly empty */
	uint64_t pages; /* of those */
	bool late;
	uint64_t unplaced; /* bytes of classes of which no page was found */
	struct stratum strata[STRATA];
	unsigned nstrata;
	uint8_t *cell_has; /* [cells] the first sample found a page there */
	uint64_t cells;
};

const char *page_class_name(enum page_class c)
{
	static const char *const names[] = {"anon", "shared", "file", "huge"};

	return names[c];
}

static uint32_t node_slot(struct placement *p, uint32_t node)
{
	uint32_t i = 0;

	while (i < p->nnodes && p->nodes[i].node < node)
		i++;
	if (i < p->nnodes && p->nodes[i].node == node)
		return i;
	if (p->nnodes == PLACEMENT_NODES) {
		p->nodes_left_out++;
		return UINT32_MAX;
	}
	memmove(&p->nodes[i + 1], &p->nodes[i], (p->nnodes - i) * sizeof(p->nodes[0]));
	memset(&p->nodes[i], 0, sizeof(p->nodes[0]));
	p->nodes[i].node = node;
	p->nnodes++;
	return i;
}

void placement_add(struct placement *p, uint32_t node, enum page_class c, uint64_t bytes)
{
	uint32_t i = bytes ? node_slot(p, node) : UINT32_MAX;

	if (i != UINT32_MAX)
		p->nodes[i].bytes[c] += bytes;
}

/* A page of a shared segment was found on @p node. */
static void segment_add(struct placement *p, const struct region *x, uint32_t node)
{
	struct placement_segment *g = NULL;
	uint32_t i = 0;

	for (uint32_t k = 0; k < p->nsegments && !g; k++)
		if (p->segments[k].ino == x->ino && p->segments[k].dev == x->dev)
			g = &p->segments[k];
	if (!g) {
		if (p->nsegments == PLACEMENT_SEGMENTS)
			return;
		g = &p->segments[p->nsegments++];
		*g = (struct placement_segment){.ino = x->ino, .dev = x->dev};
	}
	while (i < g->nnodes && g->on[i].node != node)
		i++;
	if (i == PLACEMENT_SEGMENT_NODES)
		return;
	if (i == g->nnodes) {
		g->on[i].node = node;
		g->on[i].pages = 0;
		g->nnodes++;
	}
	g->on[i].pages++;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static int by_move_pages(void *ctx, uint32_t pid, size_t n, void **pages, int *status)
{
	(void)ctx;
	return syscall(SYS_move_pages, pid, n, pages, NULL, status, 0) < 0 ? -errno : 0;
}

/* xorshift64*, from 0 to below 1 */
static double random_part(struct sampling *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return (double)((s->random * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0;
}

static bool is_wanted(const struct sampling *s, const struct region *x)
{
	return x->class == s->class && (x->end - x->start > s->class_bytes * SPARSE_TIMES) == s->sparse;
}

/* Where the search for a page left off, as pages are asked for in order. */
struct cursor {
	size_t region;
	uint64_t before; /* pages of the regions before it */
};

/* Address of page @p i of the wanted regions, one after the other. */
static void *address_of(const struct sampling *s, struct cursor *at, uint64_t i)
{
	if (i < at->before)
		*at = (struct cursor){0};
	for (; at->region < s->r->v.n; at->region++) {
		const struct region *x = &s->r->v.v[at->region];
		uint64_t pages = is_wanted(s, x) ? (x->end - x->start) / s->page_bytes : 0;

		if (i - at->before < pages)
			return (void *)(uintptr_t)(x->start + (i - at->before) * s->page_bytes);
		at->before += pages;
	}
	return NULL;
}

/* Nodes have their final places only when all are known, so counts are by number until then. */
struct batch {
	void *pages[BATCH];
	int status[BATCH];
	uint64_t cell[BATCH];
	size_t n;
	uint32_t region[BATCH]; /* that it is in */
};

static int flush(struct sampling *s, struct batch *b, struct stratum *x, uint32_t *node_of)
{
	int rc;

	if (!b->n)
		return 0;
	rc = (s->o->query ?: by_move_pages)(s->o->ctx, s->p->pid, b->n, b->pages, b->status);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < b->n; i++) {
		uint32_t slot = 0;

		x->asked++;
		if (b->status[i] < 0)
			continue;
		while (slot < PLACEMENT_NODES && node_of[slot] != UINT32_MAX && node_of[slot] != (uint32_t)b->status[i])
			slot++;
		if (slot == PLACEMENT_NODES) {
			s->p->nodes_left_out++;
			continue;
		}
		node_of[slot] = (uint32_t)b->status[i];
		x->on[slot]++;
		x->hits++;
		if (s->cell_has)
			s->cell_has[b->cell[i]] = 1;
		if (s->class == PAGES_SHARED && s->r->v.v[b->region[i]].ino)
			segment_add(s->p, &s->r->v.v[b->region[i]], (uint32_t)b->status[i]);
	}
	b->n = 0;
	s->late = thread_cpu_ns() > s->until_ns;
	return 0;
}

static int ask(struct sampling *s, struct batch *b, struct cursor *at, struct stratum *x, uint32_t *node_of,
	       uint64_t page, uint64_t cell)
{
	void *address = address_of(s, at, page);

	if (!address)
		return 0;
	b->pages[b->n] = address;
	b->region[b->n] = (uint32_t)at->region;
	b->cell[b->n++] = cell;
	return b->n == BATCH ? flush(s, b, x, node_of) : 0;
}

/* A new stratum that has @p part of the wanted pages. */
static struct stratum *new_stratum(struct sampling *s, double part)
{
	struct stratum *x = &s->strata[s->nstrata++];

	x->share = part * (double)s->pages / (double)s->class_pages;
	return x;
}

static int ask_every_page(struct sampling *s, struct stratum *x, uint32_t *node_of)
{
	struct batch b = {.n = 0};
	struct cursor at = {0};
	int rc = 0;

	for (uint64_t pass = 0; pass < PASSES; pass++)
		for (uint64_t i = pass; !rc && !s->late && i < s->pages; i += PASSES)
			rc = ask(s, &b, &at, x, node_of, i, 0);
	return rc ?: flush(s, &b, x, node_of);
}

/* One random page in each of the cells, which are equally large. */
static int ask_cells(struct sampling *s, struct stratum *x, uint32_t *node_of)
{
	double width = (double)s->pages / (double)s->cells;
	struct batch b = {.n = 0};
	struct cursor at = {0};
	int rc = 0;

	for (uint64_t pass = 0; pass < PASSES; pass++)
		for (uint64_t i = pass; !rc && !s->late && i < s->cells; i += PASSES)
			rc = ask(s, &b, &at, x, node_of, (uint64_t)(((double)i + random_part(s)) * width), i);
	return rc ?: flush(s, &b, x, node_of);
}

/* Cells next to one that has pages are likely to have some too. */
static uint64_t choose_close(const struct sampling *s, uint64_t *cells_close, uint64_t *cells_other)
{
	uint64_t n = 0, m = 0;

	for (uint64_t i = 0; i < s->cells; i++) {
		bool close = s->cell_has[i] || (i && s->cell_has[i - 1]) ||
			     (i + 1 < s->cells && s->cell_has[i + 1]);

		if (close)
			cells_close[n++] = i;
		else
			cells_other[m++] = i;
	}
	return n;
}

static int ask_among(struct sampling *s, const uint64_t *cells, uint64_t n, uint64_t count,
		     uint32_t *node_of)
{
	struct stratum *x = new_stratum(s, (double)n / (double)s->cells);
	double width = (double)s->pages / (double)s->cells;
	struct batch b = {.n = 0};
	struct cursor at = {0};
	int rc = 0;

	for (uint64_t pass = 0; pass < PASSES; pass++)
		for (uint64_t i = pass; !rc && !s->late && n && i < count; i += PASSES) {
			/* In order, so that the regions are gone through once in each pass. */
			double where = ((double)i + random_part(s)) / (double)count * (double)n;
			uint64_t k = (uint64_t)where < n ? (uint64_t)where : n - 1;

			rc = ask(s, &b, &at, x, node_of,
				 (uint64_t)(((double)cells[k] + (where - (double)k)) * width), cells[k]);
		}
	return rc ?: flush(s, &b, x, node_of);
}

/* Few addresses have a page: look closer where there are some, and count both parts by their size. */
static int ask_closer(struct sampling *s, uint64_t count, uint32_t *node_of)
{
	uint64_t *close = mem_alloc(s->cells * sizeof(*close)), *other = mem_alloc(s->cells * sizeof(*other));
	uint64_t n = choose_close(s, close, other), many = (uint64_t)((double)count * CLOSE_SHARE);
	int rc;

	/* What chose the places to look at closely must not count among what was found there. */
	memset(&s->strata[--s->nstrata], 0, sizeof(s->strata[0]));
	free(s->cell_has);
	s->cell_has = NULL;
	rc = ask_among(s, close, n, many, node_of);
	rc = rc ?: ask_among(s, other, s->cells - n, count - many, node_of);
	free(close);
	free(other);
	return rc;
}

/* About @p count of the wanted pages. */
static int ask_wanted(struct sampling *s, uint64_t count, uint32_t *node_of)
{
	struct stratum *x;
	int rc = 0;

	/* However long the others took: what nobody asks for would look as if it were not there. */
	s->late = false;
	s->pages = 0;
	vec_for(&s->r->v, region)
		s->pages += is_wanted(s, region) ? (region->end - region->start) / s->page_bytes : 0;
	if (!s->pages)
		return 0;
	x = new_stratum(s, 1);
	if (s->pages <= count + count / 2)
		return ask_every_page(s, x, node_of);
	s->cells = count;
	s->cell_has = mem_alloc(s->cells);
	for (unsigned round = 0; !rc && !s->late && round < ROUNDS_MOST && x->hits < count; round++) {
		rc = ask_cells(s, x, node_of);
		if (!rc && x->hits && (double)x->hits < DENSE * (double)x->asked && !s->late) {
			rc = ask_closer(s, 2 * count, node_of);
			break;
		}
	}
	free(s->cell_has);
	s->cell_has = NULL;
	return rc;
}

/* Estimated part of the addresses that have a page, on one node or on any. */
static double part_on(const struct sampling *s, uint32_t slot)
{
	double sum = 0;

	for (unsigned i = 0; i < s->nstrata; i++) {
		const struct stratum *x = &s->strata[i];

		if (x->asked)
			sum += x->share * (double)(slot == UINT32_MAX ? x->hits : x->on[slot]) / (double)x->asked;
	}
	return sum;
}

/*
 * Variance of the estimated share of a node: a ratio of two sums over strata, linearised (Cochran,
 * Sampling Techniques, 6.11), with z = 1 - share for a page on the node, -share for one elsewhere and
 * 0 for an address without a page.
 */
static double variance_of(const struct sampling *s, uint32_t slot, double share, double any)
{
	double sum = 0;

	for (unsigned i = 0; i < s->nstrata; i++) {
		const struct stratum *x = &s->strata[i];
		double m = (double)x->asked, on, hit, mean, square, rest;

		if (!x->asked)
			continue;
		on = (double)x->on[slot] / m;
		hit = (double)x->hits / m;
		mean = on - share * hit;
		square = on * (1 - share) * (1 - share) + (hit - on) * share * share;
		/* What was looked at in full has no error. */
		rest = 1 - m / ((double)s->class_pages * x->share);
		sum += x->share * x->share * (square - mean * mean) / m * (rest > 0 ? rest : 0);
	}
	return any > 0 ? sum / (any * any) : 0;
}

static bool is_exact(const struct sampling *s)
{
	for (unsigned i = 0; i < s->nstrata; i++)
		if ((double)s->strata[i].asked + .5 < s->strata[i].share * (double)s->class_pages)
			return false;
	return true;
}

/* Share the class's resident bytes out, and keep the variance of each node's part of all bytes. */
static void settle_class(struct sampling *s, uint64_t all_bytes, const uint32_t *node_of,
			 double *variance_by_node)
{
	double any = part_on(s, UINT32_MAX), weight = (double)s->class_bytes / (double)all_bytes;
	bool all = is_exact(s);
	uint64_t hits = 0;

	for (unsigned i = 0; i < s->nstrata; i++)
		hits += s->strata[i].hits;
	s->p->sampled += hits;
	if (!hits)
		s->unplaced += s->class_bytes;
	for (uint32_t i = 0; any > 0 && i < PLACEMENT_NODES && node_of[i] != UINT32_MAX; i++) {
		double share = part_on(s, i) / any, v = variance_of(s, i, share, any);
		/* Nothing found elsewhere in n pages: below 3 in n of them, with the same 95 %. */
		double least = all ? 0 : 3 / (double)hits / Z95;

		if (v < least * least)
			v = least * least;
		placement_add(s->p, node_of[i], s->class, (uint64_t)(share * (double)s->class_bytes + .5));
		if (node_of[i] < PLACEMENT_NODES)
			variance_by_node[node_of[i]] += weight * weight * v;
	}
}

static int sample_class(struct sampling *s, const uint64_t resident[PAGE_CLASSES], uint64_t all,
			double *variance_by_node)
{
	uint64_t bytes = resident[s->class];
	uint64_t count = all ? (uint64_t)((double)s->o->pages * ((double)bytes / (double)all)) : 0;
	uint32_t node_of[PLACEMENT_NODES];
	double found;
	int rc;

	memset(node_of, 0xff, sizeof(node_of));
	memset(s->strata, 0, sizeof(s->strata));
	s->nstrata = 0;
	s->class_pages = s->r->bytes[s->class] / s->page_bytes;
	s->class_bytes = bytes;
	if (!s->class_pages || !bytes)
		return 0;
	if (count < LEAST)
		count = LEAST;
	s->sparse = false;
	rc = ask_wanted(s, count, node_of);
	found = part_on(s, UINT32_MAX) * (double)s->class_pages * (double)s->page_bytes;
	s->sparse = true;
	if (!rc && found < ENOUGH * (double)bytes)
		rc = ask_wanted(s, count, node_of);
	if (!rc)
		settle_class(s, all, node_of, variance_by_node);
	return rc;
}

static int sample(const struct placement_options *o, uint32_t pid, uint64_t tag, struct placement *ret)
{
	double variance_by_node[PLACEMENT_NODES] = {0}, most = 0;
	uint64_t resident[PAGE_CLASSES], all = 0;
	struct regions r;
	struct sampling s = {.o = o, .p = ret, .r = &r, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
			     .until_ns = o->limit_ns ? thread_cpu_ns() + o->limit_ns : UINT64_MAX,
			     .random = (pid * 0x9e3779b97f4a7c15ull ^ tag) | 1};
	int rc = resident_read(o->proc, pid, resident);

	if (rc < 0)
		return rc;
	for (unsigned c = 0; c < PAGE_CLASSES; c++) {
		all += resident[c];
		if (o->one_node)
			placement_add(ret, o->node, c, resident[c]);
	}
	ret->exact = o->one_node;
	if (o->one_node)
		return 0;
	rc = regions_read(o->proc, pid, &r);
	for (s.class = 0; !rc && s.class < PAGE_CLASSES; s.class++)
		rc = sample_class(&s, resident, all, variance_by_node);
	regions_done(&r);
	for (unsigned i = 0; i < PLACEMENT_NODES; i++)
		most = variance_by_node[i] > most ? variance_by_node[i] : most;
	/* Bytes that were found nowhere may all be on one node. */
	ret->share_error = Z95 * sqrt(most) + (all ? (double)s.unplaced / (double)all : 0);
	if (ret->share_error > 1)
		ret->share_error = 1;
	return rc;
}

int placement_sample(const struct placement_options *o, uint32_t pid, uint64_t tag, struct placement *ret)
{
	uint64_t cpu = thread_cpu_ns(), wall = clock_mono_ns();

	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	ret->tag = tag;
	ret->error = o->exact ? placement_numa_maps(o, pid, ret) : sample(o, pid, tag, ret);
	ret->cpu_ns = thread_cpu_ns() - cpu;
	ret->wall_ns = clock_mono_ns() - wall;
	return ret->error;
}
