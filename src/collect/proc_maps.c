/* Reads what /proc tells of the memory mappings of a process. */
#include "proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cleanup.h"

#define DELETED " (deleted)"

static bool take_number(char **s, int base, char end, uint64_t *ret)
{
	char *stop;

	/* strtoull() would take blanks and signs. */
	if (!((**s >= '0' && **s <= '9') || (base == 16 && **s >= 'a' && **s <= 'f')))
		return false;
	errno = 0;
	*ret = strtoull(*s, &stop, base);
	if (errno || *stop != end)
		return false;
	*s = stop + 1;
	return true;
}

/* fs/proc/task_mmu.c writes a newline as \012 and leaves everything else as it is. */
static size_t unescape(char *s)
{
	char *to = s;

	for (const char *from = s; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return (size_t)(to - s);
}

bool maps_line_parse(char *line, struct maps_line *ret)
{
	uint64_t major, minor;
	char *s = line, *end;

	if (!take_number(&s, 16, '-', &ret->start) || !take_number(&s, 16, ' ', &ret->end))
		return false;
	if (strlen(s) < 5 || s[4] != ' ' || ret->end <= ret->start)
		return false;
	ret->read = s[0] == 'r';
	ret->write = s[1] == 'w';
	ret->shared = s[3] == 's';
	s += 5;
	if (!take_number(&s, 16, ' ', &ret->offset) || !take_number(&s, 16, ':', &major) ||
	    !take_number(&s, 16, ' ', &minor) || major > 0xfff || minor > 0xfffff)
		return false;
	ret->dev = (uint32_t)(major << 20 | minor);
	end = s + strcspn(s, " \n");
	/* Without a path the number ends the line, or is padded. */
	if (*end == '\n')
		end[0] = ' ', end[1] = '\0';
	if (!*end || !take_number(&s, 10, ' ', &ret->ino))
		return false;
	s += strspn(s, " ");
	s[strcspn(s, "\n")] = '\0';
	ret->path = s;
	ret->path_bytes = unescape(s);
	return true;
}

static uint32_t kernel_dev(dev_t dev)
{
	return (uint32_t)(major(dev) << 20 | minor(dev));
}

static void map_file_name(char *buf, size_t size, const struct proc_map *m)
{
	snprintf(buf, size, "/proc/%u/map_files/%llx-%llx", m->tgid, (unsigned long long)m->start,
		 (unsigned long long)m->end);
}

static uint32_t ipc_namespace(uint32_t pid)
{
	char path[64], link[64];
	unsigned inode = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/ns/ipc", pid);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	return sscanf(link, "ipc:[%u]", &inode) == 1 ? inode : 0;
}

/* What the path alone tells: the last component, or all of a name that the kernel made up. */
static void set_name(struct proc_map *m, const struct maps_line *l)
{
	size_t n = l->path_bytes, mark = strlen(DELETED);
	const char *name = l->path, *slash;

	if (n > mark && !strcmp(l->path + n - mark, DELETED))
		n -= mark;
	slash = memrchr(name, '/', n);
	if (slash && strncmp(name, "/memfd:", 7) && strcmp(name, "/dev/zero" DELETED)) {
		n -= (size_t)(slash + 1 - name);
		name = slash + 1;
	} else if (*name == '/') {
		name++;
		n--;
	}
	if (n > PROC_PATH_BYTES - 1)
		n = PROC_PATH_BYTES - 1;
	memcpy(m->name, name, n);
	m->name_bytes = (__u8)n;
}

static void set_facts(struct proc_map *m)
{
	char path[96];
	struct statfs fs;
	struct stat st;

	m->size_bytes = m->blocks = m->cached_pages = MAP_UNKNOWN;
	m->links = 1;
	map_file_name(path, sizeof(path), m);
	if (stat(path, &st) || statfs(path, &fs))
		return;
	m->size_bytes = (uint64_t)st.st_size;
	m->blocks = (uint64_t)st.st_blocks;
	m->links = (uint32_t)st.st_nlink;
	m->mode = (__u16)st.st_mode;
	m->rdev = kernel_dev(st.st_rdev);
	m->magic = (uint32_t)fs.f_type;
}

int proc_maps_list(uint32_t pid, uint64_t start_ns, int (*cb)(void *ctx, const struct proc_map *m),
		   void *ctx)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	CLEANUP_FREE char *line = NULL;
	size_t cap = 0;
	char path[64];
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!rc && getline(&line, &cap, f) > 0) {
		struct proc_map m = {.size = sizeof(m), .tgid = pid, .leader_start_ns = start_ns};
		struct maps_line l;

		if (!maps_line_parse(line, &l) || !l.shared || !l.path_bytes)
			continue;
		m.start = l.start;
		m.end = l.end;
		m.offset_pages = l.offset / page;
		m.dev = l.dev;
		m.ino = l.ino;
		m.access = (__u8)((l.read ? PROC_MAP_READ : 0) | (l.write ? PROC_MAP_WRITE : 0));
		set_name(&m, &l);
		set_facts(&m);
		if (m.name_bytes == 12 && !memcmp(m.name, "SYSV", 4))
			m.ipcns = ipc_namespace(pid);
		rc = cb(ctx, &m);
	}
	return rc;
}

