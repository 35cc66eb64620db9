/* Lists threads and open files through BPF iterators and hands out process events. */
#include "proc_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cleanup.h"
#include "ladder.h"
#include "mem.h"
#include "proc.skel.h"

static const struct hook_def hooks[] = {
	{"fork", "processes that end between two readings", false,
	 {{"tp_btf", {"fork_btf"}}, {"raw_tp", {"fork_raw"}}}},
	{"exec", "programs that run between two readings", false,
	 {{"tp_btf", {"exec_btf"}}, {"raw_tp", {"exec_raw"}}}},
	{"exit", "exit codes", false, {{"tp_btf", {"exit_btf"}}, {"raw_tp", {"exit_raw"}}}},
	{"tasks", NULL, false, {{"iter", {"list_tasks"}}}},
	{"files", NULL, false, {{"iter", {"list_files"}}}},
	{"maps", NULL, false, {{"iter", {"list_maps"}}}},
};

struct proc_probe {
	struct ladder ladder;
	struct ring_buffer *ring;
	struct proc__bss *bss; /* shared with the programs */
	int (*event_cb)(void *ctx, const struct proc_event *ev); /* while events are fetched */
	void *event_ctx;
	int event_rc;
};

static bool has_hook(const struct proc_probe *p, const char *name)
{
	return strcmp(ladder_rung(&p->ladder, name), "none") != 0;
}

static bool has_events(const struct proc_probe *p)
{
	return has_hook(p, "fork") || has_hook(p, "exec") || has_hook(p, "exit");
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct proc_probe *p = ctx;

	if (size >= offsetof(struct proc_event, cmdline) && p->event_cb && !p->event_rc)
		p->event_rc = p->event_cb(p->event_ctx, data);
	return 0;
}

int proc_probe_events(struct proc_probe *p, int (*cb)(void *ctx, const struct proc_event *ev),
		      void *ctx, struct err *e)
{
	int rc;

	if (!has_events(p))
		return err_msg(e, -ENOTSUP, "no process events on this kernel");
	p->event_cb = cb;
	p->event_ctx = ctx;
	p->event_rc = 0;
	rc = ring_buffer__consume(p->ring);
	p->event_cb = NULL;
	if (rc < 0)
		return err_set(e, rc, "ring buffer of probe 'proc'");
	return p->event_rc;
}

int proc_probe_fd(const struct proc_probe *p)
{
	return has_events(p) ? ring_buffer__epoll_fd(p->ring) : -1;
}

struct tasks_ctx {
	int (*cb)(void *ctx, const struct proc_task *t);
	void *ctx;
};

static int on_task(void *ctx, const void *record)
{
	const struct tasks_ctx *c = ctx;

	return c->cb(c->ctx, record);
}

int proc_probe_tasks(struct proc_probe *p, int (*cb)(void *ctx, const struct proc_task *t),
		     void *ctx, struct err *e)
{
	struct tasks_ctx c = {cb, ctx};
	struct ladder_records r = {sizeof(struct proc_task), true, on_task, &c};

	return ladder_iterate(&p->ladder, "tasks", &r, e);
}

struct files_ctx {
	int (*cb)(void *ctx, const struct proc_file *f);
	void *ctx;
};

static int on_file(void *ctx, const void *record)
{
	const struct files_ctx *c = ctx;

	return c->cb(c->ctx, record);
}

int proc_probe_files(struct proc_probe *p, unsigned what,
		     int (*cb)(void *ctx, const struct proc_file *f), void *ctx, struct err *e)
{
	struct files_ctx c = {cb, ctx};
	struct ladder_records r = {offsetof(struct proc_file, sock), true, on_file, &c};

	__atomic_store_n(&p->bss->files_wanted, what, __ATOMIC_RELEASE);
	return ladder_iterate(&p->ladder, "files", &r, e);
}

struct maps_ctx {
	int (*cb)(void *ctx, const struct proc_map *m);
	void *ctx;
};

static int on_map(void *ctx, const void *record)
{
	const struct maps_ctx *c = ctx;

	return c->cb(c->ctx, record);
}

int proc_probe_maps(struct proc_probe *p, int (*cb)(void *ctx, const struct proc_map *m), void *ctx,
		    struct err *e)
{
	struct maps_ctx c = {cb, ctx};
	struct ladder_records r = {sizeof(struct proc_map), true, on_map, &c};

	return ladder_iterate(&p->ladder, "maps", &r, e);
}

static int prepare(void *ctx, struct bpf_object *obj, const struct ladder *l, struct err *e)
{
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, "events"), 1 << 21);
	return 0;
}

int proc_probe_open(struct proc_probe **ret, const struct probe_options *o, struct err *e)
{
	struct proc_probe *p = mem_alloc(sizeof(*p));
	const void *elf;
	size_t size;
	int rc;

	elf = proc__elf_bytes(&size);
	ladder_init(&p->ladder, "proc", hooks, sizeof(hooks) / sizeof(*hooks), o);
	rc = ladder_load(&p->ladder, elf, size, prepare, p, e);
	if (!rc && !has_events(p) && !has_hook(p, "tasks") && !has_hook(p, "files"))
		rc = err_msg(e, -ENOTSUP, "probe 'proc': neither events nor iterators work");
	if (!rc)
		rc = ladder_globals(&p->ladder, "proc.bss", (void **)&p->bss, e);
	rc = rc ?: ladder_ring(&p->ladder, "events", on_event, p, &p->ring, e);
	if (rc) {
		proc_probe_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void proc_probe_close(struct proc_probe *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	ladder_globals_done(p->bss);
	ladder_done(&p->ladder);
	free(p);
}

void proc_probe_health(struct proc_probe *p, struct probe_health *ret)
{
	ladder_health(&p->ladder, ret);
}

int proc_probe_maps_fd(const struct proc_probe *p)
{
	const struct bpf_link *link = ladder_link(&p->ladder, "maps");

	return link ? bpf_link__fd(link) : -1;
}
