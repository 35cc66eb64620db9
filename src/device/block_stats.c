/* Disks by /proc and /sys. */
#include "block_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of /proc/diskstats, whatever the disk's own sector size (Documentation/admin-guide/iostats.rst). */
#define SECTOR 512

void block_parse(const char *text, struct block_list *ret)
{
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		unsigned long long v[11];
		struct block_stats s = {0};

		end = strchrnul(line, '\n');
		if (sscanf(line, "%u %u %39s %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &s.major, &s.minor,
			   s.name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10]) != 14)
			continue;
		s.reads = v[0];
		s.read_bytes = v[2] * SECTOR;
		s.read_ms = v[3];
		s.writes = v[4];
		s.written_bytes = v[6] * SECTOR;
		s.write_ms = v[7];
		s.in_flight = v[8];
		s.busy_ms = v[9];
		s.weighted_ms = v[10];
		vec_push(&ret->v, s);
	}
}

static bool read_word(const struct sysroot *root, struct strbuf *b, const char *device, const char *file)
{
	strbuf_clear(b);
	if (sysroot_read(root, b, "/sys/dev/block/%s/%s", device, file) <= 0)
		return false;
	b->s[strcspn(b->s, "\n")] = '\0';
	while (b->s[0] && strlen(b->s) && b->s[strlen(b->s) - 1] == ' ')
		b->s[strlen(b->s) - 1] = '\0';
	return b->s[0];
}

/* "mq-deadline [none]": the one in use */
static void read_scheduler(const char *text, char ret[32])
{
	const char *from = strchr(text, '['), *to = from ? strchr(from, ']') : NULL;

	if (to)
		snprintf(ret, 32, "%.*s", (int)(to - from - 1) < 31 ? (int)(to - from - 1) : 31, from + 1);
}

static void read_pci(const char *link, char ret[20])
{
	unsigned domain, bus, slot, function;

	for (const char *s = link; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL)
		if (sscanf(s, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4)
			snprintf(ret, 20, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, slot & 0xff, function & 7);
}

void block_facts_read(const struct sysroot *root, uint32_t major, uint32_t minor, struct block_facts *ret)
{
	/* A partition's queue and device are its disk's, one folder up. */
	const char *up = "";
	struct strbuf b = {0};
	char device[32], file[64];

	memset(ret, 0, sizeof(*ret));
	ret->rotational = ret->numa_node = -1;
	snprintf(device, sizeof(device), "%u:%u", major, minor);
	if (read_word(root, &b, device, "size"))
		ret->size_bytes = strtoull(b.s, NULL, 10) * SECTOR;
	if (read_word(root, &b, device, "partition")) {
		up = "../";
		if (read_word(root, &b, device, "../dev"))
			sscanf(b.s, "%u:%u", &ret->disk_major, &ret->disk_minor);
	}
	snprintf(file, sizeof(file), "%squeue/rotational", up);
	if (read_word(root, &b, device, file))
		ret->rotational = atoi(b.s);
	snprintf(file, sizeof(file), "%squeue/scheduler", up);
	if (read_word(root, &b, device, file))
		read_scheduler(b.s, ret->scheduler);
	snprintf(file, sizeof(file), "%sdevice/model", up);
	if (read_word(root, &b, device, file))
		snprintf(ret->model, sizeof(ret->model), "%.63s", b.s);
	snprintf(file, sizeof(file), "%sdevice/numa_node", up);
	if (read_word(root, &b, device, file))
		ret->numa_node = atoi(b.s);
	if (read_word(root, &b, device, "loop/backing_file"))
		snprintf(ret->backing, sizeof(ret->backing), "%.255s", b.s);
	strbuf_clear(&b);
	if (sysroot_readlink(root, &b, "/sys/dev/block/%s", device) > 0)
		read_pci(b.s, ret->pci);
	strbuf_done(&b);
}
