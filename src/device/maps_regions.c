/* Mappings of a process as regions of one class each, and how much of each class is resident. */
#include "maps_regions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

enum page_class region_class(const char *path, bool shared, bool writable)
{
	static const char *const shm[] = {"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "/[aio]", "[anon_shmem:"};

	if (begins(path, "/anon_hugepage") || begins(path, "/dev/hugepages") || begins(path, "/memfd:hugetlb"))
		return PAGES_HUGE;
	for (size_t i = 0; i < sizeof(shm) / sizeof(shm[0]); i++)
		if (begins(path, shm[i]) && (shared || path[0] != '['))
			return PAGES_SHARED;
	if (*path != '/')
		return shared ? PAGES_SHARED : PAGES_ANON;
	/* A private mapping that can be written is data of the program: what was written is its own copy. */
	return shared || !writable ? PAGES_FILE : PAGES_ANON;
}

/* Memory of a device, or of the kernel, has no pages that could be asked for. */
static bool is_without_pages(const char *path)
{
	if (begins(path, "[v"))
		return true;
	return begins(path, "/dev/") && !begins(path, "/dev/shm/") && !begins(path, "/dev/zero") &&
	       !begins(path, "/dev/hugepages");
}

static void add_region(struct regions *r, const struct region *x)
{
	struct region *last = r->v.n ? &r->v.v[r->v.n - 1] : NULL;

	r->bytes[x->class] += x->end - x->start;
	if (last && last->end == x->start && last->class == x->class && last->dev == x->dev && last->ino == x->ino)
		last->end = x->end;
	else
		vec_push(&r->v, *x);
}

/* "7f0000000000-7f0000021000 rw-p 00000000 00:00 0          [heap]" */
static void take_line(struct regions *r, char *line)
{
	char *s = line, *path;
	struct region x = {0};
	unsigned major, minor;
	unsigned long long ino;

	x.start = strtoull(s, &s, 16);
	if (*s != '-')
		return;
	x.end = strtoull(s + 1, &s, 16);
	if (*s != ' ' || x.end <= x.start || strlen(s) < 6)
		return;
	/* Reserved, not used. */
	if (!memcmp(s + 1, "---", 3))
		return;
	path = strpbrk(s + 6, "/[");
	if (path)
		path[strcspn(path, "\n")] = '\0';
	if (path && is_without_pages(path))
		return;
	x.class = region_class(path ?: "", s[4] == 's', s[2] == 'w');
	if (x.class == PAGES_SHARED && sscanf(s + 6, "%*s %x:%x %llu", &major, &minor, &ino) == 3) {
		x.dev = major << 20 | minor;
		x.ino = ino;
	}
	add_region(r, &x);
}

int regions_read(const char *proc, uint32_t pid, struct regions *ret)
{
	CLEANUP_FREE char *line = NULL;
	size_t cap = 0;
	char path[256];

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "%s/%u/maps", proc, pid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0)
		take_line(ret, line);
	return 0;
}

void regions_done(struct regions *r)
{
	vec_done(&r->v);
	memset(r, 0, sizeof(*r));
}

int resident_read(const char *proc, uint32_t pid, uint64_t ret[PAGE_CLASSES])
{
	static const struct {
		const char *name;
		enum page_class class;
	} lines[] = {{"RssAnon:", PAGES_ANON}, {"RssShmem:", PAGES_SHARED}, {"RssFile:", PAGES_FILE},
		     {"HugetlbPages:", PAGES_HUGE}};
	char path[256], line[256];

	memset(ret, 0, PAGE_CLASSES * sizeof(*ret));
	snprintf(path, sizeof(path), "%s/%u/status", proc, pid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			if (begins(line, lines[i].name))
				ret[lines[i].class] = strtoull(line + strlen(lines[i].name), NULL, 10) * 1024;
	return 0;
}
