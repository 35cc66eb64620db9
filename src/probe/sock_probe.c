/* Reads what sockets moved, interval by interval, and the events of TCP connections. */
#include "sock_probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "cgroup_root.h"
#include "ladder.h"
#include "mem.h"
#include "sock.skel.h"

#define MAX_SPARSE_FLOWS 65536

/* The programs at the entry and at the return of a function. */
#define PAIR(fn) #fn "_entry", #fn "_return"

static const struct hook_def hooks[] = {
	{"send", "bytes that sockets send", true,
	 {{"tp_btf", {"send_btf"}},
	  {"fexit",
	   {"tcp_sendmsg_fexit", "tcp_sendpage_fexit", "udp_sendmsg_fexit", "udpv6_sendmsg_fexit",
	    "unix_stream_sendmsg_fexit", "unix_stream_sendpage_fexit",
	    "unix_dgram_sendmsg_fexit", "unix_seqpacket_sendmsg_fexit"}},
	  {"kprobe",
	   {PAIR(tcp_sendmsg), PAIR(tcp_sendpage), PAIR(udp_sendmsg), PAIR(udpv6_sendmsg),
	    PAIR(unix_stream_sendmsg), PAIR(unix_stream_sendpage), PAIR(unix_dgram_sendmsg),
	    PAIR(unix_seqpacket_sendmsg)}}}},
	{"recv", "bytes that sockets receive", true,
	 {{"tp_btf", {"recv_btf"}},
	  {"fexit",
	   {"tcp_recvmsg_fexit", "tcp_splice_read_fexit", "udp_recvmsg_fexit",
	    "udpv6_recvmsg_fexit", "unix_stream_recvmsg_fexit", "unix_stream_splice_read_fexit",
	    "unix_dgram_recvmsg_fexit", "unix_seqpacket_recvmsg_fexit"}},
	  {"kprobe",
	   {PAIR(tcp_recvmsg), PAIR(tcp_splice_read), PAIR(udp_recvmsg), PAIR(udpv6_recvmsg),
	    PAIR(unix_stream_recvmsg), PAIR(unix_stream_splice_read), PAIR(unix_dgram_recvmsg),
	    PAIR(unix_seqpacket_recvmsg)}}}},
	{"splice", NULL, false,
	 {{"fexit", {"tcp_splice_read_beside", "unix_stream_splice_read_beside"}}}},
	{"udp_peer", "the peer of UDP sockets that are not connected", false,
	 {{"cgroup", {"udp_send4", "udp_send6", "udp_recv4", "udp_recv6"}}}},
	{"unix_peer", "the receiver of datagrams from Unix sockets that are not connected", false,
	 {{"tp_btf", {"unix_ready_btf"}}, {"fentry", {"unix_ready_fentry"}},
	  {"kprobe", {"unix_ready_kprobe"}}}},
	{"state", "connections that open and end between two readings", false,
	 {{"tp_btf", {"state_btf"}}}},
	{"tally", NULL, false, {{"iter", {"read_tallies"}}}, "tallies"},
	/* For turns: what was there before, the very end, and what makes the kernel's counts useless. */
	{"meet", NULL, false, {{"iter", {"meet_connections"}}}},
	{"end", NULL, false, {{"tp_btf", {"end_btf"}}}},
	{"ulp", NULL, false, {{"fexit", {"tcp_set_ulp_fexit"}}}},
};

struct sock_probe {
	struct ladder ladder;
	struct swap_map flows, streams;
	struct ring_buffer *ring;
	struct sock__bss *bss;
	uint32_t max_flows;
	bool can_turn;
	bool tallies;	 /* TCP is summed beside the socket */
	bool fixed_size; /* max_flows was asked for */
	int (*event_cb)(void *ctx, const struct sock_event *ev); /* while events are fetched */
	void *event_ctx;
	int event_rc;
};

static int on_event(void *ctx, void *data, size_t size)
{
	struct sock_probe *p = ctx;

	if (size >= sizeof(struct sock_event) && p->event_cb && !p->event_rc)
		p->event_rc = p->event_cb(p->event_ctx, data);
	return 0;
}

struct delivery {
	int (*cb)(void *ctx, const struct sock_sample *s);
	void *ctx;
};

