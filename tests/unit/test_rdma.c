/* Answers of the kernel's RDMA netlink family, and trees like /sys/class/infiniband. */
#include "tree.h"

#include <errno.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "collect_rdma.h"
#include "rdma_tool.h"

/* A message in the making. */
struct message {
	unsigned char bytes[4096];
	size_t n;
};

static void begin(struct message *m, uint16_t type)
{
	struct nlmsghdr head = {.nlmsg_type = type};

	memset(m, 0, sizeof(*m));
	memcpy(m->bytes, &head, sizeof(head));
	m->n = NLMSG_HDRLEN;
}

static void end(struct message *m)
{
	uint32_t n = (uint32_t)m->n;

	memcpy(m->bytes, &n, sizeof(n));
}

static size_t attr(struct message *m, uint16_t type, const void *p, size_t n)
{
	struct nlattr a = {.nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = type};
	size_t at = m->n;

	memcpy(m->bytes + m->n, &a, sizeof(a));
	if (n)
		memcpy(m->bytes + m->n + NLA_HDRLEN, p, n);
	m->n += NLA_ALIGN(NLA_HDRLEN + n);
	return at;
}

static void u32(struct message *m, uint16_t type, uint32_t v)
{
	attr(m, type, &v, sizeof(v));
}

static size_t nest(struct message *m, uint16_t type)
{
	return attr(m, type | NLA_F_NESTED, NULL, 0);
}

static void nest_end(struct message *m, size_t at)
{
	uint16_t n = (uint16_t)(m->n - at);

	memcpy(m->bytes + at, &n, sizeof(n));
}

static void add_qp(struct message *m, uint32_t lqpn, uint32_t rqpn, uint32_t pid)
{
	size_t at = nest(m, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	uint8_t type = 2, state = 3;

	u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	u32(m, RDMA_NLDEV_ATTR_RES_LQPN, lqpn);
	u32(m, RDMA_NLDEV_ATTR_RES_RQPN, rqpn);
	u32(m, RDMA_NLDEV_ATTR_RES_SQ_PSN, lqpn + 1000);
	u32(m, RDMA_NLDEV_ATTR_RES_RQ_PSN, lqpn + 2000);
	attr(m, RDMA_NLDEV_ATTR_RES_TYPE, &type, 1);
	attr(m, RDMA_NLDEV_ATTR_RES_STATE, &state, 1);
	u32(m, RDMA_NLDEV_ATTR_RES_PDN, 7);
	if (pid)
		u32(m, RDMA_NLDEV_ATTR_RES_PID, pid);
	else
		attr(m, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core", 8);
	nest_end(m, at);
}

TEST(devices_and_queue_pairs_are_read)
{
	struct rdma_state s = {0};
	struct message m;
	size_t list;

	begin(&m, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));
	u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, 4);
	attr(&m, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0", 7);
	end(&m);
	assert_int_equal(rdma_netlink_parse(m.bytes, m.n, RDMA_KINDS, &s), 0);
	assert_int_equal(s.devices.n, 1);
	assert_int_equal(s.devices.v[0].index, 4);
	assert_string_equal(s.devices.v[0].name, "mlx5_0");

	begin(&m, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET));
	u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, 4);
	list = nest(&m, RDMA_NLDEV_ATTR_RES_QP);
	add_qp(&m, 17, 18, 4711);
	add_qp(&m, 1, 0, 0);
	nest_end(&m, list);
	end(&m);
	assert_int_equal(rdma_netlink_parse(m.bytes, m.n, RDMA_QP, &s), 0);
	assert_int_equal(s.resources.n, 2);
	assert_int_equal(s.resources.v[0].dev, 4);
	assert_int_equal(s.resources.v[0].number, 17);
	assert_int_equal(s.resources.v[0].remote, 18);
	assert_int_equal(s.resources.v[0].sq_psn, 1017);
	assert_int_equal(s.resources.v[0].rq_psn, 2017);
	assert_int_equal(s.resources.v[0].pid, 4711);
	assert_int_equal(s.resources.v[0].pdn, 7);
	assert_int_equal(s.resources.v[0].port, 1);
	assert_string_equal(rdma_qp_type_name(s.resources.v[0].type), "RC");
	assert_string_equal(rdma_qp_state_name(s.resources.v[0].state), "RTS");
	assert_true(s.resources.v[1].pid == RDMA_UNKNOWN);
	assert_string_equal(s.resources.v[1].owner, "ib_core");
	/* Every part of it is refused or ignored, and nothing behind its end is read. */
	for (size_t n = 0; n < m.n; n++) {
		unsigned char *copy = malloc(n + 1);

		memcpy(copy, m.bytes, n);
		rdma_netlink_parse(copy, n, RDMA_QP, &s);
		free(copy);
	}
	rdma_state_done(&s);
}

