/* Shapes of traffic, and topologies of small graphs whose truth is plain. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology.h"
#include "topology_parts.h"

#define MOST 16

/* A traffic matrix that is made under one numbering and shuffled into another. */
struct made {
	size_t n;
	double b[MOST][MOST];
	uint32_t place[MOST]; /* where each rank of the plan went */
	double bytes[MOST * MOST];
	uint64_t first[MOST * MOST];
	uint8_t listens[MOST];
	uint8_t kind[MOST * MOST];
	struct topo_shape shape;
};

static uint64_t seed = 11;

static void plan(struct made *m, size_t n)
{
	memset(m, 0, sizeof(*m));
	m->n = n;
	for (uint32_t i = 0; i < n; i++)
		m->place[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t k = unit_random(&seed) % (i + 1);
		uint32_t x = m->place[i];

		m->place[i] = m->place[k];
		m->place[k] = x;
	}
}

static void both(struct made *m, size_t i, size_t j, double bytes)
{
	m->b[i][j] += bytes;
	m->b[j][i] += bytes;
}

/* Each amount is off by up to 2 %: recordings begin and end anywhere. */
static void find_shape(struct made *m)
{
	struct topo_traffic t = {.n = m->n,
				 .bytes = m->bytes,
				 .first = m->first,
				 .listens = m->listens,
				 .kind = m->kind,
				 .amounts = true};

	for (size_t i = 0; i < m->n; i++)
		for (size_t j = 0; j < m->n; j++)
			m->bytes[m->place[i] * m->n + m->place[j]] =
			    m->b[i][j] * (1 + (double)(unit_random(&seed) % 200) / 10000);
	topo_find_shape(&t, &m->shape);
}

static void done(struct made *m)
{
	vec_done(&m->shape.order);
}

/* The plan's number of what stands at @p at in the order that was found. */
static size_t planned(const struct made *m, size_t at)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->place[i] == m->shape.order.v[at])
			return i;
	return SIZE_MAX;
}

TEST(a_ring_keeps_its_order)
{
	for (size_t n = 3; n <= MOST; n++) {
		struct made m;
		size_t begin;

		plan(&m, n);
		for (size_t i = 0; i < n; i++)
			m.b[i][(i + 1) % n] = 1e6;
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_RING);
		assert_int_equal(m.shape.order.n, n);
		begin = planned(&m, 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(planned(&m, i), (begin + i) % n);
		done(&m);
	}
}

TEST(an_uneven_chain_is_a_chain_in_its_direction)
{
	for (size_t n = 3; n <= MOST; n++) {
		struct made m;

		plan(&m, n);
		for (size_t i = 0; i + 1 < n; i++)
			m.b[i][i + 1] = 1e5 * (double)(1 + unit_random(&seed) % 9);
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_CHAIN);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(planned(&m, i), i);
		done(&m);
	}
}

TEST(a_binary_tree_is_a_tree)
{
	for (size_t n = 6; n <= MOST; n++) {
		struct made m;

		plan(&m, n);
		for (size_t i = 1; i < n; i++)
			both(&m, i, (i - 1) / 2, 1e6);
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_TREE);
		done(&m);
	}
}

TEST(the_root_of_a_tree_is_who_sends_last)
{
	struct made m;

	plan(&m, 8);
	for (size_t i = 1; i < 8; i++) {
		size_t up = (i - 1) / 2;

		both(&m, i, up, 1e6);
		m.first[m.place[i] * 8 + m.place[up]] = 100 - i;
		m.first[m.place[up] * 8 + m.place[i]] = 200 + i;
	}
	find_shape(&m);
	assert_int_equal(m.shape.shape, SHAPE_TREE);
	assert_int_equal(planned(&m, 0), 0);
	done(&m);
}