/* Whether a file of just that name is there: then the mark at its end is part of the name. */
static bool is_name(const struct proc_map *m, const char *path)
{
	char full[4352];
	struct stat st;

	snprintf(full, sizeof(full), "/proc/%u/root%s", m->tgid, path);
	return !lstat(full, &st) && st.st_ino == m->ino;
}

/* The kernel tells paths from our root, or from that of another mount namespace. */
static size_t below_root(const struct proc_map *m, char *path, size_t n)
{
	char link[64], root[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%u/root", m->tgid);
	len = readlink(link, root, sizeof(root) - 1);
	if (len <= 1 || (size_t)len >= n || memcmp(path, root, (size_t)len) || path[len] != '/')
		return n;
	memmove(path, path + len, n + 1 - (size_t)len);
	return n - (size_t)len;
}

int proc_maps_path(const struct proc_map *m, bool internal, char *buf, size_t size)
{
	size_t mark = strlen(DELETED);
	char path[96];
	ssize_t n;

	map_file_name(path, sizeof(path), m);
	n = readlink(path, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	n = (ssize_t)below_root(m, buf, (size_t)n);
	if ((size_t)n > mark && !strcmp(buf + n - mark, DELETED) && (internal || !is_name(m, buf)))
		n -= (ssize_t)mark;
	buf[n] = '\0';
	return (int)n;
}

void proc_maps_shown(const struct proc_map *m, uint32_t *ret_dev, uint64_t *ret_ino)
{
	CLEANUP_FREE char *line = NULL;
	struct maps_line l;
	struct statfs fs;
	size_t cap = 0;
	char path[96];

	*ret_dev = m->dev;
	*ret_ino = m->ino;
	map_file_name(path, sizeof(path), m);
	if (statfs(path, &fs) || fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return;
	snprintf(path, sizeof(path), "/proc/%u/maps", m->tgid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	while (f && getline(&line, &cap, f) > 0) {
		if (!maps_line_parse(line, &l) || l.start != m->start)
			continue;
		*ret_dev = l.dev;
		*ret_ino = l.ino;
		return;
	}
}

int proc_maps_space(const struct proc_map *m, uint64_t *ret_bytes, uint64_t *ret_used_bytes)
{
	struct statfs fs;
	char path[96];

	map_file_name(path, sizeof(path), m);
	if (statfs(path, &fs))
		return -errno;
	*ret_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
	*ret_used_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	return 0;
}

/* linux/fs.h since v6.7 (52526ca7fdb9), which older headers do not have. */
struct scan_args {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, anyof, ret;
};
struct scan_region {
	uint64_t start, end, categories;
};
#define SCAN_IOCTL   _IOWR('f', 16, struct scan_args)
#define SCAN_PRESENT (1u << 3)

static int resident_by_scan(int fd, uint64_t start, uint64_t end, uint64_t *ret_bytes)
{
	struct scan_region v[256];
	struct scan_args a = {.size = sizeof(a), .start = start, .end = end, .vec = (uintptr_t)v,
			      .vec_len = 256, .mask = SCAN_PRESENT, .ret = SCAN_PRESENT};
	uint64_t sum = 0;

	while (a.start < end) {
		int n = ioctl(fd, SCAN_IOCTL, &a);

		if (n < 0)
			return -errno;
		for (int i = 0; i < n; i++)
			sum += v[i].end - v[i].start;
		if (a.walk_end <= a.start)
			break;
		a.start = a.walk_end;
	}
	*ret_bytes = sum;
	return 0;
}

/* 64 bits a page; the highest: present. */
static int resident_by_read(int fd, uint64_t start, uint64_t end, uint64_t *ret_bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), v[4096], sum = 0;

	for (uint64_t at = start / page, last = end / page; at < last;) {
		size_t want = last - at < 4096 ? (size_t)(last - at) : 4096;
		ssize_t n = pread(fd, v, want * 8, (off_t)(at * 8));

		if (n < 8)
			return n < 0 ? -errno : -EIO;
		for (ssize_t i = 0; i < n / 8; i++)
			sum += (v[i] >> 63) * page;
		at += (uint64_t)n / 8;
	}
	*ret_bytes = sum;
	return 0;
}

int proc_maps_resident(uint32_t pid, uint64_t start, uint64_t end, uint64_t *ret_bytes)
{
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%u/pagemap", pid);
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = resident_by_scan(fd, start, end, ret_bytes);
	return rc == -ENOTTY || rc == -EINVAL ? resident_by_read(fd, start, end, ret_bytes) : rc;
}
