/* Reads what moved through pipes, queues, files and memory copies, interval by interval. */
#include "ipc_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "caps.h"
#include "cleanup.h"
#include "clock.h"
#include "health_abi.h"
#include "ipc.skel.h"
#include "ipc_calls.h"
#include "ladder.h"
#include "mem.h"

static const struct hook_def hooks[] = {
	{"exit", "what moves through pipes, queues, eventfds, files and copies of memory", true,
	 {{"tp_btf", {"exit_btf"}}, {"raw_tp", {"exit_raw"}}}},
	{"uring", "what io_uring moves through pipes, eventfds and files", false,
	 {{"tp_btf", {"uring_btf"}}, {"raw_tp", {"uring_raw"}}}},
	{"turns", NULL, false, {{"iter", {"read_turns"}}}},
	{"end", NULL, false, {{"tp_btf", {"end_btf"}}}},
};

struct ipc_probe {
	struct ladder ladder;
	struct swap_map moved, files;
	struct ipc__bss *bss; /* shared with the programs */
	struct ring_buffer *ring, *ended;
	enum ipc_uring_form uring_form;
	int (*passed_cb)(void *ctx, const struct ipc_passed *ev); /* while events are fetched */
	void *passed_ctx;
	int passed_rc;
	uint32_t max_moved, max_files;
	bool fixed_size; /* they were asked for */
	unsigned wanted, watched; /* enum ipc_watch */
	bool held;
	bool can_turn;
	uint32_t periods;
	struct ipc_cost cost;
	int (*unwatched_cb)(void *ctx, const struct ipc_unwatched *u); /* while they are read */
	void *unwatched_ctx;
	int unwatched_rc;
};

struct delivery {
	int (*cb)(void *ctx, const struct ipc_sample *s);
	void *ctx;
};

static int on_moved(void *ctx, const void *key, const void *value)
{
	const struct delivery *d = ctx;
	struct ipc_sample s = {0};

	memcpy(&s.key, key, sizeof(s.key));
	memcpy(&s.v, value, sizeof(s.v));
	return d->cb(d->ctx, &s);
}

int ipc_probe_read(struct ipc_probe *p, int (*cb)(void *ctx, const struct ipc_sample *s), void *ctx,
		   struct err *e)
{
	struct delivery d = {cb, ctx};
	int rc;

	p->bss->others = 0;
	/* The files first: what did not fit there goes to the other map. */
	rc = swap_map_drain(&p->files, on_moved, &d, e);
	return rc ?: swap_map_drain(&p->moved, on_moved, &d, e);
}

static int on_passed(void *ctx, void *data, size_t size)
{
	struct ipc_probe *p = ctx;

	if (size >= sizeof(struct ipc_passed) && p->passed_cb && !p->passed_rc)
		p->passed_rc = p->passed_cb(p->passed_ctx, data);
	return 0;
}

int ipc_probe_passed(struct ipc_probe *p, int (*cb)(void *ctx, const struct ipc_passed *ev),
		     void *ctx, struct err *e)
{
	int rc;

	p->passed_cb = cb;
	p->passed_ctx = ctx;
	p->passed_rc = 0;
	rc = ring_buffer__consume(p->ring);
	p->passed_cb = NULL;
	if (rc < 0)
		return err_set(e, rc, "ring buffer of probe 'ipc'");
	return p->passed_rc;
}

int ipc_probe_record(struct ipc_probe *p, uint32_t tgid, bool on, struct err *e)
{
	int fd = ladder_map_fd(&p->ladder, "recorded"), rc;
	uint8_t one = 1;

	p->bss->others_room = p->max_files / 2;
	rc = on ? bpf_map_update_elem(fd, &tgid, &one, BPF_ANY) : bpf_map_delete_elem(fd, &tgid);
	/* It shares the room of the others then. */
	if (!rc || rc == -E2BIG || rc == -ENOENT)
		return 0;
	return err_set(e, rc, "set of processes of probe 'ipc'");
}

uint32_t ipc_eventfd_generation(const struct ipc_probe *p, uint32_t id)
{
	uint32_t generation = 0;

	if (bpf_map_lookup_elem(ladder_map_fd(&p->ladder, "eventfds"), &id, &generation))
		return 0;
	return generation;
}

