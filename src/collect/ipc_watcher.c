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
	uint64_t next_look_ns; /* since boot; likewise: */
	uint64_t start_ns;
	uint64_t off_ns;       /* not watched since; 0: watched */
	uint64_t last_look_ns; /* at which there was nothing to see, while off */
	uint64_t unwatched_ns; /* in all, but for the time since off_ns */
	/* longest time that something may have been open before it was watched */
	uint64_t late_ns;
	unsigned late;	       /* how often */
};

struct look {
	struct collect *c;
	bool found;
};

struct ipc_watcher *ipc_watcher_new(void)
{
	return mem_alloc(sizeof(struct ipc_watcher));
}

void ipc_watcher_free(struct ipc_watcher *w)
{
	free(w);
}

static bool needs_calls(const struct proc_file *f)
{
	switch (f->kind) {
	case PROC_FILE_REGULAR:
	case PROC_FILE_BLOCK:
	case PROC_FILE_FIFO:
	case PROC_FILE_EVENTFD:
	case PROC_FILE_MEMFD:
		return true;
	case PROC_FILE_ANON:
		return !strncmp(f->name, "[io_uring]", 10);
	default:
		return false;
	}
}

/* @return 1: there is nothing more to find out */
static int on_file(void *ctx, const struct proc_file *f)
{
	struct look *l = ctx;
	uint32_t proc;

	if (!needs_calls(f))
		return 0;
	proc = procs_get(&l->c->procs, f->tgid, f->leader_start_ns);
	l->found = l->c->procs.v.v[proc].selected;
	return l->found;
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

static int look(struct ipc_watcher *w, struct collect *c, bool *ret_found, struct err *e)
{
	struct look l = {.c = c};
	uint64_t start_ns = clock_boot_ns(), took_ns;
	int rc = -ENOTSUP;

	if (c->proc_probe)
		rc = proc_probe_files(c->proc_probe, PROC_FILES_OTHERS, on_file, &l, e);
	/* Where open files cannot be listed, everything has to be expected. */
	if (rc == -ENOTSUP)
		l.found = true;
	else if (rc < 0)
		return rc;
	/* Sent, received, changed; operated on, changed. */
	if (has_sysv("/proc/sysvipc/msg", 3) || has_sysv("/proc/sysvipc/sem", 2))
		l.found = true;
	took_ns = clock_boot_ns() - start_ns;
	w->next_look_ns = start_ns + took_ns * LOOK_SHARE;
	if (l.found && w->next_look_ns < start_ns + LOOK_EVERY_NS)
		w->next_look_ns = start_ns + LOOK_EVERY_NS;
	*ret_found = l.found;
	return 0;
}

/*
 * The hook of io_uring runs only where io_uring is used, so it stays: what is made between two
 * looks would be missed for nothing.
 */
static int watch(struct ipc_watcher *w, struct collect *c, bool calls, struct err *e)
{
	unsigned want = IPC_WATCH_URING | (calls ? IPC_WATCH_CALLS : 0);
	int rc = want == w->watched ? 0 : ipc_probe_watch(c->ipc_probe, want, e);

	if (!rc)
		w->watched = want;
	return rc;
}

/* How long calls were not watched, and how late they may have been watched again. */
static void account(struct ipc_watcher *w)
{
	uint64_t now = clock_boot_ns();

	if (!(w->watched & IPC_WATCH_CALLS)) {
		w->off_ns = w->off_ns ?: now;
		w->last_look_ns = now;
	} else if (w->off_ns) {
		w->late++;
		if (now - w->last_look_ns > w->late_ns)
			w->late_ns = now - w->last_look_ns;
		w->unwatched_ns += now - w->off_ns;
		w->off_ns = 0;
	}
}

int ipc_watcher_tick(struct ipc_watcher *w, struct collect *c, struct err *e)
{
	bool found;
	int rc;

	/* From the start: what a command does in its first moments cannot wait for a look. */
	if (!w->start_ns) {
		w->start_ns = clock_boot_ns();
		return watch(w, c, true, e);
	}
	if (clock_boot_ns() < w->next_look_ns)
		return 0;
	rc = look(w, c, &found, e);
	if (rc)
		return rc;
	if (found || !(w->watched & IPC_WATCH_CALLS))
		w->idle_looks = 0;
	else if (++w->idle_looks < IDLE_LOOKS)
		found = true;
	else
		w->idle_looks = 0;
	rc = watch(w, c, found, e);
	account(w);
	return rc;
}

void ipc_watcher_describe(const struct ipc_watcher *w, struct graph *g)
{
	uint64_t now = clock_boot_ns();
	uint64_t unwatched_ns = w->unwatched_ns + (w->off_ns ? now - w->off_ns : 0);
	char text[320];
	int n;

	if (!unwatched_ns) {
		graph_add_status(g, "collector ipc", "ok", NULL, NULL);
		return;
	}
	n = snprintf(text, sizeof(text),
		     "system calls were not watched for %.1f of %.1f s, while no look found a "
		     "pipe, a queue, a "
		     "file or the like open; what was made and used between two looks is not seen",
		     (double)unwatched_ns / 1e9, (double)(now - w->start_ns) / 1e9);
	if (w->late)
		snprintf(text + n, sizeof(text) - (size_t)n,
			 "; they were watched again %u times, up to %.1f s late: what went through "
			 "what was "
			 "opened meanwhile is not seen before that",
			 w->late, (double)w->late_ns / 1e9);
	graph_add_status(g, "collector ipc", "reduced", NULL, text);
}
