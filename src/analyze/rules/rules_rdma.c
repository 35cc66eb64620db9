/* RDMA: ports that are full, that lose packets or are down, resources that run out. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"

#define HOW_LIVE "record with this program on a live host: witty-profiler record"

void rule_no_rdma_port(struct rule_run *r)
{
	if (r->x->window_ns)
		rule_clear(r, "this host has no RDMA port");
	else
		rule_unknown(r, "RDMA ports", HOW_LIVE);
}

static void check_rdma_retransmits(struct rule_run *r)
{
	size_t ports = 0, known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double sent, again, pct;
		struct finding *fi;

		if (n->type != &rdma_stats_type)
			continue;
		ports++;
		if (!HAS(rdma_stats, n, retransmits) || !HAS(rdma_stats, n, tx_packets))
			continue;
		known++;
		sent = (double)GET(rdma_stats, n, tx_packets);
		again = (double)GET(rdma_stats, n, retransmits);
		pct = sent > 0 ? again * 100 / sent : 0;
		if (pct <= rule_limit(r, LIMIT_rdma_retrans_warning) ||
		    sent < rule_limit(r, LIMIT_few_packets))
			continue;
		fi = rule_fire(r,
			       rule_grade_value(r, pct, LIMIT_COUNT, LIMIT_rdma_retrans_warning,
						LIMIT_rdma_retrans_critical),
			       85, n->index);
		finding_subject(fi, n->index);
		finding_value(r, fi, n->index, "packets sent again", pct, PERCENT,
			      LIMIT_rdma_retrans_warning);
		fi->title = rule_text(r, "%.2f %% of the packets of %s were sent again", pct,
				      rule_name(r, n->index));
		fi->why =
		    rule_text(r, "%s of %s packets.", rule_count(r, again), rule_count(r, sent));
		finding_advice(fi, "RDMA stands no loss: check PFC and ECN on adapter and switch, "
				   "cables, and that MTUs agree.");
		finding_command(fi, "rdma statistic show; mlnx_qos -i ETH");
	}
	if (known)
		rule_clear(r, "%zu of %zu ports count it", known, ports);
	else if (ports)
		rule_unknown(r, "packets that RDMA ports sent again",
			     "a driver that counts them (hw_counters)");
	else
		rule_no_rdma_port(r);
}

static void check_rdma_congestion(struct rule_run *r)
{
	size_t ports = 0, known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double sent, slowed, pct;
		struct finding *fi;

		if (n->type != &rdma_stats_type)
			continue;
		ports++;
		if (!HAS(rdma_stats, n, congestion_handled) || !HAS(rdma_stats, n, tx_packets))
			continue;
		known++;
		sent = (double)GET(rdma_stats, n, tx_packets);
		slowed = (double)GET(rdma_stats, n, congestion_handled);
		pct = sent > 0 ? slowed * 100 / sent : 0;
		if (pct <= rule_limit(r, LIMIT_retrans_notice) ||
		    sent < rule_limit(r, LIMIT_few_packets))
			continue;
		fi = rule_fire(r,
			       rule_grade_value(r, pct, LIMIT_retrans_notice, LIMIT_retrans_warning,
						LIMIT_COUNT),
			       75, n->index);
		finding_subject(fi, n->index);
		finding_value(r, fi, n->index, "notifications of congestion, of packets sent", pct,
			      PERCENT, LIMIT_retrans_notice);
		fi->title =
		    rule_text(r, "%s was slowed down by congestion", rule_name(r, n->index));
		fi->why = rule_text(r, "%s notifications that slowed it, for %s packets.",
				    rule_count(r, slowed), rule_count(r, sent));
		finding_advice(fi, "Spread the traffic over more links, stagger collectives, check "
				   "who else uses the fabric.");
	}
	if (known)
		rule_clear(r, "%zu of %zu ports count it", known, ports);
	else if (ports)
		rule_unknown(r, "notifications of congestion of RDMA ports",
			     "a driver that counts them (hw_counters)");
	else
		rule_no_rdma_port(r);
}

static void check_rdma_down(struct rule_run *r)
{
	size_t ports = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		bool used = false;
		struct finding *fi;

		if (n->type != &rdma_stats_type || !HAS(rdma_stats, n, state))
			continue;
		ports++;
		if (!strcmp(GET(rdma_stats, n, state), "ACTIVE"))
			continue;
		/* Ports that nobody uses may be down. */
		vec_for(&r->x->g->nodes, q)
			used |= (*q)->type == &rdma_qp_type && HAS(rdma_qp, *q, pid) &&
				HAS(rdma_qp, *q, port) &&
				!strcmp(GET(rdma_qp, *q, dev), GET(rdma_stats, n, dev)) &&
				GET(rdma_qp, *q, port) == GET(rdma_stats, n, port);
		fi = rule_fire(r, used ? SEVERITY_CRITICAL : SEVERITY_NOTICE, used ? 90 : 60,
			       n->index);
		finding_subject(fi, n->index);
		fi->title = rule_text(r, "RDMA port %s is %s", rule_name(r, n->index),
				      GET(rdma_stats, n, state));
		fi->why = used ? "A process has a queue pair on it."
			       : "No process has a queue pair on it.";
		finding_advice(
		    fi, "Check the cable, the switch port and, on InfiniBand, the subnet manager.");
		finding_command(fi, "rdma link show; ibstat");
	}
	if (ports)
		rule_clear(r, "%zu ports", ports);
	else
		rule_no_rdma_port(r);
}

