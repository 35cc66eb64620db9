/* Network: full links, lost packets, transports that are slower than what is there. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"

#define HOW_LIVE "record with this program on a live host: witty-profiler record"

static double per_s(const struct facts *x, uint64_t n)
{
	return x->window_ns ? (double)n * 1e9 / (double)x->window_ns : 0;
}

static bool is_real_nic(const struct node *n)
{
	return n->type == &nic_type && HAS(nic, n, name) && strcmp(GET(nic, n, name), "lo");
}

static void check_saturated(struct rule_run *r)
{
	size_t known = 0, all = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double rate, pct;
		enum severity s;
		struct finding *fi;

		if (!is_real_nic(n))
			continue;
		all++;
		if (!HAS(nic, n, speed_bytes_s) || !GET(nic, n, speed_bytes_s) ||
		    !HAS(nic, n, tx_bytes) || !HAS(nic, n, rx_bytes) || !r->x->window_ns)
			continue;
		known++;
		/* Links are full in one direction at a time. */
		rate = fmax(per_s(r->x, GET(nic, n, tx_bytes)), per_s(r->x, GET(nic, n, rx_bytes)));
		pct = rate * 100 / (double)GET(nic, n, speed_bytes_s);
		s = rule_grade_value(r, pct, LIMIT_nic_notice, LIMIT_nic_warning,
				     LIMIT_nic_critical);
		if (s == SEVERITY_INFO)
			continue;
		fi = rule_fire(r, s, 85, n->index);
		finding_subject(fi, n->index);
		finding_value(r, fi, n->index, "use of the link", pct, PERCENT, LIMIT_nic_warning);
		fi->title =
		    rule_text(r, "%s is used to %.0f %% of its speed", rule_name(r, n->index), pct);
		fi->why =
		    rule_text(r, "%s/s in the busier direction, of %s/s.", rule_bytes(r, rate),
			      rule_bytes(r, (double)GET(nic, n, speed_bytes_s)));
		finding_advice(fi, "Send less (compression, larger local batches), use further "
				   "adapters, or a faster network.");
	}
	if (known)
		rule_clear(r, "%zu of %zu adapters tell speed and traffic", known, all);
	else if (all)
		rule_unknown(
		    r, "the speed of the adapters",
		    "virtual adapters have none: look at what the host of the machine tells");
	else
		rule_unknown(r, "network adapters and their traffic", HOW_LIVE);
}

static void check_drops(struct rule_run *r)
{
	size_t known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		uint64_t bad, packets;
		double pct;
		struct finding *fi;

		if (n->type != &nic_type || !HAS(nic, n, rx_drops) || !HAS(nic, n, tx_drops) ||
		    !HAS(nic, n, rx_packets) || !HAS(nic, n, tx_packets))
			continue;
		known++;
		bad = GET(nic, n, rx_drops) + GET(nic, n, tx_drops) +
		      (HAS(nic, n, rx_errors) ? GET(nic, n, rx_errors) : 0) +
		      (HAS(nic, n, tx_errors) ? GET(nic, n, tx_errors) : 0);
		packets = GET(nic, n, rx_packets) + GET(nic, n, tx_packets);
		pct = packets ? (double)bad * 100 / (double)packets : 0;
		if ((double)packets < rule_limit(r, LIMIT_few_packets) ||
		    pct <= rule_limit(r, LIMIT_retrans_notice))
			continue;
		fi = rule_fire(r,
			       rule_grade_value(r, pct, LIMIT_retrans_notice, LIMIT_retrans_warning,
						LIMIT_COUNT),
			       80, n->index);
		finding_subject(fi, n->index);
		finding_value(r, fi, n->index, "packets dropped or with errors", pct, PERCENT,
			      LIMIT_retrans_notice);
		fi->title =
		    rule_text(r, "%s dropped %.2f %% of its packets", rule_name(r, n->index), pct);
		fi->why = rule_text(r, "%" PRIu64 " of %" PRIu64 " packets.", bad, packets);
		finding_advice(fi, "Larger rings (ethtool -G), more receive queues, and CPUs for "
				   "its interrupts that are not busy.");
		finding_command(fi, rule_text(r, "ethtool -S %s | grep -iE 'drop|err|miss'",
					      rule_name(r, n->index)));
	}
	if (known)
		rule_clear(r, "%zu adapters", known);
	else
		rule_unknown(r, "packets of network adapters", HOW_LIVE);
}

