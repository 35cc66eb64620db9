/* Chooses, loads and attaches the programs of a probe, going down rung by rung where one fails. */
#include "ladder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "bpf/health_abi.h"
#include "caps.h"
#include "cleanup.h"
#include "libbpf_log.h"
#include "mem.h"

void ladder_init(struct ladder *l, const char *probe, const struct hook_def *defs, size_t ndefs,
		 const struct probe_options *o)
{
	memset(l, 0, sizeof(*l));
	l->probe = probe;
	l->options = o;
	l->nhooks = ndefs;
	l->cgroup_fd = -1;
	for (size_t i = 0; i < ndefs; i++) {
		l->hooks[i].def = &defs[i];
		l->hooks[i].rung = -1;
	}
}

static bool has_target(const char *section)
{
	const char *slash = strchr(section, '/');
	const char *target = slash ? slash + 1 : "";

	if (!strncmp(section, "tp_btf/", 7))
		return libbpf_find_vmlinux_btf_id(target, BPF_TRACE_RAW_TP) > 0;
	if (!strncmp(section, "fexit/", 6) || !strncmp(section, "fentry/", 7))
		return libbpf_find_vmlinux_btf_id(target, BPF_TRACE_FEXIT) > 0;
	if (!strncmp(section, "iter/", 5))
		return libbpf_find_vmlinux_btf_id(target, BPF_TRACE_ITER) > 0;
	if (!strncmp(section, "kprobe/", 7) || !strncmp(section, "kretprobe/", 10))
		return libbpf_find_vmlinux_btf_id(target, BPF_TRACE_FENTRY) > 0;
	return true;
}

static const char *rung_cap(const char *rung)
{
	if (!strcmp(rung, "fexit") || !strcmp(rung, "fentry"))
		return "fentry";
	if (!strcmp(rung, "kprobe"))
		return "kprobe";
	return NULL;
}

static void hook_why(struct ladder_hook *h, const char *rung, const char *reason)
{
	size_t n = strlen(h->why);

	snprintf(h->why + n, sizeof(h->why) - n, "%s%s: %s", n ? "; " : "", rung, reason);
}

/* Whether rung @i of @h can be tried; collects its programs. */
static bool rung_take(struct ladder *l, struct ladder_hook *h, int i)
{
	const struct rung *r = &h->def->rungs[i];
	char full[64];
	const char *cap = rung_cap(r->name), *why = "";

	if (h->failed & 1u << i)
		return false;
	snprintf(full, sizeof(full), "%s.%s", h->def->name, r->name);
	if (probe_refused(l->options, l->probe, r->name) ||
	    probe_refused(l->options, l->probe, full)) {
		hook_why(h, r->name, "refused by option");
		h->failed |= 1u << i;
		return false;
	}
	if (cap && !cap_has(cap)) {
		cap_check_name(cap, &why);
		hook_why(h, r->name, why);
		h->failed |= 1u << i;
		return false;
	}
	h->nprogs = 0;
	for (int p = 0; p < LADDER_PROGS && r->progs[p]; p++) {
		struct bpf_program *prog = bpf_object__find_program_by_name(l->obj, r->progs[p]);

		if (prog && has_target(bpf_program__section_name(prog)))
			h->progs[h->nprogs++] = prog;
	}
	if (!h->nprogs) {
		hook_why(h, r->name, "not in this kernel");
		h->failed |= 1u << i;
	}
	return h->nprogs > 0;
}

static bool hook_choose(struct ladder *l, struct ladder_hook *h)
{
	char full[64];

	h->rung = -1;
	snprintf(full, sizeof(full), "%s", h->def->name);
	if (probe_refused(l->options, l->probe, full)) {
		snprintf(h->why, sizeof(h->why), "refused by option");
		return false;
	}
	for (int i = 0; i < LADDER_RUNGS && h->def->rungs[i].name; i++) {
		if (!rung_take(l, h, i))
			continue;
		h->rung = i;
		for (size_t p = 0; p < h->nprogs; p++)
			bpf_program__set_autoload(h->progs[p], true);
		return true;
	}
	return false;
}

static void rung_fail(struct ladder_hook *h, const char *what, int rc)
{
	char reason[96];

	snprintf(reason, sizeof(reason), "%s: %s", what, strerror(-rc));
	hook_why(h, h->def->rungs[h->rung].name, reason);
	h->failed |= 1u << h->rung;
}

/*
 * The hooks whose program did not load, as far as libbpf has said; else the first that can go down.
 */
