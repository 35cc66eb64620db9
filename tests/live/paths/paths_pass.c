/* Descriptors that go from process to process: by messages of Unix sockets, and by pidfd_getfd. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GIVER, TAKER, THIRD }; /* roles */
enum { MAX_FDS = 40 };

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int) * MAX_FDS)];
};

static int pair[2], onward[2]; /* giver to taker, taker to third */

static void message_for(struct msghdr *m, union control *u, struct iovec *v, int nfds)
{
	*v = (struct iovec){buf, 1};
	*m = (struct msghdr){.msg_iov = v,
			     .msg_iovlen = 1,
			     .msg_control = u,
			     .msg_controllen = CMSG_SPACE(sizeof(int) * nfds)};
	memset(u, 0, sizeof(*u));
	u->head = (struct cmsghdr){CMSG_LEN(sizeof(int) * nfds), SOL_SOCKET, SCM_RIGHTS};
}

static void give(struct tcase *c, int from, int to, int over, const int *fds, int n)
{
	union control u;
	struct msghdr m;
	struct iovec v;

	message_for(&m, &u, &v, n);
	memcpy(CMSG_DATA(&u.head), fds, sizeof(int) * n);
	if (sendmsg(over, &m, MSG_NOSIGNAL) != 1)
		die("pass descriptors");
	flow_sent(flow_between(c, from, to, KIND_UNIX), 1);
}

/* Those that arrived, at most @p room. */
static int taken(struct tcase *c, int from, int to, const union control *u, int *fds)
{
	int n = (u->head.cmsg_len - CMSG_LEN(0)) / sizeof(int);

	memcpy(fds, CMSG_DATA(&u->head), sizeof(int) * n);
	for (int i = 0; i < n; i++)
		moved(c, c->roles[from].pid, c->roles[to].pid, object_of(c, fds[i]), 0);
	return n;
}

static int accept_fds(struct tcase *c, int from, int to, int over, int *fds, int room)
{
	union control u;
	struct msghdr m;
	struct iovec v;

	message_for(&m, &u, &v, room);
	if (recvmsg(over, &m, MSG_CMSG_CLOEXEC) != 1 || m.msg_controllen < sizeof(u.head))
		die("take descriptors");
	flow_received(flow_between(c, from, to, KIND_UNIX), 1);
	return taken(c, from, to, &u, fds);
}

static void connect_roles(struct tcase *c, int type)
{
	if (socketpair(AF_UNIX, type, 0, pair) < 0 || socketpair(AF_UNIX, type, 0, onward) < 0)
		die("make a pair of sockets");
	flow_add(c, GIVER, TAKER, KIND_UNIX);
}

/* One of each kind with one message; half of them go on to a third process. */
static void kinds_giver(struct tcase *c, int role)
{
	int p[2], fds[6];

	if (pipe(p) < 0 || mkfifo(path_of("pass-fifo"), 0600) < 0)
		die("make a pipe");
	fds[0] = p[1];
	fds[1] = open(path_of("pass-fifo"), O_RDWR | O_CLOEXEC);
	fds[2] = eventfd(0, EFD_CLOEXEC);
	fds[3] = file_with("pass-file", 100);
	fds[4] = memfd_create("pass-memory", MFD_CLOEXEC);
	fds[5] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (int i = 0; i < 6; i++)
		if (fds[i] < 0)
			die("open number %d of what is passed", i);
	gate(c);
	give(c, GIVER, TAKER, pair[0], fds, 6);
}

static void kinds_taker(struct tcase *c, int role)
{
	int fds[MAX_FDS];

	gate(c);
	if (accept_fds(c, GIVER, TAKER, pair[1], fds, 6) != 6) {
		errno = ENOMSG;
		die("take six descriptors");
	}
	give(c, TAKER, THIRD, onward[0], fds + 1, 3);
}

static void kinds_third(struct tcase *c, int role)
{
	int fds[MAX_FDS];

	gate(c);
	if (accept_fds(c, TAKER, THIRD, onward[1], fds, MAX_FDS) != 3) {
		errno = ENOMSG;
		die("take three descriptors");
	}
}