static int watch(struct ipc_probe *p, struct err *e)
{
	unsigned want = p->held ? p->wanted & ~(unsigned)IPC_WATCH_CALLS : p->wanted;
	unsigned change = want ^ p->watched;
	int rc = 0;

	if (change & IPC_WATCH_CALLS)
		rc = ladder_switch(&p->ladder, "exit", want & IPC_WATCH_CALLS, e);
	if (!rc && change & IPC_WATCH_URING)
		rc = ladder_switch(&p->ladder, "uring", want & IPC_WATCH_URING, e);
	if (!rc)
		p->watched = want;
	return rc;
}

int ipc_probe_watch(struct ipc_probe *p, unsigned want, struct err *e)
{
	p->wanted = want;
	return watch(p, e);
}

int ipc_probe_hold(struct ipc_probe *p, bool hold, struct err *e)
{
	p->held = hold;
	return watch(p, e);
}

bool ipc_probe_watches_calls(const struct ipc_probe *p)
{
	return p->watched & IPC_WATCH_CALLS;
}

bool ipc_probe_can_turn(const struct ipc_probe *p)
{
	return p->can_turn;
}

struct ipc_cost ipc_probe_cost(const struct ipc_probe *p)
{
	return p->cost;
}

static int on_unwatched(void *ctx, const void *record)
{
	struct ipc_probe *p = ctx;

	if (p->unwatched_cb && !p->unwatched_rc)
		p->unwatched_rc = p->unwatched_cb(p->unwatched_ctx, record);
	return p->unwatched_rc;
}

static int on_ended(void *ctx, void *data, size_t size)
{
	if (size >= sizeof(struct ipc_unwatched))
		on_unwatched(ctx, data);
	return 0;
}

int ipc_probe_unwatched(struct ipc_probe *p, int (*cb)(void *ctx, const struct ipc_unwatched *u), void *ctx,
			struct err *e)
{
	struct ladder_records r = {sizeof(struct ipc_unwatched), false, on_unwatched, p};
	int rc;

	p->unwatched_cb = cb;
	p->unwatched_ctx = ctx;
	p->unwatched_rc = 0;
	rc = ladder_iterate(&p->ladder, "turns", &r, e);
	if (!rc) {
		rc = ring_buffer__consume(p->ended);
		rc = rc < 0 ? err_set(e, rc, "ring buffer of probe 'ipc'") : p->unwatched_rc;
	}
	p->unwatched_cb = NULL;
	return rc;
}

int ipc_probe_turns(struct ipc_probe *p, bool on, struct err *e)
{
	int rc;

	if (!on) {
		__atomic_store_n(&p->bss->period, 0, __ATOMIC_RELEASE);
		return ladder_switch(&p->ladder, "end", false, e);
	}
	p->bss->period_since_ns = clock_boot_ns();
	__atomic_store_n(&p->bss->period, ++p->periods, __ATOMIC_RELEASE);
	rc = ladder_switch(&p->ladder, "end", true, e);
	/* From here on each thread has a beginning. */
	return rc ?: ipc_probe_unwatched(p, NULL, NULL, e);
}

uint32_t ipc_probe_cpus(void)
{
	return (uint32_t)libbpf_num_possible_cpus();
}

void ipc_probe_runs(const struct ipc_probe *p, struct ipc_runs *ret, size_t step, uint32_t n)
{
	uint32_t ncpu = ipc_probe_cpus(), zero = 0, counted = HEALTH_EMITTED;
	CLEANUP_FREE uint64_t *calls = mem_alloc(ncpu * sizeof(*calls));
	CLEANUP_FREE uint64_t *moved = mem_alloc(ncpu * sizeof(*moved));

	bpf_map_lookup_elem(ladder_map_fd(&p->ladder, "runs"), &zero, calls);
	bpf_map_lookup_elem(ladder_map_fd(&p->ladder, "health"), &counted, moved);
	for (uint32_t i = 0; i < n && i < ncpu; i++) {
		struct ipc_runs *r = (void *)((char *)ret + i * step);

		r->calls = calls[i];
		r->counted = moved[i];
	}
}

void ipc_probe_rest(struct ipc_probe *p, struct ipc_rest ret[IPC_KINDS][IPC_DIRS])
{
	int fd = ladder_map_fd(&p->ladder, "rests");

	memset(ret, 0, sizeof(struct ipc_rest[IPC_KINDS][IPC_DIRS]));
	for (uint32_t i = 0; i < IPC_KINDS * IPC_DIRS; i++)
		bpf_map_lookup_elem(fd, &i, &ret[i / IPC_DIRS][i % IPC_DIRS]);
}

