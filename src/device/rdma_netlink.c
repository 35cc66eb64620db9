/* The kernel's RDMA netlink family: see rdma_netlink.h. */
#include "rdma_netlink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "cleanup.h"

#define ANSWER_BYTES (64 * 1024)
/* A device has at most some ten thousand queue pairs; a kernel that never ends is not waited for. */
#define ANSWERS_MOST 4096
#define TIMEOUT_S    2

static const struct {
	uint16_t command, list, entry;
} kinds[] = {
	[RDMA_QP] = {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY},
	[RDMA_MR] = {RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY},
	[RDMA_PD] = {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY},
	[RDMA_CQ] = {RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY},
};

/* An attribute, and the bytes that it may not leave. */
struct attrs {
	const unsigned char *p;
	size_t n;
};

/* @return whether there is one more; its type and content in *type and *ret */
static bool next_attr(struct attrs *a, uint16_t *type, struct attrs *ret)
{
	struct nlattr head;
	size_t step;

	if (a->n < sizeof(head))
		return false;
	memcpy(&head, a->p, sizeof(head));
	if (head.nla_len < sizeof(head) || head.nla_len > a->n)
		return false;
	*type = head.nla_type & NLA_TYPE_MASK;
	ret->p = a->p + NLA_HDRLEN;
	ret->n = head.nla_len - NLA_HDRLEN;
	step = NLA_ALIGN(head.nla_len);
	a->p += step < a->n ? step : a->n;
	a->n -= step < a->n ? step : a->n;
	return true;
}

static uint32_t get_u32(const struct attrs *a)
{
	uint32_t v = 0;

	memcpy(&v, a->p, a->n < sizeof(v) ? a->n : sizeof(v));
	return v;
}

static uint64_t get_u64(const struct attrs *a)
{
	uint64_t v = 0;

	memcpy(&v, a->p, a->n < sizeof(v) ? a->n : sizeof(v));
	return v;
}

static void get_text(const struct attrs *a, char *ret, size_t size)
{
	snprintf(ret, size, "%.*s", (int)strnlen((const char *)a->p, a->n), (const char *)a->p);
}

static void parse_entry(struct attrs in, enum rdma_kind kind, uint32_t dev, struct rdma_state *ret)
{
	struct rdma_resource r = {
		.kind = kind, .dev = dev, .number = RDMA_UNKNOWN, .pid = RDMA_UNKNOWN, .pdn = RDMA_UNKNOWN,
		.port = RDMA_UNKNOWN, .remote = RDMA_UNKNOWN, .type = RDMA_UNKNOWN, .state = RDMA_UNKNOWN,
		.lkey = RDMA_UNKNOWN, .rkey = RDMA_UNKNOWN, .sq_psn = RDMA_UNKNOWN, .rq_psn = RDMA_UNKNOWN,
	};
	struct attrs v;
	uint16_t type;

	while (next_attr(&in, &type, &v)) {
		switch (type) {
		case RDMA_NLDEV_ATTR_RES_LQPN: case RDMA_NLDEV_ATTR_RES_CQN: case RDMA_NLDEV_ATTR_RES_MRN:
			r.number = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_PDN:
			r.pdn = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_RQPN:
			r.remote = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_SQ_PSN:
			r.sq_psn = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_RQ_PSN:
			r.rq_psn = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_PORT_INDEX:
			r.port = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_TYPE:
			r.type = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_STATE:
			r.state = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_PID:
			r.pid = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_LKEY:
			r.lkey = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_RKEY:
			r.rkey = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_MRLEN:
			r.length = get_u64(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_CQE:
			r.length = get_u32(&v);
			break;
		case RDMA_NLDEV_ATTR_RES_KERN_NAME:
			get_text(&v, r.owner, sizeof(r.owner));
			break;
		}
	}
	if (kind == RDMA_PD)
		r.number = r.pdn;
	vec_push(&ret->resources, r);
}

/* One message: a device, or a list of resources of a device. */
static void parse_message(struct attrs in, enum rdma_kind kind, struct rdma_state *ret)
{
	struct rdma_dev dev = {.index = RDMA_UNKNOWN};
	struct attrs v, list = {0}, entry;
	uint16_t type;

	while (next_attr(&in, &type, &v)) {
		if (type == RDMA_NLDEV_ATTR_DEV_INDEX)
			dev.index = get_u32(&v);
		else if (type == RDMA_NLDEV_ATTR_DEV_NAME)
			get_text(&v, dev.name, sizeof(dev.name));
		else if (kind < RDMA_KINDS && type == kinds[kind].list)
			list = v;
	}
	if (kind == RDMA_KINDS && dev.index != RDMA_UNKNOWN && dev.name[0])
		vec_push(&ret->devices, dev);
	while (next_attr(&list, &type, &entry))
		if (type == kinds[kind].entry)
			parse_entry(entry, kind, dev.index, ret);
}

int rdma_netlink_parse(const void *data, size_t n, enum rdma_kind kind, struct rdma_state *ret)
{
	const unsigned char *p = data;

	while (n >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr head;
		size_t step;

		memcpy(&head, p, sizeof(head));
		if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > n)
			return -EBADMSG;
		if (head.nlmsg_type == NLMSG_DONE)
			return 1;
		if (head.nlmsg_type == NLMSG_ERROR) {
			int32_t rc = 0;

			if (head.nlmsg_len >= NLMSG_HDRLEN + sizeof(rc))
				memcpy(&rc, p + NLMSG_HDRLEN, sizeof(rc));
			/* 0: an acknowledgement, which may stand before the answer. */
			if (rc < 0)
				return rc;
		} else {
			parse_message((struct attrs){p + NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN}, kind, ret);
		}
		step = NLMSG_ALIGN(head.nlmsg_len);
		p += step < n ? step : n;
		n -= step < n ? step : n;
	}
	return 0;
}

