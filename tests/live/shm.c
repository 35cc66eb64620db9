/* Maps memory in every way that two processes can share it, and writes down what it did. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm.h"

/*
 * Each case runs in a process of its own, which makes its helpers before it maps anything, so that a
 * process maps only what its case says. All hold what they have until the program is told to end.
 */
struct shm_run run;

void die(const char *what)
{
	fprintf(stderr, "shm: %s: %s: %s\n", run.name ? run.name : "main", what, strerror(errno));
	_exit(1);
}

/* A text as JSON; bytes that are no ASCII do not occur. */
static void json_text(char *to, size_t size, const char *s)
{
	size_t n = 0;

	for (; *s && n + 7 < size; s++) {
		if (*s == '"' || *s == '\\' || *s < ' ')
			n += (size_t)snprintf(to + n, size - n, "\\u%04x", *s);
		else
			to[n++] = *s;
	}
	to[n] = '\0';
}

/* Resident part of the mappings between two addresses, as the kernel itself adds it up. */
static long rss_kib(const void *from, size_t bytes)
{
	unsigned long start = (unsigned long)from, a, b;
	char line[4096];
	bool inside = false;
	long sum = 0, kib;
	FILE *f = fopen("/proc/self/smaps", "re");

	if (!f)
		die("smaps");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &a, &b) == 2)
			inside = a >= start && b <= start + bytes;
		else if (inside && (sscanf(line, "Rss: %ld", &kib) == 1 ||
				    sscanf(line, "Shared_Hugetlb: %ld", &kib) == 1 ||
				    sscanf(line, "Private_Hugetlb: %ld", &kib) == 1))
			sum += kib;
	}
	fclose(f);
	return sum;
}

/* Of a file the kernel reads as much ahead as it likes: asked, where all of it is mapped. */
static long resident_bytes(const struct shm_fact *f)
{
	unsigned char pages[512];
	long sum = 0;

	if (strcmp(f->kind, "file"))
		return (long)f->resident;
	if (!f->at || f->bytes < f->size || f->bytes > sizeof(pages) * run.page)
		return -1;
	if (mincore((void *)(uintptr_t)f->at, f->bytes, pages))
		die("mincore");
	for (size_t i = 0; i < f->bytes / run.page; i++)
		sum += (pages[i] & 1) * (long)run.page;
	return sum;
}

static void shown_identity(const void *at, struct stat *st)
{
	unsigned long start;
	unsigned dev[2];
	unsigned long long ino;
	char line[4096];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x %*s %*x %x:%x %llu", &start, &dev[0], &dev[1], &ino) != 4 ||
		    start != (unsigned long)at)
			continue;
		st->st_dev = makedev(dev[0], dev[1]);
		st->st_ino = ino;
	}
	if (f)
		fclose(f);
}

void tell(const struct shm_fact *f)
{
	char name[1024], line[2048];
	struct stat st = {0};
	int n;

	json_text(name, sizeof(name), f->name);
	if (f->fd >= 0 && fstat(f->fd, &st))
		die("fstat");
	if (f->overlaid)
		shown_identity(f->at, &st);
	/* A device is itself, whatever file leads to it. */
	if (S_ISCHR(st.st_mode)) {
		st.st_dev = st.st_rdev;
		st.st_ino = 0;
	}
	n = snprintf(line, sizeof(line),
		     "{\"case\":\"%s\",\"object\":\"%s%s\",\"kind\":\"%s\",\"name\":\"%s\",\"pid\":%d,"
		     "\"mode\":\"%s\",\"bytes\":%zu,\"rss\":%ld,\"size\":%zu,\"resident\":%ld,"
		     "\"dev\":\"%u:%u\",\"inode\":%llu,\"listed\":%s,\"unlinked\":%s,"
		     "\"wakes\":\"%s\",\"room\":%zu}\n",
		     run.name, run.name, f->which ?: "", f->kind, name, getpid(), f->mode, f->bytes,
		     f->at ? rss_kib(f->at, f->span ?: f->bytes) * 1024 : 0, f->size, resident_bytes(f),
		     major(st.st_dev), minor(st.st_dev),
		     f->fd >= 0 ? (unsigned long long)st.st_ino : (unsigned long long)f->inode,
		     f->absent ? "false" : "true", f->unlinked ? "true" : "false", f->wakes ?: "", f->room);
	if (write(run.truth, line, (size_t)n) != n)
		die("write");
}

