/* Each rule: fired by a fault that is put into a healthy host, clear without it, not evaluated on a
 * file that tells nothing. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "rules_world.h"

/* --- faults, before the analyses --- */

static void lacks_cpus(struct world *w, const char *cpus)
{
	for (unsigned i = 0; i < 2; i++) {
		set_times(w, w->thread[i], 5, 5);
		ran_on(w, w->thread[i], 0, 2);
	}
	for (unsigned i = 0; i < 2; i++) {
		may_use(w, w->thread[i], cpus);
		for (size_t k = 0; k < w->g.edges.n; k++)
			if (w->g.edges.v[k]->type == &numa_access_type &&
			    w->g.edges.v[k]->source == w->rank[i])
				SET(numa_access, w->g.edges.v[k], cpus_allowed_list, str(w, cpus));
	}
	SET(cpu, at(w, w->cpu[0]), busy_ns, WINDOW);
	SET(cpu, at(w, w->cpu[3]), busy_ns, 0);
}

static void two_on_one_cpu(struct world *w)
{
	lacks_cpus(w, "0");
}

/* One rank with three threads on one CPU, the other one at peace. */
static void narrow(struct world *w)
{
	lacks_cpus(w, "0");
	set_times(w, w->thread[1], 0.1, 0);
	for (uint64_t i = 1; i < 3; i++)
		may_use(w, add_thread(w, w->rank[0], 100 + i, "helper", 3, 6, 0), "0");
}

static void narrowed_by_a_library(struct world *w)
{
	narrow(w);
	SET(process, at(w, w->rank[0]), environment, str(w, "{\"OMP_PROC_BIND\":\"true\"}"));
}

static void many_interrupts(struct world *w)
{
	may_use(w, w->thread[0], "0");
	SET(cpu, at(w, w->cpu[0]), softirq_ns, 4 * SECOND);
}

static void throttled(struct world *w)
{
	SET(container, at(w, w->box), throttled_ns, 6 * SECOND);
}

static void crowd(struct world *w)
{
	for (uint64_t i = 0; i < 12; i++)
		add_thread(w, add_process(w, 400 + i, "job"), 400 + i, "job", 3, 6, i % 4);
}

static void hot_gpu(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), throttle, str(w, "hw_thermal"));
}

static void sick_gpu(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), state, str(w, "lost"));
}

static void gpu_memory(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), memory_util_pct, 95);
	SET(gpu, at(w, w->gpu[0]), utilization_pct, 40);
}

static void few_lanes(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), pcie_width, 4);
}

static void full_pcie(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), pcie_rx_bytes_s, 60e9);
}

static void link_down(struct world *w)
{
	vec_for(&w->g.edges, d)
		if ((*d)->type == &device_link_type)
			SET(device_link, *d, active, 11);
}

static void memory_full(struct world *w)
{
	SET(host, at(w, w->host), memory_available_bytes, 20 * MIB);
}

static void shm_full(struct world *w)
{
	SET(container, at(w, w->box), shm_free_bytes, MIB);
}

static void cache_misses(struct world *w)
{
	SET(numa, at(w, w->numa[0]), llc_misses, 60000);
	SET(numa, at(w, w->numa[0]), instructions, 3000000);
}

static void memory_wall(struct world *w)
{
	SET(ddr_bandwidth, w->traffic[0], total_bytes, (200ull << 30) / 100 * 85 * (WINDOW / SECOND));
}

/* 700 cycles at 2.5 GHz, and few instructions. */
static void slow_answers(struct world *w)
{
	struct node *p = at(w, w->rank[0]);

	SET(process, p, timed_samples, 1000);
	SET(process, p, latency_cycles, 700000);
	SET(process, p, cycles, 3 * SECOND / 2 * 5);
	SET(process, p, instructions, SECOND);
}

static void away_from_memory(struct world *w)
{
	uint32_t p = add_process(w, 500, "solver");

	add_thread(w, p, 500, "solver", 8, 0, 1);
	place(w, p, 0, 1);
}

static void remote_pages(struct world *w)
{
	SET(numa, at(w, w->numa[0]), other_pages, 900000);
}

