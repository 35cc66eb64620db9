/* A healthy host for tests of rules, and the faults that more than one test puts into it. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "rules_world.h"

struct node *at(struct world *w, uint32_t node)
{
	return w->g.nodes.v[node];
}

static uint32_t add(struct world *w, struct node *n)
{
	return graph_add_node(&w->g, n)->index;
}

const char *str(struct world *w, const char *s)
{
	return graph_str(&w->g, s);
}

uint32_t add_process(struct world *w, uint64_t pid, const char *name)
{
	struct node *n = graph_new_node(&w->g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, name, str(w, name));
	SET(process, n, cmdline, str(w, name));
	SET(process, n, cpu_ns, 3 * SECOND);
	return add(w, n);
}

void set_times(struct world *w, uint32_t thread, double run_s, double runq_s)
{
	struct node *n = at(w, thread);
	uint64_t run = (uint64_t)(run_s * SECOND), runq = (uint64_t)(runq_s * SECOND);

	SET(thread, n, run_ns, run);
	SET(thread, n, runq_ns, runq);
	SET(thread, n, blocked_ns, WINDOW - run - runq);
	SET(thread, n, observed_ns, WINDOW);
}

void may_use(struct world *w, uint32_t thread, const char *cpus)
{
	struct edge *d = graph_new_edge(&w->g, &access_with_proc_status_type, thread, w->set[0]);

	SET(access_with_proc_status, d, cpus_allowed_list, str(w, cpus));
	graph_add_edge(&w->g, d);
}

void ran_on(struct world *w, uint32_t thread, unsigned cpu, double s)
{
	struct edge *d = graph_new_edge(&w->g, &ran_on_type, thread, w->cpu[cpu]);

	SET(ran_on, d, run_ns, (uint64_t)(s * SECOND));
	graph_add_edge(&w->g, d);
}

uint32_t add_thread(struct world *w, uint32_t process, uint64_t tid, const char *name,
			   double run_s, double runq_s, unsigned cpu)
{
	struct node *n = graph_new_node(&w->g, &thread_type);
	uint32_t ret;

	SET(thread, n, tid, tid);
	SET(thread, n, process, process);
	SET(thread, n, name, str(w, name));
	SET(thread, n, voluntary_switches, 100);
	SET(thread, n, involuntary_switches, 10);
	SET(thread, n, minor_faults, 100);
	ret = add(w, n);
	set_times(w, ret, run_s, runq_s);
	ran_on(w, ret, cpu, run_s);
	graph_link(&w->g, &own_type, process, ret);
	return ret;
}

void waits(struct world *w, uint32_t thread, uint32_t object, const char *cause, double s)
{
	struct edge *d = graph_new_edge(&w->g, &waits_for_type, thread, object);

	SET(waits_for, d, cause, str(w, cause));
	SET(waits_for, d, waits, 100);
	SET(waits_for, d, waited_ns, (uint64_t)(s * SECOND));
	SET(waits_for, d, longest_ns, (uint64_t)(s * SECOND / 10));
	graph_add_edge(&w->g, d);
}

void place(struct world *w, uint32_t process, unsigned cpu_node, unsigned memory_node)
{
	struct edge *d = graph_new_edge(&w->g, &numa_access_type, process, w->set[cpu_node]);
	char text[64];

	snprintf(text, sizeof(text), "{\"%u\":3000000000}", cpu_node);
	SET(numa_access, d, numa_index_to_cpu_runtime, str(w, text));
	snprintf(text, sizeof(text), "{\"%u\":100000}", memory_node);
	SET(numa_access, d, dirty_anon_pages, str(w, text));
	snprintf(text, sizeof(text), "{\"%u\":{\"anon\":409600000}}", memory_node);
	SET(numa_access, d, memory_bytes, str(w, text));
	SET(numa_access, d, cpus_allowed_list, str(w, "0-3"));
	graph_add_edge(&w->g, d);
}

void flow(struct world *w, uint32_t from, uint32_t to, const char *kind, uint64_t bytes,
		 uint64_t messages)
{
	struct edge *d = graph_new_edge(&w->g, &flow_type, from, to);

	SET(flow, d, kind, str(w, kind));
	SET(flow, d, bytes, bytes);
	SET(flow, d, messages, messages);
	SET(flow, d, bytes_sent, bytes);
	graph_add_edge(&w->g, d);
}

static uint32_t add_gpu(struct world *w, unsigned i)
{
	struct node *n = graph_new_node(&w->g, &gpu_type);

	SET(gpu, n, id, i);
	SET(gpu, n, pci_bus_id, str(w, i ? "0000:02:00.0" : "0000:01:00.0"));
	SET(gpu, n, numa_affinity, str(w, i ? "1" : "0"));
	SET(gpu, n, utilization_pct, 80);
	SET(gpu, n, memory_util_pct, 40);
	SET(gpu, n, temperature_c, 60);
	SET(gpu, n, clock_khz, 1400000);
	SET(gpu, n, clock_max_khz, 1500000);
	SET(gpu, n, throttle, str(w, "none"));
	SET(gpu, n, health, str(w, "OK"));
	SET(gpu, n, ecc_errors, 0);
	SET(gpu, n, pcie_width, 16);
	SET(gpu, n, pcie_width_max, 16);
	SET(gpu, n, pcie_gen, 4);
	SET(gpu, n, pcie_gen_max, 4);
	SET(gpu, n, pcie_rx_bytes_s, 1e9);
	SET(gpu, n, pcie_tx_bytes_s, 1e9);
	return add(w, n);
}

static void add_machine(struct world *w)
{
	struct node *n = graph_new_node(&w->g, &host_type);

	SET(host, n, hostname, str(w, "box"));
	SET(host, n, cpus, 4);
	SET(host, n, memory_bytes, 1000 * MIB);
	SET(host, n, memory_available_bytes, 600 * MIB);
	w->host = add(w, n);
	for (unsigned i = 0; i < 4; i++) {
		n = graph_new_node(&w->g, &cpu_type);
		SET(cpu, n, cpu_id, i);
		SET(cpu, n, node, i / 2);
		SET(cpu, n, busy_ns, 3 * SECOND);
		SET(cpu, n, irq_ns, 0);
		SET(cpu, n, softirq_ns, SECOND / 10);
		w->cpu[i] = add(w, n);
	}
	for (unsigned i = 0; i < 2; i++) {
		n = graph_new_node(&w->g, &numa_type);
		SET(numa, n, numa_id, i);
		SET(numa, n, cpu_set, str(w, i ? "2-3" : "0-1"));
		SET(numa, n, local_pages, 1000000);
		SET(numa, n, other_pages, 1000);
		SET(numa, n, cycles, 10000000);
		SET(numa, n, instructions, 20000000);
		SET(numa, n, llc_references, 100000);
		SET(numa, n, llc_misses, 1000);
		SET(numa, n, peak_bytes_s, 200ull << 30);
		SET(numa, n, peak_source, "hmat");
		SET(numa, n, read_latency_ns, 90);
		w->numa[i] = add(w, n);
		w->traffic[i] = graph_new_edge(&w->g, &ddr_bandwidth_type, w->numa[i], w->numa[i]);
		SET(ddr_bandwidth, w->traffic[i], total_bytes, 20ull << 30);
		w->traffic[i] = graph_add_edge(&w->g, w->traffic[i]);
		n = graph_new_node(&w->g, &numa_set_type);
		SET(numa_set, n, numa_id_str, str(w, i ? "1" : "0"));
		w->set[i] = add(w, n);
		graph_link(&w->g, &numa_set_contain_type, w->set[i], w->numa[i]);
	}
}

static void add_devices(struct world *w)
{
	struct node *n;
	struct edge *d;

	for (unsigned i = 0; i < 2; i++) {
		w->gpu[i] = add_gpu(w, i);
		graph_link(&w->g, &affinitative_to_numa_type, w->gpu[i], w->set[i]);
		graph_link(&w->g, &access_type, w->rank[i], w->gpu[i]);
	}
	d = graph_new_edge(&w->g, &device_link_type, w->gpu[0], w->gpu[1]);
	SET(device_link, d, kind, str(w, "NVLink"));
	SET(device_link, d, links, 12);
	SET(device_link, d, active, 12);
	graph_add_edge(&w->g, d);
	n = graph_new_node(&w->g, &nic_type);
	SET(nic, n, name, str(w, "eth0"));
	SET(nic, n, numa_node, 0);
	SET(nic, n, speed_bytes_s, 1250000000);
	SET(nic, n, rx_bytes, 1000 * MIB);
	SET(nic, n, tx_bytes, 1000 * MIB);
	SET(nic, n, rx_packets, 1000000);
	SET(nic, n, tx_packets, 1000000);
	SET(nic, n, rx_drops, 0);
	SET(nic, n, tx_drops, 0);
	w->nic = add(w, n);
	n = graph_new_node(&w->g, &rdma_stats_type);
	SET(rdma_stats, n, dev, str(w, "mlx5_0"));
	SET(rdma_stats, n, port, 1);
	SET(rdma_stats, n, state, str(w, "ACTIVE"));
	SET(rdma_stats, n, rate_bytes_s, 12.5e9);
	SET(rdma_stats, n, tx_bytes, 1000 * MIB);
	SET(rdma_stats, n, rx_bytes, 1000 * MIB);
	SET(rdma_stats, n, tx_packets, 1000000);
	SET(rdma_stats, n, retransmits, 0);
	SET(rdma_stats, n, congestion_handled, 0);
	w->port = add(w, n);
	n = graph_new_node(&w->g, &block_device_type);
	SET(block_device, n, dev, str(w, "259:0"));
	SET(block_device, n, name, str(w, "nvme0n1"));
	SET(block_device, n, reads, 1000);
	SET(block_device, n, writes, 1000);
	SET(block_device, n, read_ns, SECOND / 10);
	SET(block_device, n, write_ns, SECOND / 10);
	SET(block_device, n, busy_ns, SECOND / 10);
	w->disk = add(w, n);
	n = graph_new_node(&w->g, &file_type);
	SET(file, n, dev, str(w, "259:0"));
	SET(file, n, inode, 7);
	SET(file, n, path, str(w, "/data/part-0"));
	w->file = add(w, n);
	n = graph_new_node(&w->g, &shared_memory_type);
	SET(shared_memory, n, shm_name, str(w, "psm_1"));
	SET(shared_memory, n, inode, 9);
	SET(shared_memory, n, kind, str(w, "posix"));
	SET(shared_memory, n, shm_size, 100 * MIB);
	SET(shared_memory, n, fs_bytes, 1000 * MIB);
	SET(shared_memory, n, fs_used_bytes, 100 * MIB);
	w->shm = add(w, n);
}

static void add_job(struct world *w)
{
	struct node *n = graph_new_node(&w->g, &container_type);

	SET(container, n, container_id, str(w, "c0ffee"));
	SET(container, n, container_name, str(w, "job"));
	SET(container, n, cpu_limit_cores, 4);
	SET(container, n, cpu_ns, 6 * SECOND);
	SET(container, n, throttled_ns, 0);
	SET(container, n, memory_limit_bytes, 500 * MIB);
	SET(container, n, memory_bytes, 100 * MIB);
	SET(container, n, memory_stalled_ns, 0);
	SET(container, n, io_stalled_ns, 0);
	SET(container, n, shm_bytes, 1000 * MIB);
	SET(container, n, shm_free_bytes, 900 * MIB);
	w->box = add(w, n);
	for (unsigned i = 0; i < 2; i++) {
		w->rank[i] = add_process(w, 100 + 10 * i, "rank");
		w->thread[i] = add_thread(w, w->rank[i], 100 + 10 * i, "rank", 3, 0.1, 2 * i);
		may_use(w, w->thread[i], "0-3");
		place(w, w->rank[i], i, i);
		graph_link(&w->g, &run_on_type, w->rank[i], w->box);
	}
}

void begin(struct world *w)
{
	struct node *n;

	memset(w, 0, sizeof(*w));
	graph_init(&w->g);
	w->g.meta.window_ns = WINDOW;
	w->g.meta.tool = str(w, "witty-profiler");
	add_machine(w);
	add_job(w);
	add_devices(w);
	w->loader = add_process(w, 200, "loader");
	place(w, w->loader, 0, 0);
	flow(w, w->loader, w->rank[0], "unix", 100 * MIB, 1000);
	n = graph_new_node(&w->g, &socket_type);
	SET(socket, n, socket_type, str(w, "TCP"));
	SET(socket, n, socket_addr, str(w, "10.0.0.9"));
	SET(socket, n, socket_port, 80);
	SET(socket, n, external, true);
	SET(socket, n, retransmits, 1);
	SET(socket, n, rtt_ns, 50000);
	add(w, n);
	waits(w, w->thread[0], w->file, "file", 0.1);
}

void analyse(struct world *w)
{
	topology_init(&w->t, &w->g);
	hot_init(&w->hot, &w->g, NULL);
	waitfor_init(&w->w, &w->g, NULL);
}

void find(struct world *w)
{
	struct study s = {.g = &w->g, .t = &w->t, .hot = &w->hot, .w = &w->w};

	findings_init(&w->f, &s);
}

void done(struct world *w)
{
	findings_done(&w->f);
	waitfor_done(&w->w);
	hot_done(&w->hot);
	topology_done(&w->t);
	graph_done(&w->g);
}

const struct rule_verdict *verdict(const struct world *w, const char *rule)
{
	vec_for(&w->f.verdicts, v)
		if (!strcmp(v->rule->id, rule))
			return v;
	return NULL;
}

void many_threads(struct world *w)
{
	for (uint64_t i = 1; i < 9; i++)
		add_thread(w, w->rank[0], 100 + i, "omp", 4, 5, i % 4);
}

void neighbour(struct world *w)
{
	uint32_t p = add_process(w, 300, "other");

	add_thread(w, p, 300, "other", 6, 0.1, 0);
	set_times(w, w->thread[0], 4, 4);
}

void idle_gpu(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), utilization_pct, 20);
}

void busy_gpu(struct world *w)
{
	SET(gpu, at(w, w->gpu[0]), utilization_pct, 99);
}

void memory_stalls(struct world *w)
{
	SET(container, at(w, w->box), memory_stalled_ns, 6 * SECOND);
}

void faults(struct world *w)
{
	SET(thread, at(w, w->thread[0]), minor_faults, 3000000);
}

uint32_t outside(struct world *w)
{
	vec_for(&w->g.nodes, n)
		if ((*n)->type == &socket_type)
			return (*n)->index;
	return NODE_NONE;
}

void tiny(struct world *w)
{
	flow(w, w->rank[1], w->rank[0], "pipe", 10000000, 1000000);
}

/* --- faults that the analyses found --- */

void pattern(struct world *w, enum wait_pattern_kind kind)
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

void convoy(struct world *w)
{
	pattern(w, PATTERN_CONVOY);
}

void producer(struct world *w)
{
	pattern(w, PATTERN_SLOW_PRODUCER);
}

void pressure(struct world *w)
{
	pattern(w, PATTERN_BACK_PRESSURE);
}

void barrier(struct world *w)
{
	pattern(w, PATTERN_BARRIER);
}

void hang(struct world *w)
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

void serial(struct world *w)
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

void problem(struct world *w, const char *id)
{
	struct topo_problem p = {.id = id,
				 .severity = SEVERITY_WARNING,
				 .pct = 80,
				 .text = "something is wrong",
				 .advice = "put it right"};

	vec_push(&p.actors, w->t.actor_of[w->rank[0]]);
	vec_push(&w->t.problems, p);
}

void uneven(struct world *w)
{
	problem(w, "uneven-work");
}