static int ask(int fd, enum rdma_kind kind, uint32_t dev)
{
	/* The macro below does not protect its arguments. */
	uint16_t command = kind < RDMA_KINDS ? kinds[kind].command : RDMA_NLDEV_CMD_GET;
	struct {
		struct nlmsghdr head;
		struct nlattr attr;
		uint32_t index;
	} q = {
		.head.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.head.nlmsg_len = kind < RDMA_KINDS ? sizeof(q) : sizeof(q.head),
		.attr = {.nla_len = NLA_HDRLEN + sizeof(uint32_t), .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX},
		.index = dev,
	};

	return send(fd, &q, q.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

static int read_all(int fd, enum rdma_kind kind, uint32_t dev, struct rdma_state *ret)
{
	CLEANUP_FREE char *answer = mem_alloc(ANSWER_BYTES);
	int rc = ask(fd, kind, dev);

	for (unsigned i = 0; !rc && i < ANSWERS_MOST; i++) {
		ssize_t n = recv(fd, answer, ANSWER_BYTES, MSG_TRUNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n > ANSWER_BYTES)
			return -EMSGSIZE;
		rc = rdma_netlink_parse(answer, (size_t)n, kind, ret);
	}
	return rc < 0 ? rc : 0;
}

int rdma_netlink_read(struct rdma_state *ret, struct err *e)
{
	CLEANUP_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct timeval timeout = {.tv_sec = TIMEOUT_S};
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (fd < 0)
		return err_set(e, -errno, "netlink family RDMA");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	rc = read_all(fd, RDMA_KINDS, 0, ret);
	if (rc < 0) {
		rdma_state_done(ret);
		return err_set(e, rc, "list of RDMA devices");
	}
	for (size_t i = 0; i < ret->devices.n; i++)
		for (enum rdma_kind kind = 0; kind < RDMA_KINDS; kind++) {
			rc = read_all(fd, kind, ret->devices.v[i].index, ret);
			/* Not every driver tells of every kind. */
			if (rc < 0 && rc != -EOPNOTSUPP && rc != -EINVAL && rc != -ENOENT) {
				rdma_state_done(ret);
				return err_set(e, rc, "resources of RDMA device");
			}
		}
	return 0;
}

void rdma_state_done(struct rdma_state *s)
{
	vec_done(&s->devices);
	vec_done(&s->resources);
}

const char *rdma_qp_type_name(uint32_t type)
{
	static const char *const names[] = {"SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE",
					    NULL,  "RAW_PACKET", "XRC_INI", "XRC_TGT"};

	return type == 0xff ? "DRIVER" : type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

const char *rdma_qp_state_name(uint32_t state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : NULL;
}
