/* RDMA: devices, ports and their traffic, and what processes made of them. */
#include "collect_rdma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "collect_machine.h"
#include "json.h"
#include "rdma_tool.h"

/* Resources live for as long as a job; one look costs a message for each device and kind. */
#define RESOURCES_EVERY_NS (5 * NS_PER_SEC)

struct rdma {
	struct sysroot root;
	struct rdma_ports last, first; /* counters at the last look, and at the first one */
	uint64_t last_ns, resources_ns;
	bool failed; /* resources cannot be read */
	bool by_tool; /* netlink cannot be asked, and the tool can */
	bool any;    /* there is a device */
	bool no_hw_counters, no_byte_counters;
	char why[400];
};

struct emitting {
	struct collect *c;
	struct graph *g;
	const struct rdma_state *s;
};

struct rdma *rdma_new(void)
{
	struct rdma *r = mem_alloc(sizeof(*r));
	struct err e;

	if (sysroot_open("/", &r->root, &e) < 0)
		r->root.fd = -1;
	return r;
}

void rdma_free(struct rdma *r)
{
	if (!r)
		return;
	rdma_ports_done(&r->last);
	rdma_ports_done(&r->first);
	sysroot_close(&r->root);
	free(r);
}

static const struct rdma_port *find_port(const struct rdma_ports *l, const struct rdma_port *p)
{
	vec_for(&l->v, x)
		if (x->port == p->port && !strcmp(x->dev, p->dev))
			return x;
	return NULL;
}

