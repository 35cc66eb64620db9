/* Network namespaces: equal addresses and ports in two of them, and a link from one to another. */
#include "truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SERVER_PORT = 5555, CLIENT_PORT = 6666 };

static void link_up(const char *name)
{
	struct ifreq r = {.ifr_flags = 0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		die("find the link %s", name);
	r.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		die("bring up the link %s", name);
	close(fd);
}

static void link_address(const char *name, const char *addr)
{
	struct ifreq r = {.ifr_flags = 0};
	struct sockaddr_in *in = (struct sockaddr_in *)&r.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	in->sin_family = AF_INET;
	inet_pton(AF_INET, addr, &in->sin_addr);
	if (fd < 0 || ioctl(fd, SIOCSIFADDR, &r) < 0)
		die("give the link %s an address", name);
	in->sin_addr.s_addr = htonl(0xffffff00);
	if (ioctl(fd, SIOCSIFNETMASK, &r) < 0)
		die("give the link %s a mask", name);
	close(fd);
}

static void own_netns(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		die("make a network namespace");
	link_up("lo");
}

static void join_netns(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		die("join a network namespace");
	close(fd);
}

static int bound(int type, const char *addr, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, addr, &a.sin_addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("bind %s:%d", addr, port);
	return fd;
}

static void connect_to(int fd, const char *addr, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, addr, &a.sin_addr);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("connect to %s:%d", addr, port);
}

/* Two namespaces, a server and a client in each; only the amounts differ. */
enum { A_SRV, A_CLI, B_SRV, B_CLI };

static unsigned amount(int role)
{
	return (role < B_SRV ? 30 : 45) * shared->scale;
}

static void same_udp(struct tcase *c, int role, int fd, bool sends)
{
	int peer = role ^ 1;
	struct flow *f = sends ? flow_between(c, role, peer, KIND_UDP)
			       : flow_between(c, peer, role, KIND_UDP);
	int step = role < B_SRV ? STEP_C : STEP_D;

	for (unsigned i = 0; i < amount(role) / 2; i++) {
		if (sends) {
			send_once(f, fd, buf, message_len(i) / 3);
			step_wait(c, step);
			continue;
		}
		recv_once(f, fd, buf, BUF_BYTES);
		step_post(c, step);
	}
}

static void same_server(struct tcase *c, int role)
{
	int fd, udp;

	own_netns();
	fd = bound(SOCK_STREAM, "127.0.0.1", SERVER_PORT);
	udp = bound(SOCK_DGRAM, "127.0.0.1", SERVER_PORT);
	if (listen(fd, 8) < 0)
		die("listen");
	step_post(c, role == A_SRV ? STEP_A : STEP_B);
	fd = sock_accept(fd);
	gate(c);
	recv_exactly(flow_between(c, role + 1, role, KIND_TCP), fd, message_sum(amount(role)), 4000);
	send_messages(flow_between(c, role, role + 1, KIND_TCP), fd, amount(role) / 3);
	same_udp(c, role, udp, false);
}

static void same_client(struct tcase *c, int role)
{
	int server = role - 1, fd, udp;

	step_wait(c, server == A_SRV ? STEP_A : STEP_B);
	join_netns(atomic_load(&c->roles[server].pid));
	fd = bound(SOCK_STREAM, "127.0.0.1", CLIENT_PORT);
	udp = bound(SOCK_DGRAM, "127.0.0.1", CLIENT_PORT);
	connect_to(fd, "127.0.0.1", SERVER_PORT);
	connect_to(udp, "127.0.0.1", SERVER_PORT);
	gate(c);
	send_messages(flow_between(c, role, server, KIND_TCP), fd, amount(role));
	recv_exactly(flow_between(c, server, role, KIND_TCP), fd, message_sum(amount(role) / 3),
		     3000);
	same_udp(c, role, udp, true);
}

static void need_netns(struct tcase *c)
{
	int self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (geteuid())
		case_skip(c, "network namespaces need root");
	if (self < 0 || unshare(CLONE_NEWNET) < 0)
		case_skip(c, "network namespaces: %s", strerror(errno));
	if (setns(self, CLONE_NEWNET) < 0)
		die("return to the network namespace");
	close(self);
}

void same_ports_run(struct tcase *c)
{
	need_netns(c);
	role_add(c, "as", true);
	role_add(c, "ac", true);
	role_add(c, "bs", true);
	role_add(c, "bc", true);
	for (int srv = A_SRV; srv <= B_SRV; srv += 2) {
		flow_add(c, srv + 1, srv, KIND_TCP);
		flow_add(c, srv, srv + 1, KIND_TCP);
		flow_add(c, srv + 1, srv, KIND_UDP);
	}
	role_start(c, A_SRV, same_server);
	role_start(c, B_SRV, same_server);
	role_start(c, A_CLI, same_client);
	role_start(c, B_CLI, same_client);
	case_play(c, NULL);
}

/* A request that makes a pair of links, the second of them in the namespace of a process. */
struct request {
	struct nlmsghdr head;
	struct ifinfomsg link;
	char attrs[256];
};