TEST(ends_and_errors_are_told)
{
	struct rdma_state s = {0};
	struct message m;
	int32_t rc = -EPERM;

	begin(&m, NLMSG_DONE);
	end(&m);
	assert_int_equal(rdma_netlink_parse(m.bytes, m.n, RDMA_QP, &s), 1);
	begin(&m, NLMSG_ERROR);
	memcpy(m.bytes + m.n, &rc, sizeof(rc));
	m.n += sizeof(rc);
	end(&m);
	assert_int_equal(rdma_netlink_parse(m.bytes, m.n, RDMA_QP, &s), -EPERM);
	/* An acknowledgement ends nothing. */
	rc = 0;
	memcpy(m.bytes + NLMSG_HDRLEN, &rc, sizeof(rc));
	assert_int_equal(rdma_netlink_parse(m.bytes, m.n, RDMA_QP, &s), 0);
	rdma_state_done(&s);
}

TEST(memory_regions_are_read)
{
	struct rdma_state s = {0};
	uint64_t length = 1ull << 33;
	struct message m;
	size_t list, at;

	begin(&m, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_MR_GET));
	u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	list = nest(&m, RDMA_NLDEV_ATTR_RES_MR);
	at = nest(&m, RDMA_NLDEV_ATTR_RES_MR_ENTRY);
	u32(&m, RDMA_NLDEV_ATTR_RES_MRN, 5);
	u32(&m, RDMA_NLDEV_ATTR_RES_RKEY, 0x1234);
	attr(&m, RDMA_NLDEV_ATTR_RES_MRLEN, &length, sizeof(length));
	u32(&m, RDMA_NLDEV_ATTR_RES_PID, 99);
	nest_end(&m, at);
	nest_end(&m, list);
	end(&m);
	assert_int_equal(rdma_netlink_parse(m.bytes, m.n, RDMA_MR, &s), 0);
	assert_int_equal(s.resources.n, 1);
	assert_int_equal(s.resources.v[0].number, 5);
	assert_int_equal(s.resources.v[0].rkey, 0x1234);
	assert_true(s.resources.v[0].lkey == RDMA_UNKNOWN);
	assert_true(s.resources.v[0].length == length);
	rdma_state_done(&s);
}

static void qp(struct rdma_state *s, uint32_t dev, uint32_t number, uint32_t remote)
{
	vec_push(&s->resources,
		 ((struct rdma_resource){.kind = RDMA_QP, .dev = dev, .number = number, .remote = remote,
					  .sq_psn = RDMA_UNKNOWN, .rq_psn = RDMA_UNKNOWN}));
}

/* The newest: 2: ready to receive, 3: to send as well. */
static void packets(struct rdma_state *s, uint32_t state, uint32_t sq, uint32_t rq)
{
	struct rdma_resource *r = &s->resources.v[s->resources.n - 1];

	r->state = state;
	r->sq_psn = sq;
	r->rq_psn = rq;
}

TEST(ends_are_joined_by_both_numbers_and_device)
{
	struct rdma_state s = {0};

	qp(&s, 0, 17, 18);
	qp(&s, 0, 18, 17);
	qp(&s, 1, 17, 30); /* the same number on another device */
	qp(&s, 1, 18, 17);
	qp(&s, 2, 40, 41); /* two devices of this host */
	qp(&s, 3, 41, 40);
	qp(&s, 2, 50, 51); /* its other end names another one */
	qp(&s, 3, 51, 99);
	qp(&s, 2, 60, 61); /* two may be it */
	qp(&s, 3, 61, 60);
	qp(&s, 4, 61, 60);
	assert_ptr_equal(rdma_other_end(&s, &s.resources.v[0]), &s.resources.v[1]);
	assert_ptr_equal(rdma_other_end(&s, &s.resources.v[4]), &s.resources.v[5]);
	assert_null(rdma_other_end(&s, &s.resources.v[2]));
	assert_null(rdma_other_end(&s, &s.resources.v[6]));
	assert_null(rdma_other_end(&s, &s.resources.v[8]));
	rdma_state_done(&s);
}

