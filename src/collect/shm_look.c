/* Looks at memory maps that may be locked, from a child process: see shm_look.h. */
#include "shm_look.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "proc_maps.h"
#include "proc_probe.h"

#define STUCK_MS 1500 /* without anything new: a loaded or emulated machine may need a second */

enum look_kind { LOOK_ALL, LOOK_PROCESS, LOOK_PATH, LOOK_RESIDENT };

struct look_question {
	enum look_kind kind;
	uint32_t pid;
	uint64_t start_ns, start, end;
	bool internal;
	struct proc_map map; /* LOOK_PATH */
};

/* What ends an answer. A mapping begins with its size instead, which is not 0. */
struct look_end {
	uint32_t zero;
	int rc;
	uint64_t bytes, cpu_ns;
	char text[LOOK_TEXT_BYTES]; /* as much as is sent */
};

static int send_map(void *ctx, const struct proc_map *m)
{
	struct proc_map whole = {0};

	memcpy(&whole, m, m->size < sizeof(whole) ? m->size : sizeof(whole));
	return send(*(int *)ctx, &whole, sizeof(whole), 0) < 0 ? -errno : 0;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void serve(void *ctx, int fd)
{
	static struct look_end end; /* of the child alone */
	struct shm_look *l = ctx;
	struct look_question q;
	int keep[] = {fd, l->probe ? proc_probe_maps_fd(l->probe) : -1};
	struct err e;

	worker_keep_files(keep, 2);
	while (recv(fd, &q, sizeof(q), 0) == sizeof(q)) {
		uint64_t cpu_ns = own_cpu_ns();

		end = (struct look_end){.zero = 0};
		if (q.kind == LOOK_ALL)
			end.rc = proc_probe_maps(l->probe, send_map, &fd, &e);
		else if (q.kind == LOOK_PROCESS)
			end.rc = proc_maps_list(q.pid, q.start_ns, send_map, &fd);
		else if (q.kind == LOOK_PATH)
			end.rc = proc_maps_path(&q.map, q.internal, end.text, sizeof(end.text));
		else
			end.rc = proc_maps_resident(q.pid, q.start, q.end, &end.bytes);
		end.cpu_ns = own_cpu_ns() - cpu_ns;
		if (send(fd, &end, offsetof(struct look_end, text) + strlen(end.text) + 1, 0) < 0)
			return;
	}
}

void shm_look_init(struct shm_look *l, struct proc_probe *probe)
{
	memset(l, 0, sizeof(*l));
	l->w.fd = -1;
	l->probe = probe;
}

void shm_look_done(struct shm_look *l)
{
	worker_done(&l->w);
}

static int give_up(struct shm_look *l, int rc)
{
	worker_give_up(&l->w);
	l->stuck += rc == -ETIMEDOUT;
	return rc;
}

union look_answer {
	struct proc_map map;
	struct look_end end;
};

/* The next message. @return its size, or -errno */
static ssize_t next(struct shm_look *l, union look_answer *a)
{
	struct pollfd p = {.fd = l->w.fd, .events = POLLIN};
	ssize_t n;
	int rc;

	while ((rc = poll(&p, 1, STUCK_MS)) < 0 && errno == EINTR)
		;
	if (rc <= 0)
		return rc ? -EIO : -ETIMEDOUT;
	n = recv(l->w.fd, a, sizeof(*a), 0);
	return n < (ssize_t)offsetof(struct look_end, text) ? -EPIPE : n;
}

static int ask(struct shm_look *l, const struct look_question *q, int (*cb)(void *ctx, const struct proc_map *m),
	       void *ctx, struct look_end *ret)
{
	union look_answer a;
	int rc = 0;
	ssize_t n;

	worker_reap(&l->w);
	if (l->w.fd < 0 && (rc = worker_start(&l->w, WORKER_KEEP, serve, l)) < 0)
		return rc;
	if (send(l->w.fd, q, sizeof(*q), MSG_NOSIGNAL) < 0)
		return give_up(l, -EPIPE);
	while ((n = next(l, &a)) > 0 && a.map.size) {
		if (cb && !rc)
			rc = cb(ctx, &a.map);
	}
	if (n < 0)
		return give_up(l, (int)n);
	l->cpu_ns += a.end.cpu_ns;
	if (ret)
		*ret = a.end;
	return rc ?: a.end.rc;
}

int shm_look_all(struct shm_look *l, int (*cb)(void *ctx, const struct proc_map *m), void *ctx, struct err *e)
{
	struct look_question q = {.kind = LOOK_ALL};
	int rc = l->probe ? ask(l, &q, cb, ctx, NULL) : -ENOTSUP;

	return rc < 0 ? err_set(e, rc, "list the memory mappings") : rc;
}

int shm_look_process(struct shm_look *l, uint32_t pid, uint64_t start_ns,
		     int (*cb)(void *ctx, const struct proc_map *m), void *ctx)
{
	struct look_question q = {.kind = LOOK_PROCESS, .pid = pid, .start_ns = start_ns};

	return ask(l, &q, cb, ctx, NULL);
}

int shm_look_path(struct shm_look *l, const struct proc_map *m, bool internal, char *buf, size_t size)
{
	struct look_question q = {.kind = LOOK_PATH, .internal = internal, .map = *m};
	struct look_end said;
	int rc = ask(l, &q, NULL, NULL, &said);

	if (rc >= 0)
		snprintf(buf, size, "%s", said.text);
	return rc;
}

int shm_look_resident(struct shm_look *l, uint32_t pid, uint64_t start, uint64_t end, uint64_t *ret_bytes)
{
	struct look_question q = {.kind = LOOK_RESIDENT, .pid = pid, .start = start, .end = end};
	struct look_end said;
	int rc = ask(l, &q, NULL, NULL, &said);

	if (!rc)
		*ret_bytes = said.bytes;
	return rc;
}
