/* The ways to block, each with the one way that ends it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/userfaultfd.h>

#include "waits.h"

#define DISK_BLOCK 4096

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_ino;
}

static void read_one(int fd)
{
	char c[8];

	if (read(fd, c, sizeof(c)) <= 0)
		die("read");
}

static void write_one(int fd)
{
	static const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		die("write");
}

/* Locks: the waker holds the lock for a period; the waiter asks for it when that has begun. */

static void await_held(struct wait_run *r)
{
	while (!__atomic_load_n(&r->held, __ATOMIC_ACQUIRE) && !__atomic_load_n(&r->done, __ATOMIC_ACQUIRE))
		pause_us(200);
	r->begin_ns = now_ns();
}

static void hold(struct wait_run *r)
{
	__atomic_store_n(&r->held, true, __ATOMIC_RELEASE);
	pause_us(PERIOD_US);
	__atomic_store_n(&r->held, false, __ATOMIC_RELEASE);
}

static int mutex_setup(struct wait_run *r)
{
	pthread_mutex_t *m = calloc(1, sizeof(*m));

	pthread_mutex_init(m, NULL);
	r->memory = m;
	snprintf(r->object, sizeof(r->object), "futex:%d:0x%llx", getpid(), (unsigned long long)(uintptr_t)m);
	return 0;
}

static int mutex_pi_setup(struct wait_run *r)
{
	pthread_mutexattr_t a;

	mutex_setup(r);
	pthread_mutexattr_init(&a);
	if (pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT) ||
	    pthread_mutex_init(r->memory, &a))
		return -1;
	return 0;
}

static void mutex_wait(struct wait_run *r)
{
	await_held(r);
	pthread_mutex_lock(r->memory);
	pthread_mutex_unlock(r->memory);
}

static void mutex_wake(struct wait_run *r)
{
	pthread_mutex_lock(r->memory);
	hold(r);
	pthread_mutex_unlock(r->memory);
}

static int sem_setup(struct wait_run *r)
{
	r->memory = calloc(1, sizeof(sem_t));
	return sem_init(r->memory, 0, 0);
}

static void sem_wait_one(struct wait_run *r)
{
	while (sem_wait(r->memory))
		if (errno != EINTR)
			die("sem_wait");
}

static void sem_wake(struct wait_run *r)
{
	sem_post(r->memory);
}

/* Nobody posts: time runs out. */
static void sem_timeout(struct wait_run *r)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += PERIOD_US * 1000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	if (!sem_timedwait(r->memory, &t) || errno != ETIMEDOUT)
		die("sem_timedwait");
}

/* Pipes, sockets, counters */

static int pipe_setup(struct wait_run *r)
{
	if (pipe2(r->fd, O_CLOEXEC))
		return -1;
	snprintf(r->object, sizeof(r->object), "pipe_inode:%llu", (unsigned long long)inode_of(r->fd[0]));
	return 0;
}

static void fd_wait(struct wait_run *r)
{
	read_one(r->fd[0]);
}

static void fd_wake(struct wait_run *r)
{
	write_one(r->fd[1]);
}

/* As much as the pipe holds: each write after the first waits until all of that was read. */
static int pipe_full_setup(struct wait_run *r)
{
	if (pipe_setup(r) || fcntl(r->fd[0], F_SETPIPE_SZ, 4096) != 4096)
		return -1;
	r->memory = calloc(1, 4096);
	return write(r->fd[1], r->memory, 4096) == 4096 ? 0 : -1;
}

static void pipe_full_wait(struct wait_run *r)
{
	if (write(r->fd[1], r->memory, 4096) != 4096)
		die("write");
}

static void pipe_full_wake(struct wait_run *r)
{
	char all[4096];

	if (read(r->fd[0], all, sizeof(all)) != sizeof(all))
		die("read");
}

static int fifo_setup(struct wait_run *r)
{
	snprintf(r->path, sizeof(r->path), "%s/waits-fifo-%d", wait_dir, getpid());
	if (mkfifo(r->path, 0600))
		return -1;
	r->fd[0] = open(r->path, O_RDWR | O_CLOEXEC);
	r->fd[1] = r->fd[0];
	unlink(r->path);
	snprintf(r->object, sizeof(r->object), "pipe_inode:%llu", (unsigned long long)inode_of(r->fd[0]));
	return r->fd[0] < 0 ? -1 : 0;
}

static int unix_setup(struct wait_run *r)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, r->fd))
		return -1;
	snprintf(r->object, sizeof(r->object), "unix_socket:%llu", (unsigned long long)inode_of(r->fd[0]));
	return 0;
}