void pass_kinds_run(struct tcase *c)
{
	connect_roles(c, SOCK_STREAM);
	flow_add(c, TAKER, THIRD, KIND_UNIX);
	PLAY(c, {"give", kinds_giver}, {"take", kinds_taker}, {"3rd", kinds_third});
}

/* Several messages with one call, the same pipe in each. */
enum { MANY = 4 };

static int end[2], object;

static void many_giver(struct tcase *c, int role)
{
	struct mmsghdr m[MANY] = {0};
	union control u[MANY];
	struct iovec v[MANY];

	for (int i = 0; i < MANY; i++) {
		message_for(&m[i].msg_hdr, &u[i], &v[i], 1);
		memcpy(CMSG_DATA(&u[i].head), &end[i % 2], sizeof(int));
	}
	gate(c);
	if (sendmmsg(pair[0], m, MANY, 0) != MANY)
		die("pass descriptors by sendmmsg");
	for (int i = 0; i < MANY; i++)
		flow_sent(flow_between(c, GIVER, TAKER, KIND_UNIX), m[i].msg_len);
	step_post(c, STEP_A);
}

static void many_taker(struct tcase *c, int role)
{
	struct mmsghdr m[MANY] = {0};
	union control u[MANY];
	struct iovec v[MANY];
	int fd;

	for (int i = 0; i < MANY; i++)
		message_for(&m[i].msg_hdr, &u[i], &v[i], 1);
	gate(c);
	step_wait(c, STEP_A);
	if (recvmmsg(pair[1], m, MANY, MSG_CMSG_CLOEXEC, NULL) != MANY)
		die("take descriptors by recvmmsg");
	for (int i = 0; i < MANY; i++) {
		flow_received(flow_between(c, GIVER, TAKER, KIND_UNIX), m[i].msg_len);
		taken(c, GIVER, TAKER, &u[i], &fd);
	}
}

static void open_pipe(struct tcase *c)
{
	if (pipe2(end, O_CLOEXEC) < 0)
		die("make a pipe");
	object = object_of(c, end[0]);
}

void pass_many_run(struct tcase *c)
{
	open_pipe(c);
	connect_roles(c, SOCK_DGRAM);
	PLAY(c, {"give", many_giver}, {"take", many_taker});
}

/* The receiver has no room for all: the others are lost, and messages without any. */
static void cut_giver(struct tcase *c, int role)
{
	const int fds[] = {end[0], end[1], end[0], end[1]};

	gate(c);
	send_once(flow_between(c, GIVER, TAKER, KIND_UNIX), pair[0], buf, 1);
	give(c, GIVER, TAKER, pair[0], fds, 4);
	send_once(flow_between(c, GIVER, TAKER, KIND_UNIX), pair[0], buf, 1);
}

static void cut_taker(struct tcase *c, int role)
{
	struct flow *f = flow_between(c, GIVER, TAKER, KIND_UNIX);
	int fds[MAX_FDS];
	union control u;
	struct msghdr m;
	struct iovec v;

	gate(c);
	message_for(&m, &u, &v, MAX_FDS);
	if (recvmsg(pair[1], &m, 0) != 1 || m.msg_controllen)
		die("take a message without descriptors");
	flow_received(f, 1);
	if (accept_fds(c, GIVER, TAKER, pair[1], fds, 2) != 2) {
		errno = ENOMSG;
		die("take two descriptors of four");
	}
	recv_once(f, pair[1], buf, 1);
}

void pass_cut_run(struct tcase *c)
{
	open_pipe(c);
	connect_roles(c, SOCK_SEQPACKET);
	PLAY(c, {"give", cut_giver}, {"take", cut_taker});
}

/* A pipe that was passed is the same pipe: its maker writes, then the one that got it. */
enum { OWN_BYTES = 1700, PASSED_BYTES = 2900, READER = 3 };

static void pipe_giver(struct tcase *c, int role)
{
	gate(c);
	put(c, object, end[1], OWN_BYTES);
	give(c, GIVER, TAKER, pair[0], &end[1], 1);
	close(end[1]);
}

