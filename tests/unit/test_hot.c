/* Profiles of threads, their score, class, cause and sections, of small graphs whose truth is
 * plain. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hot.h"
#include "waitfor.h"

#define SECOND 1000000000ull
#define WINDOW (10 * SECOND)

/* Two NUMA nodes with two CPUs each, one process with its memory on node 1, three threads. */
struct world {
	struct graph g;
	uint32_t process, thread[3], cpu[4], set;
	struct hot h;
};

static uint32_t add_thread(struct graph *g, uint32_t process, uint64_t tid, const char *name)
{
	struct node *t = graph_new_node(g, &thread_type);

	SET(thread, t, tid, tid);
	SET(thread, t, process, process);
	SET(thread, t, name, graph_str(g, name));
	return graph_add_node(g, t)->index;
}

static void begin(struct world *w)
{
	struct node *n;
	struct edge *d;

	memset(w, 0, sizeof(*w));
	graph_init(&w->g);
	w->g.meta.window_ns = WINDOW;
	for (unsigned i = 0; i < 2; i++) {
		n = graph_new_node(&w->g, &numa_type);
		SET(numa, n, numa_id, i);
		graph_add_node(&w->g, n);
	}
	for (unsigned i = 0; i < 4; i++) {
		n = graph_new_node(&w->g, &cpu_type);
		SET(cpu, n, cpu_id, i);
		SET(cpu, n, node, i / 2);
		w->cpu[i] = graph_add_node(&w->g, n)->index;
	}
	n = graph_new_node(&w->g, &process_type);
	SET(process, n, pid, 100);
	SET(process, n, name, graph_str(&w->g, "job"));
	w->process = graph_add_node(&w->g, n)->index;
	n = graph_new_node(&w->g, &numa_set_type);
	SET(numa_set, n, numa_id_str, graph_str(&w->g, "0-1"));
	w->set = graph_add_node(&w->g, n)->index;
	d = graph_new_edge(&w->g, &numa_access_type, w->process, w->set);
	SET(numa_access, d, memory_bytes, graph_str(&w->g, "{\"1\":{\"anon\":4096000}}"));
	graph_add_edge(&w->g, d);
	for (unsigned i = 0; i < 3; i++)
		w->thread[i] = add_thread(&w->g, w->process, 100 + i, "job");
}

static struct node *thread_node(struct world *w, unsigned i)
{
	return w->g.nodes.v[w->thread[i]];
}

/* All time of the window: on a CPU, runnable, and blocked for the rest. */
static void ran(struct world *w, unsigned i, double cpu_pct, double runq_pct, unsigned cpu)
{
	struct node *t = thread_node(w, i);
	uint64_t run = (uint64_t)(cpu_pct * WINDOW / 100),
		 runq = (uint64_t)(runq_pct * WINDOW / 100);
	struct edge *d;

	SET(thread, t, run_ns, run);
	SET(thread, t, runq_ns, runq);
	SET(thread, t, blocked_ns, WINDOW - run - runq);
	SET(thread, t, observed_ns, WINDOW);
	d = graph_new_edge(&w->g, &ran_on_type, w->thread[i], w->cpu[cpu]);
	SET(ran_on, d, run_ns, run);
	graph_add_edge(&w->g, d);
}

static void switched(struct world *w, unsigned i, uint64_t voluntary_s, uint64_t involuntary_s)
{
	SET(thread, thread_node(w, i), voluntary_switches, voluntary_s * 10);
	SET(thread, thread_node(w, i), involuntary_switches, involuntary_s * 10);
}

static void modes(struct world *w, unsigned i, uint64_t user_ns, uint64_t system_ns)
{
	SET(thread, thread_node(w, i), user_ns, user_ns);
	SET(thread, thread_node(w, i), system_ns, system_ns);
}

static uint32_t add_futex(struct world *w, const char *key)
{
	struct node *n = graph_new_node(&w->g, &futex_type);

	SET(futex, n, futex_key, graph_str(&w->g, key));
	return graph_add_node(&w->g, n)->index;
}

