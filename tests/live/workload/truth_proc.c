/* Sockets that change hands: inherited, passed, shared, executed over, and short-lived owners. */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A pair of sockets, made by one process, one end used by its child. */
enum { PARENT, CHILD };

static int inherited_fd; /* valid in the child that was just forked */

static void sockpair_child(struct tcase *c, int role)
{
	gate(c);
	plain_server(c, inherited_fd);
}

static void sockpair_dgram_child(struct tcase *c, int role)
{
	gate(c);
	dgram_server(c, inherited_fd);
}

static void sockpair_parent(struct tcase *c, int role)
{
	int p[2], type = c->plan;

	if (socketpair(AF_UNIX, type, 0, p) < 0)
		die("socketpair");
	inherited_fd = p[1];
	role_start(c, CHILD, type == SOCK_STREAM ? sockpair_child : sockpair_dgram_child);
	close(p[1]);
	gate(c);
	if (type == SOCK_STREAM)
		plain_client(c, p[0]);
	else
		dgram_client(c, p[0]);
}

static void sockpair_of(struct tcase *c, int type)
{
	c->plan = type;
	role_add(c, "par", true);
	role_add(c, "chi", true);
	flow_add(c, PARENT, CHILD, KIND_UNIX);
	flow_add(c, CHILD, PARENT, KIND_UNIX);
	role_start(c, PARENT, sockpair_parent);
	case_play(c, NULL);
}

void sockpair_run(struct tcase *c)
{
	sockpair_of(c, SOCK_STREAM);
}

void sockpair_dgram_run(struct tcase *c)
{
	sockpair_of(c, SOCK_DGRAM);
}

/* Passing: FIRST has the socket, SECOND gets it; OTHER is at its far end and notices nothing. */
enum { FIRST, SECOND, OTHER, SLOT_TCP = 0, SLOT_PASS, PASS_1 = 30, PASS_2 = 44, PASS_BACK = 9 };

static void fd_give(struct tcase *c, int over, int fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec v = {buf, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(over, &m, MSG_NOSIGNAL) != 1)
		die("pass a socket");
	flow_sent(flow_between(c, FIRST, SECOND, KIND_UNIX), 1);
}

static int fd_take(struct tcase *c, int over)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec v = {buf, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(over, &m, MSG_CMSG_CLOEXEC) != 1 || m.msg_controllen < sizeof(control.head))
		die("take a passed socket");
	flow_received(flow_between(c, FIRST, SECOND, KIND_UNIX), 1);
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

static void pass_first_sends(struct tcase *c, int role)
{
	int fd = sock_connect(c, OVER_TCP4, SLOT_TCP);
	int over = sock_connect(c, OVER_UNIX, SLOT_PASS);

	gate(c);
	send_messages(flow_between(c, FIRST, OTHER, KIND_TCP), fd, PASS_1 * shared->scale);
	recv_exactly(flow_between(c, OTHER, FIRST, KIND_TCP), fd, message_sum(PASS_BACK), 1000);
	fd_give(c, over, fd);
	close(fd);
}

static void pass_second_sends(struct tcase *c, int role)
{
	int over = sock_accept(sock_bind(c, OVER_UNIX, SLOT_PASS)), fd;

	gate(c);
	fd = fd_take(c, over);
	send_messages(flow_between(c, SECOND, OTHER, KIND_TCP), fd, PASS_2 * shared->scale);
}

static void pass_other_receives(struct tcase *c, int role)
{
	int fd = sock_accept(sock_bind(c, OVER_TCP4, SLOT_TCP));

	gate(c);
	recv_exactly(flow_between(c, FIRST, OTHER, KIND_TCP), fd,
		     message_sum(PASS_1 * shared->scale), 4000);
	send_messages(flow_between(c, OTHER, FIRST, KIND_TCP), fd, PASS_BACK);
	recv_exactly(flow_between(c, SECOND, OTHER, KIND_TCP), fd,
		     message_sum(PASS_2 * shared->scale), 4000);
}

void pass_sender_run(struct tcase *c)
{
	role_add(c, "1st", true);
	role_add(c, "2nd", true);
	role_add(c, "oth", true);
	flow_add(c, FIRST, OTHER, KIND_TCP);
	flow_add(c, SECOND, OTHER, KIND_TCP);
	flow_add(c, OTHER, FIRST, KIND_TCP);
	flow_add(c, FIRST, SECOND, KIND_UNIX);
	role_start(c, OTHER, pass_other_receives);
	role_start(c, SECOND, pass_second_sends);
	role_start(c, FIRST, pass_first_sends);
	case_play(c, NULL);
}