static bool is_loopback(const struct node *n)
{
	return HAS(socket, n, socket_addr) && (!strncmp(GET(socket, n, socket_addr), "127.", 4) ||
					       !strcmp(GET(socket, n, socket_addr), "::1"));
}

static void check_retransmits(struct rule_run *r)
{
	uint64_t again = 0, sent = 0, most = 0;
	uint32_t worst = NODE_NONE;
	bool known = false, packets = false;
	enum severity s;
	double pct;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;

		if (is_real_nic(n) && HAS(nic, n, tx_packets)) {
			packets = true;
			sent += GET(nic, n, tx_packets);
		}
		if (n->type != &socket_type || !HAS(socket, n, retransmits))
			continue;
		known = true;
		/* What is sent again there is late for want of a CPU, not of a network. */
		if (is_loopback(n))
			continue;
		again += GET(socket, n, retransmits);
		if (GET(socket, n, retransmits) > most) {
			most = GET(socket, n, retransmits);
			worst = n->index;
		}
	}
	if (!known || !packets)
		return rule_unknown(
		    r, "TCP segments that were sent again (socket.retransmits) and packets sent",
		    "record as root with probe 'sock'");
	pct = sent ? (double)again * 100 / (double)sent : 0;
	s = rule_grade_value(r, pct, LIMIT_retrans_notice, LIMIT_retrans_warning,
			     LIMIT_retrans_critical);
	if (s > SEVERITY_INFO && (double)sent >= rule_limit(r, LIMIT_few_packets)) {
		struct finding *fi = rule_fire(r, s, 75, worst);

		finding_subject(fi, worst);
		finding_value(r, fi, NODE_NONE, "segments sent again, of packets sent", pct,
			      PERCENT, LIMIT_retrans_warning);
		fi->title = rule_text(r, "%.2f %% of the TCP segments were sent again, most at %s",
				      pct, rule_name(r, worst));
		fi->why = rule_text(
		    r, "%" PRIu64 " segments, of %" PRIu64 " packets that the adapters sent.",
		    again, sent);
		finding_advice(fi, "Look for full queues on the way: switch counters, adapter "
				   "drops, a receiver that does not read; "
				   "a rate limit or another congestion control (bbr, dctcp).");
		finding_command(fi, "ss -tin state established | grep -B1 retrans");
	}
	rule_clear(r, "%" PRIu64 " segments sent again, of %" PRIu64 " packets", again, sent);
}

static void check_rtt(struct rule_run *r)
{
	size_t known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;

		known += n->type == &socket_type && HAS(socket, n, rtt_ns);
	}
	if (!known)
		return rule_unknown(r, "round-trip times of connections (socket.rtt_ns)",
				    "record as root with probe 'sock'");
	rule_clear(r, "round-trip times of %zu endpoints", known);
	if (!r->x->s->t)
		return;
	vec_for(&r->x->s->t->links, l) {
		const struct topology *t = r->x->s->t;
		uint32_t out = t->actors.v[l->to].kind == ACTOR_OUTSIDE ? l->to : l->from,
			 in = out == l->to ? l->from : l->to;
		const struct node *n = r->x->g->nodes.v[t->actors.v[out].node];
		struct finding *fi;

		/* Clients may be far away; ranks of one job should not be. */
		if (t->actors.v[out].kind != ACTOR_OUTSIDE || n->type != &socket_type ||
		    !HAS(socket, n, rtt_ns) || t->actors.v[in].group == TOPO_NONE ||
		    !t->groups.v[t->actors.v[in].group].is_job ||
		    (double)GET(socket, n, rtt_ns) <= rule_limit(r, LIMIT_rtt))
			continue;
		fi = rule_fire(r, SEVERITY_NOTICE, 60, n->index);
		finding_subject(fi, t->actors.v[in].node);
		finding_subject(fi, n->index);
		finding_value(r, fi, n->index, "round-trip time", (double)GET(socket, n, rtt_ns),
			      NS, LIMIT_rtt);
		fi->title =
		    rule_text(r, "%s is %s away from %s", t->actors.v[in].label,
			      rule_ns(r, (double)GET(socket, n, rtt_ns)), t->actors.v[out].label);
		fi->why =
		    "Smoothed round-trip time of TCP, which has the delay of full queues in it.";
		finding_advice(fi, "Put the hosts of one job behind one switch; RDMA instead of "
				   "TCP; larger messages.");
	}
}