TEST(ends_whose_packets_contradict_are_not_joined)
{
	struct rdma_state s = {0};

	/* Two programs of this host, and each talks with one of another host that numbered alike. */
	qp(&s, 0, 19, 20);
	packets(&s, 3, 0x123456, 0x654321);
	qp(&s, 0, 20, 19);
	packets(&s, 3, 0xabcdef, 0xfedcba);
	assert_null(rdma_other_end(&s, &s.resources.v[0]));
	assert_null(rdma_other_end(&s, &s.resources.v[1]));
	/* Some packets are on their way, and the numbers wrap. */
	packets(&s, 3, 0x654321 + 40, 0x123456 - 7);
	assert_ptr_equal(rdma_other_end(&s, &s.resources.v[0]), &s.resources.v[1]);
	s.resources.v[0].sq_psn = 3;
	s.resources.v[1].rq_psn = 0xfffffe;
	assert_ptr_equal(rdma_other_end(&s, &s.resources.v[1]), &s.resources.v[0]);
	/* One way is enough. */
	s.resources.v[1].rq_psn = 0x800000;
	assert_null(rdma_other_end(&s, &s.resources.v[0]));
	/* A server that never sends has no number to send: what it expects counts. */
	qp(&s, 0, 30, 31);
	packets(&s, 2, 0, 0x5000);
	qp(&s, 0, 31, 30);
	packets(&s, 3, 0x5001, 0x77777);
	assert_ptr_equal(rdma_other_end(&s, &s.resources.v[2]), &s.resources.v[3]);
	assert_ptr_equal(rdma_other_end(&s, &s.resources.v[3]), &s.resources.v[2]);
	rdma_state_done(&s);
}

TEST(the_other_end_with_the_same_number_is_of_another_host)
{
	struct rdma_state s = {0};

	qp(&s, 0, 17, 17);
	assert_null(rdma_other_end(&s, &s.resources.v[0]));
	packets(&s, 3, 0x1000, 0x900000);
	assert_null(rdma_other_end(&s, &s.resources.v[0]));
	/* A loop, as libraries use it to flush. */
	packets(&s, 3, 0x1000, 0x1000);
	assert_ptr_equal(rdma_other_end(&s, &s.resources.v[0]), &s.resources.v[0]);
	rdma_state_done(&s);
}

static void put_device(const char *path, const char *text)
{
	char full[256];

	snprintf(full, sizeof(full), "/sys/class/infiniband/%s", path);
	put(full, text);
}

static const struct rdma_port *port_of(const struct rdma_ports *p, const char *dev)
{
	vec_for(&p->v, x)
		if (!strcmp(x->dev, dev))
			return x;
	fail_msg("no port of %s", dev);
	return NULL;
}