static void waited(struct world *w, unsigned i, const char *cause, uint32_t object, uint64_t waits,
		   uint64_t ns)
{
	struct edge *d = graph_new_edge(&w->g, &waits_for_type, w->thread[i], object);

	SET(waits_for, d, cause, graph_str(&w->g, cause));
	SET(waits_for, d, waits, waits);
	SET(waits_for, d, waited_ns, ns);
	SET(waits_for, d, longest_ns, ns / waits);
	graph_add_edge(&w->g, d);
}

static void woke(struct world *w, unsigned waker, unsigned waiter, const char *cause, uint64_t n,
		 uint64_t ns)
{
	struct edge *d = graph_new_edge(&w->g, &wakes_type, w->thread[waker], w->thread[waiter]);

	SET(wakes, d, cause, graph_str(&w->g, cause));
	SET(wakes, d, wakeups, n);
	SET(wakes, d, waited_ns, ns);
	SET(wakes, d, longest_ns, ns / n);
	graph_add_edge(&w->g, d);
}

static void analyse(struct world *w)
{
	hot_init(&w->h, &w->g, NULL);
}

static const struct hot_thread *of(const struct world *w, unsigned i)
{
	const struct hot_thread *t = hot_of(&w->h, w->thread[i]);

	assert_non_null(t);
	return t;
}

static void end(struct world *w)
{
	hot_done(&w->h);
	graph_done(&w->g);
}

static bool fired(const struct hot_thread *t, const char *rule)
{
	vec_for(&t->rules, r)
		if (!strcmp(r->rule, rule))
			return true;
	return false;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 0.001;
}

TEST(rates_are_differences_over_the_window)
{
	struct world w;

	begin(&w);
	ran(&w, 0, 40, 10, 2);
	switched(&w, 0, 300, 20);
	modes(&w, 0, 3 * SECOND, SECOND);
	analyse(&w);
	assert_true(near(of(&w, 0)->cpu_pct, 40) && near(of(&w, 0)->runq_pct, 10) &&
		    near(of(&w, 0)->blocked_pct, 50));
	assert_true(near(of(&w, 0)->voluntary_s, 300) && near(of(&w, 0)->involuntary_s, 20));
	assert_true(near(of(&w, 0)->switches_s, 320) && near(of(&w, 0)->user_pct, 75));
	/* Nothing was measured of the others, and nothing is 0 for that. */
	assert_false(hot_has(of(&w, 1)->cpu_pct) || hot_has(of(&w, 1)->switches_s) ||
		     hot_has(of(&w, 1)->runq_pct));
	assert_int_equal(of(&w, 1)->base_ns, 0);
	assert_int_equal(of(&w, 1)->possible, 0);
	end(&w);
}

TEST(a_short_life_is_no_load)
{
	struct world w;
	struct node *t;

	begin(&w);
	ran(&w, 0, 2, 0, 2);
	t = thread_node(&w, 0);
	SET(thread, t, observed_ns, WINDOW / 50); /* all of its short life on a CPU */
	SET(thread, t, blocked_ns, 0);
	ran(&w, 1, 38, 0, 2);
	SET(thread, thread_node(&w, 1), observed_ns, WINDOW / 5 * 2);
	SET(thread, thread_node(&w, 1), blocked_ns, WINDOW / 50);
	ran(&w, 2, 1, 0, 2); /* lives all the time */
	analyse(&w);
	assert_true(
	    near(of(&w, 0)->cpu_pct, 20)); /* 2 % of the window over the tenth that is asked for */
	assert_int_equal(of(&w, 0)->points, 0);
	assert_true(near(of(&w, 1)->cpu_pct, 95)); /* of the four seconds that it lived */
	assert_int_equal(of(&w, 1)->points, 2);
	end(&w);
}

