/* Disks and partitions: what they move, how long that takes, and where they are attached. */
#include "collect_block.h"

#include <stdlib.h>
#include <string.h>

#include "block_probe.h"
#include "block_stats.h"
#include "clock.h"
#include "collect_machine.h"
#include "objects.h"

struct blocks {
	struct sysroot root;
	uint64_t last_ns;
	struct block_list last;
	VEC(struct histogram {
		struct block_key key;
		uint64_t buckets[BLOCK_BUCKETS];
	}) histograms; /* since the recording began */
	VEC(struct seen {
		uint32_t dev;
		uint32_t pad;
		uint64_t counted; /* reads and writes, by the kernel */
		uint64_t timed;	  /* by the probe */
	}) seen; /* disks, likewise */
};

struct sampling {
	struct collect *c;
	struct graph *g;
};

struct blocks *blocks_new(void)
{
	struct blocks *b = mem_alloc(sizeof(*b));
	struct err e;

	if (sysroot_open("/", &b->root, &e) < 0)
		b->root.fd = -1;
	return b;
}

void blocks_free(struct blocks *b)
{
	if (!b)
		return;
	vec_done(&b->last.v);
	vec_done(&b->histograms);
	vec_done(&b->seen);
	sysroot_close(&b->root);
	free(b);
}

static const struct block_stats *find(const struct block_list *l, const struct block_stats *now)
{
	vec_for(&l->v, x)
		if (x->major == now->major && x->minor == now->minor && !strcmp(x->name, now->name))
			return x;
	return NULL;
}

static struct seen *seen_of(struct blocks *b, uint32_t dev)
{
	struct seen *s;

	vec_for(&b->seen, x)
		if (x->dev == dev)
			return x;
	s = vec_add(&b->seen);
	s->dev = dev;
	return s;
}

static void set_rates(struct node *n, const struct block_stats *was, const struct block_stats *now, uint64_t ns)
{
	/* Made anew meanwhile, as a loop device may be. */
	if (now->reads < was->reads || now->writes < was->writes || now->weighted_ms < was->weighted_ms)
		return;
	SET(block_device, n, reads, now->reads - was->reads);
	SET(block_device, n, read_bytes, now->read_bytes - was->read_bytes);
	SET(block_device, n, read_ns, (now->read_ms - was->read_ms) * NS_PER_MS);
	SET(block_device, n, writes, now->writes - was->writes);
	SET(block_device, n, written_bytes, now->written_bytes - was->written_bytes);
	SET(block_device, n, write_ns, (now->write_ms - was->write_ms) * NS_PER_MS);
	SET(block_device, n, busy_ns, (now->busy_ms - was->busy_ms) * NS_PER_MS);
	if (ns)
		SET(block_device, n, queue_depth,
		    (double)((now->weighted_ms - was->weighted_ms) * NS_PER_MS) / (double)ns);
}

static int set_facts(struct blocks *b, struct graph *g, struct node *n, const struct block_stats *now)
{
	struct block_facts f;

	block_facts_read(&b->root, now->major, now->minor, &f);
	if (f.size_bytes)
		SET(block_device, n, size_bytes, f.size_bytes);
	if (f.rotational >= 0)
		SET(block_device, n, rotational, f.rotational > 0);
	if (f.model[0])
		SET(block_device, n, model, graph_str(g, f.model));
	if (f.scheduler[0])
		SET(block_device, n, scheduler, graph_str(g, f.scheduler));
	if (f.pci[0])
		SET(block_device, n, pci_bus_id, graph_str(g, f.pci));
	if (f.backing[0])
		SET(block_device, n, backing_file, graph_str(g, f.backing));
	if (f.disk_major || f.disk_minor)
		SET(block_device, n, disk, object_dev_str(g, f.disk_major << 20 | f.disk_minor));
	if (f.numa_node >= 0)
		SET(block_device, n, numa_node, (uint64_t)f.numa_node);
	return f.numa_node;
}

static void emit(struct blocks *b, struct graph *g, const struct block_stats *now, uint64_t ns)
{
	const struct block_stats *was = find(&b->last, now);
	struct node *n;
	int numa;

	/* Never used, so far. */
	if (!now->reads && !now->writes)
		return;
	n = graph_new_node(g, &block_device_type);
	SET(block_device, n, dev, object_dev_str(g, now->major << 20 | now->minor));
	SET(block_device, n, name, graph_str(g, now->name));
	SET(block_device, n, in_flight, now->in_flight);
	if (was) {
		set_rates(n, was, now, ns);
		if (now->reads >= was->reads && now->writes >= was->writes)
			seen_of(b, now->major << 20 | now->minor)->counted +=
				now->reads - was->reads + now->writes - was->writes;
	}
	numa = was && (was->reads || was->writes) ? -1 : set_facts(b, g, n, now);
	n = graph_add_node(g, n);
	if (numa >= 0) {
		struct idrange nodes = {0};

		idrange_add(&nodes, (uint32_t)numa);
		graph_link(g, &affinitative_to_numa_type, n->index, machine_numa_set(g, &nodes));
		idrange_done(&nodes);
	}
}

