/* Ports and counters of RDMA devices by /sys. */
#include "rdma_sysfs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define CLASS "/sys/class/infiniband"

static bool read_word(const struct sysroot *root, struct strbuf *b, const struct rdma_port *p, const char *file)
{
	strbuf_clear(b);
	if (sysroot_read(root, b, CLASS "/%s/ports/%u/%s", p->dev, p->port, file) <= 0)
		return false;
	b->s[strcspn(b->s, "\n")] = '\0';
	return b->s[0];
}

static bool read_counters(const struct sysroot *root, struct strbuf *b, struct rdma_port *p, const char *folder,
			  bool hw)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	bool any = false;

	if (sysroot_opendir(root, &d, CLASS "/%s/ports/%u/%s", p->dev, p->port, folder) < 0) {
		d = NULL;
		return false;
	}
	while ((de = readdir(d))) {
		struct rdma_counter c = {.hw = hw};
		char path[160], *end;

		/* Of hw_counters, one file says how often the rest is refreshed. */
		if (de->d_name[0] == '.' || !strcmp(de->d_name, "lifespan") || strlen(de->d_name) >= sizeof(c.name))
			continue;
		snprintf(path, sizeof(path), "%s/%.60s", folder, de->d_name);
		/* Counters that this port does not have cannot be read, or say N/A. */
		if (!read_word(root, b, p, path))
			continue;
		c.value = strtoull(b->s, &end, 10);
		if (end == b->s)
			continue;
		snprintf(c.name, sizeof(c.name), "%.47s", de->d_name);
		/* The standard counts data in units of four bytes. */
		if (!hw && strstr(c.name, "_data"))
			c.value *= 4;
		vec_push(&p->counters, c);
		any = true;
	}
	return any;
}

/* "4: ACTIVE" */
static const char *behind_number(const char *s)
{
	const char *colon = strchr(s, ':');

	return colon ? colon + 1 + strspn(colon + 1, " ") : s;
}

static void read_port(const struct sysroot *root, struct strbuf *b, const char *dev, uint32_t port,
		      struct rdma_ports *ret)
{
	struct rdma_port p = {.port = port};

	snprintf(p.dev, sizeof(p.dev), "%.63s", dev);
	if (read_word(root, b, &p, "state"))
		snprintf(p.state, sizeof(p.state), "%.23s", behind_number(b->s));
	if (read_word(root, b, &p, "link_layer"))
		snprintf(p.link_layer, sizeof(p.link_layer), "%.23s", b->s);
	if (read_word(root, b, &p, "gid_attrs/ndevs/0"))
		snprintf(p.netdev, sizeof(p.netdev), "%.31s", b->s);
	/* "100 Gb/sec (4X EDR)" */
	if (read_word(root, b, &p, "rate"))
		p.rate_bytes_s = strtod(b->s, NULL) * 1e9 / 8;
	read_counters(root, b, &p, "counters", false);
	p.has_hw_counters = read_counters(root, b, &p, "hw_counters", true);
	vec_push(&ret->v, p);
}

void rdma_ports_read(const struct sysroot *root, struct rdma_ports *ret)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct strbuf b = {0};
	struct dirent *de;

	memset(ret, 0, sizeof(*ret));
	if (sysroot_opendir(root, &d, CLASS) < 0) {
		d = NULL;
		return;
	}
	while ((de = readdir(d))) {
		CLEANUP_CLOSEDIR DIR *ports = NULL;
		struct dirent *port;

		if (de->d_name[0] == '.' || sysroot_opendir(root, &ports, CLASS "/%s/ports", de->d_name) < 0) {
			ports = NULL;
			continue;
		}
		while ((port = readdir(ports)))
			if (isdigit((unsigned char)port->d_name[0]))
				read_port(root, &b, de->d_name, (uint32_t)strtoul(port->d_name, NULL, 10), ret);
	}
	strbuf_done(&b);
}

void rdma_ports_done(struct rdma_ports *p)
{
	vec_for(&p->v, x)
		vec_done(&x->counters);
	vec_done(&p->v);
}

bool rdma_port_counter(const struct rdma_port *p, const char *const *names, uint64_t *ret)
{
	for (; *names; names++)
		vec_for(&p->counters, c)
			if (!strcmp(c->name, *names)) {
				*ret = c->value;
				return true;
			}
	return false;
}

int rdma_dev_place(const struct sysroot *root, const char *dev, char ret_pci[20])
{
	unsigned domain, bus, slot, function;
	struct strbuf b = {0};
	int node = -1;

	ret_pci[0] = '\0';
	if (sysroot_readlink(root, &b, CLASS "/%s", dev) > 0)
		for (const char *s = b.s; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL)
			if (sscanf(s, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4)
				snprintf(ret_pci, 20, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, slot & 0xff,
					 function & 7);
	strbuf_clear(&b);
	if (sysroot_read(root, &b, CLASS "/%s/device/numa_node", dev) > 0)
		node = atoi(b.s);
	strbuf_done(&b);
	return node;
}