TEST(points_are_those_of_the_published_list)
{
	static const struct {
		double cpu;
		uint64_t voluntary, involuntary;
		unsigned on_cpu; /* 0: the node without its memory */
		unsigned points;
		enum hot_level level;
	} cases[] = {
	    {80, 0, 0, 2, 0, LEVEL_NORMAL},      {81, 0, 0, 2, 2, LEVEL_LIGHT},
	    {81, 2500, 2500, 2, 2, LEVEL_LIGHT}, {81, 2500, 2501, 2, 3, LEVEL_MODERATE},
	    {10, 5001, 0, 2, 1, LEVEL_LIGHT},    {10, 0, 0, 0, 2, LEVEL_LIGHT},
	    {81, 0, 0, 0, 4, LEVEL_MODERATE},    {90, 4000, 4000, 0, 5, LEVEL_SEVERE},
	    {0.5, 0, 0, 0, 0, LEVEL_NORMAL}, /* remote, but it hardly runs */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		begin(&w);
		ran(&w, 0, cases[i].cpu, 0, cases[i].on_cpu);
		switched(&w, 0, cases[i].voluntary, cases[i].involuntary);
		analyse(&w);
		assert_int_equal(of(&w, 0)->points, cases[i].points);
		assert_int_equal(of(&w, 0)->possible, 5); /* cache misses are not counted */
		assert_int_equal(of(&w, 0)->missing.n, 1);
		assert_int_equal(of(&w, 0)->level, cases[i].level);
		end(&w);
	}
}

TEST(rules_fire_above_their_limits)
{
	struct world w;

	begin(&w);
	ran(&w, 0, 85, 5, 0); /* remote */
	switched(&w, 0, 100, 10000);
	ran(&w, 1, 20, 0, 2);
	switched(&w, 1, 1001, 200);
	ran(&w, 2, 0.5, 0, 0); /* hardly runs */
	switched(&w, 2, 1, 0);
	analyse(&w);
	assert_true(fired(of(&w, 0), "P0-2") && fired(of(&w, 0), "P0-3") &&
		    fired(of(&w, 0), "P1-1"));
	assert_true(fired(of(&w, 0), "P1-2") && fired(of(&w, 0), "P2-2"));
	assert_false(fired(of(&w, 0), "P0-1") || fired(of(&w, 0), "P2-1") ||
		     fired(of(&w, 0), "P1-3"));
	assert_int_equal(of(&w, 1)->rules.n, 1);
	assert_true(fired(of(&w, 1), "P1-3"));
	assert_int_equal(of(&w, 2)->rules.n, 0);
	end(&w);
}

TEST(limits_decide)
{
	struct limits l;
	struct world w;

	begin(&w);
	ran(&w, 0, 60, 0, 2);
	switched(&w, 0, 3000, 0);
	limits_init(&l);
	l.v[LIMIT_hot_cpu] = 50;
	l.v[LIMIT_hot_switches] = 2000;
	l.v[LIMIT_switches_severe] = 2500;
	hot_init(&w.h, &w.g, &l);
	assert_int_equal(of(&w, 0)->points, 3);
	assert_string_equal(of(&w, 0)->switching.band, "severe");
	end(&w);
}

TEST(counters_since_the_start_are_no_rates)
{
	struct world w;
	struct edge *d;

	begin(&w);
	w.g.meta.window_ns = 0;
	for (unsigned i = 0; i < 2; i++) {
		d = graph_new_edge(&w.g, &access_with_proc_status_type, w.thread[i], w.set);
		SET(access_with_proc_status, d, voluntary_ctxt_switches, 50000000000ull);
		SET(access_with_proc_status, d, involuntary_ctxt_switches, 7);
		SET(access_with_proc_status, d, numa_index_to_cpu_runtime,
		    graph_str(&w.g, i ? "{\"1\":3000000000.0}" : "{\"0\":9000000000.0}"));
		graph_add_edge(&w.g, d);
	}
	analyse(&w);
	assert_false(hot_has(of(&w, 0)->cpu_pct) || hot_has(of(&w, 0)->switches_s) ||
		     hot_has(of(&w, 0)->blocked_pct));
	assert_true(of(&w, 0)->since.voluntary == 50000000000ull &&
		    of(&w, 0)->since.run_ns == 9 * SECOND);
	assert_true(of(&w, 0)->since.involuntary == 7);
	/* Where it ran and where its memory is needs no window. */
	assert_true(near(of(&w, 0)->remote_pct, 100) && near(of(&w, 1)->remote_pct, 0));
	assert_int_equal(of(&w, 0)->points, 2);
	assert_int_equal(of(&w, 0)->possible, 2);
	assert_int_equal(of(&w, 0)->level_most, LEVEL_SEVERE);
	assert_null(of(&w, 0)->switching.band);
	assert_int_equal(w.h.switching.n, 0);
	assert_int_equal(w.h.affinity.n, 2);
	assert_string_equal(of(&w, 0)->affinity.band, "severe");
	assert_string_equal(of(&w, 0)->affinity.mode, "remote");
	assert_int_equal(of(&w, 0)->cause, HOT_CAUSE_NUMA);
	assert_int_equal(of(&w, 1)->cause, HOT_CAUSE_UNKNOWN);
	end(&w);
}

