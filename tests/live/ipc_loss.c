/* Tables of probe "ipc" that are too small on purpose: what is lost is what was done minus what is seen. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/wait.h>

#include "err.h"
#include "ipc_probe.h"

#define QUEUES 200 /* two entries each, one to send and one to receive */
#define ROOM   64  /* entries of each table */
#define BYTES  40
/* Of each of two processes; CPUs that race may each give one of the others too many. */
#define FILES  (ROOM / 4 - 4)

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

/* Of a process that is recorded, and its child. */
struct files_seen {
	unsigned own, folded;
};

static int on_file(void *ctx, const struct ipc_sample *s)
{
	struct files_seen *seen = ctx;

	if (s->key.kind != IPC_FILE || s->v.task.tgid == (uint32_t)getpid() ||
	    strncmp(s->v.comm, "ipc_loss", 8))
		return 0;
	if (s->key.flags & IPC_FOLDED)
		seen->folded += (unsigned)s->v.calls;
	else
		seen->own++;
	return 0;
}

/* Inode numbers of such files are not used again. */
static void use_files(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int fd = memfd_create("ipc_loss", 0);

		if (fd < 0 || write(fd, "x", 1) != 1)
			_exit(1);
		close(fd);
	}
}

/* Nearly as much as there is room for, half by a recorded process and half by its child. */
static void play_recorded(int go)
{
	char c;
	int status;
	pid_t child;

	if (read(go, &c, 1) != 1)
		_exit(1);
	child = fork();
	use_files(FILES);
	if (!child)
		_exit(0);
	_exit(child < 0 || waitpid(child, &status, 0) != child || status);
}

/* Files of others are many, and come first. */
static int check_recorded(const struct probe_options *o, struct err *e)
{
	struct files_seen seen = {0};
	int go[2], status, rc, bad = 0;
	struct ipc_probe *p;
	pid_t pid;

	if (pipe(go) || (pid = fork()) < 0)
		return 1;
	if (!pid)
		play_recorded(go[0]);
	rc = ipc_probe_open(&p, o, e);
	if (rc)
		return 1;
	rc = ipc_probe_record(p, (uint32_t)pid, true, e);
	rc = rc ?: ipc_probe_watch(p, IPC_WATCH_CALLS, e);
	use_files(4 * ROOM);
	bad += check("start", write(go[1], "x", 1) == 1, true);
	bad += check("wait", waitpid(pid, &status, 0) == pid && !status, true);
	rc = rc ?: ipc_probe_read(p, on_file, &seen, e);
	bad += check("reading", rc == 0, true);
	bad += check("files of a recorded process and its child", seen.own, 2 * FILES);
	bad += check("folded ones", seen.folded, 0);
	ipc_probe_close(p);
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
	rc += check_recorded(&o, &e);
	return rc != 0;
}