TEST(ports_and_counters_are_read)
{
	static const char *const data[] = {"port_xmit_data", NULL}, *const packets[] = {"no", "np_cnp_sent", NULL};
	const struct rdma_port *p;
	struct rdma_ports ports;
	uint64_t v;

	put_device("mlx5_0/ports/1/state", "4: ACTIVE\n");
	put_device("mlx5_0/ports/1/link_layer", "Ethernet\n");
	put_device("mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
	put_device("mlx5_0/ports/1/gid_attrs/ndevs/0", "eth2\n");
	put_device("mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
	put_device("mlx5_0/ports/1/counters/port_rcv_packets", "N/A (no PMA)\n");
	put_device("mlx5_0/ports/1/hw_counters/np_cnp_sent", "12\n");
	put_device("mlx5_0/ports/1/hw_counters/lifespan", "10\n");
	put_device("old/ports/1/state", "1: DOWN\n");
	put_device("old/ports/1/counters/port_rcv_data", "1\n");
	put_device("old/device/numa_node", "1\n");
	rdma_ports_read(&root, &ports);
	assert_int_equal(ports.v.n, 2);
	p = port_of(&ports, "mlx5_0");
	assert_string_equal(p->state, "ACTIVE");
	assert_string_equal(p->link_layer, "Ethernet");
	assert_string_equal(p->netdev, "eth2");
	assert_true(p->rate_bytes_s == 12.5e9);
	assert_true(p->has_hw_counters);
	assert_int_equal(p->counters.n, 2);
	assert_true(rdma_port_counter(p, data, &v));
	assert_int_equal(v, 4000);
	assert_true(rdma_port_counter(p, packets, &v));
	assert_int_equal(v, 12);
	assert_false(port_of(&ports, "old")->has_hw_counters);
	assert_int_equal(rdma_dev_place(&root, "old", (char[20]){0}), 1);
	assert_int_equal(rdma_dev_place(&root, "mlx5_0", (char[20]){0}), -1);
	rdma_ports_done(&ports);
}

/* As iproute2 6.1 wrote it of soft RoCE. */
TEST(the_tool_tells_the_same)
{
	static const char devices[] = "[{\"ifindex\":3,\"ifname\":\"rxe0\",\"node_type\":\"ca\"}]",
	    pairs[] = "[{\"ifindex\":3,\"ifname\":\"rxe0\",\"port\":1,\"lqpn\":17,\"rqpn\":18,\"type\":\"RC\","
		      "\"state\":\"RTS\",\"sq-psn\":8666667,\"pdn\":3,\"pid\":190,\"comm\":\"rping\"},"
		      "{\"ifname\":\"rxe0\",\"lqpn\":1,\"type\":\"GSI\",\"state\":\"RTS\",\"comm\":\"[ib_core]\"},"
		      "{\"ifname\":\"other\",\"lqpn\":9}]",
	    regions[] = "[{\"ifname\":\"rxe0\",\"mrn\":1,\"rkey\":\"36c\",\"lkey\":\"0x205\",\"mrlen\":8589934592,"
			"\"pdn\":3,\"new\":{\"deep\":[1]}}]";
	struct rdma_state s = {0};
	const struct rdma_resource *r;
	struct err e;

	assert_int_equal(rdma_tool_parse(devices, strlen(devices), RDMA_KINDS, &s, &e), 0);
	assert_int_equal(s.devices.v[0].index, 3);
	assert_int_equal(rdma_tool_parse(pairs, strlen(pairs), RDMA_QP, &s, &e), 0);
	assert_int_equal(rdma_tool_parse(regions, strlen(regions), RDMA_MR, &s, &e), 0);
	/* A device that was not listed is none of ours. */
	assert_int_equal(s.resources.n, 3);
	r = &s.resources.v[0];
	assert_int_equal(r->dev, 3);
	assert_int_equal(r->number, 17);
	assert_int_equal(r->remote, 18);
	assert_int_equal(r->sq_psn, 8666667);
	assert_true(r->rq_psn == RDMA_UNKNOWN);
	assert_int_equal(r->pid, 190);
	assert_string_equal(r->owner, "");
	assert_string_equal(rdma_qp_type_name(r->type), "RC");
	assert_string_equal(rdma_qp_state_name(r->state), "RTS");
	r = &s.resources.v[1];
	assert_string_equal(r->owner, "ib_core");
	assert_true(r->pid == RDMA_UNKNOWN && r->remote == RDMA_UNKNOWN);
	r = &s.resources.v[2];
	assert_int_equal(r->rkey, 0x36c);
	assert_int_equal(r->lkey, 0x205);
	assert_true(r->length == 1ull << 33);
	rdma_state_done(&s);
}

TEST(what_is_no_answer_of_the_tool_is_refused)
{
	static const char *const bad[] = {"{}", "[{\"ifname\":", "[{\"ifindex\":1}", "rdma: no", "[{\"a\":[1,}]"};
	struct rdma_state s = {0};
	struct err e;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rdma_tool_parse(bad[i], strlen(bad[i]), RDMA_QP, &s, &e), -EBADMSG);
	assert_int_equal(rdma_tool_parse("\n", 1, RDMA_QP, &s, &e), 0);
	assert_int_equal(rdma_tool_parse("[]", 2, RDMA_QP, &s, &e), 0);
	assert_int_equal(s.resources.n, 0);
	rdma_state_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_and_queue_pairs_are_read),
		cmocka_unit_test(ends_and_errors_are_told),
		cmocka_unit_test(memory_regions_are_read),
		cmocka_unit_test(ends_are_joined_by_both_numbers_and_device),
		cmocka_unit_test(ends_whose_packets_contradict_are_not_joined),
		cmocka_unit_test(the_other_end_with_the_same_number_is_of_another_host),
		cmocka_unit_test(ports_and_counters_are_read),
		cmocka_unit_test(the_tool_tells_the_same),
		cmocka_unit_test(what_is_no_answer_of_the_tool_is_refused),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
