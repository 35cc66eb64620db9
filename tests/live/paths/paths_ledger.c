/* The ledger: objects as the kernel identifies them, and what each thread did to them. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* linux/magic.h has no name for the second one: ipc/mqueue.c */
enum { PIPE_FS = 0x50495045, MQUEUE_FS = 0x19800202 };

/* The link says "PID/task/TID" in the pid namespace that /proc was mounted for. */
static void host_ids(pid_t *ret_pid, pid_t *ret_tid)
{
	char text[64];
	ssize_t n = readlink("/proc/thread-self", text, sizeof(text) - 1);

	if (n < 0)
		die("read the link /proc/thread-self");
	text[n] = '\0';
	if (sscanf(text, "%d/task/%d", ret_pid, ret_tid) != 2) {
		errno = EINVAL;
		die("understand '%s'", text);
	}
}

pid_t host_pid(void)
{
	pid_t pid, tid;

	host_ids(&pid, &tid);
	return pid;
}

void host_enter(struct tcase *c, int role)
{
	atomic_store(&c->roles[role].pid, host_pid());
}

static struct ledger *ledger_of(const struct tcase *c)
{
	return &ledgers[c->index];
}

static uint64_t ipc_namespace(void)
{
	struct stat st;

	if (stat("/proc/thread-self/ns/ipc", &st) < 0)
		die("look at the IPC namespace");
	return st.st_ino;
}

static bool object_same(const struct object *a, const struct object *b)
{
	return a->kind == b->kind && a->dev == b->dev && a->id == b->id && a->ns == b->ns &&
	       a->phase == b->phase;
}

static int object_add(struct tcase *c, const struct object *o)
{
	struct ledger *l = ledger_of(c);
	int i;

	sem_take(&l->lock);
	for (i = 0; i < l->nobjects; i++)
		if (object_same(&l->objects[i], o))
			break;
	if (i == MAX_OBJECTS) {
		errno = ENOSPC;
		die("note an object");
	}
	if (i == l->nobjects)
		l->objects[l->nobjects++] = *o;
	sem_post(&l->lock);
	return i;
}

/* All eventfds share one inode; the kernel's number is in fdinfo only. */
static uint64_t eventfd_id(int fd)
{
	char path[64], text[512];
	const char *at;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	n = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	if (n < 0)
		die("read '%s'", path);
	close(info);
	text[n] = '\0';
	at = strstr(text, "eventfd-id:");
	if (!at) {
		errno = ENOENT;
		die("find the number of an eventfd");
	}
	return strtoull(at + strlen("eventfd-id:"), NULL, 10);
}

static enum object_kind kind_of(int fd, const struct stat *st, const char *name)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		die("look at a file system");
	if (S_ISSOCK(st->st_mode))
		return OBJECT_SOCKET;
	if (S_ISFIFO(st->st_mode))
		return fs.f_type == PIPE_FS ? OBJECT_PIPE : OBJECT_FIFO;
	if (fs.f_type == MQUEUE_FS)
		return OBJECT_POSIX_QUEUE;
	if (!strcmp(name, "anon_inode:[eventfd]"))
		return OBJECT_EVENTFD;
	return OBJECT_FILE;
}

int object_of(struct tcase *c, int fd)
{
	struct object o = {0};
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	if (fstat(fd, &st) < 0 || readlink(path, o.path, sizeof(o.path) - 1) < 0)
		die("look at descriptor %d", fd);
	o.kind = kind_of(fd, &st, o.path);
	o.id = o.kind == OBJECT_EVENTFD ? eventfd_id(fd) : st.st_ino;
	if (o.kind == OBJECT_FIFO || o.kind == OBJECT_FILE)
		o.dev = st.st_dev;
	if (o.kind == OBJECT_POSIX_QUEUE)
		o.ns = ipc_namespace();
	if (o.path[0] != '/')
		o.path[0] = '\0';
	return object_add(c, &o);
}