/* The waiter's end has address @addr; sockets belong to the namespace that they were made in. */
static int tcp_connect(struct wait_run *r, int listener, int client, const char *addr)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);

	inet_pton(AF_INET, addr, &a.sin_addr);
	if (bind(listener, (struct sockaddr *)&a, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&a, &len) ||
	    connect(client, (struct sockaddr *)&a, len))
		return -1;
	r->fd[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	r->fd[1] = client;
	close(listener);
	snprintf(r->object, sizeof(r->object), "socket:TCP:%s:%u", addr, ntohs(a.sin_port));
	return r->fd[0] < 0 ? -1 : 0;
}

static int tcp_socket(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int tcp_setup(struct wait_run *r)
{
	return tcp_connect(r, tcp_socket(), tcp_socket(), "127.0.0.1");
}

/* Two new namespaces, joined by a pair of devices; this thread ends in the second one. */
static int namespaces_make(int ret[2])
{
	char command[320];

	for (int i = 0; i < 2; i++) {
		if (unshare(CLONE_NEWNET))
			return -1;
		ret[i] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	}
	snprintf(command, sizeof(command),
		 "ip link add waits1 type veth peer name waits0 && "
		 "ip link set waits0 netns /proc/%d/fd/%d && ip addr add 10.99.0.2/24 dev waits1 && "
		 "ip link set waits1 up",
		 getpid(), ret[0]);
	if (system(command) || setns(ret[0], CLONE_NEWNET) ||
	    system("ip addr add 10.99.0.1/24 dev waits0 && ip link set waits0 up"))
		return -1;
	return setns(ret[1], CLONE_NEWNET);
}

static int veth_setup(struct wait_run *r)
{
	int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), spaces[2], listener, client, rc;

	rc = namespaces_make(spaces);
	if (!rc) {
		client = tcp_socket();
		rc = setns(spaces[0], CLONE_NEWNET);
		listener = tcp_socket();
		rc = rc || tcp_connect(r, listener, client, "10.99.0.1") ? -1 : 0;
	}
	if (setns(own, CLONE_NEWNET))
		die("setns");
	return rc;
}

static int eventfd_setup(struct wait_run *r)
{
	r->fd[0] = r->fd[1] = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return r->fd[0] < 0 ? -1 : 0;
}

static int timerfd_setup(struct wait_run *r)
{
	r->fd[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return r->fd[0] < 0 ? -1 : 0;
}

static void timerfd_wait(struct wait_run *r)
{
	struct itimerspec t = {.it_value.tv_nsec = PERIOD_US * 1000};

	if (timerfd_settime(r->fd[0], 0, &t, NULL))
		die("timerfd_settime");
	read_one(r->fd[0]);
}

/* Several sources: the one that is used is the second of three. */

static int sources_setup(struct wait_run *r)
{
	if (pipe2(r->fd, O_CLOEXEC))
		return -1;
	r->fd[2] = eventfd(0, EFD_CLOEXEC);
	return r->fd[2] < 0 ? -1 : 0;
}

static int epoll_setup(struct wait_run *r)
{
	struct epoll_event idle = {.events = EPOLLIN}, used = {.events = EPOLLIN, .data.u32 = 1};

	if (sources_setup(r))
		return -1;
	r->fd[3] = epoll_create1(EPOLL_CLOEXEC);
	return epoll_ctl(r->fd[3], EPOLL_CTL_ADD, r->fd[2], &idle) ||
			       epoll_ctl(r->fd[3], EPOLL_CTL_ADD, r->fd[0], &used)
		       ? -1
		       : 0;
}

static void epoll_wait_one(struct wait_run *r)
{
	struct epoll_event e;

	if (epoll_wait(r->fd[3], &e, 1, -1) != 1 || !e.data.u32)
		die("epoll_wait");
	read_one(r->fd[0]);
}

static void poll_wait(struct wait_run *r)
{
	struct pollfd p[2] = {{.fd = r->fd[2], .events = POLLIN}, {.fd = r->fd[0], .events = POLLIN}};

	if (poll(p, 2, -1) != 1)
		die("poll");
	read_one(r->fd[0]);
}

static void poll_one_wait(struct wait_run *r)
{
	struct pollfd p = {.fd = r->fd[0], .events = POLLIN};

	if (poll(&p, 1, -1) != 1)
		die("poll");
	read_one(r->fd[0]);
}

static void poll_timeout(struct wait_run *r)
{
	struct pollfd p[2] = {{.fd = r->fd[2], .events = POLLIN}, {.fd = r->fd[0], .events = POLLIN}};

	if (poll(p, 2, PERIOD_US / 1000))
		die("poll");
}

static void select_wait(struct wait_run *r)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(r->fd[0], &set);
	FD_SET(r->fd[2], &set);
	if (select((r->fd[0] > r->fd[2] ? r->fd[0] : r->fd[2]) + 1, &set, NULL, NULL, NULL) != 1)
		die("select");
	read_one(r->fd[0]);
}