static void size_map(struct bpf_object *obj, const char *name, uint32_t n)
{
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, name), n);
}

/* The tracepoint's arguments have changed twice: told apart by their number and kind. */
static enum ipc_uring_form uring_form(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	enum ipc_uring_form form = URING_UNKNOWN;
	const struct btf_type *t;
	int id;

	if (!btf)
		return form;
	id = btf__find_by_name_kind(btf, "btf_trace_io_uring_complete", BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	/* The first parameter is the tracepoint's own. */
	if (t && btf_is_func_proto(t) && btf_vlen(t) >= 4) {
		const struct btf_param *param = btf_params(t);
		bool request = btf_is_ptr(btf__type_by_id(btf, param[2].type));
		bool cqe = btf_is_ptr(btf__type_by_id(btf, param[3].type));

		form = !request ? URING_UNKNOWN : cqe ? URING_CQE : URING_RES;
	}
	btf__free(btf);
	return form;
}

/*
 * Since v6.1 (fac8bd4ca6b9) elements can be made when needed, in any context: only then is room
 * cheap.
 */
static void make_sparse(struct ipc_probe *p, struct bpf_object *obj)
{
	static const char *const outer[] = {"moved", "files"};
	static const char *const inner[] = {"moved_0", "moved_1", "files_0", "files_1"};

	for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]); i++)
		bpf_map__set_map_flags(
			bpf_map__inner_map(bpf_object__find_map_by_name(obj, outer[i])),
			BPF_F_NO_PREALLOC);
	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
		bpf_map__set_map_flags(bpf_object__find_map_by_name(obj, inner[i]),
				       BPF_F_NO_PREALLOC);
	if (p->fixed_size)
		return;
	p->max_moved = 16384;
	p->max_files = 16384;
}

static int prepare(void *ctx, struct bpf_object *obj, const struct ladder *l, struct err *e)
{
	struct ipc_probe *p = ctx;
	struct bpf_map *rodata = bpf_object__find_map_by_name(obj, "ipc.rodata");
	struct ipc__rodata *r = (void *)bpf_map__initial_value(rodata, &(size_t){0});

	_Static_assert(sizeof(r->call_actions) == IPC_CALLS * sizeof(uint16_t),
		       "table of system calls");
	ipc_calls_fill((uint16_t *)r->call_actions);
	r->uring_form = p->uring_form = uring_form();
	size_map(obj, "events", 1 << 17);
	size_map(obj, "recorded", 4096);
	size_map(obj, "ended", 1 << 16);
	p->can_turn = !strcmp(ladder_rung(l, "exit"), "tp_btf") && !strcmp(ladder_rung(l, "end"), "tp_btf") &&
		      !strcmp(ladder_rung(l, "turns"), "iter") && cap_has("task_storage") &&
		      cap_has("io_accounting") &&
		      !probe_refused(l->options, l->probe, "turns");
	r->can_turn = p->can_turn;
	if (!p->can_turn)
		bpf_map__set_autocreate(bpf_object__find_map_by_name(obj, "turn_states"), false);
	if (libbpf_find_vmlinux_btf_id("bpf_mem_alloc_init", BPF_TRACE_FENTRY) > 0)
		make_sparse(p, obj);
	size_map(obj, "moved_0", p->max_moved);
	size_map(obj, "moved_1", p->max_moved);
	size_map(obj, "files_0", p->max_files);
	size_map(obj, "files_1", p->max_files);
	/* Every CPU keeps up to 128 elements of an LRU map for itself. */
	size_map(obj, "eventfds", 512 + 128 * (uint32_t)libbpf_num_possible_cpus());
	return 0;
}

#define BATCHES 8 /* the quickest one counts: nothing came in between */
#define CALLS	400

static uint64_t batch_ns(const int fds[2])
{
	uint64_t start = clock_mono_ns();
	char c = 0;

	for (int i = 0; i < CALLS; i++) {
		if (!fds)
			syscall(SYS_getppid);
		else if (i % 2 ? read(fds[0], &c, 1) != 1 : write(fds[1], &c, 1) != 1)
			break;
	}
	return clock_mono_ns() - start;
}