/* Two workers that answer a router and write to one log stand in a circle, too. */
TEST(requests_and_log_lines_in_a_circle_are_no_ring)
{
	struct made m;

	plan(&m, 4);
	m.b[0][1] = m.b[0][3] = 1e6;
	m.b[1][0] = m.b[3][0] = 16e6;
	m.b[1][2] = m.b[3][2] = 1e5;
	find_shape(&m);
	assert_int_not_equal(m.shape.shape, SHAPE_RING);
	done(&m);
	/* Also where all go both ways, but not alike. */
	plan(&m, 5);
	for (size_t i = 0; i < 5; i++)
		m.b[i][(i + 1) % 5] = m.b[(i + 1) % 5][i] = i ? 1e6 : 1e8;
	find_shape(&m);
	assert_int_not_equal(m.shape.shape, SHAPE_RING);
	done(&m);
}

TEST(all_to_all_is_told_from_a_ring)
{
	for (size_t n = 4; n <= MOST; n++) {
		struct made m;

		plan(&m, n);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < i; j++)
				both(&m, i, j, 1e5);
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_ALL_TO_ALL);
		done(&m);
	}
}

TEST(one_server_is_symmetric_and_a_master_is_not)
{
	for (size_t n = 4; n <= MOST; n++) {
		struct made m;

		plan(&m, n);
		for (size_t i = 1; i < n; i++)
			both(&m, 0, i, 1e6);
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_SERVERS);
		assert_int_equal(planned(&m, 0), 0);
		done(&m);
		plan(&m, n);
		for (size_t i = 1; i < n; i++) {
			m.b[0][i] = 1e5;
			m.b[i][0] = 1e6 * (double)(1 + unit_random(&seed) % 4);
		}
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_STAR);
		assert_int_equal(planned(&m, 0), 0);
		done(&m);
	}
}

TEST(three_servers_are_the_side_that_is_asked)
{
	for (size_t workers = 2; workers <= 8; workers++) {
		struct made m;
		size_t n = workers + 3;

		plan(&m, n);
		for (size_t w = 3; w < n; w++)
			for (size_t s = 0; s < 3; s++) {
				both(&m, s, w, 1e6);
				m.first[m.place[w] * n + m.place[s]] = 10;
				m.first[m.place[s] * n + m.place[w]] = 20;
			}
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_SERVERS);
		assert_int_equal(m.shape.hubs, 3);
		for (size_t i = 0; i < 3; i++)
			assert_in_range(planned(&m, i), 0, 2);
		done(&m);
	}
}

TEST(a_grid_has_heavy_rows_and_light_columns)
{
	static const size_t sizes[][2] = {{2, 2}, {2, 4}, {4, 2}, {2, 8}, {4, 4}};

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t inner = sizes[k][0], outer = sizes[k][1], n = inner * outer;
		struct made m;

		plan(&m, n);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < i; j++)
				if (i / inner == j / inner)
					both(&m, i, j, 3e6);
				else if (i % inner == j % inner)
					both(&m, i, j, 1e6);
		find_shape(&m);
		assert_int_equal(m.shape.shape, SHAPE_GRID);
		assert_int_equal(m.shape.inner, inner);
		assert_int_equal(m.shape.outer, outer);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(planned(&m, i) / inner,
					 planned(&m, i - i % inner) / inner);
		done(&m);
	}
}

TEST(groups_with_leaders_are_a_hierarchy)
{
	struct made m;

	/* Two stars whose hubs exchange data. */
	plan(&m, 8);
	for (size_t i = 2; i < 8; i++)
		both(&m, i, i % 2, 1e6);
	both(&m, 0, 1, 1e6);
	find_shape(&m);
	assert_int_equal(m.shape.shape, SHAPE_HIERARCHY);
	assert_int_equal(m.shape.hubs, 2);
	assert_int_equal(m.shape.inner, 4);
	done(&m);
	/* Four rings of three, whose first members form a ring. */
	plan(&m, 12);
	for (size_t i = 0; i < 12; i++)
		m.b[i][i / 3 * 3 + (i + 1) % 3] += 1e6;
	for (size_t g = 0; g < 4; g++)
		m.b[g * 3][(g + 1) % 4 * 3] += 1e6;
	find_shape(&m);
	assert_int_equal(m.shape.shape, SHAPE_HIERARCHY);
	assert_int_equal(m.shape.hubs, 4);
	assert_int_equal(m.shape.inner, 3);
	done(&m);
}

