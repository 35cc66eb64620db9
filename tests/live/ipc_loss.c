/* Tables of probe "ipc" that are too small on purpose: what is lost is what was done minus what is seen. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/ipc.h>
#include <sys/msg.h>

#include "err.h"
#include "ipc_probe.h"

#define QUEUES 200 /* two entries each, one to send and one to receive */
#define ROOM   64  /* entries of each table */
#define BYTES  40

struct seen {
	uint64_t bytes[IPC_DIRS], calls[IPC_DIRS];
	uint64_t bad; /* entries that say what was not done */
};

static struct {
	long type;
	char text[BYTES];
} message = {.type = 1};

static int on_moved(void *ctx, const struct ipc_sample *s)
{
	struct seen *seen = ctx;

	if (s->key.kind != IPC_SYSV_QUEUE || s->key.tid != (uint32_t)gettid())
		return 0;
	seen->bytes[s->key.dir] += s->v.bytes;
	seen->calls[s->key.dir] += s->v.calls;
	seen->bad += s->v.bytes != BYTES || s->v.calls != 1 || s->v.task.tgid != (uint32_t)getpid();
	return 0;
}

/* Each queue takes one message and gives it back. @return messages moved */
static unsigned use_queues(void)
{
	unsigned done = 0;

	for (int i = 0; i < QUEUES; i++) {
		int id = msgget(IPC_PRIVATE, 0600);

		if (id < 0)
			break;
		if (!msgsnd(id, &message, BYTES, 0) && msgrcv(id, &message, BYTES, 0, 0) == BYTES)
			done++;
		msgctl(id, IPC_RMID, NULL);
	}
	return done;
}

static int check(const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return 0;
	printf("FAILED: %s is %" PRIu64 ", should be %" PRIu64 "\n", what, got, want);
	return 1;
}

static int judge(struct ipc_probe *p, const struct seen *seen, unsigned done)
{
	struct ipc_rest rest[IPC_KINDS][IPC_DIRS];
	const struct ipc_rest *r = rest[IPC_SYSV_QUEUE];
	struct probe_health h;
	int bad = 0;

	ipc_probe_rest(p, rest);
	ipc_probe_health(p, &h);
	/* Nobody else uses such queues here. */
	bad += check("sent, seen + lost", seen->calls[IPC_WRITE] + r[IPC_WRITE].calls, done);
	bad += check("received, seen + lost", seen->calls[IPC_READ] + r[IPC_READ].calls, done);
	bad += check("bytes sent", seen->bytes[IPC_WRITE] + r[IPC_WRITE].bytes, done * BYTES);
	bad += check("bytes received", seen->bytes[IPC_READ] + r[IPC_READ].bytes, done * BYTES);
	bad += check("wrong entries", seen->bad, 0);
	bad += check("something was lost", r[IPC_WRITE].calls > 0, true);
	bad += check("all of it is counted", h.map_full >= r[IPC_WRITE].calls + r[IPC_READ].calls, true);
	printf("%u messages: %" PRIu64 " sent and %" PRIu64 " received seen, %" PRIu64 " and %" PRIu64
	       " lost and counted\n",
	       done, seen->calls[IPC_WRITE], seen->calls[IPC_READ], r[IPC_WRITE].calls, r[IPC_READ].calls);
	return bad;
}

/* Arguments are names to refuse, so that the same holds for each rung. */
int main(int argc, char **argv)
{
	struct probe_options o = {
		.refuse = (const char *const *)argv + 1, .nrefuse = (size_t)argc - 1, .max_flows = ROOM};
	struct err e = {0};
	struct ipc_probe *p;
	struct seen seen = {0};
	unsigned done = 0;
	int rc = ipc_probe_open(&p, &o, &e);

	if (rc) {
		printf("SKIP: %s\n", e.msg);
		return 77;
	}
	rc = ipc_probe_watch(p, IPC_WATCH_CALLS, &e);
	for (int i = 0; i < 3 && !rc; i++) {
		done += use_queues();
		rc = ipc_probe_read(p, on_moved, &seen, &e);
	}
	/* What nobody watches is neither seen nor lost. */
	rc = rc ?: ipc_probe_watch(p, 0, &e);
	if (!rc)
		use_queues();
	rc = rc ?: ipc_probe_read(p, on_moved, &seen, &e);
	if (rc)
		printf("FAILED: %s\n", e.msg);
	rc = rc ?: judge(p, &seen, done);
	ipc_probe_close(p);
	return rc != 0;
}