/* ns for a call that is of no interest, and for one that is counted */
static void quickest(const int fds[2], double ret[2])
{
	for (int kind = 0; kind < 2; kind++) {
		uint64_t best = UINT64_MAX;

		for (int i = 0; i < BATCHES; i++) {
			uint64_t ns = batch_ns(kind ? fds : NULL);

			best = ns < best ? ns : best;
		}
		ret[kind] = (double)best / CALLS;
	}
}

static double between(double v, double least, double most)
{
	return v < least ? least : v > most ? most : v;
}

static int nothing(void *ctx, const struct ipc_sample *s)
{
	(void)ctx;
	(void)s;
	return 0;
}

/* By own calls, with the hook and without; what it counted of them is thrown away. */
static int measure_cost(struct ipc_probe *p, struct err *e)
{
	double with[2], without[2];
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, "pipe");
	quickest(fds, with);
	rc = ipc_probe_watch(p, 0, e);
	if (!rc)
		quickest(fds, without);
	close(fds[0]);
	close(fds[1]);
	if (rc)
		return rc;
	p->cost.call_ns = between(with[0] - without[0], 20, 2000);
	p->cost.counted_ns = between(with[1] - without[1] - p->cost.call_ns, 20, 4000);
	return ipc_probe_read(p, nothing, NULL, e);
}

int ipc_probe_open(struct ipc_probe **ret, const struct probe_options *o, struct err *e)
{
	struct ipc_probe *p = mem_alloc(sizeof(*p));
	const void *elf;
	size_t size;
	int rc;

	p->fixed_size = o && o->max_flows;
	p->max_moved = o && o->max_flows ? o->max_flows : 3072;
	p->max_files = o && o->max_flows ? o->max_flows : 1536;
	elf = ipc__elf_bytes(&size);
	ladder_init(&p->ladder, "ipc", hooks, sizeof(hooks) / sizeof(*hooks), o);
	rc = ladder_load(&p->ladder, elf, size, prepare, p, e);
	if (!rc)
		rc = ladder_globals(&p->ladder, "ipc.bss", (void **)&p->bss, e);
	rc = rc ?: swap_map_init(&p->moved, &p->ladder, "moved", "moved_0", "moved_1", e);
	rc = rc ?: swap_map_init(&p->files, &p->ladder, "files", "files_0", "files_1", e);
	if (!rc) {
		p->ring = ring_buffer__new(ladder_map_fd(&p->ladder, "events"), on_passed, p, NULL);
		if (!p->ring)
			rc = err_set(e, -errno, "ring buffer of probe 'ipc'");
	}
	rc = rc ?: ladder_ring(&p->ladder, "ended", on_ended, p, &p->ended, e);
	/* Loading attaches, which shows that it can be done. */
	p->watched = IPC_WATCH_CALLS | IPC_WATCH_URING;
	rc = rc ?: ladder_switch(&p->ladder, "end", false, e);
	rc = rc ?: measure_cost(p, e);
	if (rc) {
		ipc_probe_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void ipc_probe_close(struct ipc_probe *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	ring_buffer__free(p->ended);
	swap_map_done(&p->moved);
	swap_map_done(&p->files);
	ladder_globals_done(p->bss);
	ladder_done(&p->ladder);
	free(p);
}

static void note(struct probe_health *h, const char *text)
{
	if (h->nnotes < PROBE_NOTES)
		h->notes[h->nnotes++] = text;
}

void ipc_probe_health(struct ipc_probe *p, struct probe_health *ret)
{
	const struct ipc__bss *b = p->bss;

	ladder_health(&p->ladder, ret);
	ret->read_fault += b->long_semops + b->fixed_splices;
	if (p->uring_form == URING_UNKNOWN)
		note(ret, "what io_uring moves through pipes, eventfds and files is not seen on "
			  "this kernel");
	else
		note(ret, "io_uring: multishot reads, requests that skip their completion, and "
			  "descriptors "
			  "passed with its messages are not seen");
	note(ret, "descriptors that 32-bit programs pass are not seen");
	if (b->aio_calls)
		note(ret, "what native asynchronous I/O (io_submit) moves is not seen, and is used "
			  "here");
	if (b->long_semops)
		note(ret, "of a call with more than 512 semaphore operations the rest was not "
			  "looked at: "
			  "counted as read faults");
	if (b->fixed_splices)
		note(ret,
		     "io_uring: the input of splices by number of a registered file is not known: "
		     "counted as read faults");
}