static int hand_over(const struct delivery *d, uint32_t what, const void *value)
{
	struct sock_sample s = {.dir = what & 1 ? SOCK_RECEIVED : SOCK_SENT, .what = (enum sock_what)(what >> 1)};

	memcpy(&s.v, value, sizeof(s.v));
	return d->cb(d->ctx, &s);
}

static int on_flow(void *ctx, const void *key, const void *value)
{
	struct sock_key k;

	memcpy(&k, key, sizeof(k));
	return hand_over(ctx, k.dir, value);
}

static int on_stream(void *ctx, const void *key, const void *value)
{
	struct stream_key k;

	memcpy(&k, key, sizeof(k));
	return hand_over(ctx, k.dir, value);
}

static int on_tally(void *ctx, const void *record)
{
	const struct sock_tally_record *t = record;

	return hand_over(ctx, (uint32_t)t->dir, &t->v);
}

int sock_probe_read(struct sock_probe *p, int (*cb)(void *ctx, const struct sock_sample *s),
		    void *ctx, struct err *e)
{
	struct delivery d = {cb, ctx};
	/* First the sums of open connections: one that ends meanwhile is in the map, then. */
	struct ladder_records r = {sizeof(struct sock_tally_record), false, on_tally, &d};
	int rc = p->tallies ? ladder_iterate(&p->ladder, "tally", &r, e) : 0;

	rc = rc ?: swap_map_drain(&p->streams, on_stream, &d, e);
	return rc ?: swap_map_drain(&p->flows, on_flow, &d, e);
}

bool sock_probe_can_turn(const struct sock_probe *p)
{
	return p->can_turn;
}

int sock_probe_meet(struct sock_probe *p, struct err *e)
{
	/* It writes nothing. */
	struct ladder_records r = {1, false, NULL, NULL};

	return p->can_turn ? ladder_iterate(&p->ladder, "meet", &r, e) : 0;
}

/*
 * What plain sockets of TCP have in common is looked up at two that have never been connected. Should it fail, all is
 * watched.
 */
static void learn_plain(struct sock_probe *p)
{
	static const int families[] = {AF_INET, AF_INET6};
	struct err e;
	int fds[2];

	for (int i = 0; i < 2; i++) {
		uint64_t id = 0;
		socklen_t size = sizeof(id);

		/* A host may be without IPv6: then nobody has one. */
		fds[i] = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
		if (fds[i] >= 0 && !getsockopt(fds[i], SOL_SOCKET, SO_COOKIE, &id, &size))
			p->bss->plain_id[i] = id;
	}
	p->can_turn = !sock_probe_meet(p, &e);
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		p->bss->plain_id[i] = 0;
		if (!p->bss->plain_prot[i])
			p->bss->plain_prot[i] = p->bss->plain_prot[0];
	}
	if (!p->bss->plain_prot[0])
		p->can_turn = false;
}

/* Programs that have begun before are over then: putting a map into another one waits for them. */
static int wait_for_programs(struct sock_probe *p, struct err *e)
{
	uint32_t zero = 0;

	if (bpf_map_update_elem(p->streams.outer, &zero, &p->streams.inner[p->streams.current], BPF_ANY))
		return err_set(e, -errno, "map of streams");
	return 0;
}

static void set_watch(struct sock_probe *p, uint32_t watch)
{
	__atomic_store_n(&p->bss->tcp_watch, watch, __ATOMIC_RELEASE);
}

int sock_probe_turns(struct sock_probe *p, bool on, struct err *e)
{
	int rc;

	if (!on) {
		__atomic_store_n(&p->bss->tcp_settled, 0, __ATOMIC_RELEASE);
		set_watch(p, SOCK_WATCH_ALL);
		return 0;
	}
	set_watch(p, SOCK_WATCH_IN_TURNS);
	rc = wait_for_programs(p, e);
	rc = rc ?: sock_probe_meet(p, e);
	if (rc)
		set_watch(p, SOCK_WATCH_ALL);
	else
		__atomic_store_n(&p->bss->tcp_settled, 1, __ATOMIC_RELEASE);
	return rc;
}

void sock_probe_hold(struct sock_probe *p, bool hold)
{
	set_watch(p, hold ? SOCK_WATCH_NOT : SOCK_WATCH_IN_TURNS);
}

uint32_t sock_probe_cpus(void)
{
	return (uint32_t)libbpf_num_possible_cpus();
}