TEST(two_ranks_say_only_that_they_exchange_data)
{
	struct made m;

	plan(&m, 2);
	both(&m, 0, 1, 1e6);
	find_shape(&m);
	assert_int_equal(m.shape.shape, SHAPE_PAIR);
	assert_non_null(m.shape.also);
	done(&m);
}

TEST(greetings_do_not_hide_a_ring)
{
	struct made m;

	plan(&m, 8);
	for (size_t i = 0; i < 8; i++) {
		m.b[i][(i + 1) % 8] = 1e6;
		m.b[(i + 1) % 8][i] = 1e3;
		for (size_t j = 0; j < i; j++)
			both(&m, i, j, 500);
	}
	find_shape(&m);
	assert_int_equal(m.shape.shape, SHAPE_RING);
	done(&m);
}

/* Traffic at random has none of the shapes, but for a complete graph or a tree by chance. */
TEST(no_shape_is_claimed_for_traffic_at_random)
{
	size_t claimed = 0;

	for (int round = 0; round < 300; round++) {
		struct made m;

		plan(&m, 8);
		for (size_t i = 1; i < 8; i++)
			both(&m, i, unit_random(&seed) % i,
			     1e5 * (double)(1 + unit_random(&seed) % 20));
		for (int k = 0; k < 5; k++) {
			size_t i = unit_random(&seed) % 8, j = unit_random(&seed) % 8;

			if (i != j)
				m.b[i][j] += 1e5 * (double)(1 + unit_random(&seed) % 20);
		}
		find_shape(&m);
		claimed += m.shape.shape != SHAPE_UNKNOWN && m.shape.shape != SHAPE_TREE;
		done(&m);
	}
	assert_in_range(claimed, 0, 6);
}

/* A graph with processes, flows and devices. */

static uint32_t add_process(struct graph *g, uint64_t pid, uint64_t ppid, const char *name,
			    const char *cmdline)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, ppid, ppid);
	SET(process, n, name, graph_str(g, name));
	if (cmdline)
		SET(process, n, cmdline, graph_str(g, cmdline));
	return graph_add_node(g, n)->index;
}

static void add_flow(struct graph *g, uint32_t from, uint32_t to, const char *kind, uint64_t bytes)
{
	struct edge *d = graph_new_edge(g, &flow_type, from, to);

	SET(flow, d, kind, graph_str(g, kind));
	SET(flow, d, bytes, bytes);
	SET(flow, d, messages, bytes / 1000 + 1);
	graph_add_edge(g, d);
}

static uint32_t add_npu(struct graph *g, uint64_t id, const char *nodes)
{
	struct node *n = graph_new_node(g, &npu_type), *set = graph_new_node(g, &numa_set_type);
	uint32_t npu, numa;

	SET(npu, n, id, id);
	npu = graph_add_node(g, n)->index;
	SET(numa_set, set, numa_id_str, graph_str(g, nodes));
	numa = graph_add_node(g, set)->index;
	graph_link(g, &affinitative_to_numa_type, npu, numa);
	return npu;
}

static void add_numa(struct graph *g, uint32_t process, const char *cpu, const char *pages)
{
	struct node *set = graph_new_node(g, &numa_set_type);
	struct edge *d;

	SET(numa_set, set, numa_id_str, graph_str(g, "0-1"));
	d = graph_new_edge(g, &numa_access_type, process, graph_add_node(g, set)->index);
	SET(numa_access, d, cpu_runtime_pct_in_each_numa, graph_str(g, cpu));
	SET(numa_access, d, dirty_anon_pages, graph_str(g, pages));
	graph_add_edge(g, d);
}