/* By how much a counter grew, by the first of its names that the driver knows. */
static bool grew(const struct rdma_port *was, const struct rdma_port *now, const char *const *names, uint64_t *ret)
{
	uint64_t a, b;

	if (!was || !rdma_port_counter(was, names, &a) || !rdma_port_counter(now, names, &b) || b < a)
		return false;
	*ret = b - a;
	return true;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void set_totals(struct node *n, const struct rdma_port *was, const struct rdma_port *now)
{
	uint64_t v;

	if (grew(was, now, NAMES("port_xmit_data"), &v))
		SET(rdma_stats, n, tx_bytes, v);
	if (grew(was, now, NAMES("port_rcv_data"), &v))
		SET(rdma_stats, n, rx_bytes, v);
	if (grew(was, now, NAMES("port_xmit_packets", "sent_pkts", "tx_pkts"), &v))
		SET(rdma_stats, n, tx_packets, v);
	if (grew(was, now, NAMES("port_rcv_packets", "rcvd_pkts", "rx_pkts"), &v))
		SET(rdma_stats, n, rx_packets, v);
	if (grew(was, now, NAMES("roce_slow_restart_trans", "completer_retry_err", "local_ack_timeout_err",
				 "to_retransmits", "retransmits"), &v))
		SET(rdma_stats, n, retransmits, v);
	if (grew(was, now, NAMES("out_of_sequence", "out_of_seq_request", "oos_drop_count"), &v))
		SET(rdma_stats, n, out_of_sequence, v);
	if (grew(was, now, NAMES("np_cnp_sent", "tx_cnp_pkts", "cnp_tx"), &v))
		SET(rdma_stats, n, congestion_sent, v);
	if (grew(was, now, NAMES("rp_cnp_handled", "rx_cnp_pkts", "cnp_rx"), &v))
		SET(rdma_stats, n, congestion_handled, v);
	if (grew(was, now, NAMES("np_ecn_marked_roce_packets", "rx_ecn_marked_pkts"), &v))
		SET(rdma_stats, n, ecn_marked, v);
	if (grew(was, now, NAMES("port_rcv_errors", "send_err"), &v))
		SET(rdma_stats, n, errors, v);
}

/* As the older format has them: per second. */
static void set_rates(struct node *n, const struct rdma_port *was, const struct rdma_port *now, double seconds)
{
	uint64_t v;

	if (seconds <= 0)
		return;
	if (grew(was, now, NAMES("port_xmit_packets", "sent_pkts", "tx_pkts"), &v))
		SET(rdma_stats, n, send_pkts, (double)v / seconds);
	if (grew(was, now, NAMES("port_rcv_packets", "rcvd_pkts", "rx_pkts"), &v))
		SET(rdma_stats, n, recv_pkts, (double)v / seconds);
	if (grew(was, now, NAMES("duplicate_request", "port_rcv_dup_packets"), &v))
		SET(rdma_stats, n, dupl_pkts, (double)v / seconds);
	if (grew(was, now, NAMES("rdma_sends", "rx_send_requests"), &v))
		SET(rdma_stats, n, rdma_sends, (double)v / seconds);
	if (grew(was, now, NAMES("rdma_recvs"), &v))
		SET(rdma_stats, n, rdma_recvs, (double)v / seconds);
}

static void set_counters(struct graph *g, struct node *n, const struct rdma_port *first, const struct rdma_port *now)
{
	struct strbuf b = {0};

	strbuf_addc(&b, '{');
	vec_for(&now->counters, c) {
		uint64_t v;

		if (!grew(first, now, NAMES(c->name), &v) || !v)
			continue;
		strbuf_add(&b, b.n > 1 ? "," : "");
		json_quote(&b, c->name, strlen(c->name), 0);
		strbuf_addf(&b, ":%llu", (unsigned long long)v);
	}
	strbuf_addc(&b, '}');
	SET(rdma_stats, n, counters, graph_str(g, b.s));
	strbuf_done(&b);
}

static struct node *device_node(struct graph *g, const char *name)
{
	struct node *n = graph_new_node(g, &rdma_device_type);

	SET(rdma_device, n, dev, graph_str(g, name));
	return n;
}

static void emit_port(struct rdma *r, struct graph *g, const struct rdma_port *p, double seconds)
{
	struct node *n = graph_new_node(g, &rdma_stats_type);
	const struct rdma_port *was = find_port(&r->last, p);
	uint64_t v;

	SET(rdma_stats, n, dev, graph_str(g, p->dev));
	SET(rdma_stats, n, port, p->port);
	SET(rdma_stats, n, has_hw_counters, p->has_hw_counters);
	r->no_hw_counters |= !p->has_hw_counters;
	r->no_byte_counters |= !rdma_port_counter(p, NAMES("port_xmit_data"), &v);
	if (p->state[0])
		SET(rdma_stats, n, state, graph_str(g, p->state));
	if (p->link_layer[0])
		SET(rdma_stats, n, link_layer, graph_str(g, p->link_layer));
	if (p->netdev[0])
		SET(rdma_stats, n, netdev, graph_str(g, p->netdev));
	if (p->rate_bytes_s > 0)
		SET(rdma_stats, n, rate_bytes_s, p->rate_bytes_s);
	set_totals(n, was, p);
	set_rates(n, was, p, seconds);
	set_counters(g, n, find_port(&r->first, p), p);
	n = graph_add_node(g, n);
	graph_link(g, &has_attribute_type, graph_add_node(g, device_node(g, p->dev))->index, n->index);
}

static void emit_ports(struct rdma *r, struct graph *g)
{
	uint64_t now = clock_mono_ns();
	struct rdma_ports ports;

	rdma_ports_read(&r->root, &ports);
	r->any |= ports.v.n > 0;
	vec_for(&ports.v, p)
		emit_port(r, g, p, r->last_ns ? (double)(now - r->last_ns) / 1e9 : 0);
	if (!r->last_ns) {
		r->first = ports;
		memset(&ports, 0, sizeof(ports));
		rdma_ports_read(&r->root, &ports);
	}
	rdma_ports_done(&r->last);
	r->last = ports;
	r->last_ns = now;
}

/* IB_QPS_RTR, IB_QPS_RTS of rdma/ib_verbs.h: ready to receive, and to send as well. */
enum { READY_TO_RECEIVE = 2, READY_TO_SEND = 3 };

enum fits { FITS_NOT, FITS_UNTOLD, FITS };

/*
 * Both are looked at within microseconds: what one sends next is about what the other expects next. Twelve
 * bits of packets are a millisecond at 200 Gbit/s; numbers of other connections begin anywhere in 24 bits.
 */
static enum fits packets_fit(const struct rdma_resource *from, const struct rdma_resource *to)
{
	uint32_t ahead;

	if (from->state != READY_TO_SEND || (to->state != READY_TO_SEND && to->state != READY_TO_RECEIVE) ||
	    from->sq_psn == RDMA_UNKNOWN || to->rq_psn == RDMA_UNKNOWN)
		return FITS_UNTOLD;
	ahead = (from->sq_psn - to->rq_psn + 4096) & 0xffffff;
	return ahead <= 2 * 4096 ? FITS : FITS_NOT;
}

/*
 * Are these two ends of one connection? Hosts that start alike number their queue pairs alike, so that two
 * which lead to another host may name each other, or one itself, by chance.
 */
static bool is_pair(const struct rdma_resource *a, const struct rdma_resource *b)
{
	enum fits there, back;

	if (b->kind != RDMA_QP || b->number != a->remote || b->remote != a->number)
		return false;
	there = packets_fit(a, b);
	back = packets_fit(b, a);
	if (there == FITS_NOT || back == FITS_NOT)
		return false;
	/* One that is connected with itself is rare: NCCL flushes so. It must be proved. */
	return a != b || there == FITS;
}

const struct rdma_resource *rdma_other_end(const struct rdma_state *s, const struct rdma_resource *qp)
{
	const struct rdma_resource *same = NULL, *other = NULL;
	unsigned others = 0;

	if (qp->remote == RDMA_UNKNOWN || !qp->remote)
		return NULL;
	vec_for(&s->resources, x) {
		if (!is_pair(qp, x))
			continue;
		if (x->dev == qp->dev) {
			same = x;
		} else {
			other = x;
			others++;
		}
	}
	return same ? same : others == 1 ? other : NULL;
}

static const char *dev_name(const struct rdma_state *s, uint32_t index)
{
	vec_for(&s->devices, d)
		if (d->index == index)
			return d->name;
	return "";
}

static struct node *pd_node(struct emitting *x, uint32_t dev, uint32_t pdn, uint32_t pid)
{
	struct node *n = graph_new_node(x->g, &rdma_pd_type);

	SET(rdma_pd, n, dev, graph_str(x->g, dev_name(x->s, dev)));
	SET(rdma_pd, n, pdn, pdn);
	if (pid != RDMA_UNKNOWN)
		SET(rdma_pd, n, pid, pid);
	return graph_add_node(x->g, n);
}

static struct node *qp_node(struct emitting *x, const struct rdma_resource *r)
{
	struct node *n = graph_new_node(x->g, &rdma_qp_type);

	SET(rdma_qp, n, dev, graph_str(x->g, dev_name(x->s, r->dev)));
	SET(rdma_qp, n, qpn, r->number);
	if (r->pid != RDMA_UNKNOWN)
		SET(rdma_qp, n, pid, r->pid);
	if (r->pdn != RDMA_UNKNOWN)
		SET(rdma_qp, n, pdn, r->pdn);
	if (r->port != RDMA_UNKNOWN)
		SET(rdma_qp, n, port, r->port);
	if (r->remote != RDMA_UNKNOWN && r->remote)
		SET(rdma_qp, n, rqpn, r->remote);
	if (rdma_qp_type_name(r->type))
		SET(rdma_qp, n, type, graph_str(x->g, rdma_qp_type_name(r->type)));
	if (rdma_qp_state_name(r->state))
		SET(rdma_qp, n, state, graph_str(x->g, rdma_qp_state_name(r->state)));
	if (r->owner[0])
		SET(rdma_qp, n, owner, graph_str(x->g, r->owner));
	return graph_add_node(x->g, n);
}

static struct node *mr_node(struct emitting *x, const struct rdma_resource *r)
{
	struct node *n = graph_new_node(x->g, &rdma_mr_type);

	SET(rdma_mr, n, dev, graph_str(x->g, dev_name(x->s, r->dev)));
	if (r->number != RDMA_UNKNOWN)
		SET(rdma_mr, n, mrn, r->number);
	if (r->lkey != RDMA_UNKNOWN)
		SET(rdma_mr, n, lkey, r->lkey);
	if (r->rkey != RDMA_UNKNOWN)
		SET(rdma_mr, n, rkey, r->rkey);
	if (r->pdn != RDMA_UNKNOWN)
		SET(rdma_mr, n, pdn, r->pdn);
	if (r->pid != RDMA_UNKNOWN)
		SET(rdma_mr, n, pid, r->pid);
	SET(rdma_mr, n, mrlen, r->length);
	return graph_add_node(x->g, n);
}

static void emit_connection(struct emitting *x, const struct rdma_resource *qp, uint32_t node)
{
	const struct rdma_resource *end = rdma_other_end(x->s, qp);
	struct node *n;

	if (end) {
		graph_link(x->g, &connect_to_type, node, qp_node(x, end)->index);
		return;
	}
	if (qp->remote == RDMA_UNKNOWN || !qp->remote)
		return;
	n = graph_new_node(x->g, &rdma_endpoint_type);
	SET(rdma_endpoint, n, qpn, qp->remote);
	graph_link(x->g, &connect_to_type, node, graph_add_node(x->g, n)->index);
}

static void emit_resource(struct emitting *x, const struct rdma_resource *r)
{
	struct procs *p = &x->c->procs;
	uint32_t proc = r->pid == RDMA_UNKNOWN ? IDMAP_NONE : procs_live(p, r->pid), node, pd;

	if (r->kind == RDMA_CQ || (proc == IDMAP_NONE ? !p->select_all : !p->v.v[proc].selected))
		return;
	if (r->kind == RDMA_PD) {
		node = pd_node(x, r->dev, r->number, r->pid)->index;
		if (proc == IDMAP_NONE)
			return;
		graph_link(x->g, &own_type, procs_node(p, x->g, proc), node);
		graph_link(x->g, &access_type, node,
			   graph_add_node(x->g, device_node(x->g, dev_name(x->s, r->dev)))->index);
		return;
	}
	node = r->kind == RDMA_QP ? qp_node(x, r)->index : mr_node(x, r)->index;
	if (r->pdn != RDMA_UNKNOWN) {
		pd = pd_node(x, r->dev, r->pdn, r->pid)->index;
		graph_link(x->g, &own_type, pd, node);
	}
	if (r->kind == RDMA_QP)
		emit_connection(x, r, node);
}

static void emit_device(struct emitting *x, const struct rdma_dev *d)
{
	struct node *n = device_node(x->g, d->name);
	uint64_t count[RDMA_KINDS] = {0}, bytes = 0;
	char pci[20];
	int numa = rdma_dev_place(&x->c->rdma->root, d->name, pci);

	vec_for(&x->s->resources, r) {
		if (r->dev != d->index)
			continue;
		count[r->kind]++;
		bytes += r->kind == RDMA_MR ? r->length : 0;
	}
	SET(rdma_device, n, queue_pairs, count[RDMA_QP]);
	SET(rdma_device, n, memory_regions, count[RDMA_MR]);
	SET(rdma_device, n, registered_bytes, bytes);
	SET(rdma_device, n, completion_queues, count[RDMA_CQ]);
	if (pci[0])
		SET(rdma_device, n, pci_bus_id, graph_str(x->g, pci));
	if (numa >= 0)
		SET(rdma_device, n, numa_node, (uint64_t)numa);
	n = graph_add_node(x->g, n);
	if (numa >= 0) {
		struct idrange nodes = {0};

		idrange_add(&nodes, (uint32_t)numa);
		graph_link(x->g, &affinitative_to_numa_type, n->index, machine_numa_set(x->g, &nodes));
		idrange_done(&nodes);
	}
}

/* By netlink; where that fails, as in some containers, by the tool. Whoever fails is not asked again. */
static int read_resources(struct rdma *r, struct rdma_state *s)
{
	struct err netlink, tool;

	if (!r->by_tool) {
		if (rdma_netlink_read(s, &netlink) >= 0)
			return 0;
		snprintf(r->why, sizeof(r->why), "%.190s", netlink.msg);
	}
	if (rdma_tool_read(s, &tool) >= 0) {
		r->by_tool = true;
		return 0;
	}
	r->failed = true;
	r->by_tool = false;
	snprintf(r->why + strlen(r->why), sizeof(r->why) - strlen(r->why), "; rdma -j: %.190s", tool.msg);
	return -1;
}

static void emit_resources(struct collect *c, struct graph *g)
{
	struct rdma_state s;
	struct emitting x = {.c = c, .g = g, .s = &s};

	if (read_resources(c->rdma, &s) < 0)
		return;
	vec_for(&s.devices, d)
		emit_device(&x, d);
	vec_for(&s.resources, r)
		emit_resource(&x, r);
	rdma_state_done(&s);
}

void collect_rdma(struct collect *c, struct graph *g, bool last)
{
	struct rdma *r = c->rdma;
	uint64_t now = clock_mono_ns();

	emit_ports(r, g);
	if (!r->any || r->failed || (!last && r->resources_ns && now - r->resources_ns < RESOURCES_EVERY_NS))
		return;
	r->resources_ns = now;
	emit_resources(c, g);
}

void collect_rdma_describe(const struct collect *c, struct graph *g)
{
	const struct rdma *r = c->rdma;

	if (!r->any)
		graph_add_status(g, "collector rdma", "off", NULL, "this host has no RDMA device: /sys/class/infiniband is empty");
	else if (r->failed)
		graph_add_status(g, "collector rdma", "reduced", "sysfs", r->why);
	else if (r->by_tool)
		graph_add_status(g, "collector rdma", "reduced", "rdma -j", r->why);
	else
		graph_add_status(g, "collector rdma", "ok", "netlink", NULL);
	if (r->any)
		graph_add_status(g, "collector rdma", "blind", NULL, "traffic is counted by port: queue pairs have no counters of their own");
	if (r->any && r->no_byte_counters)
		graph_add_status(g, "collector rdma", "blind", NULL, "a device has no counters of bytes: its rdma_stats.tx_bytes and rx_bytes are not known");
	if (r->any && r->no_hw_counters)
		graph_add_status(g, "collector rdma", "blind", NULL, "a device has no hw_counters: retransmissions and congestion are not known there");
}
