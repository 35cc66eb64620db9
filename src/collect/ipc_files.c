/* Which files get an entity of their own, and how files and FIFOs are called. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cleanup.h"
#include "collect_ipc.h"
#include "idmap.h"
#include "ipc_probe.h"
#include "objects.h"

/* A file or FIFO that has an entity, for one process. */
struct kept {
	/* of the last component: another one means another file, or a new name */
	uint32_t name_hash;
	bool has_path;
	uint8_t tries;
};

struct ipc_files {
	VEC(struct kept) kept;
	struct idmap by_file;	  /* by file and process: number in kept */
	struct idmap per_process; /* by pid and start time: how many of those */
	uint64_t folded;	  /* calls on files without an entity of their own */
};

/* How often a path is looked for: whoever has the file open next may tell it. */
#define PATH_TRIES 3

struct ipc_files *ipc_files_new(void)
{
	return mem_alloc(sizeof(struct ipc_files));
}

void ipc_files_free(struct ipc_files *f)
{
	if (!f)
		return;
	vec_done(&f->kept);
	idmap_done(&f->by_file);
	idmap_done(&f->per_process);
	free(f);
}

uint64_t ipc_files_folded(const struct ipc_files *f)
{
	return f->folded;
}

/* A name that was cut by the probe still has to be how the path's last part begins. */
static bool is_called(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;
	size_t n = strlen(name);

	return n >= IPC_NAME_BYTES - 1 ? !strncmp(last, name, n) : !strcmp(last, name);
}

static void cut_suffix(char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	if (n > k && !strcmp(s + n - k, suffix))
		s[n - k] = '\0';
}

/* A descriptor of that file in a process, -1: none. */
static int find_fd(uint32_t pid, uint64_t ino, uint32_t dev)
{
	char dir[64];
	struct dirent *de;

	snprintf(dir, sizeof(dir), "/proc/%u/fd", pid);
	CLEANUP_CLOSEDIR DIR *d = opendir(dir);
	while (d && (de = readdir(d))) {
		struct stat st;

		if (!fstatat(dirfd(d), de->d_name, &st, 0) && st.st_ino == ino &&
		    major(st.st_dev) == dev >> 20 && minor(st.st_dev) == (dev & 0xfffff))
			return atoi(de->d_name);
	}
	return -1;
}

/* Path that a descriptor stands for now, checked against the name that the probe saw. */
static bool read_path(char *ret, size_t size, uint32_t pid, int fd, const char *name)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/%u/fd/%d", pid, fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || (size_t)n >= size)
		return false;
	path[n] = '\0';
	cut_suffix(path, " (deleted)");
	/* The descriptor may stand for something else by now. */
	if (!is_called(path, name))
		return false;
	snprintf(ret, size, "%s", path);
	return true;
}

/* The file, as this process uses it; NULL: it has none of its own, nor may it. */
static struct kept *kept_of(struct ipc_files *f, const struct ipc_sample *s)
{
	uint64_t start_ns = s->v.task.leader_start_ns;
	uint64_t owner = hash_bytes(&start_ns, sizeof(start_ns), s->v.task.tgid);
	uint64_t where = owner ^ (uint64_t)s->key.space << 32;
	uint32_t i, n;

	if (s->key.flags & IPC_FOLDED)
		return NULL;
	i = idmap_get(&f->by_file, s->key.id, where);
	if (i != IDMAP_NONE)
		return &f->kept.v[i];
	n = idmap_get(&f->per_process, owner, 0);
	n = n == IDMAP_NONE ? 0 : n;
	if (n >= IPC_FILES_PER_PROCESS || f->kept.n >= IPC_FILES)
		return NULL;
	idmap_put(&f->by_file, s->key.id, where, (uint32_t)f->kept.n);
	idmap_put(&f->per_process, owner, 0, n + 1);
	return vec_add(&f->kept);
}

bool ipc_name(struct ipc_files *f, const struct ipc_sample *s, char *ret, size_t size)
{
	uint32_t hash = (uint32_t)hash_bytes(s->v.name, strnlen(s->v.name, IPC_NAME_BYTES), 1);
	struct kept *k = kept_of(f, s);
	int fd = s->v.fd;

	if (!k || !s->v.name[0])
		return false;
	if (k->name_hash != hash)
		*k = (struct kept){.name_hash = hash};
	if (k->has_path || k->tries >= PATH_TRIES)
		return false;
	k->tries++;
	/* io_uring names no descriptor. */
	if (fd < 0)
		fd = find_fd(s->v.task.tgid, s->key.id, s->key.space);
	k->has_path = read_path(ret, size, s->v.task.tgid, fd, s->v.name);
	if (!k->has_path)
		snprintf(ret, size, "%.*s", IPC_NAME_BYTES, s->v.name);
	return true;
}

uint32_t ipc_file_node(struct ipc_files *f, struct graph *g, const struct ipc_sample *s)
{
	char path[PATH_MAX];
	struct node *n;

	if (!kept_of(f, s)) {
		f->folded += s->v.calls;
		return object_file(g, 0, 0)->index;
	}
	n = object_file(g, s->key.id, s->key.space);
	SET(file, n, size_bytes, s->v.extra);
	/* A bare name is better than none, and no more. */
	if (ipc_name(f, s, path, sizeof(path)) && (path[0] == '/' || !HAS(file, n, path)))
		SET(file, n, path, graph_str(g, path));
	return n->index;
}