TEST(what_is_not_late_comes_last)
{
	struct world w;
	uint32_t lock, timer;
	struct node *n;

	begin(&w);
	lock = add_futex(&w, "100:1");
	n = graph_new_node(&w.g, &wait_object_type);
	SET(wait_object, n, kind, graph_str(&w.g, "timer"));
	SET(wait_object, n, name, graph_str(&w.g, ""));
	timer = graph_add_node(&w.g, n)->index;
	ran(&w, 0, 10, 0, 2);
	ran(&w, 1, 10, 0, 2);
	waited(&w, 0, "sleep", timer, 10, 5 * SECOND);
	waited(&w, 0, "futex", lock, 100, 2 * SECOND);
	waited(&w, 0, "futex", add_futex(&w, "100:2"), 10, SECOND);
	waited(&w, 1, "futex", lock, 1, WINDOW - 1); /* one wait without an end */
	woke(&w, 1, 0, "futex", 100, 2 * SECOND);
	woke(&w, 1, 0, "poll", 1, SECOND);
	analyse(&w);
	assert_int_equal(of(&w, 0)->waits.n, 2);
	assert_string_equal(of(&w, 0)->waits.v[0].cause, "futex");
	assert_true(of(&w, 0)->waits.v[0].waited_ns == 3 * SECOND &&
		    of(&w, 0)->waits.v[0].object == lock);
	assert_true(of(&w, 0)->waits.v[1].idle && of(&w, 0)->late_blocked_ns == 3 * SECOND);
	assert_true(of(&w, 1)->waits.v[0].idle);
	assert_int_equal(of(&w, 1)->cause, HOT_CAUSE_NONE);
	/* The two relations with the same waiter are one party; polling is not late. */
	assert_int_equal(of(&w, 1)->waiters.n, 1);
	assert_true(of(&w, 1)->waiters.v[0].waited_ns == 3 * SECOND &&
		    of(&w, 1)->waiters.v[0].idle_ns == SECOND);
	assert_true(of(&w, 1)->waited_for_ns == 2 * SECOND && of(&w, 0)->wakers.n == 1);
	end(&w);
}

TEST(causes_by_their_own_figures)
{
	struct world w;
	struct node *n;
	uint32_t pipe;

	begin(&w);
	n = graph_new_node(&w.g, &pipe_inode_type);
	SET(pipe_inode, n, inode, 7);
	pipe = graph_add_node(&w.g, n)->index;
	ran(&w, 0, 95, 5, 2);
	ran(&w, 1, 30, 40, 2);
	ran(&w, 2, 5, 0, 2);
	switched(&w, 1, 1, 900);
	waited(&w, 2, "pipe", pipe, 500, 8 * SECOND);
	analyse(&w);
	assert_int_equal(of(&w, 0)->cause, HOT_CAUSE_COMPUTE);
	assert_int_equal(of(&w, 1)->cause, HOT_CAUSE_CPU_WAIT);
	assert_int_equal(of(&w, 2)->cause, HOT_CAUSE_COMMUNICATION);
	/* Who ran on the same CPU. */
	assert_string_equal(of(&w, 1)->switching.cause, "CPU contention");
	assert_true(of(&w, 1)->rivals.n == 2 && of(&w, 1)->rivals.v[0].node == w.thread[0]);
	assert_true(near((double)of(&w, 1)->rivals.v[0].run_ns, 9.5e9));
	end(&w);
}

