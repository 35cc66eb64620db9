/* Processes: what there is, what begins and what ends. BPF where it works, else /proc. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "collect.h"
#include "proc_details.h"
#include "proc_probe.h"

#define END_UNKNOWN 1 /* ended between two looks: when exactly is not known */

static ssize_t read_small(char *buf, size_t size, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

static void read_cmdline(struct collect *c, uint32_t proc)
{
	char path[64], text[16384];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", c->procs.v.v[proc].pid);
	n = slow_read(&c->reader, path, 0, text, sizeof(text));
	if (n > 0)
		procs_set_cmdline(&c->procs, proc, text, (size_t)n);
	else if (n < 0 && n != -ENOENT && n != -ESRCH && n != -ETIMEDOUT)
		c->unreadable++;
}

/* It is there, whatever a look that it came in the middle of made of it. */
static void is_there(struct collect *c, struct proc *p)
{
	p->look = c->procs.looks;
	if (p->end_ns == END_UNKNOWN)
		p->end_ns = 0;
}

static int on_task(void *ctx, const struct proc_task *t)
{
	struct collect *c = ctx;
	uint32_t i;
	struct proc *p;
	bool first;

	if (t->task.tid != t->task.tgid)
		return 0;
	i = procs_get(&c->procs, t->task.tgid, t->task.leader_start_ns);
	p = &c->procs.v.v[i];
	/* Others may have met it before, who know less of it. */
	first = !p->has_ids;
	p->dirty |= p->ppid != t->ppid || memcmp(p->name, t->comm, sizeof(p->name)) ||
		    p->threads != t->nr_threads;
	is_there(c, p);
	p->ppid = t->ppid;
	memcpy(p->name, t->comm, sizeof(p->name));
	p->uid = t->uid;
	p->threads = t->nr_threads;
	p->kthread = t->flags & PROC_KTHREAD;
	p->rss_bytes = t->rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	p->has_ids = true;
	if (t->netns) {
		p->netns = t->netns;
		p->pidns = t->pidns;
		p->mntns = t->mntns;
		p->nspid = t->nstgid;
		p->has_namespaces = true;
	}
	if (!first)
		return 0;
	if (!p->cmdline)
		procs_found(&c->procs, i);
	if (!p->kthread && !p->cmdline)
		read_cmdline(c, i);
	return 0;
}

static int on_event(void *ctx, const struct proc_event *ev)
{
	struct collect *c = ctx;
	uint32_t i, parent;
	struct proc *p;

	if (ev->kind == PROC_FORK && ev->task.tid != ev->task.tgid)
		return 0;
	i = procs_get(&c->procs, ev->task.tgid, ev->task.leader_start_ns);
	p = &c->procs.v.v[i];
	p->dirty = true;
	memcpy(p->name, ev->comm, sizeof(p->name));
	p->kthread = ev->flags & PROC_KTHREAD;
	if (ev->kind == PROC_FORK) {
		procs_copied(&c->procs, i, ev->parent.tgid);
		parent = procs_live(&c->procs, ev->parent.tgid);
		p->ppid = ev->parent.tgid;
		if (parent != IDMAP_NONE) {
			const struct proc *from = &c->procs.v.v[parent];

			p->netns = from->netns;
			p->pidns = from->pidns;
			p->mntns = from->mntns;
			p->selected |= from->selected;
			/* Until it runs another program its command line is the parent's. */
			if (from->cmdline && !p->cmdline)
				p->cmdline = mem_strdup(from->cmdline);
		}
	} else if (ev->kind == PROC_EXEC) {
		p->has_details = false;
		procs_runs_program(&c->procs, i);
		procs_set_cmdline(&c->procs, i, ev->cmdline, ev->cmdline_bytes);
		if (ev->flags & PROC_CMDLINE_CUT)
			read_cmdline(c, i);
	} else if (ev->kind == PROC_EXIT) {
		p->end_ns = ev->time_ns;
		p->exit_status = ev->exit_code;
		p->has_exit = true;
	}
	return 0;
}

/* pid (comm) state ppid … starttime is field 22; comm may hold anything, so count from its end. */
static bool parse_stat(char *s, char name[16], uint32_t *ppid, uint64_t *start_ticks, uint32_t *threads)
{
	char *open = strchr(s, '('), *close = strrchr(s, ')');
	unsigned long long start;
	unsigned pp, nt;

	if (!open || !close || close < open)
		return false;
	*close = '\0';
	memset(name, 0, 16);
	memcpy(name, open + 1, strnlen(open + 1, 15));
	if (sscanf(close + 1, " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u %*d %llu",
		   &pp, &nt, &start) != 3)
		return false;
	*ppid = pp;
	*threads = nt;
	*start_ticks = start;
	return true;
}

static uint32_t ns_inode(uint32_t pid, const char *which)
{
	char path[64], link[64];
	unsigned inode = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/ns/%s", pid, which);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return 0;
	link[n] = '\0';
	return sscanf(link, "%*[a-z]:[%u]", &inode) == 1 ? inode : 0;
}

static void proc_of_pid(struct collect *c, uint32_t pid)
{
	uint64_t ticks;
	uint32_t ppid, threads, i;
	char path[64], text[1024], name[16];
	uint64_t before = c->procs.made;
	struct proc *p;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	n = read_small(text, sizeof(text), path);
	if (n <= 0 || !parse_stat(text, name, &ppid, &ticks, &threads)) {
		c->unreadable += n != -ENOENT && n != -ESRCH;
		return;
	}
	i = procs_get(&c->procs, pid, ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK)));
	p = &c->procs.v.v[i];
	p->dirty |= p->ppid != ppid || memcmp(p->name, name, 16);
	p->ppid = ppid;
	memcpy(p->name, name, 16);
	p->threads = threads;
	is_there(c, p);
	if (c->procs.made == before)
		return;
	procs_found(&c->procs, i);
	p->netns = ns_inode(pid, "net");
	p->pidns = ns_inode(pid, "pid");
	p->mntns = ns_inode(pid, "mnt");
	read_cmdline(c, i);
}