static void far_nic(struct world *w)
{
	SET(nic, at(w, w->nic), numa_node, 0);
	flow(w, w->rank[1], outside(w), "tcp", 5000 * MIB, 100000);
}

static void full_nic(struct world *w)
{
	SET(nic, at(w, w->nic), tx_bytes, 12000000000ull);
}

static void drops(struct world *w)
{
	SET(nic, at(w, w->nic), rx_drops, 50000);
}

static void sent_again(struct world *w)
{
	SET(socket, at(w, outside(w)), retransmits, 20000);
}

static void rdma_full(struct world *w)
{
	SET(rdma_stats, at(w, w->port), rate_bytes_s, 1e9);
	SET(rdma_stats, at(w, w->port), tx_bytes, 9500000000);
}

static void rdma_again(struct world *w)
{
	SET(rdma_stats, at(w, w->port), retransmits, 20000);
}

static void rdma_slowed(struct world *w)
{
	SET(rdma_stats, at(w, w->port), congestion_handled, 20000);
}

static void rdma_down(struct world *w)
{
	SET(rdma_stats, at(w, w->port), state, str(w, "DOWN"));
}

static void reads_disk(struct world *w)
{
	struct edge *d = graph_new_edge(&w->g, &read_from_type, w->file, w->thread[0]);

	SET(read_from, d, bytes, 100 * MIB);
	SET(read_from, d, calls, 1000);
	graph_add_edge(&w->g, d);
	waits(w, w->thread[0], w->file, "disk", 6);
}

static void writes_disk(struct world *w)
{
	struct edge *d = graph_new_edge(&w->g, &write_to_type, w->thread[0], w->file);

	SET(write_to, d, bytes, 100 * MIB);
	SET(write_to, d, calls, 1000);
	graph_add_edge(&w->g, d);
	waits(w, w->thread[0], w->file, "disk", 6);
}

static void slow_disk(struct world *w)
{
	reads_disk(w);
	SET(block_device, at(w, w->disk), read_ns, 50 * SECOND);
	SET(block_device, at(w, w->disk), busy_ns, 9 * SECOND);
}

static void io_stalls(struct world *w)
{
	SET(container, at(w, w->box), io_stalled_ns, 6 * SECOND);
}

static void store_on_disk(struct world *w)
{
	SET(shared_memory, at(w, w->shm), kind, str(w, "file"));
	SET(shared_memory, at(w, w->shm), path, str(w, "/tmp/ray/plasma"));
	for (unsigned i = 0; i < 2; i++) {
		struct edge *d = graph_new_edge(&w->g, &access_type, w->rank[i], w->shm);

		SET(access, d, mode, str(w, "rw"));
		SET(access, d, memory_bytes, 100 * MIB);
		graph_add_edge(&w->g, d);
	}
}

static void computes(struct world *w)
{
	set_times(w, w->thread[0], 9.5, 0.1);
}

static void inversion(struct world *w)
{
	pattern(w, PATTERN_INVERSION);
}

static void handover(struct world *w)
{
	pattern(w, PATTERN_HANDOVER);
	w->w.patterns.v[w->w.patterns.n - 1].interpreter = true;
}

static void herd(struct world *w)
{
	pattern(w, PATTERN_HERD);
}

static void off_device(struct world *w)
{
	problem(w, "off-device-node");
}

static void off_node(struct world *w)
{
	problem(w, "thread-off-node");
}

static void shared_node(struct world *w)
{
	problem(w, "shared-node");
}

static void cross_node(struct world *w)
{
	problem(w, "cross-node-link");
}

static void over_tcp(struct world *w)
{
	problem(w, "collective-over-tcp");
}

static void undeclared(struct world *w)
{
	problem(w, "not-as-declared");
}

/* Two ranks of one job, one of which talks to another host. */
static void as_job(struct world *w)
{
	struct topo_group gr = {
	    .is_job = true, .has_devices = true, .launcher = TOPO_NONE, .name = "2 x rank"};

	for (unsigned i = 0; i < 2; i++) {
		vec_push(&gr.members, w->t.actor_of[w->rank[i]]);
		w->t.actors.v[w->t.actor_of[w->rank[i]]].group = (uint32_t)w->t.groups.n;
	}
	vec_push(&w->t.groups, gr);
}