static void pipe_taker(struct tcase *c, int role)
{
	int fd;

	close(end[0]);
	close(end[1]);
	gate(c);
	if (accept_fds(c, GIVER, TAKER, pair[1], &fd, 1) != 1) {
		errno = ENOMSG;
		die("take a descriptor");
	}
	put(c, object, fd, PASSED_BYTES);
	give(c, TAKER, THIRD, onward[0], &fd, 1);
	close(fd);
}

static void pipe_third(struct tcase *c, int role)
{
	int fd;

	close(end[0]);
	close(end[1]);
	gate(c);
	if (accept_fds(c, TAKER, THIRD, onward[1], &fd, 1) != 1) {
		errno = ENOMSG;
		die("take a descriptor");
	}
	put(c, object, fd, PASSED_BYTES + 1);
}

static void pipe_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, object, end[0], OWN_BYTES + 2 * PASSED_BYTES + 1, 2000);
}

void pass_pipe_run(struct tcase *c)
{
	open_pipe(c);
	connect_roles(c, SOCK_STREAM);
	flow_add(c, TAKER, THIRD, KIND_UNIX);
	PLAY(c, {"give", pipe_giver}, {"take", pipe_taker}, {"3rd", pipe_third},
	     {"r", pipe_reader});
}

/* Taken long after the sender ended. */
static void late_giver(struct tcase *c, int role)
{
	give(c, GIVER, TAKER, pair[0], end, 2);
}

static void late_taker(struct tcase *c, int role)
{
	int fds[MAX_FDS];

	gate(c);
	role_start(c, GIVER, late_giver);
	reap();
	await_look();
	if (accept_fds(c, GIVER, TAKER, pair[1], fds, 2) != 2) {
		errno = ENOMSG;
		die("take two descriptors");
	}
}

void pass_late_run(struct tcase *c)
{
	open_pipe(c);
	connect_roles(c, SOCK_STREAM);
	role_add(c, "give", false);
	role_add(c, "take", true);
	role_start(c, TAKER, late_taker);
	case_play(c, NULL);
}

/* Whoever looks at a message without taking it gets its descriptors too. */
static void peek_giver(struct tcase *c, int role)
{
	gate(c);
	give(c, GIVER, TAKER, pair[0], end, 1);
}

static void peek_taker(struct tcase *c, int role)
{
	int fds[MAX_FDS];
	union control u;
	struct msghdr m;
	struct iovec v;

	gate(c);
	message_for(&m, &u, &v, MAX_FDS);
	if (recvmsg(pair[1], &m, MSG_PEEK) != 1 || taken(c, GIVER, TAKER, &u, fds) != 1)
		die("look at a message");
	if (accept_fds(c, GIVER, TAKER, pair[1], fds, MAX_FDS) != 1) {
		errno = ENOMSG;
		die("take a descriptor");
	}
}

void pass_peek_run(struct tcase *c)
{
	open_pipe(c);
	connect_roles(c, SOCK_DGRAM);
	PLAY(c, {"give", peek_giver}, {"take", peek_taker});
}

/* Many with one message, after the credentials of the sender. */
static void lots_giver(struct tcase *c, int role)
{
	struct ucred who = {getpid(), getuid(), getgid()};
	char space[CMSG_SPACE(sizeof(who)) + CMSG_SPACE(sizeof(int) * MAX_FDS)] = {0};
	struct iovec v = {buf, 1};
	struct msghdr m = {
	    .msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int *fds;

	*h = (struct cmsghdr){CMSG_LEN(sizeof(who)), SOL_SOCKET, SCM_CREDENTIALS};
	memcpy(CMSG_DATA(h), &who, sizeof(who));
	h = CMSG_NXTHDR(&m, h);
	*h = (struct cmsghdr){CMSG_LEN(sizeof(int) * MAX_FDS), SOL_SOCKET, SCM_RIGHTS};
	fds = (int *)CMSG_DATA(h);
	for (int i = 0; i < MAX_FDS; i++)
		fds[i] = end[i % 2];
	gate(c);
	if (sendmsg(pair[0], &m, 0) != 1)
		die("pass descriptors");
	flow_sent(flow_between(c, GIVER, TAKER, KIND_UNIX), 1);
}

static void lots_taker(struct tcase *c, int role)
{
	int fds[MAX_FDS];

	gate(c);
	if (accept_fds(c, GIVER, TAKER, pair[1], fds, MAX_FDS) != MAX_FDS) {
		errno = ENOMSG;
		die("take many descriptors");
	}
}

void pass_lots_run(struct tcase *c)
{
	open_pipe(c);
	connect_roles(c, SOCK_STREAM);
	PLAY(c, {"give", lots_giver}, {"take", lots_taker});
}

/* By io_uring, in both directions. */
static void ring_message(struct msghdr *m, bool sends)
{
	struct io_uring ring;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;

	if (io_uring_queue_init(4, &ring, 0) < 0 || !(sqe = io_uring_get_sqe(&ring)))
		die("make a ring");
	if (sends)
		io_uring_prep_sendmsg(sqe, pair[0], m, 0);
	else
		io_uring_prep_recvmsg(sqe, pair[1], m, 0);
	if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &cqe) < 0 || cqe->res != 1)
		die("pass a descriptor by io_uring");
	io_uring_queue_exit(&ring);
}