void sock_probe_runs(const struct sock_probe *p, uint64_t *ret)
{
	uint32_t zero = 0;

	bpf_map_lookup_elem(ladder_map_fd(&p->ladder, "runs"), &zero, ret);
}

int sock_probe_events(struct sock_probe *p, int (*cb)(void *ctx, const struct sock_event *ev),
		      void *ctx, struct err *e)
{
	int rc;

	if (!strcmp(ladder_rung(&p->ladder, "state"), "none"))
		return err_msg(e, -ENOTSUP, "no events of connections on this kernel");
	p->event_cb = cb;
	p->event_ctx = ctx;
	p->event_rc = 0;
	rc = ring_buffer__consume(p->ring);
	p->event_cb = NULL;
	if (rc < 0)
		return err_set(e, rc, "ring buffer of probe 'sock'");
	return p->event_rc;
}

int sock_probe_fd(const struct sock_probe *p)
{
	return strcmp(ladder_rung(&p->ladder, "state"), "none") ? ring_buffer__epoll_fd(p->ring)
								: -1;
}

void sock_probe_rest(struct sock_probe *p, struct sock_rest ret[SOCK_PROTO_N][2])
{
	int fd = ladder_map_fd(&p->ladder, "rests");

	memset(ret, 0, sizeof(struct sock_rest[SOCK_PROTO_N][2]));
	for (uint32_t i = 0; i < SOCK_PROTO_N * 2; i++)
		bpf_map_lookup_elem(fd, &i, &ret[i / 2][i % 2]);
}

/* ec095263a965 (v5.19) took the argument `noblock` away: six arguments before, five since. */
static bool recv_has_noblock(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "tcp_recvmsg", BTF_KIND_FUNC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;

	t = t ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) && btf_vlen(t) == 6;
}

/* What HAS_HELPER() of the programs looks for. */
static bool has_helper(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	const struct btf_enum *v = t ? btf_enum(t) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, v[i].name_off), name))
			return true;
	return false;
}

static void size_map(struct bpf_object *obj, const char *name, uint32_t n)
{
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, name), n);
}

static bool kprobes(const struct ladder *l)
{
	return !strcmp(ladder_rung(l, "send"), "kprobe") ||
	       !strcmp(ladder_rung(l, "recv"), "kprobe");
}

/*
 * Since v6.1 (fac8bd4ca6b9) elements can be made when needed, in any context: only then is room
 * cheap.
 */
static void make_sparse(struct bpf_object *obj, const char *outer, const char *inner0,
			const char *inner1)
{
	const char *const names[] = {inner0, inner1};
	struct bpf_map *model = bpf_map__inner_map(bpf_object__find_map_by_name(obj, outer));

	bpf_map__set_map_flags(model, BPF_F_NO_PREALLOC);
	for (int i = 0; i < 2; i++)
		bpf_map__set_map_flags(bpf_object__find_map_by_name(obj, names[i]),
				       BPF_F_NO_PREALLOC);
}

/* Where sockets are told apart by address, not by cookie, all are in the map of messages. */
static void size_flows(struct sock_probe *p, struct bpf_object *obj, const struct ladder *l,
		       bool has_cookie, bool sparse)
{
	uint32_t messages;

	if (sparse) {
		make_sparse(obj, "flows", "flows_0", "flows_1");
		make_sparse(obj, "streams", "streams_0", "streams_1");
		if (!p->fixed_size)
			p->max_flows = MAX_SPARSE_FLOWS;
	}
	messages = !has_cookie || kprobes(l) ? p->max_flows : p->max_flows / 4;
	size_map(obj, "flows_0", messages);
	size_map(obj, "flows_1", messages);
	size_map(obj, "streams_0", has_cookie ? p->max_flows : 1);
	size_map(obj, "streams_1", has_cookie ? p->max_flows : 1);
}

static bool has_rung(const struct ladder *l, const char *hook, const char *rung)
{
	return !strcmp(ladder_rung(l, hook), rung);
}