static bool has_active_rdma(const struct facts *x)
{
	vec_for(&x->g->nodes, n)
		if ((*n)->type == &rdma_stats_type && HAS(rdma_stats, *n, state) &&
		    !strcmp(GET(rdma_stats, *n, state), "ACTIVE"))
			return true;
	return false;
}

/* Ranks that send to other hosts over TCP while an RDMA port is up. */
static void check_sockets_despite_rdma(struct rule_run *r)
{
	const struct topology *t = r->x->s->t;

	if (!r->x->window_ns && !has_active_rdma(r->x))
		return rule_no_rdma_port(r);
	if (!has_active_rdma(r->x))
		return rule_clear(r, "no active RDMA port on this host");
	if (!t)
		return;
	vec_for(&t->groups, gr) {
		uint64_t bytes = 0;
		bool without = false;
		struct finding *fi;

		if (!gr->is_job && !gr->has_devices)
			continue;
		vec_for(&gr->members, m) {
			const struct process_fact *p = fact_process(r->x, t->actors.v[*m].node);

			vec_for(&t->links, l)
				if (!strcmp(l->kind, "tcp") &&
				    ((l->from == *m && t->actors.v[l->to].kind == ACTOR_OUTSIDE) ||
				     (l->to == *m && t->actors.v[l->from].kind == ACTOR_OUTSIDE)))
					bytes += l->bytes;
			if (p && p->container != NODE_NONE) {
				const struct node *c = r->x->g->nodes.v[p->container];

				without |=
				    HAS(container, c, has_rdma) && !GET(container, c, has_rdma);
			}
		}
		if (per_s(r->x, bytes) < 1e6)
			continue;
		fi = rule_fire(r, SEVERITY_WARNING, without ? 85 : 70, NODE_NONE);
		vec_for(&gr->members, m)
			finding_subject(fi, t->actors.v[*m].node);
		finding_value(r, fi, NODE_NONE, "TCP with other hosts", per_s(r->x, bytes), BYTES_S,
			      LIMIT_COUNT);
		fi->title = rule_text(
		    r, "%s exchanges %s/s with other hosts over TCP although RDMA is there",
		    gr->name, rule_bytes(r, per_s(r->x, bytes)));
		fi->why = without ? "Its container has no RDMA devices in /dev, so the collective "
				    "library cannot use them."
				  : "A port is active on this host, and the ranks use sockets.";
		finding_advice(fi, without
				       ? "Give the container the devices: --device=/dev/infiniband "
					 "--ulimit memlock=-1 --cap-add=IPC_LOCK."
				       : "Look at what the library chose: NCCL_DEBUG=INFO; "
					 "NCCL_IB_DISABLE must not be 1, NCCL_IB_HCA must "
					 "name the adapter.");
		finding_command(
		    fi, without ? "docker run --device=/dev/infiniband --ulimit memlock=-1 …"
				: "NCCL_DEBUG=INFO NCCL_NET=IB COMMAND");
	}
	rule_clear(r, "traffic of %zu groups of ranks", t->groups.n);
}

