/* Reads the memory of a process node by node from /proc/PID/numa_maps: exact, and as slow as it is large. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "maps_regions.h"

#define LINE_NODES PLACEMENT_NODES

struct maps_entry {
	char *path;
	uint64_t anon, pages, page_bytes;
	bool huge;
	uint32_t n;
	struct {
		uint32_t node;
		uint64_t pages;
	} nodes[LINE_NODES];
};

/* "7f00… bind:3 file=/lib/x.so anon=3 dirty=3 mapped=9 N0=4 N3=5 kernelpagesize_kB=4" */
static void take_word(struct maps_entry *m, char *word)
{
	char *value = strchr(word, '=');

	if (!strcmp(word, "huge"))
		m->huge = true;
	if (!value)
		return;
	*value++ = '\0';
	if (!strcmp(word, "file")) {
		m->path = value;
	} else if (!strcmp(word, "anon")) {
		m->anon = strtoull(value, NULL, 10);
	} else if (!strcmp(word, "kernelpagesize_kB")) {
		m->page_bytes = strtoull(value, NULL, 10) * 1024;
	} else if (word[0] == 'N' && word[1] >= '0' && word[1] <= '9' && m->n < LINE_NODES) {
		m->nodes[m->n].node = (uint32_t)strtoul(word + 1, NULL, 10);
		m->nodes[m->n].pages = strtoull(value, NULL, 10);
		m->pages += m->nodes[m->n++].pages;
	}
}

/* Pages of a file and copies of them lie in one mapping; which node has which of them is not told. */
static void add_entry(struct placement *p, const struct maps_entry *m)
{
	enum page_class class = m->huge ? PAGES_HUGE : region_class(m->path ?: "", m->path != NULL, true);
	uint64_t anon = m->anon < m->pages ? m->anon : m->pages;

	for (uint32_t i = 0; i < m->n; i++) {
		uint64_t bytes = m->nodes[i].pages * m->page_bytes, own = bytes;

		if (class == PAGES_FILE)
			own = (uint64_t)((double)bytes * (double)anon / (double)m->pages);
		placement_add(p, m->nodes[i].node, class == PAGES_FILE ? PAGES_ANON : class, own);
		if (class == PAGES_FILE)
			placement_add(p, m->nodes[i].node, PAGES_FILE, bytes - own);
	}
	p->sampled += m->pages;
}

int placement_numa_maps(const struct placement_options *o, uint32_t pid, struct placement *ret)
{
	CLEANUP_FREE char *line = NULL;
	size_t cap = 0;
	char path[256];

	snprintf(path, sizeof(path), "%s/%u/numa_maps", o->proc, pid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		struct maps_entry m = {0};
		char *save = NULL;

		for (char *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
			take_word(&m, word);
		if (m.n && m.page_bytes)
			add_entry(ret, &m);
	}
	ret->exact = true;
	return 0;
}