static const struct topo_problem *problem(const struct topology *t, const char *id)
{
	vec_for(&t->problems, p)
		if (!strcmp(p->id, id))
			return p;
	return NULL;
}

static const struct topo_pattern *pattern(const struct topo_group *gr, enum parallelism kind)
{
	vec_for(&gr->patterns, p)
		if (p->kind == kind)
			return p;
	return NULL;
}

static const char *const serve_line =
    "/usr/bin/python3 /usr/bin/vllm serve model --tensor-parallel-size 2";
static const char *const worker_line =
    "python3 -c from multiprocessing.spawn import spawn_main; spawn_main()";

/* A served model on two devices; the workers run on the node that is not their device's. */
static void add_serving(struct graph *g, unsigned workers)
{
	uint32_t api, engine, client;

	for (uint64_t i = 0; i < 2; i++) {
		struct node *n = graph_new_node(g, &numa_type);

		SET(numa, n, numa_id, i);
		graph_add_node(g, n);
	}
	add_process(g, 1, 0, "bash", "bash");
	api = add_process(g, 10, 1, "vllm", serve_line);
	engine = add_process(g, 20, 10, "python3", worker_line);
	for (uint64_t i = 0; i < workers; i++) {
		uint32_t w = add_process(g, 30 + i, 20, "python3", worker_line);

		graph_link(g, &access_type, w, add_npu(g, i, "0"));
		add_numa(g, w, "[0.1, 0.9]", "{\"0\": 900, \"1\": 100}");
	}
	add_npu(g, 7, "1");
	client = add_process(g, 50, 1, "vllm", "python3 /usr/bin/vllm bench serve --model model");
	add_flow(g, api, client, "tcp", 50000);
	(void)engine;
}

static const struct topo_actor *actor_of_pid(const struct topology *t, uint64_t pid)
{
	for (size_t i = 0; i < t->n_processes; i++)
		if (GET(process, t->g->nodes.v[t->actors.v[i].node], pid) == pid)
			return &t->actors.v[i];
	return NULL;
}

TEST(a_served_model_is_restored)
{
	struct graph g;
	struct topology t;
	const struct topo_pattern *p;

	graph_init(&g);
	add_serving(&g, 2);
	topology_init(&t, &g);
	assert_int_equal(actor_of_pid(&t, 10)->role, ROLE_API_SERVER);
	assert_int_equal(actor_of_pid(&t, 20)->role, ROLE_ENGINE);
	assert_int_equal(actor_of_pid(&t, 30)->role, ROLE_WORKER);
	assert_int_equal(actor_of_pid(&t, 50)->role, ROLE_CLIENT);
	assert_int_equal(actor_of_pid(&t, 1)->role, ROLE_SHELL);
	assert_int_equal(t.groups.n, 1);
	assert_int_equal(t.groups.v[0].members.n, 2);
	p = pattern(&t.groups.v[0], PAR_TENSOR);
	assert_non_null(p);
	assert_int_equal(p->degree, 2);
	assert_true(p->declared && p->observed);
	assert_int_equal(p->evidence.v[p->evidence.n - 1].kind, EVIDENCE_UNSEEN);
	assert_non_null(problem(&t, "off-device-node"));
	assert_non_null(strstr(problem(&t, "off-device-node")->text, "none of the 2"));
	assert_non_null(problem(&t, "remote-memory"));
	assert_int_equal(problem(&t, "remote-memory")->severity, SEVERITY_CRITICAL);
	assert_non_null(problem(&t, "unused-device"));
	assert_non_null(problem(&t, "shared-node"));
	assert_null(problem(&t, "not-as-declared"));
	/* From the client through server and engine to a device. */
	assert_int_equal(t.paths.n, 2);
	assert_int_equal(t.paths.v[0].actors.n, 5);
	assert_ptr_equal(&t.actors.v[t.paths.v[0].actors.v[0]], actor_of_pid(&t, 50));
	assert_int_equal(t.actors.v[t.paths.v[0].actors.v[4]].kind, ACTOR_DEVICE);
	topology_done(&t);
	graph_done(&g);
}