static bool blame(struct ladder *l, int rc)
{
	const char *name = libbpf_log_failed_program();

	for (size_t i = 0; *name && i < l->nhooks; i++) {
		struct ladder_hook *h = &l->hooks[i];

		for (size_t p = 0; h->rung >= 0 && p < h->nprogs; p++) {
			if (strcmp(bpf_program__name(h->progs[p]), name))
				continue;
			rung_fail(h, "load", rc);
			return true;
		}
	}
	return false;
}

static void hook_detach(struct ladder_hook *h)
{
	for (size_t p = 0; p < LADDER_PROGS; p++) {
		bpf_link__destroy(h->links[p]);
		h->links[p] = NULL;
	}
}

static void attempt_drop(struct ladder *l)
{
	for (size_t i = 0; i < l->nhooks; i++)
		hook_detach(&l->hooks[i]);
	bpf_object__close(l->obj);
	l->obj = NULL;
}

static struct bpf_link *prog_attach(const struct ladder *l, const struct ladder_hook *h,
				    struct bpf_program *prog)
{
	union bpf_iter_link_info info = {0};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	if (bpf_program__type(prog) == BPF_PROG_TYPE_CGROUP_SOCK_ADDR)
		return bpf_program__attach_cgroup(prog, l->cgroup_fd);
	if (!h->def->iterated)
		return bpf_program__attach(prog);
	info.map.map_fd = (unsigned)ladder_map_fd(l, h->def->iterated);
	return bpf_program__attach_iter(prog, &opts);
}

static int hook_attach(struct ladder *l, struct ladder_hook *h)
{
	size_t attached = 0;
	int rc = 0;

	for (size_t p = 0; h->rung >= 0 && !h->def->is_called && p < h->nprogs; p++) {
		h->links[p] = prog_attach(l, h, h->progs[p]);
		if (h->links[p])
			attached++;
		else
			rc = -errno;
	}
	if (h->rung < 0 || h->def->is_called)
		return 0;
	if (!attached) {
		rung_fail(h, "attach", rc);
		return rc;
	}
	/* What only this program would have seen is missing: say so. */
	for (size_t p = 0; p < h->nprogs; p++)
		if (!h->links[p])
			hook_why(h, bpf_program__name(h->progs[p]), "does not attach");
	return 0;
}

static int missing_hook(const struct ladder *l, struct err *e)
{
	for (size_t i = 0; i < l->nhooks; i++) {
		const struct ladder_hook *h = &l->hooks[i];

		if (h->def->needed && h->rung < 0)
			return err_msg(e, -ENOTSUP, "probe '%s': no way to attach hook '%s' (%s)",
				       l->probe, h->def->name, h->why);
	}
	return 0;
}

static int load_error(const struct ladder *l, int rc, struct err *e)
{
	err_set(e, rc, "load probe '%s'", l->probe);
	if (rc == -EPERM || rc == -EACCES)
		return err_hint(e, "needs root, or CAP_BPF and CAP_PERFMON");
	return rc;
}

/* @return 1: loaded and attached, 0: a rung less, try again, < 0: no way */
static int attempt(struct ladder *l, const void *elf, size_t size, ladder_prepare prepare,
		   void *ctx, struct err *e)
{
	struct bpf_object_open_opts opts = {.sz = sizeof(opts), .object_name = l->probe};
	struct bpf_program *prog;
	int rc;

	l->obj = bpf_object__open_mem(elf, size, &opts);
	if (!l->obj)
		return err_set(e, -errno, "open BPF object '%s'", l->probe);
	bpf_object__for_each_program(prog, l->obj)
		bpf_program__set_autoload(prog, false);
	for (size_t i = 0; i < l->nhooks; i++)
		hook_choose(l, &l->hooks[i]);
	rc = missing_hook(l, e);
	if (!rc)
		rc = prepare(ctx, l->obj, l, e);
	if (rc)
		return rc;
	libbpf_log_reset();
	rc = bpf_object__load(l->obj);
	if (rc)
		return blame(l, rc) ? 0 : load_error(l, rc, e);
	for (size_t i = 0; i < l->nhooks; i++) {
		rc = hook_attach(l, &l->hooks[i]);
		if (rc)
			return 0;
	}
	return 1;
}

int ladder_load(struct ladder *l, const void *elf, size_t size, ladder_prepare prepare, void *ctx,
		struct err *e)
{
	int rc = 0;

	libbpf_log_init();
	if (probe_refused(l->options, l->probe, ""))
		return err_msg(e, -ENOTSUP, "probe '%s': refused by option", l->probe);
	/* Each failed attempt takes at least one rung away, so this ends. */
	for (int i = 0; i < PROBE_HOOKS * LADDER_RUNGS && !rc; i++) {
		rc = attempt(l, elf, size, prepare, ctx, e);
		if (rc <= 0)
			attempt_drop(l);
	}
	return rc > 0 ? 0 : rc;
}