void *map_fd(int fd, size_t bytes, int prot, int flags)
{
	void *p = mmap(NULL, bytes, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

void touch(void *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		((volatile char *)p)[i * run.page] = 1;
}

/* Helpers say when they are done, and stay. */
static void hold(void)
{
	struct pollfd p = {.fd = run.hold};

	poll(&p, 1, -1);
	_exit(0);
}

pid_t helper(void (*fn)(struct shm_link *), struct shm_link *l)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die("socketpair");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		l->sock = fds[1];
		close(fds[0]);
		fn(l);
		done(l);
		hold();
	}
	close(fds[1]);
	l->sock = fds[0];
	return pid;
}

void done(struct shm_link *l)
{
	if (write(l->sock, "d", 1) != 1)
		die("write to the other");
}

void await(struct shm_link *l)
{
	char c;

	if (read(l->sock, &c, 1) != 1)
		die("the other ended");
}

void send_fd(struct shm_link *l, int fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} u = {0};
	struct iovec v = {.iov_base = (char[]){"f"}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u)};

	u.h.cmsg_level = SOL_SOCKET;
	u.h.cmsg_type = SCM_RIGHTS;
	u.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&u.h), &fd, sizeof(fd));
	if (sendmsg(l->sock, &m, 0) != 1)
		die("sendmsg");
}

int receive_fd(struct shm_link *l)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} u;
	char c;
	struct iovec v = {.iov_base = &c, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u)};
	int fd;

	if (recvmsg(l->sock, &m, 0) != 1 || m.msg_controllen < CMSG_LEN(sizeof(int)))
		die("recvmsg");
	memcpy(&fd, CMSG_DATA(&u.h), sizeof(fd));
	return fd;
}

static pid_t start_case(const struct shm_case *c, int ready, int holder)
{
	pid_t pid = fork();
	char said;

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(holder);
	prctl(PR_SET_NAME, c->name);
	run.name = c->name;
	/* 77: what it needs is not on this machine. */
	said = c->fn() ? 's' : 'r';
	if (write(ready, &said, 1) != 1)
		die("ready");
	hold();
	return 0;
}

static bool is_disk(const char *dir)
{
	struct statfs fs;

	return !statfs(dir, &fs) && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC &&
	       fs.f_type != OVERLAYFS_SUPER_MAGIC && !access(dir, W_OK);
}

static void find_disk(void)
{
	const char *const dirs[] = {getenv("SHM_DISK"), ".", "/var/tmp", "/tmp", "/root"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && !run.disk; i++)
		if (dirs[i] && is_disk(dirs[i]))
			run.disk = realpath(dirs[i], NULL);
}

int main(int argc, char **argv)
{
	int ready[2], holds[2], skipped = 0;
	char said;

	if (argc < 2) {
		fprintf(stderr, "usage: shm TRUTH [CASE]...: holds everything until its input ends\n");
		return 2;
	}
	run.page = (size_t)sysconf(_SC_PAGESIZE);
	run.truth = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC, 0644);
	if (run.truth < 0 || pipe2(ready, O_CLOEXEC) || pipe2(holds, O_CLOEXEC))
		die("start");
	run.hold = holds[0];
	snprintf(run.id, sizeof(run.id), "witty-shm-%d", getpid());
	find_disk();
	for (size_t i = 0; i < nshm_cases; i++) {
		const struct shm_case *c = &shm_cases[i];
		bool wanted = argc == 2;

		for (int a = 2; a < argc; a++)
			wanted |= !strcmp(argv[a], c->name);
		if (!wanted)
			continue;
		pid_t pid = start_case(c, ready[1], holds[1]);

		/* One after the other: a case that fails is named, and none waits for another's names. */
		while (poll(&(struct pollfd){.fd = ready[0], .events = POLLIN}, 1, 100) == 0)
			if (waitpid(pid, NULL, WNOHANG) == pid)
				return 1;
		if (read(ready[0], &said, 1) != 1)
			die("ready");
		if (said == 's') {
			fprintf(stderr, "shm: %s: not on this machine\n", c->name);
			skipped++;
		}
	}
	printf("ready %d %d\n", getpid(), skipped);
	fflush(stdout);
	while (read(0, &said, 1) > 0)
		;
	close(holds[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
