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

struct ipc_files {
	struct idmap known;	/* by file and process: has an entity; the value says nothing */
	struct idmap per_process; /* by pid and start time: how many of those */
};

struct ipc_files *ipc_files_new(void)
{
	return mem_alloc(sizeof(struct ipc_files));
}

void ipc_files_free(struct ipc_files *f)
{
	if (!f)
		return;
	idmap_done(&f->known);
	idmap_done(&f->per_process);
	free(f);
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

int ipc_find_fd(uint32_t pid, uint64_t ino, uint32_t dev)
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

bool ipc_path(char *ret, size_t size, uint32_t pid, int fd, const char *name)
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

/* Whether the file has, or may have, an entity of its own for this process. */
static bool is_kept(struct ipc_files *f, const struct ipc_sample *s, uint64_t owner_start_ns, bool *ret_new)
{
	uint64_t owner = hash_bytes(&owner_start_ns, sizeof(owner_start_ns), s->v.task.tgid);
	uint64_t where = owner ^ (uint64_t)s->key.space << 32;
	uint32_t n;

	*ret_new = false;
	if (s->key.flags & IPC_FOLDED)
		return false;
	if (idmap_get(&f->known, s->key.id, where) != IDMAP_NONE)
		return true;
	n = idmap_get(&f->per_process, owner, 0);
	n = n == IDMAP_NONE ? 0 : n;
	if (n >= IPC_FILES_PER_PROCESS || f->known.n >= IPC_FILES)
		return false;
	idmap_put(&f->known, s->key.id, where, 0);
	idmap_put(&f->per_process, owner, 0, n + 1);
	*ret_new = true;
	return true;
}

uint32_t ipc_file_node(struct ipc_files *f, struct graph *g, const struct ipc_sample *s,
		       uint64_t owner_start_ns)
{
	char path[PATH_MAX];
	struct node *n;
	bool is_new;
	int fd;

	if (!is_kept(f, s, owner_start_ns, &is_new))
		return object_file(g, 0, 0)->index;
	n = object_file(g, s->key.id, s->key.space);
	SET(file, n, size_bytes, s->v.extra);
	if (!is_new)
		return n->index;
	/* io_uring names no descriptor. */
	fd = s->v.fd >= 0 ? s->v.fd : ipc_find_fd(s->v.task.tgid, s->key.id, s->key.space);
	if (ipc_path(path, sizeof(path), s->v.task.tgid, fd, s->v.name))
		SET(file, n, path, graph_str(g, path));
	else if (!HAS(file, n, path) && s->v.name[0])
		SET(file, n, path, graph_str(g, s->v.name));
	return n->index;
}