static void check_collective(struct rule_run *r)
{
	const struct topology *t = r->x->s->t;

	if (!t || !t->links.n)
		return rule_unknown(r, "flows of data between processes",
				    "record as root with probe 'sock'");
	rule_clear(r, "flows within %zu group%s of ranks", t->groups.n,
		   t->groups.n == 1 ? "" : "s");
	vec_for(&t->problems, p) {
		struct finding *fi;

		if (strcmp(p->id, r->rule->id) || p->severity == SEVERITY_INFO)
			continue;
		fi = rule_fire(r, p->severity, p->pct, NODE_NONE);
		vec_for(&p->actors, a)
			finding_subject(fi, t->actors.v[*a].node);
		fi->why = p->text;
		finding_advice(fi, p->advice);
		finding_command(fi, "NCCL_DEBUG=INFO COMMAND   # HCCL: HCCL_INTRA_ROCE_ENABLE, "
				    "HCCL_INTRA_PCIE_ENABLE");
		fi->expectation = "Local transports move several times more than loopback TCP; the "
				  "step gains what it spends in the "
				  "collective.";
	}
}

const struct rule rules_network[] = {
    {.id = "nic-saturated",
     .layer = LAYER_NETWORK,
     .title = "A network link is full",
     .fires = "an adapter's busier direction uses more than `nic.notice` of its speed.",
     .graded = "use of the link: `nic.notice`, `nic.warning`, `nic.critical`.",
     .needs = "nic.speed_bytes_s, rx_bytes, tx_bytes; virtual adapters tell no speed.",
     .advice = "send less, or use more links.",
     RULE_LIMITS(LIMIT_nic_notice, LIMIT_nic_warning, LIMIT_nic_critical),
     .check = check_saturated},
    {.id = "nic-drops",
     .layer = LAYER_NETWORK,
     .title = "A network adapter drops packets",
     .fires = "more than `retransmits.notice` of at least `retransmits.packets` packets were "
	      "dropped or had errors.",
     .graded = "`retransmits.notice`, `retransmits.warning`.",
     .needs = "nic.rx_drops, tx_drops, rx_packets, tx_packets.",
     .advice = "larger rings, more queues.",
     RULE_LIMITS(LIMIT_retrans_notice, LIMIT_retrans_warning, LIMIT_few_packets),
     .check = check_drops},
    {.id = "tcp-retransmits",
     .layer = LAYER_NETWORK,
     .title = "TCP sends much again",
     .fires = "segments sent again are more than `retransmits.notice` of at least "
	      "`retransmits.packets` packets sent.",
     .graded = "`retransmits.notice`, `retransmits.warning`, `retransmits.critical`.",
     .needs = "socket.retransmits (probe sock), nic.tx_packets.",
     .advice = "find the full queue on the way.",
     RULE_LIMITS(LIMIT_retrans_notice, LIMIT_retrans_warning, LIMIT_retrans_critical,
		 LIMIT_few_packets),
     .check = check_retransmits},
    {.id = "network-latency",
     .across = true,
     .layer = LAYER_NETWORK,
     .title = "Ranks on different hosts are far apart",
     .fires = "a rank of a parallel job talks to another host with a round-trip time above "
	      "`network.rtt`.",
     .graded = "always a notice: whether it costs time, the waits tell.",
     .needs = "socket.rtt_ns (probe sock).",
     .advice = "one switch, RDMA, larger messages.",
     RULE_LIMITS(LIMIT_rtt),
     .check = check_rtt},
    {.id = "sockets-despite-rdma",
     .across = true,
     .layer = LAYER_NETWORK,
     .title = "Ranks use TCP between hosts although RDMA is there",
     .fires = "a job's ranks exchange at least 1 MB/s with other hosts over TCP and an RDMA port "
	      "is active.",
     .graded = "always a warning.",
     .needs = "flows (probe sock), rdma_stats.state, container.has_rdma.",
     .advice = "give the container /dev/infiniband; NCCL_DEBUG=INFO.",
     .check = check_sockets_despite_rdma},
    {.id = "collective-over-tcp",
     .layer = LAYER_NETWORK,
     .title = "Ranks on one host exchange data over TCP",
     .fires = "at least half of the bytes between the ranks of a group with devices, or a declared "
	      "one, go over TCP.",
     .graded = "a warning when the ranks use devices, else a notice.",
     .needs = "flows (probe sock).",
     .advice = "find out why the library chose sockets: NCCL_DEBUG=INFO.",
     .check = check_collective},
    {0}};