TEST(waits_are_followed_to_the_root)
{
	struct timeline none = {0};
	struct waitfor waits;
	struct world w;
	uint32_t lock;

	begin(&w);
	lock = add_futex(&w, "100:1");
	SET(thread, thread_node(&w, 1), name, graph_str(&w.g, "owner"));
	ran(&w, 0, 5, 0, 2);
	ran(&w, 1, 95, 0, 3);
	ran(&w, 2, 95, 0, 2);
	switched(&w, 2, 0, 20);
	waited(&w, 0, "futex", lock, 100, 9 * SECOND);
	woke(&w, 1, 0, "futex", 100, 9 * SECOND);
	analyse(&w);
	assert_int_equal(of(&w, 0)->cause, HOT_CAUSE_SYNCHRONISATION);
	assert_int_equal(of(&w, 0)->root, HOT_NONE);
	waitfor_init(&waits, &w.g, &none);
	hot_follow_waits(&w.h, &waits);
	assert_int_equal(of(&w, 0)->root, w.thread[1]);
	assert_true(of(&w, 0)->root_pct > 90);
	assert_non_null(strstr(of(&w, 0)->root_why, "owner[101], on a CPU"));
	/* Nobody waits for it, and nothing says that it looks for work: it may compute. */
	assert_int_equal(of(&w, 2)->cause, HOT_CAUSE_COMPUTE);
	assert_non_null(strstr(of(&w, 2)->root_why, "nobody waits for it"));
	waitfor_done(&waits);
	end(&w);
}

TEST(classes_by_figures_first)
{
	struct world w;
	struct node *n;
	struct edge *d;

	begin(&w);
	ran(&w, 0, 95, 0, 2);
	switched(&w, 0, 5, 400);
	modes(&w, 0, 9 * SECOND, SECOND / 2);
	/* Its name says otherwise; what it does counts. */
	SET(thread, thread_node(&w, 1), name, graph_str(&w.g, "compute"));
	ran(&w, 1, 30, 0, 2);
	modes(&w, 1, SECOND, 2 * SECOND);
	switched(&w, 1, 500, 5);
	n = graph_new_node(&w.g, &pipe_inode_type);
	SET(pipe_inode, n, inode, 7);
	n = graph_add_node(&w.g, n);
	d = graph_new_edge(&w.g, &write_to_type, w.thread[1], n->index);
	SET(write_to, d, bytes, 200 << 20);
	SET(write_to, d, calls, 5000);
	graph_add_edge(&w.g, d);
	waited(&w, 1, "pipe", n->index, 5000, 6 * SECOND);
	/* Nothing tells but its name. */
	SET(thread, thread_node(&w, 2), name, graph_str(&w.g, "acl_thread"));
	ran(&w, 2, 0.1, 0, 2);
	analyse(&w);
	assert_int_equal(of(&w, 0)->class, CLASS_COMPUTE);
	assert_int_equal(of(&w, 1)->class, CLASS_COMMUNICATION);
	assert_true(of(&w, 1)->bytes.n == 1 && of(&w, 1)->bytes.v[0].out_bytes == 200 << 20);
	assert_string_equal(of(&w, 1)->bytes.v[0].kind, "pipe");
	assert_int_equal(of(&w, 2)->class, CLASS_DRIVER);
	assert_int_equal(w.h.classes[CLASS_COMPUTE].threads, 1);
	assert_true(near(w.h.classes[CLASS_COMPUTE].cpu_pct, 95));
	end(&w);
}

TEST(names_are_taken_as_whole_words)
{
	static const struct {
		const char *name;
		enum thread_class class;
	} cases[] = {
	    {"domain", CLASS_OTHER},
	    {"main", CLASS_FRAMEWORK},
	    {"commander", CLASS_OTHER},
	    {"SendLoop", CLASS_COMMUNICATION},
	    {"data-loader/3", CLASS_FRAMEWORK},
	    {"kworker/1:0", CLASS_OTHER},
	    {"Worker_7", CLASS_COMPUTE},
	    {"pt_autograd_0", CLASS_COMPUTE},
	    {"NCCL Progress 0", CLASS_COMMUNICATION},
	    {"cuda-EvtHandlr", CLASS_DRIVER},
	    {"release_thread", CLASS_DRIVER},
	    {"", CLASS_OTHER},
	    {"VLLM::EngineCor", CLASS_FRAMEWORK},
	    {"ZMQbg/IO/0", CLASS_COMMUNICATION},
	    {"irq/24-nvme", CLASS_DRIVER},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		begin(&w);
		SET(thread, thread_node(&w, 0), name, graph_str(&w.g, cases[i].name));
		analyse(&w);
		if (of(&w, 0)->class != cases[i].class)
			fail_msg("'%s' is %s", cases[i].name, thread_class_name(of(&w, 0)->class));
		end(&w);
	}
}