/* Queues and semaphores of System V and POSIX */

static int msg_setup(struct wait_run *r)
{
	r->id = msgget(IPC_PRIVATE, 0600);
	snprintf(r->object, sizeof(r->object), "sysv_queue:%d", r->id);
	return r->id < 0 ? -1 : 0;
}

static void msg_wait(struct wait_run *r)
{
	struct {
		long type;
		char text[8];
	} m;

	if (msgrcv(r->id, &m, sizeof(m.text), 0, 0) < 0)
		die("msgrcv");
}

static void msg_wake(struct wait_run *r)
{
	struct {
		long type;
		char text[8];
	} m = {.type = 1};

	if (msgsnd(r->id, &m, sizeof(m.text), 0))
		die("msgsnd");
}

static int mq_setup(struct wait_run *r)
{
	struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 8};
	char name[64];

	snprintf(name, sizeof(name), "/waits-%d", getpid());
	r->fd[0] = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &a);
	mq_unlink(name);
	snprintf(r->object, sizeof(r->object), "posix_queue:%llu", (unsigned long long)inode_of(r->fd[0]));
	return r->fd[0] < 0 ? -1 : 0;
}

static void mq_wait(struct wait_run *r)
{
	char text[8];

	if (mq_receive(r->fd[0], text, sizeof(text), NULL) < 0)
		die("mq_receive");
}

static void mq_wake(struct wait_run *r)
{
	if (mq_send(r->fd[0], "message", 8, 0))
		die("mq_send");
}

static int semop_setup(struct wait_run *r)
{
	r->id = semget(IPC_PRIVATE, 1, 0600);
	snprintf(r->object, sizeof(r->object), "sysv_sem:%d", r->id);
	return r->id < 0 ? -1 : 0;
}

static void semop_by(struct wait_run *r, short by)
{
	struct sembuf op = {.sem_op = by};

	if (semop(r->id, &op, 1))
		die("semop");
}

static void semop_wait(struct wait_run *r)
{
	semop_by(r, -1);
}

static void semop_wake(struct wait_run *r)
{
	semop_by(r, 1);
}

/* Time, signals, children */

static void sleep_wait(struct wait_run *r)
{
	pause_us(PERIOD_US);
}

static int signal_setup(struct wait_run *r)
{
	return 0; /* SIGRTMIN is blocked in all threads; it is queued, however late its receiver */
}

static void signal_wait(struct wait_run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigwaitinfo(&set, NULL) != SIGRTMIN)
		die("sigwaitinfo");
}

static void signal_wake(struct wait_run *r)
{
	syscall(SYS_tgkill, r->pid, r->waiter, SIGRTMIN);
}

static void child_wait(struct wait_run *r)
{
	pid_t child = fork();

	if (!child) {
		pause_us(PERIOD_US);
		_exit(0);
	}
	r->begin_ns = now_ns();
	r->children[r->nchildren++] = child;
	if (waitpid(child, NULL, 0) != child)
		die("waitpid");
}

/* Files and memory */

static int disk_setup(struct wait_run *r)
{
	struct statfs fs;

	if (statfs(wait_dir, &fs) || fs.f_type == TMPFS_MAGIC || fs.f_type == V9FS_MAGIC)
		return -1;
	snprintf(r->path, sizeof(r->path), "%s/waits-disk-%d", wait_dir, getpid());
	r->fd[0] = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
	if (r->fd[0] < 0)
		return -1;
	unlink(r->path);
	r->memory = aligned_alloc(DISK_BLOCK, 256 * DISK_BLOCK);
	memset(r->memory, 'x', 256 * DISK_BLOCK);
	snprintf(r->object, sizeof(r->object), ":%llu", (unsigned long long)inode_of(r->fd[0]));
	return pwrite(r->fd[0], r->memory, 256 * DISK_BLOCK, 0) < 0 ? -1 : 0;
}

static void disk_wait(struct wait_run *r)
{
	if (pread(r->fd[0], r->memory, 256 * DISK_BLOCK, 0) < 0)
		die("pread");
}

static int flock_setup(struct wait_run *r)
{
	snprintf(r->path, sizeof(r->path), "%s/waits-lock-%d", wait_dir, getpid());
	r->fd[0] = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	r->fd[1] = open(r->path, O_RDWR | O_CLOEXEC);
	unlink(r->path);
	snprintf(r->object, sizeof(r->object), ":%llu", (unsigned long long)inode_of(r->fd[0]));
	return r->fd[1] < 0 ? -1 : 0;
}