static void pass_first_receives(struct tcase *c, int role)
{
	int fd = sock_accept(sock_bind(c, OVER_TCP4, SLOT_TCP));
	int over = sock_connect(c, OVER_UNIX, SLOT_PASS);

	gate(c);
	recv_exactly(flow_between(c, OTHER, FIRST, KIND_TCP), fd,
		     message_sum(PASS_1 * shared->scale), 4000);
	fd_give(c, over, fd);
	close(fd);
}

static void pass_second_receives(struct tcase *c, int role)
{
	int over = sock_accept(sock_bind(c, OVER_UNIX, SLOT_PASS)), fd;

	gate(c);
	fd = fd_take(c, over);
	step_post(c, STEP_A);
	recv_exactly(flow_between(c, OTHER, SECOND, KIND_TCP), fd,
		     message_sum(PASS_2 * shared->scale), 4000);
}

static void pass_other_sends(struct tcase *c, int role)
{
	int fd = sock_connect(c, OVER_TCP4, SLOT_TCP);

	gate(c);
	send_messages(flow_between(c, OTHER, FIRST, KIND_TCP), fd, PASS_1 * shared->scale);
	step_wait(c, STEP_A);
	send_messages(flow_between(c, OTHER, SECOND, KIND_TCP), fd, PASS_2 * shared->scale);
}

void pass_receiver_run(struct tcase *c)
{
	role_add(c, "1st", true);
	role_add(c, "2nd", true);
	role_add(c, "oth", true);
	flow_add(c, OTHER, FIRST, KIND_TCP);
	flow_add(c, OTHER, SECOND, KIND_TCP);
	flow_add(c, FIRST, SECOND, KIND_UNIX);
	role_start(c, FIRST, pass_first_receives);
	role_start(c, SECOND, pass_second_receives);
	role_start(c, OTHER, pass_other_sends);
	case_play(c, NULL);
}

/*
 * A connection that a process and its child send on at the same time. Records of a fixed length
 * say whose they are; one send of so few bytes is not torn apart.
 */
enum { RECORD = 64, RECORDS_PARENT = 100, RECORDS_CHILD = 170 };

static void records_send(struct tcase *c, int role, int fd, unsigned n)
{
	char record[RECORD];

	memset(record, role, sizeof(record));
	for (unsigned i = 0; i < n * shared->scale; i++)
		if (send_once(flow_between(c, role, OTHER, KIND_TCP), fd, record, RECORD) != RECORD)
			die("a record was torn");
}

static void share_child(struct tcase *c, int role)
{
	gate(c);
	records_send(c, SECOND, inherited_fd, RECORDS_CHILD);
}

static void share_parent(struct tcase *c, int role)
{
	inherited_fd = sock_connect(c, OVER_TCP4, SLOT_TCP);
	role_start(c, SECOND, share_child);
	gate(c);
	records_send(c, FIRST, inherited_fd, RECORDS_PARENT);
}

static void share_other(struct tcase *c, int role)
{
	int fd = sock_accept(sock_bind(c, OVER_TCP4, SLOT_TCP));

	gate(c);
	for (unsigned i = 0; i < (RECORDS_PARENT + RECORDS_CHILD) * shared->scale; i++) {
		ssize_t r = recv(fd, buf, RECORD, MSG_WAITALL);

		if (r != RECORD || buf[0] < FIRST || buf[0] > SECOND)
			die("receive a record");
		flow_received(flow_between(c, buf[0], OTHER, KIND_TCP), r);
	}
}

void fork_share_run(struct tcase *c)
{
	role_add(c, "par", true);
	role_add(c, "chi", true);
	role_add(c, "oth", true);
	flow_add(c, FIRST, OTHER, KIND_TCP);
	flow_add(c, SECOND, OTHER, KIND_TCP);
	role_start(c, OTHER, share_other);
	role_start(c, FIRST, share_parent);
	case_play(c, NULL);
}

/* Servers of which the kernel chooses one for each connection; the first byte back says which. */
enum { POOL_CLIENT, POOL_SERVERS = 3, CONNECTIONS = 18 };

static void pool_serve(struct tcase *c, int role, int listener)
{
	struct flow *up = flow_between(c, POOL_CLIENT, role, KIND_TCP);
	struct flow *down = flow_between(c, role, POOL_CLIENT, KIND_TCP);
	bool served = false;

	if (fcntl(listener, F_SETFL, O_NONBLOCK) < 0)
		die("make a socket non-blocking");
	while (sem_trywait(&c->step[STEP_A])) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		char self = role;

		if (fd < 0) {
			sleep_us(served ? 2000 : 300);
			continue;
		}
		served = true;
		send_all(down, fd, &self, 1);
		recv_exactly(up, fd, message_sum(5), 2000);
		send_messages(down, fd, 3);
		close(fd);
	}
}