static const char *histogram(struct blocks *b, struct graph *g, const struct block_key *k,
			     const struct block_value *v)
{
	struct histogram *h = NULL;
	struct strbuf s = {0};
	const char *ret;

	vec_for(&b->histograms, x)
		if (x->key.dev == k->dev && x->key.op == k->op)
			h = x;
	if (!h) {
		h = vec_add(&b->histograms);
		h->key = *k;
	}
	strbuf_addc(&s, '[');
	for (uint32_t i = 0; i < BLOCK_BUCKETS; i++) {
		h->buckets[i] += v->buckets[i];
		if (h->buckets[i])
			strbuf_addf(&s, "%s[%llu,%llu]", s.n > 1 ? "," : "", (unsigned long long)block_bucket_us(i),
				    (unsigned long long)h->buckets[i]);
	}
	strbuf_addc(&s, ']');
	ret = graph_str(g, s.s);
	strbuf_done(&s);
	return ret;
}

/* Before the recording begins. */
static int drop_disk(void *ctx, const struct block_key *k, const struct block_value *v)
{
	return 0;
}

static int drop_io(void *ctx, const struct block_io_key *k, const struct block_io_value *v)
{
	return 0;
}

static int on_disk(void *ctx, const struct block_key *k, const struct block_value *v)
{
	struct sampling *x = ctx;
	struct node *n = graph_new_node(x->g, &block_device_type);

	SET(block_device, n, dev, object_dev_str(x->g, k->dev));
	SET(block_device, n, failed_requests, v->errors);
	if (k->op == BLOCK_READ || k->op == BLOCK_WRITE)
		seen_of(x->c->blocks, k->dev)->timed += v->requests;
	if (k->op == BLOCK_READ) {
		SET(block_device, n, timed_reads, v->requests);
		SET(block_device, n, timed_read_bytes, v->bytes);
		SET(block_device, n, read_latency_ns, v->latency_ns);
		SET(block_device, n, read_device_ns, v->device_ns);
		SET(block_device, n, longest_read_ns, v->longest_ns);
		SET(block_device, n, read_histogram, histogram(x->c->blocks, x->g, k, v));
	} else if (k->op == BLOCK_WRITE) {
		SET(block_device, n, timed_writes, v->requests);
		SET(block_device, n, timed_write_bytes, v->bytes);
		SET(block_device, n, write_latency_ns, v->latency_ns);
		SET(block_device, n, write_device_ns, v->device_ns);
		SET(block_device, n, longest_write_ns, v->longest_ns);
		SET(block_device, n, write_histogram, histogram(x->c->blocks, x->g, k, v));
	}
	graph_add_node(x->g, n);
	return 0;
}

static int on_io(void *ctx, const struct block_io_key *k, const struct block_io_value *v)
{
	struct sampling *x = ctx;
	struct procs *p = &x->c->procs;
	uint32_t proc = procs_get(p, k->tgid, k->leader_start_ns);
	struct edge *io;

	if (!p->v.v[proc].selected)
		return 0;
	io = graph_new_edge(x->g, &block_io_type, procs_node(p, x->g, proc),
			    object_block_device(x->g, k->dev)->index);
	if (k->op == BLOCK_READ) {
		SET(block_io, io, read_bytes, v->bytes);
		SET(block_io, io, reads, v->ios);
	} else if (k->op == BLOCK_WRITE) {
		SET(block_io, io, written_bytes, v->bytes);
		SET(block_io, io, writes, v->ios);
	} else if (k->op == BLOCK_DISCARD) {
		SET(block_io, io, discarded_bytes, v->bytes);
	}
	graph_add_edge(x->g, io);
	return 0;
}

int collect_disks(struct collect *c, struct graph *g, struct err *e)
{
	struct blocks *b = c->blocks;
	struct sampling x = {.c = c, .g = g};
	struct block_list now = {0};
	struct strbuf text = {0};
	uint64_t clock = clock_mono_ns();
	int rc = 0;

	/* The first time before the kernel's counters are read, later after that: what these count is timed. */
	if (c->block_probe && !c->ticks)
		rc = block_probe_disks(c->block_probe, drop_disk, &x, e);
	if (sysroot_read(&b->root, &text, "/proc/diskstats") > 0)
		block_parse(text.s, &now);
	vec_for(&now.v, d)
		emit(b, g, d, b->last_ns ? clock - b->last_ns : 0);
	strbuf_done(&text);
	vec_done(&b->last.v);
	b->last = now;
	b->last_ns = clock;
	if (!rc && c->block_probe && c->ticks)
		rc = block_probe_disks(c->block_probe, on_disk, &x, e);
	return rc;
}

int collect_block_io(struct collect *c, struct graph *g, struct err *e)
{
	struct sampling x = {.c = c, .g = g};

	return c->block_probe ? block_probe_ios(c->block_probe, c->ticks ? on_io : drop_io, &x, e) : 0;
}

void collect_blocks_describe(const struct collect *c, struct graph *g)
{
	uint64_t lost = 0;

	/* A device that has no requests of its own, but hands them on, is not timed at all. */
	vec_for(&c->blocks->seen, s)
		if (s->timed && s->counted > s->timed)
			lost += s->counted - s->timed;
	graph_add_loss(g, "collector block", "requests_not_timed", lost);
}