TEST(fewer_ranks_than_declared_are_a_finding)
{
	struct graph g;
	struct topology t;

	graph_init(&g);
	add_serving(&g, 3);
	topology_init(&t, &g);
	assert_non_null(problem(&t, "not-as-declared"));
	topology_done(&t);
	graph_done(&g);
}

TEST(similarity_is_a_true_cosine_and_remote_is_what_is_not_local)
{
	struct graph g;
	struct topology t;
	const struct topo_place *p;

	graph_init(&g);
	add_serving(&g, 2);
	topology_init(&t, &g);
	p = &t.places.v[actor_of_pid(&t, 30) - t.actors.v];
	assert_float_equal(p->cosine, 0.18 / 0.82, 1e-9);
	assert_float_equal(p->remote, 1 - 0.18, 1e-9);
	assert_string_equal(p->mode, "remote");
	p = &t.places.v[actor_of_pid(&t, 10) - t.actors.v];
	assert_true(p->cosine < 0 && p->remote < 0);
	assert_null(p->mode);
	topology_done(&t);
	graph_done(&g);
}

TEST(collectives_over_sockets_are_a_finding)
{
	struct graph g;
	struct topology t;
	uint32_t w[2];

	graph_init(&g);
	add_serving(&g, 2);
	w[0] = graph_find(&g, "process:30");
	w[1] = graph_find(&g, "process:31");
	add_flow(&g, w[0], w[1], "tcp", 50000000);
	add_flow(&g, w[1], w[0], "tcp", 50000000);
	topology_init(&t, &g);
	assert_non_null(problem(&t, "collective-over-tcp"));
	assert_int_equal(problem(&t, "collective-over-tcp")->severity, SEVERITY_WARNING);
	assert_non_null(pattern(&t.groups.v[0], PAR_PAIR));
	topology_done(&t);
	graph_done(&g);
}

TEST(data_between_nodes_is_a_finding)
{
	struct graph g;
	struct topology t;
	uint32_t w[2];

	graph_init(&g);
	add_serving(&g, 2);
	w[0] = graph_find(&g, "process:30");
	w[1] = add_process(&g, 60, 20, "feeder", "/opt/feeder");
	add_numa(&g, w[1], "[1, 0]", "{\"0\": 100}");
	add_flow(&g, w[1], w[0], "unix", 50000000);
	topology_init(&t, &g);
	assert_non_null(problem(&t, "cross-node-link"));
	assert_int_equal(problem(&t, "cross-node-link")->actors.n, 2);
	topology_done(&t);
	graph_done(&g);
}

/* Two served models, of which one fills the cache of the other. */
TEST(prefill_and_decode_are_told_apart)
{
	struct graph g;
	struct topology t;
	uint32_t w[2][2];

	graph_init(&g);
	for (uint64_t side = 0; side < 2; side++) {
		char line[200];

		snprintf(line, sizeof(line),
			 "python3 /usr/bin/vllm serve m --kv-transfer-config {\"kv_role\":\"%s\"}",
			 side ? "kv_consumer" : "kv_producer");
		add_process(&g, 100 * (side + 1), 1, "vllm", line);
		for (uint64_t i = 0; i < 2; i++) {
			w[side][i] = add_process(&g, 100 * (side + 1) + 10 + i, 100 * (side + 1),
						 "python3", worker_line);
			graph_link(&g, &access_type, w[side][i], add_npu(&g, 2 * side + i, "0"));
		}
	}
	for (int i = 0; i < 2; i++)
		add_flow(&g, w[0][i], w[1][i], "tcp", 40000000);
	topology_init(&t, &g);
	assert_int_equal(t.groups.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct topo_pattern *p = pattern(&t.groups.v[i], PAR_PREFILL_DECODE);

		assert_non_null(p);
		assert_true(p->declared && p->observed);
	}
	topology_done(&t);
	graph_done(&g);
}

