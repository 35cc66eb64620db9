/* What the kernel tells of queues, semaphores and file systems when it is asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "cleanup.h"
#include "collect_ipc.h"
#include "shm_kind.h"

/* A device whose mount nobody has shown yet is looked for again, by another process. */
#define MOUNT_TRIES 3

struct fs {
	uint32_t dev;
	unsigned tries;
	char type[32]; /* empty: not known */
};

struct sysv {
	uint64_t id;
	struct ipc_sysv facts;
};

/* One file of /proc/sysvipc, read at most once an interval. */
struct sysv_table {
	VEC(struct sysv) v;
	bool is_read;
};

struct ipc_facts {
	VEC(struct fs) fs;
	struct sysv_table queues, sems;
	uint64_t ipcns; /* the one that /proc/sysvipc tells of: our own */
	struct shm_mounts mounts;
};

struct ipc_facts *ipc_facts_new(void)
{
	struct ipc_facts *f = mem_alloc(sizeof(*f));
	struct stat st;

	if (!stat("/proc/self/ns/ipc", &st))
		f->ipcns = st.st_ino;
	shm_mounts_find(&f->mounts);
	return f;
}

void ipc_facts_free(struct ipc_facts *f)
{
	if (!f)
		return;
	vec_done(&f->fs);
	vec_done(&f->queues.v);
	vec_done(&f->sems.v);
	free(f);
}

void ipc_facts_outdated(struct ipc_facts *f)
{
	f->queues.is_read = f->sems.is_read = false;
}

/* Both tables start with key, identifier, permissions, and how much there is. */
static void read_table(struct sysv_table *t, const char *path)
{
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	char line[512];

	vec_clear(&t->v);
	t->is_read = true;
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long amount;
		struct sysv s = {0};
		long long key, id;

		/* Not the titles. */
		if (sscanf(line, "%lld %lld %*o %llu", &key, &id, &amount) != 3)
			continue;
		s.id = (uint64_t)id;
		s.facts = (struct ipc_sysv){.key = (int32_t)key, .amount = amount};
		vec_push(&t->v, s);
	}
}

const struct ipc_sysv *ipc_facts_sysv(struct ipc_facts *f, bool sem, uint64_t id, uint32_t ipcns)
{
	struct sysv_table *t = sem ? &f->sems : &f->queues;

	if (ipcns != f->ipcns)
		return NULL;
	if (!t->is_read)
		read_table(t, sem ? "/proc/sysvipc/sem" : "/proc/sysvipc/msg");
	vec_for(&t->v, s)
		if (s->id == id)
			return &s->facts;
	return NULL;
}

static struct fs *fs_of(struct ipc_facts *f, uint32_t dev)
{
	struct fs *fs;

	vec_for(&f->fs, known)
		if (known->dev == dev)
			return known;
	fs = vec_add(&f->fs);
	fs->dev = dev;
	return fs;
}

const char *ipc_facts_fs_type(struct ipc_facts *f, uint32_t dev, uint32_t pid)
{
	struct fs *fs = fs_of(f, dev);
	char source[sizeof(fs->type)];

	if (!fs->type[0] && dev == f->mounts.shmem) {
		/* Of the kernel's own mount, which no process has. */
		snprintf(fs->type, sizeof(fs->type), "tmpfs");
	} else if (!fs->type[0] && fs->tries < MOUNT_TRIES) {
		fs->tries++;
		shm_find_mount(pid, dev, fs->type, source, sizeof(source));
	}
	return fs->type[0] ? fs->type : NULL;
}