/* Those that a look at all did not find ended before it, between two looks or with a lost event. */
static void end_missing(struct collect *c)
{
	vec_for(&c->procs.v, p) {
		if (!p->pid || p->end_ns || p->look == c->procs.looks)
			continue;
		p->end_ns = END_UNKNOWN;
		p->dirty = true;
	}
}

static int scan_proc(struct collect *c, struct err *e)
{
	CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
	struct dirent *de;

	if (!d)
		return err_set(e, -errno, "open '/proc'");
	while ((de = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(de->d_name, &end, 10);

		if (end != de->d_name && !*end)
			proc_of_pid(c, (uint32_t)pid);
	}
	return 0;
}

static int look_at_all(struct collect *c, struct err *e)
{
	int rc = -ENOTSUP;

	c->procs.looks++;
	c->procs.learning = true;
	if (c->proc_probe)
		rc = proc_probe_tasks(c->proc_probe, on_task, c, e);
	if (rc == -ENOTSUP)
		rc = scan_proc(c, e);
	c->procs.learning = false;
	if (!rc)
		end_missing(c);
	return rc;
}

static uint64_t events_lost(struct collect *c)
{
	struct probe_health h;

	proc_probe_health(c->proc_probe, &h);
	return h.ring_full;
}

static int read_events(struct collect *c, struct err *e)
{
	int rc;

	c->procs.learning = true;
	rc = proc_probe_events(c->proc_probe, on_event, c, e);
	c->procs.learning = false;
	if (!rc)
		procs_spread_selection(&c->procs);
	return rc;
}

void collect_procs_learn(void *ctx)
{
	struct err e;

	/* What fails here fails again, and is told, at the next interval. */
	read_events(ctx, &e);
}

int collect_procs(struct collect *c, bool last, struct err *e)
{
	uint64_t lost = 0;
	int rc = -ENOTSUP;

	if (c->proc_probe) {
		rc = read_events(c, e);
		lost = events_lost(c);
	}
	/* A full look at the start, at the end, and when events were lost. */
	if (rc == -ENOTSUP || !c->ticks || last || lost != c->lost_events)
		rc = look_at_all(c, e);
	c->lost_events = lost;
	procs_spread_selection(&c->procs);
	return rc;
}

static int on_ring(void *ctx, const struct proc_file *f)
{
	struct collect *c = ctx;
	struct proc *p;

	if (f->kind != PROC_FILE_ANON || f->name_bytes < 10 || memcmp(f->name, "[io_uring]", 10))
		return 0;
	p = &c->procs.v.v[procs_get(&c->procs, f->tgid, f->leader_start_ns)];
	p->rings++;
	p->dirty = true;
	return 0;
}

/* A ring that came and went between is seen by what it moves. */
int collect_rings(struct collect *c, bool last, struct err *e)
{
	int rc;

	if (!c->proc_probe || (c->ticks && !last))
		return 0;
	vec_for(&c->procs.v, p)
		p->rings = 0;
	rc = proc_probe_files(c->proc_probe, PROC_FILES_OTHERS, on_ring, c, e);
	return rc == -ENOTSUP ? 0 : rc;
}

void collect_procs_details(struct collect *c)
{
	vec_for(&c->procs.v, p) {
		if (!p->pid || !p->selected || p->has_details)
			continue;
		proc_details_read(p, &c->reader, &c->unreadable);
		p->dirty |= p->has_details;
	}
}

void collect_procs_emit(struct collect *c, struct graph *g)
{
	for (uint32_t i = 0; i < c->procs.v.n; i++)
		if (c->procs.v.v[i].dirty && c->procs.v.v[i].selected)
			procs_node(&c->procs, g, i);
}