/* A port carries so much in each direction. */
static void look_full(struct rule_run *r, const struct node *n)
{
	double busier = fmax((double)GET(rdma_stats, n, tx_bytes), (double)GET(rdma_stats, n, rx_bytes));
	double rate = busier * 1e9 / (double)r->x->window_ns, pct = rate * 100 / GET(rdma_stats, n, rate_bytes_s);
	enum severity s = rule_grade_value(r, pct, LIMIT_nic_notice, LIMIT_nic_warning, LIMIT_nic_critical);
	struct finding *fi;

	if (s == SEVERITY_INFO)
		return;
	fi = rule_fire(r, s, 85, n->index);
	finding_subject(fi, n->index);
	finding_value(r, fi, n->index, "use of the link", pct, PERCENT, LIMIT_nic_warning);
	fi->title = rule_text(r, "RDMA port %s is used to %.0f %% of its speed", rule_name(r, n->index), pct);
	fi->why = rule_text(r, "%s/s in the busier direction, of %s/s.", rule_bytes(r, rate),
			    rule_bytes(r, GET(rdma_stats, n, rate_bytes_s)));
	finding_advice(fi, "Spread the traffic over all adapters (NCCL_IB_HCA names several; one near each device), send less "
			   "(compression, fewer synchronisations), or overlap it with computing.");
	finding_command(fi, "rdma statistic show; NCCL_DEBUG=INFO COMMAND   # which adapters it uses");
}

static void check_rdma_full(struct rule_run *r)
{
	size_t ports = 0, known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;

		if (n->type != &rdma_stats_type)
			continue;
		ports++;
		if (!HAS(rdma_stats, n, rate_bytes_s) || GET(rdma_stats, n, rate_bytes_s) <= 0 ||
		    !HAS(rdma_stats, n, tx_bytes) || !HAS(rdma_stats, n, rx_bytes) || !r->x->window_ns)
			continue;
		known++;
		look_full(r, n);
	}
	if (known)
		rule_clear(r, "%zu of %zu ports tell speed and traffic", known, ports);
	else if (ports)
		rule_unknown(r, "speed and traffic of RDMA ports over a window", HOW_LIVE);
	else
		rule_no_rdma_port(r);
}

/* How many there are is read; how many there may be is told to who opens the device only. */
static void check_rdma_resources(struct rule_run *r)
{
	vec_for(&r->x->g->nodes, n)
		if ((*n)->type == &rdma_device_type || (*n)->type == &rdma_stats_type)
			return rule_unknown(r, "how many queue pairs and memory regions a device can have",
					    "ibv_devinfo -v (max_qp, max_mr), and compare with 'rdma resource show'");
	rule_no_rdma_port(r);
}

const struct rule rules_rdma[] = {
    {.id = "rdma-saturated",
     .layer = LAYER_NETWORK,
     .title = "An RDMA link is full",
     .fires = "a port's busier direction uses more than `nic.notice` of its speed.",
     .graded = "use of the link: `nic.notice`, `nic.warning`, `nic.critical`.",
     .needs = "rdma_stats.rate_bytes_s, tx_bytes, rx_bytes.",
     .advice = "all adapters, less traffic, overlap.",
     RULE_LIMITS(LIMIT_nic_notice, LIMIT_nic_warning, LIMIT_nic_critical),
     .check = check_rdma_full},
    {.id = "rdma-retransmits",
     .layer = LAYER_NETWORK,
     .title = "RDMA sends packets again",
     .fires = "more than `rdma-retransmits.warning` of a port's packets were sent again.",
     .graded = "`rdma-retransmits.warning`, `rdma-retransmits.critical`.",
     .needs = "rdma_stats.retransmits and tx_packets: a driver with hw_counters.",
     .advice = "PFC, ECN, cables.",
     RULE_LIMITS(LIMIT_rdma_retrans_warning, LIMIT_rdma_retrans_critical, LIMIT_few_packets),
     .check = check_rdma_retransmits},
    {.id = "rdma-congestion",
     .layer = LAYER_NETWORK,
     .title = "RDMA is slowed down by congestion",
     .fires = "notifications of congestion that a port obeyed are more than `retransmits.notice` "
	      "of its packets.",
     .graded = "`retransmits.notice`, `retransmits.warning`.",
     .needs = "rdma_stats.congestion_handled and tx_packets: a driver with hw_counters.",
     .advice = "more links; look for other users of the fabric.",
     RULE_LIMITS(LIMIT_retrans_notice, LIMIT_retrans_warning, LIMIT_few_packets),
     .check = check_rdma_congestion},
    {.id = "rdma-port-down",
     .layer = LAYER_NETWORK,
     .title = "An RDMA port is down",
     .fires = "the state of a port is not ACTIVE.",
     .graded = "critical when a process has a queue pair on it, else a notice.",
     .needs = "rdma_stats.state.",
     .advice = "cable, switch port, subnet manager.",
     .check = check_rdma_down},
    {.id = "rdma-resources",
     .layer = LAYER_NETWORK,
     .title = "RDMA queue pairs or memory regions run out",
     .fires = "never so far: the limits of a device are not read.",
     .graded = "not evaluated.",
     .needs = "limits of the device (max_qp, max_mr), rdma_device.queue_pairs and memory_regions.",
     .advice = "fewer connections, shared receive queues; register large regions once.",
     .check = check_rdma_resources},
    {0}};