TEST(databases_and_web_servers_are_no_ranks)
{
	struct graph g;
	struct topology t;
	uint32_t db[3], web[2];

	graph_init(&g);
	for (uint64_t i = 0; i < 3; i++)
		db[i] = add_process(&g, 10 + i, 1, "postgres", "postgres: worker");
	for (uint64_t i = 0; i < 2; i++)
		web[i] = add_process(&g, 20 + i, 1, "nginx", "nginx: worker process");
	for (int i = 0; i < 3; i++) {
		add_flow(&g, db[i], db[(i + 1) % 3], "unix", 1000000);
		add_flow(&g, web[i % 2], db[i], "tcp", 1000000);
	}
	add_flow(&g, web[0], web[1], "unix", 1000000);
	topology_init(&t, &g);
	assert_int_equal(t.groups.n, 0);
	assert_int_equal(actor_of_pid(&t, 10)->role, ROLE_DATABASE);
	assert_int_equal(actor_of_pid(&t, 20)->role, ROLE_WEB_SERVER);
	topology_done(&t);
	graph_done(&g);
}

/* A profiler that is observed is a star of processes by its shape, and no job. */
TEST(who_observes_is_no_rank)
{
	struct graph g;
	struct topology t;
	uint32_t main, helper;

	graph_init(&g);
	main = add_process(&g, 10, 1, "witty-profiler", "/usr/bin/witty-profiler serve");
	for (uint64_t i = 0; i < 3; i++) {
		helper = add_process(&g, 20 + i, 10, "witty-profiler", "/usr/bin/witty-profiler serve");
		add_flow(&g, main, helper, "unix", 1000000);
		add_flow(&g, helper, main, "unix", 1000000);
	}
	topology_init(&t, &g);
	assert_int_equal(t.groups.n, 0);
	assert_int_equal(actor_of_pid(&t, 10)->role, ROLE_MONITOR);
	assert_int_equal(actor_of_pid(&t, 20)->role, ROLE_MONITOR);
	topology_done(&t);
	graph_done(&g);
}

TEST(two_jobs_side_by_side_stay_apart)
{
	struct graph g;
	struct topology t;
	uint32_t a[4], b[4];

	graph_init(&g);
	for (uint64_t i = 0; i < 4; i++) {
		a[i] = add_process(&g, 10 + i, 1, "rank", "/opt/rank");
		b[i] = add_process(&g, 20 + i, 1, "rank", "/opt/rank");
	}
	for (int i = 0; i < 4; i++) {
		add_flow(&g, a[i], a[(i + 1) % 4], "tcp", 1000000);
		for (int k = 0; k < 4; k++)
			if (i != k)
				add_flow(&g, b[i], b[k], "unix", 300000);
	}
	topology_init(&t, &g);
	assert_int_equal(t.groups.n, 2);
	assert_non_null(pattern(&t.groups.v[0], PAR_RING));
	assert_non_null(pattern(&t.groups.v[1], PAR_ALL_TO_ALL));
	assert_int_equal(t.knots.n, 2);
	topology_done(&t);
	graph_done(&g);
}

TEST(a_file_without_anything_is_no_mistake)
{
	struct graph g;
	struct topology t;

	graph_init(&g);
	topology_init(&t, &g);
	assert_int_equal(t.actors.n, 0);
	assert_int_equal(t.paths.n, 0);
	assert_int_equal(t.main_actor, TOPO_NONE);
	assert_true(t.unseen.n > 0);
	topology_done(&t);
	graph_done(&g);
}

