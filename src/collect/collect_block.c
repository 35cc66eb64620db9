/* Disks and partitions: what they move, how long that takes, and where they are attached. */
#include "collect_block.h"

#include <stdlib.h>
#include <string.h>

#include "block_stats.h"
#include "clock.h"
#include "collect_machine.h"
#include "objects.h"

struct blocks {
	struct sysroot root;
	uint64_t last_ns;
	struct block_list last;
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
	if (was)
		set_rates(n, was, now, ns);
	numa = was && (was->reads || was->writes) ? -1 : set_facts(b, g, n, now);
	n = graph_add_node(g, n);
	if (numa >= 0) {
		struct idrange nodes = {0};

		idrange_add(&nodes, (uint32_t)numa);
		graph_link(g, &affinitative_to_numa_type, n->index, machine_numa_set(g, &nodes));
		idrange_done(&nodes);
	}
}

void collect_blocks(struct collect *c, struct graph *g)
{
	struct blocks *b = c->blocks;
	struct block_list now = {0};
	struct strbuf text = {0};
	uint64_t clock = clock_mono_ns();

	if (sysroot_read(&b->root, &text, "/proc/diskstats") > 0)
		block_parse(text.s, &now);
	vec_for(&now.v, x)
		emit(b, g, x, b->last_ns ? clock - b->last_ns : 0);
	strbuf_done(&text);
	vec_done(&b->last.v);
	b->last = now;
	b->last_ns = clock;
}