static void ring_giver(struct tcase *c, int role)
{
	union control u;
	struct msghdr m;
	struct iovec v;

	message_for(&m, &u, &v, 1);
	memcpy(CMSG_DATA(&u.head), end, sizeof(int));
	gate(c);
	ring_message(&m, true);
	flow_sent(flow_between(c, GIVER, TAKER, KIND_UNIX), 1);
}

static void ring_taker(struct tcase *c, int role)
{
	union control u;
	struct msghdr m;
	struct iovec v;
	int fd;

	message_for(&m, &u, &v, 1);
	gate(c);
	ring_message(&m, false);
	flow_received(flow_between(c, GIVER, TAKER, KIND_UNIX), 1);
	taken(c, GIVER, TAKER, &u, &fd);
}

void pass_ring_run(struct tcase *c)
{
	struct io_uring ring;
	int rc = io_uring_queue_init(4, &ring, 0);

	if (rc < 0)
		case_skip(c, "io_uring: %s", strerror(-rc));
	io_uring_queue_exit(&ring);
	open_pipe(c);
	connect_roles(c, SOCK_STREAM);
	PLAY(c, {"give", ring_giver}, {"take", ring_taker});
}

/* A process takes descriptors of another, which does nothing for it. */
enum { STOLEN = 4, STOLEN_FIRST = 300 };

static void getfd_giver(struct tcase *c, int role)
{
	const int fds[STOLEN] = {end[1], eventfd(0, 0), file_with("stolen", 10),
				 socket(AF_UNIX, SOCK_DGRAM, 0)};

	for (int i = 0; i < STOLEN; i++)
		if (dup2(fds[i], STOLEN_FIRST + i) < 0)
			die("open number %d of what is taken", i);
	gate(c);
	put(c, object, end[1], OWN_BYTES);
	step_post(c, STEP_A);
	step_wait(c, STEP_B);
}

static void getfd_taker(struct tcase *c, int role)
{
	pid_t pid = c->roles[GIVER].pid;
	int pidfd = syscall(SYS_pidfd_open, pid, 0), fds[STOLEN];

	if (pidfd < 0)
		die("open a process");
	close(end[1]);
	gate(c);
	step_wait(c, STEP_A);
	for (int i = 0; i < STOLEN; i++) {
		fds[i] = syscall(SYS_pidfd_getfd, pidfd, STOLEN_FIRST + i, 0);
		if (fds[i] < 0)
			die("take a descriptor of a process");
		moved(c, pid, host_pid(), object_of(c, fds[i]), 0);
	}
	must_fail(syscall(SYS_pidfd_getfd, pidfd, 9999, 0), EBADF, "take what is not there");
	put(c, object, fds[0], PASSED_BYTES);
	step_post(c, STEP_B);
}

static void getfd_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, object, end[0], OWN_BYTES + PASSED_BYTES, 2000);
}

void getfd_run(struct tcase *c)
{
	open_pipe(c);
	role_add(c, "give", true);
	role_add(c, "take", true);
	role_add(c, "r", true);
	role_start(c, GIVER, getfd_giver);
	while (!c->roles[GIVER].pid)
		sleep_us(1000);
	role_start(c, TAKER, getfd_taker);
	role_start(c, 2, getfd_reader);
	case_play(c, NULL);
}
