/* The parts of probe_dump that print sockets, processes, open files and capabilities. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#include "caps.h"
#include "err.h"
#include "probe_dump.h"
#include "proc_probe.h"
#include "sock_probe.h"

static const char *proto_name(uint8_t proto)
{
	static const char *const names[] = {"other",	   "tcp",	 "udp", "unix_stream",
					    "unix_dgram", "unix_seqpacket", "inet"};

	return proto < SOCK_PROTO_N ? names[proto] : "?";
}

static void print_sock(const struct sock_facts *f)
{
	char local[INET6_ADDRSTRLEN] = "-", remote[INET6_ADDRSTRLEN] = "-";

	if (f->family == AF_INET || f->family == AF_INET6) {
		inet_ntop(f->family, f->local.addr, local, sizeof(local));
		if (!(f->flags & SOCK_PEER_UNKNOWN))
			inet_ntop(f->family, f->remote.addr, remote, sizeof(remote));
	}
	printf(" proto=%s family=%u type=%u sk=%" PRIu64 " peer=%" PRIu64 " ino=%" PRIu64
	       " peer_ino=%" PRIu64 " netns=%u flags=%u local=%s/%u remote=%s/%u",
	       proto_name(f->proto), f->family, f->type, (uint64_t)f->sk_id, (uint64_t)f->peer_id,
	       (uint64_t)f->ino, (uint64_t)f->peer_ino, f->netns, f->flags, local, f->local.port,
	       remote, f->remote.port);
}

static void print_tcp(const struct sock_tcp *t)
{
	printf(" state=%u srtt_us=%u retrans=%u acked=%" PRIu64 " received=%" PRIu64 " copied=%u",
	       t->state, t->srtt_us, t->total_retrans, (uint64_t)t->bytes_acked,
	       (uint64_t)t->bytes_received, t->copied_seq);
}

static int on_flow(void *ctx, const struct sock_sample *s)
{
	printf("flow dir=%s tid=%u tgid=%u comm=%.16s bytes=%" PRIu64 " msgs=%" PRIu64,
	       s->dir == SOCK_SENT ? "sent" : "received", s->v.task.tid, s->v.task.tgid, s->v.comm,
	       (uint64_t)s->v.bytes, (uint64_t)s->v.msgs);
	print_sock(&s->v.sock);
	if (s->v.sock.proto == SOCK_PROTO_TCP)
		print_tcp(&s->v.tcp);
	printf("\n");
	return 0;
}

static int on_sock_event(void *ctx, const struct sock_event *ev)
{
	printf("state old=%u new=%u active=%u", ev->old_state, ev->new_state, ev->active);
	print_sock(&ev->sock);
	print_tcp(&ev->tcp);
	printf("\n");
	return 0;
}

static int dump_sock(double seconds, const struct probe_options *o, struct err *e)
{
	struct sock_rest rest[SOCK_PROTO_N][2];
	struct sock_probe *p;
	struct probe_health h;
	bool more = true;
	int rc = sock_probe_open(&p, o, e);

	if (rc)
		return rc;
	dump_ready();
	for (double left = seconds; more && !rc; left -= 1) {
		more = dump_wait(left);
		rc = sock_probe_read(p, on_flow, NULL, e);
		if (!rc && sock_probe_fd(p) >= 0)
			rc = sock_probe_events(p, on_sock_event, NULL, e);
		fflush(stdout);
	}
	sock_probe_rest(p, rest);
	for (int i = 0; i < SOCK_PROTO_N * 2; i++)
		if (rest[i / 2][i % 2].msgs)
			printf("rest proto=%s dir=%d bytes=%" PRIu64 " msgs=%" PRIu64 "\n",
			       proto_name((uint8_t)(i / 2)), i % 2, rest[i / 2][i % 2].bytes,
			       rest[i / 2][i % 2].msgs);
	sock_probe_health(p, &h);
	dump_health(&h);
	sock_probe_close(p);
	return rc;
}

static int on_proc_event(void *ctx, const struct proc_event *ev)
{
	static const char *const kinds[] = {"?", "fork", "exec", "exit"};

	printf("event kind=%s tid=%u tgid=%u start=%" PRIu64 " parent=%u code=%d uid=%u comm=%.16s"
	       " cmdline=", kinds[ev->kind & 3], ev->task.tid, ev->task.tgid,
	       (uint64_t)ev->task.start_ns, ev->parent.tgid, ev->exit_code, ev->uid, ev->comm);
	for (uint32_t i = 0; i < ev->cmdline_bytes; i++)
		putchar(ev->cmdline[i] ? ev->cmdline[i] : ' ');
	printf("\n");
	return 0;
}

static int on_task(void *ctx, const struct proc_task *t)
{
	printf("task tid=%u tgid=%u start=%" PRIu64 " ppid=%u uid=%u threads=%u state=%c cpu=%d"
	       " utime=%" PRIu64 " stime=%" PRIu64 " rss=%" PRIu64 " cgroup=%" PRIu64
	       " netns=%u pidns=%u mntns=%u nspid=%u nstgid=%u flags=%u comm=%.16s\n",
	       t->task.tid, t->task.tgid, (uint64_t)t->task.start_ns, t->ppid, t->uid,
	       t->nr_threads, t->state, t->cpu, (uint64_t)t->utime_ns, (uint64_t)t->stime_ns,
	       (uint64_t)t->rss_pages, (uint64_t)t->cgroup_id, t->netns, t->pidns, t->mntns,
	       t->nspid, t->nstgid, t->flags, t->comm);
	return 0;
}

static int on_file(void *ctx, const struct proc_file *f)
{
	printf("file tgid=%u fd=%u kind=%u access=%u fino=%" PRIu64 " dev=%u:%u rdev=%u:%u size=%"
	       PRIu64 " pos=%" PRIu64 " name=%.*s", f->tgid, f->fd, f->kind, f->access,
	       (uint64_t)f->ino, f->dev >> 20, f->dev & 0xfffff, f->rdev >> 20, f->rdev & 0xfffff,
	       (uint64_t)f->size_bytes, (uint64_t)f->pos, (int)f->name_bytes, f->name);
	if (f->kind == PROC_FILE_SOCKET) {
		print_sock(&f->sock);
		print_tcp(&f->tcp);
		printf(" rxq=%u txq=%u", f->rx_queue_bytes, f->tx_queue_bytes);
	}
	printf("\n");
	return 0;
}

static int on_map(void *ctx, const struct proc_map *m)
{
	printf("map tgid=%u addr=%" PRIx64 "-%" PRIx64 " off=%" PRIu64 " ino=%" PRIu64
	       " dev=%u:%u rdev=%u:%u size=%" PRIu64 " blocks=%" PRIu64 " cached=%" PRIu64
	       " magic=%x links=%u ipcns=%u mode=%o access=%u name=%.*s\n",
	       m->tgid, (uint64_t)m->start, (uint64_t)m->end, (uint64_t)m->offset_pages, (uint64_t)m->ino,
	       m->dev >> 20, m->dev & 0xfffff, m->rdev >> 20, m->rdev & 0xfffff, (uint64_t)m->size_bytes,
	       (uint64_t)m->blocks, (uint64_t)m->cached_pages, m->magic, m->links, m->ipcns, m->mode,
	       m->access, (int)m->name_bytes, m->name);
	return 0;
}

static int dump_proc(const char *what, double seconds, const struct probe_options *o, struct err *e)
{
	struct proc_probe *p;
	struct probe_health h;
	int rc = proc_probe_open(&p, o, e);

	if (rc)
		return rc;
	if (!strcmp(what, "tasks")) {
		rc = proc_probe_tasks(p, on_task, NULL, e);
	} else if (!strcmp(what, "files")) {
		rc = proc_probe_files(p, PROC_FILES_ALL, on_file, NULL, e);
	} else if (!strcmp(what, "maps")) {
		rc = proc_probe_maps(p, on_map, NULL, e);
	} else {
		dump_ready();
		for (bool more = true; more && !rc; seconds -= 1) {
			more = dump_wait(seconds);
			rc = proc_probe_events(p, on_proc_event, NULL, e);
			fflush(stdout);
		}
	}
	proc_probe_health(p, &h);
	dump_health(&h);
	proc_probe_close(p);
	return rc;
}

static int dump_caps(void)
{
	for (size_t i = 0; i < ncaps; i++) {
		const char *why;
		bool has = cap_check(i, &why) == CAP_PRESENT;

		printf("cap %s %s %s\n", caps[i].name, has ? "yes" : "no", why);
	}
	return 0;
}

int dump_other(const char *what, double seconds, const struct probe_options *o, struct err *e)
{
	if (!strcmp(what, "caps"))
		return dump_caps();
	if (!strcmp(what, "sock"))
		return dump_sock(seconds, o, e);
	if (!strcmp(what, "proc") || !strcmp(what, "tasks") || !strcmp(what, "files") ||
	    !strcmp(what, "maps"))
		return dump_proc(what, seconds, o, e);
	return err_msg(e, -EINVAL, "no probe '%s'", what);
}