static void pool_client(struct tcase *c, int role)
{
	enum transport t = c->plan ? OVER_TCP_ANY : OVER_TCP4;

	gate(c);
	for (unsigned i = 0; i < CONNECTIONS * shared->scale; i++) {
		int fd = sock_connect(c, t, SLOT_TCP);
		char server;

		if (recv(fd, &server, 1, 0) != 1)
			die("learn which server it is");
		flow_received(flow_between(c, server, POOL_CLIENT, KIND_TCP), 1);
		send_messages(flow_between(c, POOL_CLIENT, server, KIND_TCP), fd, 5);
		recv_exactly(flow_between(c, server, POOL_CLIENT, KIND_TCP), fd, message_sum(3),
			     2000);
		close(fd);
	}
	for (int i = 0; i < POOL_SERVERS; i++)
		step_post(c, STEP_A);
}

static void pool_worker(struct tcase *c, int role)
{
	gate(c);
	pool_serve(c, role, inherited_fd);
}

static void pool_master(struct tcase *c, int role)
{
	inherited_fd = sock_bind(c, OVER_TCP4, SLOT_TCP);
	for (int i = 1; i <= POOL_SERVERS; i++)
		role_start(c, i, pool_worker);
	gate(c);
}

static void reuseport_server(struct tcase *c, int role)
{
	struct addr_slot *s = &c->addrs[SLOT_TCP];
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	union any_addr a = {.in = {.sin_family = AF_INET}};

	if (role > 1) {
		sem_take(&s->known);
		sem_post(&s->known);
		a.in.sin_port = s->addr.in.sin_port;
	}
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
	    bind(fd, &a.sa, sizeof(a.in)) < 0 || listen(fd, 64) < 0)
		die("listen at a shared port");
	if (role == 1) {
		s->len = sizeof(s->addr);
		getsockname(fd, &s->addr.sa, &s->len);
		s->addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		sem_post(&s->known);
	}
	gate(c);
	pool_serve(c, role, fd);
}

static void pool_add(struct tcase *c)
{
	static const char *const suffix[] = {"sv1", "sv2", "sv3"};

	role_add(c, "cli", true);
	for (int i = 1; i <= POOL_SERVERS; i++) {
		role_add(c, suffix[i - 1], true);
		flow_add(c, POOL_CLIENT, i, KIND_TCP);
		flow_add(c, i, POOL_CLIENT, KIND_TCP);
	}
	role_start(c, POOL_CLIENT, pool_client);
}

void prefork_run(struct tcase *c)
{
	pool_add(c);
	role_start(c, role_add(c, "mas", true), pool_master);
	case_play(c, NULL);
}

void reuseport_run(struct tcase *c)
{
	c->plan = 1;
	pool_add(c);
	for (int i = 1; i <= POOL_SERVERS; i++)
		role_start(c, i, reuseport_server);
	case_play(c, NULL);
}

/* The client executes itself over: same process, same socket, a program begun anew. */
void exec_continue(struct tcase *c, int role, int fd)
{
	role_enter(c, role);
	send_messages(&c->flows[UP], fd, 25 * shared->scale);
	recv_exactly(&c->flows[DOWN], fd, message_sum(10), 3000);
	hold(c);
	_exit(0);
}

static void exec_client(struct tcase *c, int role)
{
	int fd = sock_connect(c, OVER_TCP4, SRV);
	char index[16], socket_fd[16], map_fd[16];

	snprintf(index, sizeof(index), "%d", c->index);
	snprintf(socket_fd, sizeof(socket_fd), "%d", fd);
	snprintf(map_fd, sizeof(map_fd), "%d", shared_fd);
	fcntl(fd, F_SETFD, 0);
	fcntl(shared_fd, F_SETFD, 0);
	gate(c);
	send_messages(&c->flows[UP], fd, 13 * shared->scale);
	execl("/proc/self/exe", "truth", "--after-exec", index, socket_fd, map_fd, (char *)NULL);
	die("execute itself");
}

static void exec_server(struct tcase *c, int role)
{
	int fd = sock_accept(sock_bind(c, OVER_TCP4, SRV));

	gate(c);
	recv_exactly(&c->flows[UP], fd,
		     message_sum(13 * shared->scale) + message_sum(25 * shared->scale), 4000);
	send_messages(&c->flows[DOWN], fd, 10);
}

void exec_run(struct tcase *c)
{
	role_add(c, "cli", true);
	role_add(c, "srv", true);
	flow_add(c, CLI, SRV, KIND_TCP);
	flow_add(c, SRV, CLI, KIND_TCP);
	role_start(c, SRV, exec_server);
	role_start(c, CLI, exec_client);
	case_play(c, NULL);
}

