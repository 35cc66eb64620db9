/* Has system calls watched while there is something to see, and only then. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "collect_ipc.h"
#include "ipc_probe.h"
#include "proc_probe.h"

/* Looks without anything to see, after which calls are no longer watched. */
#define IDLE_LOOKS 3
/* While calls are watched there is no hurry to find out that they need not be. */
#define LOOK_EVERY_NS (10 * NS_PER_SEC)
/* A look may not take more of the time than one part in this many. */
#define LOOK_SHARE 200
/* Queues and semaphores of System V that nobody used for so long do not count. */
#define SYSV_IDLE_S 60

struct ipc_watcher {
	unsigned watched; /* enum ipc_watch */
	unsigned idle_looks;
	uint64_t next_look_ns; /* since boot */
	uint64_t ticks, watched_ticks;
};

struct look {
	struct collect *c;
	unsigned found; /* enum ipc_watch */
	unsigned enough;
};

struct ipc_watcher *ipc_watcher_new(void)
{
	return mem_alloc(sizeof(struct ipc_watcher));
}

void ipc_watcher_free(struct ipc_watcher *w)
{
	free(w);
}

static unsigned needs(const struct proc_file *f)
{
	switch (f->kind) {
	case PROC_FILE_REGULAR:
	case PROC_FILE_BLOCK:
	case PROC_FILE_FIFO:
	case PROC_FILE_EVENTFD:
	case PROC_FILE_MEMFD:
		return IPC_WATCH_CALLS;
	case PROC_FILE_ANON:
		return strncmp(f->name, "[io_uring]", 10) ? 0 : IPC_WATCH_CALLS | IPC_WATCH_URING;
	default:
		return 0;
	}
}

/* @return 1: there is nothing more to find out */
static int on_file(void *ctx, const struct proc_file *f)
{
	struct look *l = ctx;
	unsigned need = needs(f);
	uint32_t proc;

	if (!(need & ~l->found))
		return 0;
	proc = procs_get(&l->c->procs, f->tgid, f->leader_start_ns);
	if (l->c->procs.v.v[proc].selected)
		l->found |= need;
	return (l->found & l->enough) == l->enough;
}

/* Whether one of the last @times columns, in seconds since 1970, is of late. */
static bool is_recent(char *line, int times, time_t now)
{
	for (int i = 0; i < times; i++) {
		char *last = strrchr(line, ' ');

		if (!last)
			return false;
		if (strtoll(last, NULL, 10) >= now - SYSV_IDLE_S)
			return true;
		*last = '\0';
		while (last > line && last[-1] == ' ')
			*--last = '\0';
	}
	return false;
}

/* Queues and semaphores outlive those who forgot them. The file starts with a line of titles. */
static bool has_sysv(const char *path, int times)
{
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	time_t now = time(NULL);
	bool recent = false;
	char line[512];

	if (!f || !fgets(line, sizeof(line), f))
		return false;
	while (!recent && fgets(line, sizeof(line), f))
		recent = is_recent(line, times, now);
	return recent;
}

static int look(struct ipc_watcher *w, struct collect *c, unsigned *ret_found, struct err *e)
{
	struct look l = {.c = c, .enough = IPC_WATCH_CALLS | IPC_WATCH_URING};
	uint64_t start_ns = clock_boot_ns(), took_ns;
	int rc = -ENOTSUP;

	if (c->proc_probe)
		rc = proc_probe_files(c->proc_probe, PROC_FILES_OTHERS, on_file, &l, e);
	/* Where open files cannot be listed, everything has to be expected. */
	if (rc == -ENOTSUP)
		l.found = l.enough;
	else if (rc < 0)
		return rc;
	/* Sent, received, changed; operated on, changed. */
	if (has_sysv("/proc/sysvipc/msg", 3) || has_sysv("/proc/sysvipc/sem", 2))
		l.found |= IPC_WATCH_CALLS;
	took_ns = clock_boot_ns() - start_ns;
	w->next_look_ns = start_ns + took_ns * LOOK_SHARE;
	if (l.found == l.enough && w->next_look_ns < start_ns + LOOK_EVERY_NS)
		w->next_look_ns = start_ns + LOOK_EVERY_NS;
	*ret_found = l.found;
	return 0;
}

static int watch(struct ipc_watcher *w, struct collect *c, unsigned want, struct err *e)
{
	int rc = want == w->watched ? 0 : ipc_probe_watch(c->ipc_probe, want, e);

	if (!rc)
		w->watched = want;
	return rc;
}

int ipc_watcher_tick(struct ipc_watcher *w, struct collect *c, struct err *e)
{
	unsigned found;
	int rc;

	/* From the start: what a command does in its first moments cannot wait for a look. */
	if (!w->ticks++) {
		w->watched_ticks++;
		return watch(w, c, IPC_WATCH_CALLS | IPC_WATCH_URING, e);
	}
	w->watched_ticks += w->watched & IPC_WATCH_CALLS ? 1 : 0;
	if (clock_boot_ns() < w->next_look_ns)
		return 0;
	rc = look(w, c, &found, e);
	if (rc)
		return rc;
	if (found & w->watched & IPC_WATCH_CALLS)
		w->idle_looks = 0;
	else if (w->watched && ++w->idle_looks < IDLE_LOOKS)
		found |= w->watched;
	else
		w->idle_looks = 0;
	return watch(w, c, found, e);
}

void ipc_watcher_describe(const struct ipc_watcher *w, struct graph *g)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "system calls were watched in %llu of %llu intervals: only while there is a pipe, a queue, "
		 "a file or the like open; what was made and used between two looks is not seen",
		 (unsigned long long)w->watched_ticks, (unsigned long long)w->ticks);
	graph_add_status(g, "collector ipc", w->watched_ticks == w->ticks ? "ok" : "reduced", NULL,
			 w->watched_ticks == w->ticks ? NULL : text);
}