TEST(switches_have_a_cause_and_a_band)
{
	static const struct {
		uint64_t voluntary, involuntary;
		const char *cause, *band;
	} cases[] = {
	    {0, 0, "none", "normal"},
	    {1000, 0, "waiting", "normal"},
	    {1001, 0, "waiting", "notice"},
	    {2001, 1000, "waiting", "notice"},
	    {2000, 1000, "mixed", "notice"},
	    {1000, 2000, "mixed", "notice"},
	    {2000, 4001, "CPU contention", "warning"},
	    {9000, 1001, "waiting", "severe"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		begin(&w);
		ran(&w, 0, 50, 0, 2);
		switched(&w, 0, cases[i].voluntary, cases[i].involuntary);
		analyse(&w);
		assert_string_equal(of(&w, 0)->switching.cause, cases[i].cause);
		assert_string_equal(of(&w, 0)->switching.band, cases[i].band);
		assert_int_equal(w.h.switching.n, 1);
		end(&w);
	}
}

TEST(affinity_says_what_to_bind_where)
{
	struct world w;

	begin(&w);
	ran(&w, 0, 50, 0, 0); /* its memory is on node 1 */
	ran(&w, 1, 50, 0, 2);
	ran(&w, 2, 0.2, 0, 0);
	analyse(&w);
	assert_int_equal(w.h.affinity.n, 2);
	assert_int_equal(w.h.threads.v[w.h.affinity.v[0]].node, w.thread[0]);
	assert_string_equal(of(&w, 0)->affinity.band, "severe");
	assert_non_null(strstr(of(&w, 0)->affinity.advice, "--cpunodebind=1 --membind=1"));
	assert_non_null(strstr(of(&w, 0)->affinity.advice, "migratepages 100 1 0"));
	assert_true(of(&w, 0)->cpu_node == 0 && of(&w, 0)->memory_node == 1);
	assert_string_equal(of(&w, 1)->affinity.band, "good");
	assert_null(of(&w, 1)->affinity.advice);
	assert_false(of(&w, 2)->affinity.listed);
	end(&w);
}

TEST(one_node_is_all_local)
{
	struct graph g;
	struct hot h;
	struct node *n;
	uint32_t t;

	graph_init(&g);
	g.meta.window_ns = WINDOW;
	n = graph_new_node(&g, &numa_type);
	SET(numa, n, numa_id, 0);
	graph_add_node(&g, n);
	n = graph_new_node(&g, &process_type);
	SET(process, n, pid, 1);
	t = add_thread(&g, graph_add_node(&g, n)->index, 1, "a");
	SET(thread, g.nodes.v[t], run_ns, SECOND);
	hot_init(&h, &g, NULL);
	assert_true(near(h.threads.v[0].remote_pct, 0) && near(h.threads.v[0].similarity, 1));
	assert_int_equal(h.threads.v[0].possible,
			 4); /* switches and cache misses were not measured */
	assert_int_equal(h.affinity.n, 0);
	hot_done(&h);
	graph_done(&g);
}

TEST(nothing_at_all_is_no_error)
{
	struct graph g;
	struct hot h;

	graph_init(&g);
	hot_init(&h, &g, NULL);
	assert_true(h.threads.n == 0 && h.unseen.n != 0 && !hot_has(h.demand_pct));
	assert_null(hot_of(&h, 0));
	hot_done(&h);
	graph_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rates_are_differences_over_the_window),
	    cmocka_unit_test(a_short_life_is_no_load),
	    cmocka_unit_test(points_are_those_of_the_published_list),
	    cmocka_unit_test(rules_fire_above_their_limits),
	    cmocka_unit_test(limits_decide),
	    cmocka_unit_test(counters_since_the_start_are_no_rates),
	    cmocka_unit_test(what_is_not_late_comes_last),
	    cmocka_unit_test(causes_by_their_own_figures),
	    cmocka_unit_test(waits_are_followed_to_the_root),
	    cmocka_unit_test(classes_by_figures_first),
	    cmocka_unit_test(names_are_taken_as_whole_words),
	    cmocka_unit_test(switches_have_a_cause_and_a_band),
	    cmocka_unit_test(affinity_says_what_to_bind_where),
	    cmocka_unit_test(one_node_is_all_local),
	    cmocka_unit_test(nothing_at_all_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
