/* Network interfaces by /proc and /sys. */
#include "nic_stats.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

/* "  eth0: BYTES PACKETS ERRS DROP FIFO FRAME COMPRESSED MULTICAST  BYTES PACKETS ERRS DROP …" */
static bool parse_line(const char *line, const char *colon, struct nic_stats *s)
{
	unsigned long long r[4], t[4];

	while (line < colon && isspace((unsigned char)*line))
		line++;
	if (line == colon || (size_t)(colon - line) >= sizeof(s->name))
		return false;
	snprintf(s->name, sizeof(s->name), "%.*s", (int)(colon - line), line);
	if (sscanf(colon + 1, "%llu %llu %llu %llu %*u %*u %*u %*u %llu %llu %llu %llu", &r[0], &r[1], &r[2], &r[3],
		   &t[0], &t[1], &t[2], &t[3]) != 8)
		return false;
	for (int i = 0; i < 4; i++) {
		s->counters[NIC_RX_BYTES + i] = r[i];
		s->counters[NIC_TX_BYTES + i] = t[i];
	}
	return true;
}

void nic_parse(const char *text, struct nic_list *ret)
{
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		struct nic_stats s = {0};
		const char *colon;

		end = strchrnul(line, '\n');
		colon = memchr(line, ':', (size_t)(end - line));
		if (colon && parse_line(line, colon, &s))
			vec_push(&ret->v, s);
	}
}

static bool read_word(const struct sysroot *root, struct strbuf *b, const char *name, const char *file)
{
	strbuf_clear(b);
	if (sysroot_read(root, b, "/sys/class/net/%s/%s", name, file) <= 0)
		return false;
	b->s[strcspn(b->s, "\n")] = '\0';
	return b->s[0];
}

static void add_irq(const struct sysroot *root, const char *irq, struct idrange *cpus)
{
	struct idrange one = {0};
	struct strbuf b = {0};
	struct err e;

	if (sysroot_read(root, &b, "/proc/irq/%s/effective_affinity_list", irq) <= 0) {
		strbuf_clear(&b);
		if (sysroot_read(root, &b, "/proc/irq/%s/smp_affinity_list", irq) <= 0) {
			strbuf_done(&b);
			return;
		}
	}
	if (!idrange_parse(b.s, &one, &e))
		for (int64_t i = -1; (i = idrange_next(&one, i + 1)) >= 0;)
			idrange_add(cpus, (uint32_t)i);
	idrange_done(&one);
	strbuf_done(&b);
}

static void read_irqs(const struct sysroot *root, const char *name, struct idrange *cpus)
{
	/* A virtio interface's interrupts are those of the PCI function above it. */
	static const char *const folders[] = {"device/msi_irqs", "device/../msi_irqs"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		CLEANUP_CLOSEDIR DIR *d = NULL;
		struct dirent *de;

		if (sysroot_opendir(root, &d, "/sys/class/net/%s/%s", name, folders[i]) < 0) {
			d = NULL;
			continue;
		}
		while ((de = readdir(d)))
			if (isdigit((unsigned char)de->d_name[0]))
				add_irq(root, de->d_name, cpus);
		return;
	}
}

/* The address is the last part of the link "device" that is one: "../../../0000:00:03.0/virtio1". */
static void read_pci(const struct sysroot *root, struct strbuf *b, const char *name, char ret[20])
{
	unsigned domain, bus, slot, function;

	strbuf_clear(b);
	if (sysroot_readlink(root, b, "/sys/class/net/%s", name) <= 0)
		return;
	for (const char *s = b->s; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL)
		if (sscanf(s, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4)
			snprintf(ret, 20, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, slot & 0xff, function & 7);
}

bool nic_facts_read(const struct sysroot *root, const char *name, struct nic_facts *ret)
{
	struct strbuf b = {0};

	memset(ret, 0, sizeof(*ret));
	ret->numa_node = -1;
	if (!sysroot_has(root, "/sys/class/net/%s/mtu", name))
		return false;
	if (read_word(root, &b, name, "address"))
		snprintf(ret->mac, sizeof(ret->mac), "%.31s", b.s);
	if (read_word(root, &b, name, "operstate"))
		snprintf(ret->state, sizeof(ret->state), "%.23s", b.s);
	/* In Mbit/s; -1, or an error of the read, where it is not known. */
	if (read_word(root, &b, name, "speed") && atoll(b.s) > 0)
		ret->speed_bytes_s = (uint64_t)atoll(b.s) * 1000000 / 8;
	if (read_word(root, &b, name, "mtu"))
		ret->mtu = strtoull(b.s, NULL, 10);
	if (read_word(root, &b, name, "device/numa_node") || read_word(root, &b, name, "device/../numa_node"))
		ret->numa_node = atoi(b.s);
	read_pci(root, &b, name, ret->pci);
	read_irqs(root, name, &ret->irq_cpus);
	strbuf_done(&b);
	return true;
}

void nic_facts_done(struct nic_facts *f)
{
	idrange_done(&f->irq_cpus);
}