static void flock_wait(struct wait_run *r)
{
	await_held(r);
	if (flock(r->fd[0], LOCK_EX) || flock(r->fd[0], LOCK_UN))
		die("flock");
}

static void flock_wake(struct wait_run *r)
{
	if (flock(r->fd[1], LOCK_EX))
		die("flock");
	hold(r);
	if (flock(r->fd[1], LOCK_UN))
		die("flock");
}

/* Memory whose pages another thread fills in, when it is touched. */
static int fault_setup(struct wait_run *r)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	r->memory = mmap(NULL, ROUNDS * DISK_BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	r->fd[0] = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (r->fd[0] < 0 || r->memory == MAP_FAILED || ioctl(r->fd[0], UFFDIO_API, &api))
		return -1;
	reg.range.start = (uintptr_t)r->memory;
	reg.range.len = ROUNDS * DISK_BLOCK;
	return ioctl(r->fd[0], UFFDIO_REGISTER, &reg);
}

static void fault_wait(struct wait_run *r)
{
	volatile char *page = (char *)r->memory + (size_t)r->id++ * DISK_BLOCK;

	*page = 1;
}

static void fault_wake(struct wait_run *r)
{
	static const char zeros[DISK_BLOCK] __attribute__((aligned(DISK_BLOCK)));
	struct uffdio_copy copy = {.src = (uintptr_t)zeros, .len = DISK_BLOCK};
	struct uffd_msg m;

	if (read(r->fd[0], &m, sizeof(m)) != sizeof(m))
		die("userfaultfd");
	pause_us(PERIOD_US);
	copy.dst = m.arg.pagefault.address & ~(uint64_t)(DISK_BLOCK - 1);
	if (ioctl(r->fd[0], UFFDIO_COPY, &copy))
		die("UFFDIO_COPY");
}

const struct wait_case wait_cases[] = {
	{"child", "child", "wait_object", "child", NULL, child_wait, NULL, .alone = true},
	{"mutex", "futex", "futex", NULL, mutex_setup, mutex_wait, mutex_wake},
	{"mutex_pi", "futex", "futex", NULL, mutex_pi_setup, mutex_wait, mutex_wake},
	{"posix_sem", "futex", "futex", NULL, sem_setup, sem_wait_one, sem_wake},
	{"futex_timeout", "futex", "futex", "timer", sem_setup, sem_timeout, NULL},
	{"pipe_read", "pipe", "pipe_inode", NULL, pipe_setup, fd_wait, fd_wake},
	{"pipe_write", "pipe", "pipe_inode", NULL, pipe_full_setup, pipe_full_wait, pipe_full_wake},
	{"fifo_read", "pipe", "pipe_inode", NULL, fifo_setup, fd_wait, fd_wake},
	{"unix", "socket", "unix_socket", NULL, unix_setup, fd_wait, fd_wake},
	{"tcp", "socket", "socket", NULL, tcp_setup, fd_wait, fd_wake},
	{"tcp_veth", "socket", "socket", NULL, veth_setup, fd_wait, fd_wake},
	{"eventfd", "eventfd", "eventfd", NULL, eventfd_setup, fd_wait, fd_wake},
	{"timerfd", "sleep", "wait_object", "timer", timerfd_setup, timerfd_wait, NULL},
	{"epoll", "poll", "wait_object", NULL, epoll_setup, epoll_wait_one, fd_wake},
	{"poll", "poll", "wait_object", NULL, sources_setup, poll_wait, fd_wake},
	{"poll_one", "poll", "pipe_inode", NULL, pipe_setup, poll_one_wait, fd_wake},
	{"poll_timeout", "poll", "wait_object", "timer", sources_setup, poll_timeout, NULL},
	{"select", "poll", "wait_object", NULL, sources_setup, select_wait, fd_wake},
	{"sysv_queue", "queue", "sysv_queue", NULL, msg_setup, msg_wait, msg_wake},
	{"posix_queue", "queue", "posix_queue", NULL, mq_setup, mq_wait, mq_wake},
	{"sysv_sem", "semaphore", "sysv_sem", NULL, semop_setup, semop_wait, semop_wake},
	{"sleep", "sleep", "wait_object", "timer", NULL, sleep_wait, NULL},
	{"signal", "signal", "wait_object", NULL, signal_setup, signal_wait, signal_wake},
	{"disk", "disk", "file", "disk", disk_setup, disk_wait, NULL},
	{"flock", "file_lock", "file", NULL, flock_setup, flock_wait, flock_wake},
	{"page_fault", "page_fault", "wait_object", NULL, fault_setup, fault_wait, fault_wake},
};
const size_t n_wait_cases = sizeof(wait_cases) / sizeof(wait_cases[0]);
