/* Reads the kernel's counters of each NUMA node: see node_stats.h. */
#include "node_stats.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "idrange.h"
#include "json.h"

#define NODE_DIR "/sys/devices/system/node/node%u"

static const char *const node_names[NODE_COUNTERS] = {
	"numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node",
};

static const char *const balancing_names[BALANCE_COUNTERS] = {
	"numa_pte_updates",   "numa_hint_faults", "numa_hint_faults_local",
	"numa_pages_migrated", "pgmigrate_success", "pgmigrate_fail",
	"zone_reclaim_success", "zone_reclaim_failed",
};

const char *node_counter_name(enum node_counter c)
{
	return node_names[c];
}

const char *balancing_counter_name(enum balancing_counter c)
{
	return balancing_names[c];
}

/* Lines of "name value". @return how many of the names were there */
static size_t take_counters(char *text, const char *const *names, size_t n, uint64_t *ret)
{
	size_t found = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t length = strcspn(line, " ");

		if (line[length] != ' ')
			continue;
		for (size_t i = 0; i < n; i++) {
			if (strlen(names[i]) != length || memcmp(line, names[i], length))
				continue;
			ret[i] = strtoull(line + length + 1, NULL, 10);
			found++;
		}
	}
	return found;
}

/* "Node 0 MemTotal:       24066948 kB" */
static void take_meminfo(struct node_stats *s, char *text)
{
	struct json_writer w;
	char *save = NULL;
	struct err e;

	json_writer_init_strbuf(&w, &s->meminfo, 0);
	json_write_object(&w);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *name = line, *value = strchr(line, ':');

		if (strncmp(line, "Node ", 5) || !value)
			continue;
		name += 5 + strcspn(line + 5, " ");
		name += strspn(name, " ");
		*value++ = '\0';
		value += strspn(value, " ");
		json_write_key(&w, name);
		json_write_str(&w, value);
		if (!strcmp(name, "MemTotal"))
			s->total_bytes = strtoull(value, NULL, 10) * 1024;
		if (!strcmp(name, "MemFree"))
			s->free_bytes = strtoull(value, NULL, 10) * 1024;
	}
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
}

void node_stats_done(struct node_stats *s)
{
	strbuf_done(&s->meminfo);
}

int node_stats_read(const struct sysroot *r, uint32_t node, struct node_stats *ret)
{
	struct strbuf text = {0};
	ssize_t rc;

	memset(ret, 0, sizeof(*ret));
	memset(ret->counters, 0xff, sizeof(ret->counters));
	ret->total_bytes = ret->free_bytes = NODE_STAT_UNKNOWN;
	if (!sysroot_has(r, NODE_DIR, node))
		return -ENOENT;
	rc = sysroot_read(r, &text, NODE_DIR "/numastat", node);
	if (rc > 0)
		take_counters(text.s, node_names, NODE_COUNTERS, ret->counters);
	strbuf_clear(&text);
	if (sysroot_read(r, &text, NODE_DIR "/meminfo", node) > 0)
		take_meminfo(ret, text.s);
	strbuf_done(&text);
	return 0;
}

size_t node_memory_blocks(const struct sysroot *r, uint32_t node, struct strbuf *out)
{
	struct idrange blocks = {0};
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	size_t n;

	if (sysroot_opendir(r, &d, NODE_DIR, node) < 0)
		return 0;
	while ((de = readdir(d))) {
		unsigned long id;
		char *end;

		if (strncmp(de->d_name, "memory", 6) || !isdigit((unsigned char)de->d_name[6]))
			continue;
		id = strtoul(de->d_name + 6, &end, 10);
		if (!*end && id <= IDRANGE_MAX)
			idrange_add(&blocks, (uint32_t)id);
	}
	n = idrange_count(&blocks);
	idrange_format(&blocks, out);
	idrange_done(&blocks);
	return n;
}

int node_cpulist(const struct sysroot *r, uint32_t node, struct strbuf *out)
{
	ssize_t rc = sysroot_read(r, out, NODE_DIR "/cpulist", node);

	while (rc > 0 && out->n && isspace((unsigned char)out->s[out->n - 1]))
		out->s[--out->n] = '\0';
	return rc < 0 ? (int)rc : 0;
}

int node_distances(const struct sysroot *r, uint32_t node, uint32_t *ret, size_t max)
{
	struct strbuf text = {0};
	ssize_t rc = sysroot_read(r, &text, NODE_DIR "/distance", node);
	size_t n = 0;
	char *s = text.s;

	while (rc > 0 && n < max) {
		char *end;
		unsigned long v = strtoul(s, &end, 10);

		if (end == s)
			break;
		ret[n++] = (uint32_t)v;
		s = end;
	}
	strbuf_done(&text);
	return rc < 0 ? (int)rc : (int)n;
}

int balancing_read(const struct sysroot *r, uint64_t ret[BALANCE_COUNTERS])
{
	struct strbuf text = {0};
	ssize_t rc = sysroot_read(r, &text, "/proc/vmstat");

	memset(ret, 0xff, BALANCE_COUNTERS * sizeof(*ret));
	if (rc > 0)
		take_counters(text.s, balancing_names, BALANCE_COUNTERS, ret);
	strbuf_done(&text);
	return rc < 0 ? (int)rc : 0;
}