/* Rank 1 waits for rank 0 and the other way round, each for three seconds of ten. */
static void waits_for_rank(struct world *w, enum parallelism kind)
{
	struct topo_group *gr;

	as_job(w);
	gr = &w->t.groups.v[w->t.groups.n - 1];
	vec_push(&gr->patterns, ((struct topo_pattern){.kind = kind, .pct = 90, .text = "so", .observed = true}));
	w->w.chains.n = 0;
	for (unsigned i = 0; i < 2; i++) {
		const struct wait_role *own = &w->w.roles.v[w->w.role_of[w->thread[i]]];
		struct wait_chain c = {.role = w->w.role_of[w->thread[i]], .waited_ns = 3 * SECOND * own->threads.n};
		struct wait_part part = {.role = w->w.role_of[w->thread[!i]], .thread = w->thread[!i], .ns = c.waited_ns};

		vec_push(&c.parts, part);
		vec_push(&w->w.chains, c);
	}
}

static void collective(struct world *w)
{
	waits_for_rank(w, PAR_RING);
}

static void stages(struct world *w)
{
	waits_for_rank(w, PAR_PIPELINE);
}

static void talks_far(struct world *w)
{
	SET(socket, at(w, outside(w)), rtt_ns, 20000000);
	flow(w, w->rank[1], outside(w), "tcp", 500 * MIB, 100000);
}

static void talks(struct world *w)
{
	flow(w, w->rank[1], outside(w), "tcp", 500 * MIB, 100000);
}

/* What is put in before and after the analyses, and whom and how gravely the rule then blames. */
enum blamed { NOBODY, RANK, THREAD, BOX, HOST, CPU, GPU, NIC, SOCKET, PORT, DISK, NODE, SHM, ANY };