static struct rtattr *attr_put(struct request *q, int type, const void *data, size_t n)
{
	struct rtattr *a = (void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(n);
	if (n)
		memcpy(RTA_DATA(a), data, n);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
	return a;
}

static void attr_end(struct request *q, struct rtattr *a)
{
	a->rta_len = (char *)q + q->head.nlmsg_len - (char *)a;
}

static int veth_request(struct request *q)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char more[512];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, q, q->head.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head))
		die("make a veth pair");
	close(fd);
	return answer.head.nlmsg_type == NLMSG_ERROR ? answer.err.error : 0;
}

static int veth_make(const char *near, const char *far, pid_t far_pid)
{
	struct request q = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			 .nlmsg_type = RTM_NEWLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
		.link = {.ifi_family = AF_UNSPEC},
	};
	struct ifinfomsg peer_link = {.ifi_family = AF_UNSPEC};
	uint32_t pid = far_pid;
	struct rtattr *info, *data, *peer;

	attr_put(&q, IFLA_IFNAME, near, strlen(near) + 1);
	info = attr_put(&q, IFLA_LINKINFO, NULL, 0);
	attr_put(&q, IFLA_INFO_KIND, "veth", 5);
	data = attr_put(&q, IFLA_INFO_DATA, NULL, 0);
	peer = attr_put(&q, VETH_INFO_PEER, &peer_link, sizeof(peer_link));
	attr_put(&q, IFLA_IFNAME, far, strlen(far) + 1);
	if (far_pid)
		attr_put(&q, IFLA_NET_NS_PID, &pid, sizeof(pid));
	attr_end(&q, peer);
	attr_end(&q, data);
	attr_end(&q, info);
	return veth_request(&q);
}

static const char near_addr[] = "10.77.0.1", far_addr[] = "10.77.0.2";

static void veth_server(struct tcase *c, int role)
{
	int fd, udp;

	own_netns();
	step_post(c, STEP_A);
	step_wait(c, STEP_B);
	link_address("tfar", far_addr);
	link_up("tfar");
	fd = bound(SOCK_STREAM, far_addr, SERVER_PORT);
	udp = bound(SOCK_DGRAM, far_addr, SERVER_PORT);
	if (listen(fd, 8) < 0)
		die("listen");
	step_post(c, STEP_C);
	fd = sock_accept(fd);
	gate(c);
	recv_exactly(flow_between(c, CLI, SRV, KIND_TCP), fd, message_sum(50 * shared->scale), 4000);
	send_messages(flow_between(c, SRV, CLI, KIND_TCP), fd, 21 * shared->scale);
	for (unsigned i = 0; i < 14 * shared->scale; i++) {
		recv_once(flow_between(c, CLI, SRV, KIND_UDP), udp, buf, BUF_BYTES);
		step_post(c, STEP_UP);
	}
}

static void veth_client(struct tcase *c, int role)
{
	int fd, udp, rc;

	own_netns();
	step_wait(c, STEP_A);
	rc = veth_make("tnear", "tfar", atomic_load(&c->roles[SRV].pid));
	if (rc) {
		errno = -rc;
		die("make a veth pair");
	}
	link_address("tnear", near_addr);
	link_up("tnear");
	step_post(c, STEP_B);
	step_wait(c, STEP_C);
	fd = bound(SOCK_STREAM, near_addr, CLIENT_PORT);
	udp = bound(SOCK_DGRAM, near_addr, CLIENT_PORT);
	connect_to(fd, far_addr, SERVER_PORT);
	connect_to(udp, far_addr, SERVER_PORT);
	gate(c);
	send_messages(flow_between(c, CLI, SRV, KIND_TCP), fd, 50 * shared->scale);
	recv_exactly(flow_between(c, SRV, CLI, KIND_TCP), fd, message_sum(21 * shared->scale), 3000);
	for (unsigned i = 0; i < 14 * shared->scale; i++) {
		send_once(flow_between(c, CLI, SRV, KIND_UDP), udp, buf, 100 + i % 1000);
		step_wait(c, STEP_UP);
	}
}

/* Try it in a namespace that goes away with the pair of links. */
static void need_veth(struct tcase *c)
{
	int self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), rc;

	if (self < 0 || unshare(CLONE_NEWNET) < 0)
		die("make a network namespace");
	rc = veth_make("tnear", "tfar", 0);
	if (setns(self, CLONE_NEWNET) < 0)
		die("return to the network namespace");
	close(self);
	if (rc == -EOPNOTSUPP)
		case_skip(c, "this kernel has no veth links");
}

void veth_run(struct tcase *c)
{
	need_netns(c);
	need_veth(c);
	role_add(c, "cli", true);
	role_add(c, "srv", true);
	flow_add(c, CLI, SRV, KIND_TCP);
	flow_add(c, SRV, CLI, KIND_TCP);
	flow_add(c, CLI, SRV, KIND_UDP);
	role_start(c, SRV, veth_server);
	role_start(c, CLI, veth_client);
	case_play(c, NULL);
}
