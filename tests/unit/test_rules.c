/* Each rule: fired by a fault that is put into a healthy host, clear without it, not evaluated on a
 * file that tells nothing. And what becomes of several findings with one root. */
#include "unit.h"

#include "analysis.h"
#include "hosts.h"
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

static void many_threads(struct world *w)
{
	for (uint64_t i = 1; i < 9; i++)
		add_thread(w, w->rank[0], 100 + i, "omp", 4, 5, i % 4);
}

static void neighbour(struct world *w)
{
	uint32_t p = add_process(w, 300, "other");

	add_thread(w, p, 300, "other", 6, 0.1, 0);
	set_times(w, w->thread[0], 4, 4);
}

static void crowd(struct world *w)
{
	for (uint64_t i = 0; i < 12; i++)
		add_thread(w, add_process(w, 400 + i, "job"), 400 + i, "job", 3, 6, i % 4);
}

static void idle_gpu(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), utilization_pct, 20);
}

static void busy_gpu(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), utilization_pct, 99);
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

static void memory_stalls(struct world *w)
{
	SET(container, at(w, w->box), memory_stalled_ns, 6 * SECOND);
}

static void memory_full(struct world *w)
{
	SET(host, at(w, w->host), memory_available_bytes, 20 * MIB);
}

static void faults(struct world *w)
{
	SET(thread, at(w, w->thread[0]), minor_faults, 3000000);
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

static uint32_t outside(struct world *w)
{
	vec_for(&w->g.nodes, n)
		if ((*n)->type == &socket_type)
			return (*n)->index;
	return NODE_NONE;
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

static void tiny(struct world *w)
{
	flow(w, w->rank[1], w->rank[0], "pipe", 10000000, 1000000);
}

/* --- faults that the analyses found --- */

static void pattern(struct world *w, enum wait_pattern_kind kind)
{
	struct wait_pattern p = {.kind = kind,
				 .confidence_pct = 90,
				 .object = NODE_NONE,
				 .root = w->thread[0],
				 .ns = 7 * SECOND,
				 .events = 100,
				 .root_pct = 90,
				 .text = "threads wait",
				 .why = "because"};

	vec_push(&p.threads, w->thread[1]);
	vec_push(&w->w.patterns, p);
}

static void convoy(struct world *w)
{
	pattern(w, PATTERN_CONVOY);
}

static void inversion(struct world *w)
{
	pattern(w, PATTERN_INVERSION);
}

static void handover(struct world *w)
{
	pattern(w, PATTERN_HANDOVER);
}

static void herd(struct world *w)
{
	pattern(w, PATTERN_HERD);
}

static void producer(struct world *w)
{
	pattern(w, PATTERN_SLOW_PRODUCER);
}

static void pressure(struct world *w)
{
	pattern(w, PATTERN_BACK_PRESSURE);
}

static void barrier(struct world *w)
{
	pattern(w, PATTERN_BARRIER);
}

static void hang(struct world *w)
{
	struct wait_hang h = {.kind = HANG_CYCLE,
			      .confidence_pct = 90,
			      .thread = w->thread[0],
			      .object = NODE_NONE,
			      .since_ns = 5 * SECOND,
			      .text = "threads wait in a circle",
			      .why = "because"};

	vec_push(&h.threads, w->thread[1]);
	vec_push(&w->w.hangs, h);
}

static void serial(struct world *w)
{
	struct wait_root root = {.thread = w->thread[0],
				 .state = STATE_RUN,
				 .object = NODE_NONE,
				 .waiters = 1,
				 .waited_ns = 6 * SECOND};

	SET(thread, at(w, w->thread[0]), run_ns, 9 * SECOND);
	w->hot.threads.v[w->hot.of[w->thread[0]]].run_ns = 9 * SECOND;
	vec_push(&root.roles, w->w.role_of[w->thread[1]]);
	vec_push(&w->w.roots, root);
}

static void problem(struct world *w, const char *id)
{
	struct topo_problem p = {.id = id,
				 .severity = SEVERITY_WARNING,
				 .pct = 80,
				 .text = "something is wrong",
				 .advice = "put it right"};

	vec_push(&p.actors, w->t.actor_of[w->rank[0]]);
	vec_push(&w->t.problems, p);
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

static void uneven(struct world *w)
{
	problem(w, "uneven-work");
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
    {"rdma-retransmits", rdma_again, NULL, SEVERITY_CRITICAL, PORT},
    {"rdma-congestion", rdma_slowed, NULL, SEVERITY_WARNING, PORT},
    {"rdma-port-down", rdma_down, NULL, SEVERITY_NOTICE, PORT},
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
	return !strcmp(rule, "memory-latency");
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

static void sampled(struct world *w, uint32_t process, uint64_t samples, uint64_t remote)
{
	SET(process, at(w, process), memory_samples, samples);
	SET(process, at(w, process), remote_samples, remote);
}

/* The finding of rule remote-memory on "solver", which runs on node 0, or NULL. */
static const struct finding *find_solver(struct world *w, int memory_node, uint64_t samples,
					 uint64_t remote)
{
	uint32_t p;

	begin(w);
	p = add_process(w, 500, "solver");
	add_thread(w, p, 500, "solver", 8, 0, 1);
	if (memory_node >= 0)
		place(w, p, 0, (unsigned)memory_node);
	sampled(w, p, samples, remote);
	analyse(w);
	find(w);
	vec_for(&w->f.v, fi)
		if (!strcmp(fi->rule, "remote-memory"))
			return fi;
	assert_int_equal(verdict(w, "remote-memory")->verdict, VERDICT_CLEAR);
	return NULL;
}

TEST(sampled_accesses_come_before_what_placement_lets_expect)
{
	const struct finding *fi;
	struct world w;

	/* All its memory is far, but what it works with is near. */
	assert_null(find_solver(&w, 1, 1000, 20));
	done(&w);
	/* The other way about. */
	fi = find_solver(&w, 0, 1000, 620);
	assert_non_null(fi);
	assert_int_equal(fi->severity, SEVERITY_CRITICAL);
	assert_non_null(strstr(fi->why, "another node answered 62 % of 1000 sampled accesses"));
	assert_non_null(strstr(fi->title, "uses much memory of other nodes"));
	assert_string_equal(fi->values.v[0].name, "sampled accesses that another node answered");
	done(&w);
	/* Also where its memory was not looked at. */
	fi = find_solver(&w, -1, 200, 80);
	assert_non_null(fi);
	assert_int_equal(fi->severity, SEVERITY_WARNING);
	done(&w);
	/* Too few to tell: placement does. */
	assert_null(find_solver(&w, 0, 99, 99));
	done(&w);
	fi = find_solver(&w, 1, 99, 0);
	assert_non_null(fi);
	assert_non_null(strstr(fi->why, "100 % of its accesses are expected to leave the node"));
	done(&w);
}

TEST(ranks_with_sampled_accesses_are_one_finding)
{
	const struct finding *found = NULL;
	struct world w;

	begin(&w);
	sampled(&w, w.rank[0], 400, 300);
	sampled(&w, w.rank[1], 400, 4);
	analyse(&w);
	find(&w);
	vec_for(&w.f.v, fi)
		if (!strcmp(fi->rule, "remote-memory"))
			found = fi;
	assert_non_null(found);
	assert_int_equal(found->subjects.n, 1);
	assert_non_null(strstr(found->why, "75 %"));
	done(&w);
}

TEST(findings_of_one_root_are_one)
{
	struct world w;

	begin(&w);
	analyse(&w);
	convoy(&w);
	producer(&w);
	find(&w);
	assert_int_equal(w.f.v.n, 1);
	assert_string_equal(w.f.v.v[0].rule, "lock-convoy");
	assert_int_equal(w.f.v.v[0].also.n, 1);
	assert_string_equal(w.f.v.v[0].also.v[0].rule, "slow-producer");
	/* The same seconds, seen twice. */
	assert_int_equal(w.f.v.v[0].lost_ns, 7 * SECOND);
	done(&w);
}

TEST(what_holds_a_root_up_belongs_to_it)
{
	struct world w;

	begin(&w);
	neighbour(&w);
	analyse(&w);
	barrier(&w);
	find(&w);
	assert_int_equal(w.f.v.n, 1);
	assert_string_equal(w.f.v.v[0].rule, "straggler");
	assert_int_equal(w.f.v.v[0].root, w.thread[0]);
	assert_string_equal(w.f.v.v[0].also.v[0].rule, "cpu-wait");
	done(&w);
}

/* Two ranks come late by turns; @first_s of the 10 s of their critical path are of the first one's thread @who. */
static void ranks_by_turns(struct world *w, uint32_t who, unsigned first_s)
{
	struct wait_straggler s = {.period_ns = SECOND / 100, .steps = 1000, .uneven = true, .thread = w->thread[0],
				   .confidence_pct = 90, .text = "2 ranks wait for a different one each time", .why = "because"};
	struct path_part first = {who, NODE_NONE, STATE_RUN, first_s * SECOND};
	struct path_part rest = {w->thread[1], NODE_NONE, STATE_RUN, (10 - first_s) * SECOND};
	struct wait_path path = {.thread = w->thread[0], .rounds = 1000};

	for (unsigned i = 0; i < 2; i++) {
		vec_push(&s.ranks, w->rank[i]);
		vec_push(&s.last_count, 500);
		vec_push(&s.wait_ns, SECOND / 160);
	}
	vec_push(&w->w.stragglers, s);
	vec_push(&path.parts, first);
	vec_push(&path.parts, rest);
	vec_push(&w->w.paths, path);
}

TEST(ranks_may_be_late_because_of_another_process)
{
	struct world w;

	for (unsigned i = 0; i < 3; i++) {
		uint32_t outside;

		begin(&w);
		outside = add_thread(&w, w.loader, 201, "loader", 1, 0, 0);
		analyse(&w);
		/* A loader that they hang on; one that they do not; one of them. */
		ranks_by_turns(&w, i < 2 ? outside : w.thread[0], i == 1 ? 4 : 9);
		find(&w);
		assert_string_equal(w.f.v.v[0].rule, "straggler");
		assert_int_equal(w.f.v.v[0].severity, SEVERITY_CRITICAL);
		assert_int_equal(w.f.v.v[0].root, i ? w.thread[0] : outside);
		assert_non_null(strstr(w.f.v.v[0].title, i ? "a different one each time" : "which is none of them"));
		done(&w);
	}
}

TEST(the_gravest_comes_first_and_then_the_costliest)
{
	struct world w;

	begin(&w);
	idle_gpu(&w);
	faults(&w);
	memory_stalls(&w);
	busy_gpu(&w);
	analyse(&w);
	find(&w);
	assert_true(w.f.v.n >= 3);
	for (size_t i = 1; i < w.f.v.n; i++) {
		const struct finding *a = &w.f.v.v[i - 1], *b = &w.f.v.v[i];

		assert_true(a->severity > b->severity ||
			    (a->severity == b->severity && a->lost_ns >= b->lost_ns));
	}
	assert_ptr_equal(findings_about(&w.f, w.box)->rule, rule_find("memory-pressure")->id);
	done(&w);
}

TEST(short_waits_are_no_findings)
{
	struct world w;

	begin(&w);
	analyse(&w);
	convoy(&w);
	w.w.patterns.v[w.w.patterns.n - 1].ns = WINDOW / 25;
	find(&w);
	assert_int_equal(w.f.v.n, 0);
	assert_int_equal(verdict(&w, "lock-convoy")->verdict, VERDICT_CLEAR);
	done(&w);
}

/* A thread at a barrier had no CPU for most of the time that the other one waited. */
static void late_without_cpu(struct world *w)
{
	barrier(w);
	w->w.patterns.v[w->w.patterns.n - 1].ready_ns = WINDOW * 68 / 100;
}

TEST(nobody_is_late_by_what_all_lack)
{
	for (int alone = 0; alone < 2; alone++) {
		struct world w;

		begin(&w);
		/* The last one has no CPU; nor has the other one, if it is not alone with that. */
		set_times(&w, w.thread[0], 2, 7);
		set_times(&w, w.thread[1], alone ? 3 : 2, alone ? 0.1 : 7);
		analyse(&w);
		late_without_cpu(&w);
		find(&w);
		assert_int_equal(verdict(&w, "straggler")->verdict, alone ? VERDICT_FIRED : VERDICT_CLEAR);
		assert_int_equal(verdict(&w, "cpu-wait")->verdict, VERDICT_FIRED);
		done(&w);
	}
}

TEST(who_paces_itself_is_no_fault)
{
	static const enum wait_state states[] = {STATE_RUN, STATE_SLEEP, STATE_OUTSIDE};

	for (unsigned i = 0; i < 3; i++) {
		struct world w;

		begin(&w);
		analyse(&w);
		ranks_by_turns(&w, w.thread[0], 5);
		w.w.stragglers.v[0].fixed = true;
		w.w.stragglers.v[0].extra = states[i];
		find(&w);
		assert_int_equal(w.f.v.n, 1);
		assert_int_equal(w.f.v.v[0].severity, i ? SEVERITY_NOTICE : SEVERITY_CRITICAL);
		done(&w);
		/* At a barrier, time that the last one let pass is no wait for it. */
		begin(&w);
		analyse(&w);
		barrier(&w);
		w.w.patterns.v[0].rest_ns = i ? w.w.patterns.v[0].ns - 1 : 0;
		find(&w);
		assert_int_equal(w.f.v.n, !i);
		done(&w);
	}
}

TEST(messages_that_are_too_small_are_why_their_producer_is_slow)
{
	struct world w;

	begin(&w);
	tiny(&w);
	analyse(&w);
	producer(&w);
	w.w.patterns.v[0].root = w.thread[1];
	w.w.patterns.v[0].threads.v[0] = w.thread[0];
	w.w.patterns.v[0].ns = WINDOW / 10;
	find(&w);
	assert_int_equal(w.f.v.n, 1);
	assert_string_equal(w.f.v.v[0].rule, "tiny-messages");
	assert_string_equal(w.f.v.v[0].also.v[0].rule, "slow-producer");
	assert_int_equal(w.f.v.v[0].root, w.rank[1]);
	done(&w);
}

TEST(who_came_in_its_place_is_the_neighbour_that_counts)
{
	for (int known = 0; known < 2; known++) {
		uint32_t busiest, taker;
		struct world w;

		begin(&w);
		busiest = add_thread(&w, add_process(&w, 300, "busiest"), 300, "busiest", 7, 0.1, 0);
		taker = add_thread(&w, add_process(&w, 310, "taker"), 310, "taker", 6, 0.1, 0);
		set_times(&w, w.thread[0], 2, 7);
		if (known) {
			struct edge *d = graph_new_edge(&w.g, &preempts_type, taker, w.thread[0]);

			SET(preempts, d, times, 500);
			graph_add_edge(&w.g, d);
		}
		analyse(&w);
		find(&w);
		assert_string_equal(w.f.v.v[0].rule, "cpu-wait");
		assert_int_equal(w.f.v.v[0].root, GET(thread, at(&w, known ? taker : busiest), process));
		done(&w);
	}
}

TEST(who_waits_for_its_parent_waits_for_work)
{
	for (int child = 0; child < 2; child++) {
		uint32_t worker;
		struct world w;

		begin(&w);
		worker = add_process(&w, 300, "worker");
		if (child)
			graph_link(&w.g, &parent_of_type, w.rank[0], worker);
		worker = add_thread(&w, worker, 300, "worker", 1, 0.1, 2);
		analyse(&w);
		producer(&w);
		w.w.patterns.v[0].threads.v[0] = worker;
		find(&w);
		assert_string_equal(w.f.v.v[0].rule, "slow-producer");
		assert_int_equal(w.f.v.v[0].severity, child ? SEVERITY_NOTICE : SEVERITY_CRITICAL);
		done(&w);
	}
}

TEST(what_others_wait_counts_where_one_has_the_cpu)
{
	for (int waited = 0; waited < 2; waited++) {
		struct wait_root root = {.state = STATE_RUNQ, .waiters = 3, .waited_ns = 20 * SECOND,
					 .wall_ns = WINDOW * 6 / 10};
		struct world w;

		begin(&w);
		neighbour(&w);
		analyse(&w);
		root.thread = w.thread[0];
		if (waited)
			vec_push(&w.w.roots, root);
		find(&w);
		assert_int_equal(w.f.v.n, 1);
		assert_string_equal(w.f.v.v[0].rule, "cpu-wait");
		assert_int_equal(w.f.v.v[0].severity, waited ? SEVERITY_CRITICAL : SEVERITY_WARNING);
		assert_int_equal(w.f.v.v[0].lost_ns, (waited ? 20 : 4) * SECOND);
		done(&w);
	}
}

/* A title beside a time lost of which it explains a small part would mislead. */
TEST(what_lost_most_of_the_time_names_a_finding)
{
	for (int few = 0; few < 2; few++) {
		struct world w;

		begin(&w);
		SET(thread, at(&w, w.thread[0]), minor_faults, few ? 700000 : 1500000);
		analyse(&w);
		serial(&w);
		w.w.roots.v[0].waiters = 8;
		find(&w);
		assert_int_equal(w.f.v.n, 1);
		assert_string_equal(w.f.v.v[0].rule, few ? "serial-thread" : "page-faults");
		assert_string_equal(w.f.v.v[0].also.v[0].rule, few ? "page-faults" : "serial-thread");
		assert_int_equal(w.f.v.v[0].lost_ns, 6 * SECOND);
		done(&w);
	}
}

static bool has_command(const struct finding *fi, const char *part)
{
	vec_for(&fi->commands, c)
		if (strstr(*c, part))
			return true;
	return false;
}

/* One that others wait for is not to be slowed down; one that only its own threads wait for may be. */
TEST(nobody_is_told_to_slow_down_whom_others_wait_for)
{
	for (int waited = 0; waited < 2; waited++) {
		struct wait_root root = {.state = STATE_RUN, .waiters = 3, .waited_ns = 20 * SECOND};
		const struct finding *fi;
		struct world w;

		begin(&w);
		neighbour(&w);
		analyse(&w);
		root.thread = w.g.nodes.n - 1;
		assert_ptr_equal(at(&w, root.thread)->type, &thread_type);
		vec_push(&w.w.roles, ((struct wait_role){.process = waited ? w.rank[0] : GET(thread, at(&w, root.thread), process)}));
		vec_push(&root.roles, w.w.roles.n - 1);
		vec_push(&w.w.roots, root);
		find(&w);
		fi = findings_about(&w.f, w.thread[0]);
		assert_non_null(fi);
		assert_string_equal(fi->rule, "cpu-wait");
		assert_int_equal(has_command(fi, "renice -n 10 -p 300   # other"), !waited);
		assert_non_null(strstr(fi->advice.v[0], waited ? "Leave the priority of other[300]" : "lower the priority of other[300]"));
		done(&w);
	}
}

TEST(who_lacks_cpus_like_all_blames_nobody)
{
	for (int busy = 0; busy < 2; busy++) {
		const struct finding *fi;
		struct world w;

		begin(&w);
		/* One that ran more than the thread; the other ranks are as short of CPUs, or the CPU is its alone. */
		add_thread(&w, add_process(&w, 300, "other"), 300, "other", busy ? 6 : 4, 0.1, 0);
		set_times(&w, w.thread[0], 1, 6);
		set_times(&w, w.thread[1], 1, 6);
		analyse(&w);
		find(&w);
		fi = findings_about(&w.f, w.thread[0]);
		assert_non_null(fi);
		assert_string_equal(fi->rule, "cpu-wait");
		assert_int_equal(fi->severity, busy ? SEVERITY_CRITICAL : SEVERITY_NOTICE);
		assert_int_equal(fi->root != NODE_NONE, busy);
		done(&w);
	}
}

TEST(a_stopped_process_that_nobody_waits_for_is_a_notice)
{
	struct world w;

	begin(&w);
	analyse(&w);
	hang(&w);
	w.w.hangs.v[0].kind = HANG_STOPPED;
	vec_clear(&w.w.hangs.v[0].threads);
	find(&w);
	assert_int_equal(w.f.v.n, 1);
	assert_int_equal(w.f.v.v[0].severity, SEVERITY_NOTICE);
	done(&w);
}

/* Two hosts in one graph, and all analyses of it. */
static void find_on_both(struct world *a, struct world *b, struct graph *both, struct analysis *k)
{
	graph_init(both);
	hosts_add(both, &a->g, "alpha");
	hosts_add(both, &b->g, "beta");
	analysis_init(k, both, NULL, NULL);
}

static uint32_t count(const struct findings *f, const struct graph *g, const char *rule, const char *host)
{
	uint32_t n = 0;

	vec_for(&f->v, fi)
		n += !strcmp(fi->rule, rule) && fi->subjects.n && !strcmp(g->nodes.v[fi->subjects.v[0]]->ns, host);
	return n;
}

/* Six busy threads are too many for the four CPUs of their host, whatever another host has; and a window is a host's own. */
TEST(each_host_is_measured_by_its_own_cpus_and_window)
{
	struct world a, b;
	struct graph both;
	struct analysis k;
	size_t rules = 0;

	begin(&a);
	begin(&b);
	many_threads(&b);
	/* Twice as long, in which the same was done: half as busy. */
	a.g.meta.window_ns = 2 * WINDOW;
	find_on_both(&a, &b, &both, &k);
	assert_int_equal(both.meta.window_ns, 2 * WINDOW);
	assert_int_equal(count(&k.findings, &both, "too-many-threads", "beta"), 1);
	assert_int_equal(count(&k.findings, &both, "too-many-threads", "alpha"), 0);
	while (rule_at(rules))
		rules++;
	assert_int_equal(k.findings.verdicts.n, rules);
	vec_for(&k.findings.verdicts, v)
		assert_ptr_equal(v->rule, rule_at((size_t)(v - k.findings.verdicts.v)));
	vec_for(&k.findings.v, fi)
		vec_for(&fi->values, v)
			assert_true(v->node == NODE_NONE || v->node < both.nodes.n);
	analysis_done(&k);
	graph_done(&both);
	done(&a);
	done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_host_is_measured_by_its_own_cpus_and_window),
	    cmocka_unit_test(each_rule_fires_when_its_fault_is_there),
	    cmocka_unit_test(each_rule_has_a_fault_here),
	    cmocka_unit_test(a_healthy_host_is_clear_of_all_rules),
	    cmocka_unit_test(unused_shared_memory_is_clear_where_it_was_looked_for),
	    cmocka_unit_test(nothing_is_evaluated_on_a_file_that_tells_nothing),
	    cmocka_unit_test(sampled_accesses_come_before_what_placement_lets_expect),
	    cmocka_unit_test(ranks_with_sampled_accesses_are_one_finding),
	    cmocka_unit_test(findings_of_one_root_are_one),
	    cmocka_unit_test(what_holds_a_root_up_belongs_to_it),
	    cmocka_unit_test(ranks_may_be_late_because_of_another_process),
	    cmocka_unit_test(the_gravest_comes_first_and_then_the_costliest),
	    cmocka_unit_test(short_waits_are_no_findings),
	    cmocka_unit_test(nobody_is_late_by_what_all_lack),
	    cmocka_unit_test(who_paces_itself_is_no_fault),
	    cmocka_unit_test(messages_that_are_too_small_are_why_their_producer_is_slow),
	    cmocka_unit_test(who_came_in_its_place_is_the_neighbour_that_counts),
	    cmocka_unit_test(who_waits_for_its_parent_waits_for_work),
	    cmocka_unit_test(what_others_wait_counts_where_one_has_the_cpu),
	    cmocka_unit_test(what_lost_most_of_the_time_names_a_finding),
	    cmocka_unit_test(nobody_is_told_to_slow_down_whom_others_wait_for),
	    cmocka_unit_test(who_lacks_cpus_like_all_blames_nobody),
	    cmocka_unit_test(a_stopped_process_that_nobody_waits_for_is_a_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
