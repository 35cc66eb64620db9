/* The facts of probe "ipc" as text lines. */
#include <inttypes.h>
#include <stdio.h>

#include "ipc_probe.h"
#include "probe_dump.h"

static int on_moved(void *ctx, const struct ipc_sample *s)
{
	static const char *const kinds[IPC_KINDS] = {"other", "pipe", "fifo", "eventfd",
						     "posix_queue", "sysv_queue", "sysv_sem", "file",
						     "block", "socket", "memory"};
	static const char *const dirs[IPC_DIRS] = {"write", "read", "zero_wait"};

	printf("ipc kind=%s dir=%s id=%" PRIu64 " space=%u flags=%u tid=%u tgid=%u bytes=%" PRIu64
	       " calls=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64 " fd=%d extra=%" PRIu64
	       " comm=%s name=%s\n",
	       kinds[s->key.kind], dirs[s->key.dir], (uint64_t)s->key.id, s->key.space, s->key.flags,
	       s->key.tid, s->v.task.tgid, (uint64_t)s->v.bytes, (uint64_t)s->v.calls,
	       (uint64_t)s->v.first_ns, (uint64_t)s->v.last_ns, s->v.fd, (uint64_t)s->v.extra,
	       s->v.comm, s->v.name);
	return 0;
}

static int on_passed(void *ctx, const struct ipc_passed *ev)
{
	static const char *const hows[] = {"sent", "received", "taken"};

	printf("passed how=%s file=%" PRIx64 " sock=%" PRIu64 " fd=%d kind=%u mode=%o dev=%u ino=%" PRIu64
	       " tid=%u tgid=%u owner=%u time=%" PRIu64 " comm=%s name=%s\n",
	       hows[ev->how], (uint64_t)ev->file, (uint64_t)ev->sock_ino, ev->fd, ev->kind, ev->mode,
	       ev->dev, (uint64_t)ev->ino, ev->task.tid, ev->task.tgid, ev->owner.tgid,
	       (uint64_t)ev->time_ns, ev->comm, ev->name);
	return 0;
}

static void dump_rest(struct ipc_probe *p)
{
	struct ipc_rest rest[IPC_KINDS][IPC_DIRS];

	ipc_probe_rest(p, rest);
	for (int k = 0; k < IPC_KINDS; k++)
		for (int d = 0; d < IPC_DIRS; d++)
			if (rest[k][d].calls)
				printf("rest kind=%d dir=%d bytes=%" PRIu64 " calls=%" PRIu64 "\n", k, d,
				       rest[k][d].bytes, rest[k][d].calls);
}

int dump_ipc(double seconds, const struct probe_options *o, struct err *e)
{
	struct ipc_probe *p;
	struct probe_health h;
	bool more = true;
	int rc = ipc_probe_open(&p, o, e);

	if (rc)
		return rc;
	rc = ipc_probe_watch(p, IPC_WATCH_CALLS | IPC_WATCH_URING, e);
	dump_ready();
	for (double left = seconds; more && !rc; left -= 1) {
		more = dump_wait(left);
		rc = ipc_probe_read(p, on_moved, NULL, e);
		rc = rc ?: ipc_probe_passed(p, on_passed, NULL, e);
		fflush(stdout);
	}
	dump_rest(p);
	ipc_probe_health(p, &h);
	dump_health(&h);
	ipc_probe_close(p);
	return rc;
}