int object_emptied(struct tcase *c, int object)
{
	struct object o = ledger_of(c)->objects[object];

	o.phase++;
	return object_add(c, &o);
}

int object_sysv(struct tcase *c, enum object_kind kind, int id)
{
	struct object o = {.kind = kind, .id = id, .ns = ipc_namespace()};

	return object_add(c, &o);
}

static struct access *access_of(struct ledger *l, pid_t pid, pid_t tid, int object, enum dir dir)
{
	struct access *a = l->accesses, *end = a + l->naccesses;

	for (; a < end; a++)
		if (a->tid == tid && a->pid == pid && a->object == object && a->dir == dir)
			return a;
	if (l->naccesses == MAX_ACCESSES) {
		errno = ENOSPC;
		die("note an access");
	}
	*a = (struct access){.pid = pid, .tid = tid, .object = object, .dir = dir};
	l->naccesses++;
	return a;
}

static void note(struct tcase *c, pid_t pid, pid_t tid, int object, enum dir dir, uint64_t bytes)
{
	struct ledger *l = ledger_of(c);
	struct access *a;

	sem_take(&l->lock);
	a = access_of(l, pid, tid, object, dir);
	a->bytes += bytes;
	a->calls++;
	sem_post(&l->lock);
}

void did(struct tcase *c, int object, enum dir dir, uint64_t bytes)
{
	pid_t pid, tid;

	host_ids(&pid, &tid);
	note(c, pid, tid, object, dir, bytes);
}

void did_before_death(struct tcase *c, pid_t pid, int object, enum dir dir, uint64_t bytes)
{
	note(c, pid, pid, object, dir, bytes);
}

void moved(struct tcase *c, pid_t from, pid_t to, int object, uint64_t bytes)
{
	struct ledger *l = ledger_of(c);
	struct move *m = l->moves, *end;

	sem_take(&l->lock);
	for (end = m + l->nmoves; m < end; m++)
		if (m->from == from && m->to == to && m->object == object)
			break;
	if (m == l->moves + MAX_MOVES) {
		errno = ENOSPC;
		die("note a move");
	}
	if (m == end) {
		*m = (struct move){.from = from, .to = to, .object = object};
		l->nmoves++;
	}
	m->bytes += bytes;
	m->count++;
	sem_post(&l->lock);
}

void put(struct tcase *c, int object, int fd, size_t n)
{
	ssize_t r = write(fd, buf, n);

	if (r >= 0 && (size_t)r != n)
		errno = EIO;
	if (r < 0 || (size_t)r != n)
		die("write %zu bytes, and not %zd", n, r);
	did(c, object, DIR_WRITE, r);
}

void put_messages(struct tcase *c, int object, int fd, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		put(c, object, fd, message_len(i));
}

void take(struct tcase *c, int object, int fd, size_t n, size_t chunk)
{
	while (n) {
		ssize_t r = read(fd, buf, n < chunk ? n : chunk);

		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			errno = EPIPE;
		if (r <= 0)
			die("read the last %zu bytes", n);
		did(c, object, DIR_READ, r);
		n -= r;
	}
}

void must_fail(ssize_t returned, int code, const char *what)
{
	if (returned < 0 && errno == code)
		return;
	if (returned >= 0)
		errno = 0;
	die("%s should fail with %d and returned %zd", what, code, returned);
}

void *nowhere(void)
{
	static void *page;

	if (!page)
		page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		die("map a page");
	return page;
}

void play(struct tcase *c, const struct cast *cast, int n)
{
	for (int i = 0; i < n; i++)
		role_add(c, cast[i].name, true);
	for (int i = 0; i < n; i++)
		role_start(c, i, cast[i].fn);
	case_play(c, NULL);
}

const char *path_of(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", shared->dir, name);
	return path;
}

int file_with(const char *name, size_t n)
{
	int fd = open(path_of(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	/* Not write(): the traffic that counts has not begun. */
	if (fd < 0 || ftruncate(fd, n) < 0)
		die("make the file '%s'", name);
	return fd;
}