static int prepare(void *ctx, struct bpf_object *obj, const struct ladder *l, struct err *e)
{
	struct sock_probe *p = ctx;
	struct bpf_map *rodata = bpf_object__find_map_by_name(obj, "sock.rodata");
	struct sock__rodata *r = (void *)bpf_map__initial_value(rodata, &(size_t){0});
	struct btf *btf = btf__load_vmlinux_btf();

	r->recv_has_noblock = btf && recv_has_noblock(btf);
	r->recv_by_tracepoint = has_rung(l, "recv", "tp_btf");
	/* The end of a connection has to be seen, or its last bytes would be lost. */
	p->tallies = has_rung(l, "send", "tp_btf") && has_rung(l, "recv", "tp_btf") &&
		     has_rung(l, "state", "tp_btf") && has_rung(l, "tally", "iter");
	r->use_tallies = p->tallies;
	p->can_turn = p->tallies && has_rung(l, "meet", "iter") && has_rung(l, "end", "tp_btf") && btf && has_helper(btf, "BPF_FUNC_check_mtu") &&
		      btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0 &&
		      !probe_refused(l->options, l->probe, "turns");
	r->can_turn = p->can_turn;
	size_flows(p, obj, l, btf && has_helper(btf, "BPF_FUNC_check_mtu"),
		   btf && btf__find_by_name_kind(btf, "bpf_mem_alloc_init", BTF_KIND_FUNC) > 0);
	btf__free(btf);
	/* Every CPU keeps up to 128 elements of an LRU map for itself. */
	size_map(obj, "pendings", 4096 + 128 * (uint32_t)libbpf_num_possible_cpus());
	size_map(obj, "claims", 8192 + 128 * (uint32_t)libbpf_num_possible_cpus());
	size_map(obj, "calls", kprobes(l) ? probe_max_tasks(l->options) : 1);
	size_map(obj, "events", 2 << 20);
	return 0;
}

static uint32_t max_flows(const struct probe_options *o)
{
	uint32_t n = o && o->max_flows ? o->max_flows : probe_max_tasks(o) * 2;

	if (!o || !o->max_flows)
		n = n < 8192 ? 8192 : n > 20480 ? 20480 : n;
	return n;
}

int sock_probe_open(struct sock_probe **ret, const struct probe_options *o, struct err *e)
{
	struct sock_probe *p = mem_alloc(sizeof(*p));
	const void *elf;
	size_t size;
	int rc;

	p->max_flows = max_flows(o);
	p->fixed_size = o && o->max_flows;
	elf = sock__elf_bytes(&size);
	ladder_init(&p->ladder, "sock", hooks, sizeof(hooks) / sizeof(*hooks), o);
	p->ladder.cgroup_fd = cgroup_root_open();
	rc = ladder_load(&p->ladder, elf, size, prepare, p, e);
	if (!rc)
		rc = swap_map_init(&p->flows, &p->ladder, "flows", "flows_0", "flows_1", e);
	if (!rc)
		rc = swap_map_init(&p->streams, &p->ladder, "streams", "streams_0", "streams_1", e);
	rc = rc ?: ladder_globals(&p->ladder, "sock.bss", (void **)&p->bss, e);
	rc = rc ?: ladder_ring(&p->ladder, "events", on_event, p, &p->ring, e);
	if (!rc && p->can_turn)
		learn_plain(p);
	if (rc) {
		sock_probe_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void sock_probe_close(struct sock_probe *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	swap_map_done(&p->flows);
	swap_map_done(&p->streams);
	ladder_globals_done(p->bss);
	ladder_done(&p->ladder);
	free(p);
}

bool sock_probe_sees_splice(const struct sock_probe *p)
{
	return strcmp(ladder_rung(&p->ladder, "recv"), "tp_btf") ||
	       !strcmp(ladder_rung(&p->ladder, "splice"), "fexit");
}

void sock_probe_health(struct sock_probe *p, struct probe_health *ret)
{
	bool tracepoint = !strcmp(ladder_rung(&p->ladder, "recv"), "tp_btf");

	ladder_health(&p->ladder, ret);
	if (tracepoint && strcmp(ladder_rung(&p->ladder, "splice"), "fexit"))
		ret->notes[ret->nnotes++] =
			"bytes received with TCP_ZEROCOPY_RECEIVE from a socket, and with "
			"splice(2) where probe 'ipc' does not work, are not seen: a sender on this "
			"host has the count, one on another host does not";
	if (!tracepoint)
		ret->notes[ret->nnotes++] =
			"sockets other than TCP, UDP and Unix are not seen on this kernel";
	if (kprobes(&p->ladder))
		ret->notes[ret->nnotes++] =
			"when more threads than twice the CPUs (at least 10) block in one socket "
			"function, what some of them move is missed: counted as read faults";
}