static const struct fault {
	const char *rule;
	void (*before)(struct world *w), (*after)(struct world *w);
	enum severity severity;
	enum blamed root;
} table[] = {
    {"overlapping-pins", two_on_one_cpu, NULL, SEVERITY_WARNING, RANK},
    {"affinity-changed", narrowed_by_a_library, NULL, SEVERITY_CRITICAL, RANK},
    {"affinity-narrow", narrow, NULL, SEVERITY_CRITICAL, RANK},
    {"irq-on-pinned-cpu", many_interrupts, NULL, SEVERITY_WARNING, CPU},
    {"cpu-quota", throttled, NULL, SEVERITY_WARNING, BOX},
    {"too-many-threads", many_threads, NULL, SEVERITY_WARNING, RANK},
    {"cpu-wait", neighbour, NULL, SEVERITY_WARNING, RANK},
    {"cpu-oversubscribed", crowd, NULL, SEVERITY_WARNING, HOST},
    {"device-idle", idle_gpu, NULL, SEVERITY_WARNING, GPU},
    {"device-busy", busy_gpu, NULL, SEVERITY_NOTICE, GPU},
    {"device-throttled", hot_gpu, NULL, SEVERITY_CRITICAL, GPU},
    {"device-unhealthy", sick_gpu, NULL, SEVERITY_CRITICAL, GPU},
    {"device-memory-bandwidth", gpu_memory, NULL, SEVERITY_CRITICAL, GPU},
    {"pcie-link-reduced", few_lanes, NULL, SEVERITY_WARNING, GPU},
    {"pcie-bandwidth", full_pcie, NULL, SEVERITY_CRITICAL, GPU},
    {"device-link-down", link_down, NULL, SEVERITY_WARNING, GPU},
    {"memory-pressure", memory_stalls, NULL, SEVERITY_CRITICAL, BOX},
    {"memory-capacity", memory_full, NULL, SEVERITY_CRITICAL, HOST},
    {"page-faults", faults, NULL, SEVERITY_CRITICAL, THREAD},
    {"shm-size", shm_full, NULL, SEVERITY_CRITICAL, BOX},
    {"cache-misses", cache_misses, NULL, SEVERITY_CRITICAL, NODE},
    {"memory-bandwidth", memory_wall, NULL, SEVERITY_WARNING, NODE},
    {"memory-latency", slow_answers, NULL, SEVERITY_CRITICAL, RANK},
    {"off-device-node", NULL, off_device, SEVERITY_WARNING, RANK},
    {"remote-memory", away_from_memory, NULL, SEVERITY_CRITICAL, ANY},
    {"thread-off-node", NULL, off_node, SEVERITY_WARNING, RANK},
    {"shared-node", NULL, shared_node, SEVERITY_WARNING, RANK},
    {"cross-node-link", NULL, cross_node, SEVERITY_WARNING, RANK},
    {"remote-allocations", remote_pages, NULL, SEVERITY_NOTICE, NODE},
    {"nic-far", far_nic, NULL, SEVERITY_NOTICE, NIC},
    {"nic-saturated", full_nic, NULL, SEVERITY_CRITICAL, NIC},
    {"nic-drops", drops, NULL, SEVERITY_WARNING, NIC},
    {"tcp-retransmits", sent_again, NULL, SEVERITY_WARNING, SOCKET},
    {"network-latency", talks_far, as_job, SEVERITY_NOTICE, SOCKET},
    {"rdma-saturated", rdma_full, NULL, SEVERITY_CRITICAL, PORT},
    {"rdma-retransmits", rdma_again, NULL, SEVERITY_CRITICAL, PORT},
    {"rdma-congestion", rdma_slowed, NULL, SEVERITY_WARNING, PORT},
    {"rdma-port-down", rdma_down, NULL, SEVERITY_NOTICE, PORT},
    {"collective-wait", NULL, collective, SEVERITY_NOTICE, NOBODY},
    {"pipeline-bubble", NULL, stages, SEVERITY_NOTICE, RANK},
    {"sockets-despite-rdma", talks, as_job, SEVERITY_WARNING, NOBODY},
    {"collective-over-tcp", NULL, over_tcp, SEVERITY_WARNING, NOBODY},
    {"disk-wait", reads_disk, NULL, SEVERITY_CRITICAL, THREAD},
    {"checkpoint", writes_disk, NULL, SEVERITY_CRITICAL, THREAD},
    {"disk-slow", slow_disk, NULL, SEVERITY_CRITICAL, DISK},
    {"io-pressure", io_stalls, NULL, SEVERITY_WARNING, BOX},
    {"store-on-disk", store_on_disk, NULL, SEVERITY_WARNING, SHM},
    {"hang", NULL, hang, SEVERITY_CRITICAL, THREAD},
    {"straggler", NULL, barrier, SEVERITY_CRITICAL, THREAD},
    {"lock-convoy", NULL, convoy, SEVERITY_CRITICAL, THREAD},
    {"priority-inversion", NULL, inversion, SEVERITY_CRITICAL, THREAD},
    {"gil", NULL, handover, SEVERITY_WARNING, THREAD},
    {"thundering-herd", NULL, herd, SEVERITY_CRITICAL, THREAD},
    {"slow-producer", NULL, producer, SEVERITY_CRITICAL, THREAD},
    {"back-pressure", NULL, pressure, SEVERITY_CRITICAL, THREAD},
    {"serial-thread", NULL, serial, SEVERITY_CRITICAL, THREAD},
    {"tiny-messages", tiny, NULL, SEVERITY_WARNING, RANK},
    {"uneven-work", NULL, uneven, SEVERITY_WARNING, RANK},
    {"not-as-declared", NULL, undeclared, SEVERITY_WARNING, RANK},
    {"busy-thread", computes, NULL, SEVERITY_NOTICE, THREAD},
};

#define NFAULTS (sizeof(table) / sizeof(table[0]))

/* Rules for which no input exists yet: they say so on each file. */
static bool never_evaluated(const char *rule)
{
	return !strcmp(rule, "rdma-resources") || !strcmp(rule, "device-link-bandwidth");
}