/* Twenty processes, one after another, each of which lives about 5 ms. */
enum { SHORT_SERVER, SHORT_LIVES = 20, SHORT_US = 4000, SHORT_SENDS = 3, SHORT_BYTES = 777 };

static void short_client(struct tcase *c, int role)
{
	enum transport t = c->plan;
	struct flow *f = flow_between(c, role, SHORT_SERVER, transport_kind(t));
	int fd = sock_connect(c, t, SLOT_TCP);

	for (int i = 0; i < SHORT_SENDS; i++)
		send_all(f, fd, buf, SHORT_BYTES + role);
	sleep_us(SHORT_US);
	_exit(0);
}

static void short_server(struct tcase *c, int role)
{
	enum transport t = c->plan;
	int fd = sock_bind(c, t, SLOT_TCP);

	gate(c);
	if (transport_type(t) == SOCK_DGRAM) {
		for (int k = 0; k < SHORT_SENDS * SHORT_LIVES; k++) {
			ssize_t n = recv(fd, buf, 4000, 0);

			/* Its length tells who sent it: on a busy host those of another CPU may overtake. */
			if (n <= SHORT_BYTES || n > SHORT_BYTES + SHORT_LIVES)
				die("receive: %zd bytes", n);
			flow_received(flow_between(c, (int)n - SHORT_BYTES, SHORT_SERVER, transport_kind(t)), n);
		}
		return;
	}
	for (int i = 1; i <= SHORT_LIVES; i++) {
		int one = sock_accept(fd);
		struct flow all = {0};
		uint64_t whose;

		recv_to_eof(&all, one, 4000);
		close(one);
		/* Likewise: connections need not be accepted in the order of their clients. */
		whose = all.bytes_received / SHORT_SENDS - SHORT_BYTES;
		if (whose < 1 || whose > SHORT_LIVES)
			die("receive: %ju bytes", (uintmax_t)all.bytes_received);
		flow_got(flow_between(c, (int)whose, SHORT_SERVER, transport_kind(t)), &all);
	}
}

static void short_lives(struct tcase *c)
{
	for (int i = 1; i <= SHORT_LIVES; i++) {
		int status;
		pid_t pid = role_start(c, i, short_client);

		if (waitpid(pid, &status, 0) != pid || status)
			die("a short life ended with %#x", (unsigned)status);
	}
}

static void short_run(struct tcase *c, enum transport t)
{
	c->plan = t;
	role_add(c, "srv", true);
	for (int i = 1; i <= SHORT_LIVES; i++) {
		char suffix[8];

		snprintf(suffix, sizeof(suffix), "%02d", i % 100);
		role_add(c, suffix, false);
		flow_add(c, i, SHORT_SERVER, transport_kind(t));
	}
	role_start(c, SHORT_SERVER, short_server);
	case_play(c, short_lives);
}

void short_tcp_run(struct tcase *c)
{
	short_run(c, OVER_TCP4);
}

void short_udp_run(struct tcase *c)
{
	short_run(c, OVER_UDP4);
}

/* A process that talks to itself. */
static void self_role(struct tcase *c, int role)
{
	int listener = sock_bind(c, OVER_TCP4, SLOT_TCP);
	int a = sock_connect(c, OVER_TCP4, SLOT_TCP), b = sock_accept(listener);

	gate(c);
	for (unsigned i = 0; i < 20 * shared->scale; i++) {
		send_all(&c->flows[0], a, buf, 2000);
		recv_exactly(&c->flows[0], b, 2000, 1100);
		send_all(&c->flows[0], b, buf, 150);
		recv_exactly(&c->flows[0], a, 150, 150);
	}
}

void self_run(struct tcase *c)
{
	role_add(c, "one", true);
	flow_add(c, 0, 0, KIND_TCP);
	role_start(c, 0, self_role);
	case_play(c, NULL);
}

/* A port that is bound and not listened at refuses: nothing flows. */
static void refused_role(struct tcase *c, int role)
{
	union any_addr a = {.in = {.sin_family = AF_INET}};
	socklen_t len = sizeof(a);
	int held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (held < 0 || fd < 0 || bind(held, &a.sa, sizeof(a.in)) < 0 ||
	    getsockname(held, &a.sa, &len) < 0)
		die("bind a socket");
	gate(c);
	if (!connect(fd, &a.sa, len) || errno != ECONNREFUSED)
		die("connect to a closed port");
}

void refused_run(struct tcase *c)
{
	role_add(c, "cli", true);
	role_start(c, 0, refused_role);
	case_play(c, NULL);
}