TEST(parents_in_a_circle_and_broken_maps_are_borne)
{
	struct graph g;
	struct topology t;
	uint32_t p[3];

	graph_init(&g);
	for (uint64_t i = 0; i < 3; i++)
		p[i] = add_process(&g, 10 + i, 10 + (i + 1) % 3, "a", NULL);
	for (int i = 0; i < 3; i++)
		graph_link(&g, &parent_of_type, p[i], p[(i + 1) % 3]);
	graph_link(&g, &parent_of_type, p[0], p[0]);
	add_numa(&g, p[0], "[0.5, null", "{\"0\": \"x\", 7}");
	add_numa(&g, p[1], "", "null");
	graph_link(&g, &access_type, p[0], p[1]);
	graph_link(&g, &ipc_type, p[0], p[1]);
	graph_link(&g, &flow_type, p[2], p[1]);
	topology_init(&t, &g);
	assert_int_equal(t.n_processes, 3);
	topology_done(&t);
	graph_done(&g);
}

TEST(requests_are_one_step_and_the_way_goes_on)
{
	struct graph g;
	struct topology t;
	uint32_t p[3];

	graph_init(&g);
	p[0] = add_process(&g, 10, 1, "curl", "curl http://a/");
	p[1] = add_process(&g, 11, 1, "nginx", "nginx: worker process");
	p[2] = add_process(&g, 12, 1, "postgres", "postgres: x");
	for (int i = 0; i < 2; i++) {
		add_flow(&g, p[i], p[i + 1], "tcp", 2000);
		add_flow(&g, p[i + 1], p[i], "tcp", 90000);
	}
	topology_init(&t, &g);
	assert_int_equal(t.knots.n, 0);
	assert_int_equal(t.paths.n, 1);
	assert_int_equal(t.paths.v[0].actors.n, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(t.actors.v[t.paths.v[0].actors.v[i]].node, p[i]);
	assert_int_equal(t.paths.v[0].bytes, 92000);
	topology_done(&t);
	graph_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_ring_keeps_its_order),
	    cmocka_unit_test(an_uneven_chain_is_a_chain_in_its_direction),
	    cmocka_unit_test(a_binary_tree_is_a_tree),
	    cmocka_unit_test(the_root_of_a_tree_is_who_sends_last),
	    cmocka_unit_test(requests_and_log_lines_in_a_circle_are_no_ring),
	    cmocka_unit_test(all_to_all_is_told_from_a_ring),
	    cmocka_unit_test(one_server_is_symmetric_and_a_master_is_not),
	    cmocka_unit_test(three_servers_are_the_side_that_is_asked),
	    cmocka_unit_test(a_grid_has_heavy_rows_and_light_columns),
	    cmocka_unit_test(groups_with_leaders_are_a_hierarchy),
	    cmocka_unit_test(two_ranks_say_only_that_they_exchange_data),
	    cmocka_unit_test(greetings_do_not_hide_a_ring),
	    cmocka_unit_test(no_shape_is_claimed_for_traffic_at_random),
	    cmocka_unit_test(a_served_model_is_restored),
	    cmocka_unit_test(fewer_ranks_than_declared_are_a_finding),
	    cmocka_unit_test(similarity_is_a_true_cosine_and_remote_is_what_is_not_local),
	    cmocka_unit_test(collectives_over_sockets_are_a_finding),
	    cmocka_unit_test(data_between_nodes_is_a_finding),
	    cmocka_unit_test(prefill_and_decode_are_told_apart),
	    cmocka_unit_test(databases_and_web_servers_are_no_ranks),
		cmocka_unit_test(who_observes_is_no_rank),
	    cmocka_unit_test(two_jobs_side_by_side_stay_apart),
	    cmocka_unit_test(a_file_without_anything_is_no_mistake),
	    cmocka_unit_test(parents_in_a_circle_and_broken_maps_are_borne),
	    cmocka_unit_test(requests_are_one_step_and_the_way_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
