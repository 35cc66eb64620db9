/* topo_dump [-r FOLDER | -x FILE] - print what device/topo.h makes of a machine, one thing a line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node_stats.h"
#include "strbuf.h"
#include "topo.h"

static const char *ranges(struct strbuf *b, const struct idrange *r)
{
	strbuf_clear(b);
	idrange_format(r, b);
	return b->n ? b->s : "-";
}

static const char *number(char buf[16], uint32_t v)
{
	if (v == TOPO_UNKNOWN)
		return "-";
	snprintf(buf, 16, "%u", v);
	return buf;
}

static void print_nodes(const struct topo *t, struct strbuf *b)
{
	char text[16];

	for (size_t i = 0; i < t->nodes.n; i++) {
		const struct topo_node *n = &t->nodes.v[i];

		printf("node %u: package %s, %s, cpus %s", n->id, number(text, n->package), n->kind ?: "-",
		       ranges(b, &n->cpus));
		printf(", near %s, %" PRIu64 " bytes", ranges(b, &n->near), n->memory_bytes);
		for (size_t j = 0; t->distances && j < t->nodes.n; j++)
			printf("%s%" PRIu64, j ? " " : ", distances ", t->distances[i * t->nodes.n + j]);
		putchar('\n');
	}
}

/* CPUs that differ in their number only stand in one line. */
static void print_cpus(const struct topo *t)
{
	char a[16], b[16], c[16], d[16], e[16];
	size_t online = 0;

	vec_for(&t->cpus, it)
		online += it->online;
	printf("cpus: %zu online, %zu offline; %u packages, %u dies, %u cores\n", online, t->cpus.n - online,
	       t->packages, t->dies, t->cores);
	for (size_t i = 0; i < t->cpus.n; i++) {
		const struct topo_cpu *p = &t->cpus.v[i];

		if (p->online)
			printf("cpu %u: node %s, package %s, die %s, core %s, kind %s, cache %d\n", p->id,
			       number(a, p->node), number(b, p->package), number(c, p->die),
			       number(d, p->core), number(e, p->kind),
			       p->llc == TOPO_UNKNOWN ? -1 : (int)p->llc);
		else
			printf("cpu %u: offline\n", p->id);
	}
}

static void print_rest(const struct topo *t, struct strbuf *b)
{
	for (size_t i = 0; i < t->caches.n; i++)
		printf("cache %zu: L%u, %" PRIu64 " bytes, cpus %s\n", i, t->caches.v[i].level,
		       t->caches.v[i].bytes, ranges(b, &t->caches.v[i].cpus));
	vec_for(&t->pci, p) {
		printf("pci %s: %s %04x:%04x, class %04x, nodes %s", p->address, p->class_name, p->vendor,
		       p->device, p->class_id, ranges(b, &p->nodes));
		printf(", cpus %s, link %.0f", ranges(b, &p->cpus), p->link_bytes_s / 1e6);
		vec_for(&p->os_devices, name)
			printf(" %s", *name);
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	struct topo_source from = {0};
	struct strbuf b = {0};
	struct topo t;
	struct err e;
	int opt;

	while ((opt = getopt(argc, argv, "r:x:")) != -1) {
		if (opt == 'r')
			from.fsroot = optarg;
		else if (opt == 'x')
			from.xml = optarg;
		else
			return 2;
	}
	if (topo_load(&t, &from, &e) < 0) {
		fprintf(stderr, "error: %s\n", e.msg);
		return 1;
	}
	print_nodes(&t, &b);
	print_cpus(&t);
	print_rest(&t, &b);
	strbuf_done(&b);
	topo_done(&t);
	return 0;
}