static const struct type *type_of(enum blamed b)
{
	const struct type *types[] = {NULL,
				      &process_type,
				      &thread_type,
				      &container_type,
				      &host_type,
				      &cpu_type,
				      &gpu_type,
				      &nic_type,
				      &socket_type,
				      &rdma_stats_type,
				      &block_device_type,
				      &numa_type,
				      &shared_memory_type,
				      &process_type};

	return types[b];
}

static void check_fault(const struct fault *c)
{
	const struct finding *found = NULL;
	struct world w;

	begin(&w);
	if (c->before)
		c->before(&w);
	analyse(&w);
	if (c->after)
		c->after(&w);
	find(&w);
	if (verdict(&w, c->rule)->verdict != VERDICT_FIRED)
		fail_msg("%s did not fire: %s", c->rule, verdict(&w, c->rule)->evidence);
	vec_for(&w.f.v, fi)
		if (!strcmp(fi->rule, c->rule) && !found)
			found = fi;
	if (!found)
		fail_msg("%s became part of another finding", c->rule);
	if (found->severity != c->severity)
		fail_msg("%s is %s: %s", c->rule, severity_name(found->severity), found->title);
	if ((found->root == NODE_NONE) != (c->root == NOBODY))
		fail_msg("%s has the wrong root", c->rule);
	if (c->root != NOBODY && at(&w, found->root)->type != type_of(c->root))
		fail_msg("%s blames a %s", c->rule, at(&w, found->root)->type->name);
	assert_true(found->subjects.n > 0);
	assert_true(found->title[0] && found->advice.n > 0 && found->severity_basis);
	assert_true(!found->lost_basis == !found->lost_ns || found->lost_basis);
	done(&w);
}

TEST(each_rule_fires_when_its_fault_is_there)
{
	for (size_t i = 0; i < NFAULTS; i++)
		check_fault(&table[i]);
}

TEST(each_rule_has_a_fault_here)
{
	for (size_t i = 0; rule_at(i); i++) {
		bool has = never_evaluated(rule_at(i)->id);

		for (size_t k = 0; k < NFAULTS; k++)
			has |= !strcmp(table[k].rule, rule_at(i)->id);
		if (!has)
			fail_msg("no fault for %s", rule_at(i)->id);
	}
}

TEST(a_healthy_host_is_clear_of_all_rules)
{
	struct world w;

	begin(&w);
	analyse(&w);
	find(&w);
	vec_for(&w.f.verdicts, v)
		if (v->verdict != (never_evaluated(v->rule->id) ? VERDICT_UNKNOWN : VERDICT_CLEAR))
			fail_msg("%s: %s: %s", v->rule->id, verdict_name(v->verdict), v->evidence);
	assert_int_equal(w.f.v.n, 0);
	assert_int_equal(findings_worst(&w.f), SEVERITY_INFO);
	done(&w);
}

TEST(nothing_is_evaluated_on_a_file_that_tells_nothing)
{
	struct world w = {0};

	graph_init(&w.g);
	analyse(&w);
	find(&w);
	vec_for(&w.f.verdicts, v) {
		if (v->verdict != VERDICT_UNKNOWN)
			fail_msg("%s: %s: %s", v->rule->id, verdict_name(v->verdict), v->evidence);
		assert_non_null(v->how);
	}
	assert_int_equal(w.f.v.n, 0);
	done(&w);
}

TEST(unused_shared_memory_is_clear_where_it_was_looked_for)
{
	struct world w = {0};

	graph_init(&w.g);
	graph_add_status(&w.g, "collector shm", "ok", "iter", NULL);
	analyse(&w);
	find(&w);
	assert_int_equal(verdict(&w, "shm-size")->verdict, VERDICT_CLEAR);
	done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_fires_when_its_fault_is_there),
		cmocka_unit_test(each_rule_has_a_fault_here),
		cmocka_unit_test(a_healthy_host_is_clear_of_all_rules),
		cmocka_unit_test(nothing_is_evaluated_on_a_file_that_tells_nothing),
		cmocka_unit_test(unused_shared_memory_is_clear_where_it_was_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