void ladder_done(struct ladder *l)
{
	attempt_drop(l);
	if (l->cgroup_fd >= 0)
		close(l->cgroup_fd);
	l->cgroup_fd = -1;
}

const char *ladder_rung(const struct ladder *l, const char *name)
{
	for (size_t i = 0; i < l->nhooks; i++) {
		const struct ladder_hook *h = &l->hooks[i];

		if (!strcmp(h->def->name, name))
			return h->rung < 0 ? "none" : h->def->rungs[h->rung].name;
	}
	return "none";
}

int ladder_switch(struct ladder *l, const char *name, bool on, struct err *e)
{
	for (size_t i = 0; i < l->nhooks; i++) {
		struct ladder_hook *h = &l->hooks[i];
		int rc;

		if (strcmp(h->def->name, name))
			continue;
		hook_detach(h);
		rc = on ? hook_attach(l, h) : 0;
		if (rc)
			return err_set(e, rc, "attach hook '%s' of probe '%s' again", name,
				       l->probe);
	}
	return 0;
}

int ladder_prog_fd(const struct ladder *l, const char *name)
{
	for (size_t i = 0; i < l->nhooks; i++)
		if (!strcmp(l->hooks[i].def->name, name) && l->hooks[i].rung >= 0)
			return bpf_program__fd(l->hooks[i].progs[0]);
	return -ENOENT;
}

const struct bpf_link *ladder_link(const struct ladder *l, const char *name)
{
	for (size_t i = 0; i < l->nhooks; i++)
		if (!strcmp(l->hooks[i].def->name, name))
			return l->hooks[i].links[0];
	return NULL;
}

int ladder_map_fd(const struct ladder *l, const char *name)
{
	return bpf_object__find_map_fd_by_name(l->obj, name);
}

/* All global variables of an object fit in one page: they are few. */
int ladder_globals(const struct ladder *l, const char *map, void **ret, struct err *e)
{
	int fd = ladder_map_fd(l, map);
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
				MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return err_set(e, fd < 0 ? fd : -errno, "map '%s'", map);
	*ret = p;
	return 0;
}

void ladder_globals_done(void *globals)
{
	if (globals)
		munmap(globals, (size_t)sysconf(_SC_PAGESIZE));
}

static void hook_health(const struct ladder_hook *h, struct probe_hook *ret)
{
	*ret = (struct probe_hook){.name = h->def->name, .rung = "none"};
	snprintf(ret->why, sizeof(ret->why), "%s", h->why);
	if (h->rung < 0) {
		ret->missing = h->def->missing;
		return;
	}
	ret->attached = true;
	ret->rung = h->def->rungs[h->rung].name;
	for (size_t p = 0; p < h->nprogs; p++) {
		struct bpf_prog_info info = {};
		unsigned len = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(h->progs[p]), &info, &len))
			continue;
		ret->run_count += info.run_cnt;
		ret->skipped += info.recursion_misses;
		ret->run_ns += info.run_time_ns;
		ret->has_stats |= info.run_cnt > 0;
	}
}

/* Kernel memory of a map as the kernel itself accounts it, 0 when it does not say. */
static uint64_t map_bytes(int fd)
{
	char path[64], line[128];
	unsigned long long n = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "memlock: %llu", &n) == 1)
			break;
	}
	return n;
}

static uint64_t counter_sum(int fd, uint32_t key)
{
	int n = libbpf_num_possible_cpus();
	CLEANUP_FREE uint64_t *v = mem_alloc((n > 0 ? n : 1) * sizeof(*v));
	uint64_t sum = 0;

	if (n <= 0 || bpf_map_lookup_elem(fd, &key, v))
		return 0;
	for (int i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

void ladder_health(const struct ladder *l, struct probe_health *ret)
{
	int fd = ladder_map_fd(l, "health");
	struct bpf_map *map;

	memset(ret, 0, sizeof(*ret));
	ret->probe = l->probe;
	ret->nhooks = l->nhooks;
	for (size_t i = 0; i < l->nhooks; i++)
		hook_health(&l->hooks[i], &ret->hooks[i]);
	for (size_t i = 0; i < l->nhooks; i++)
		ret->skipped += ret->hooks[i].skipped;
	if (fd >= 0) {
		ret->emitted = counter_sum(fd, HEALTH_EMITTED);
		ret->ring_full = counter_sum(fd, HEALTH_RING_FULL);
		ret->map_full = counter_sum(fd, HEALTH_MAP_FULL);
		ret->read_fault = counter_sum(fd, HEALTH_READ_FAULT);
	}
	bpf_object__for_each_map(map, l->obj)
		if (bpf_map__fd(map) >= 0)
			ret->map_bytes += map_bytes(bpf_map__fd(map));
}
