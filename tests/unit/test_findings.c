/* What becomes of what rules find: one finding of one root, who is blamed, how grave it is, in which order. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "hosts.h"
#include "mem.h"
#include "rules_world.h"
#include "strbuf.h"

static bool has_command(const struct finding *fi, const char *part)
{
	vec_for(&fi->commands, c)
		if (strstr(*c, part))
			return true;
	return false;
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

/* Who runs for a second, rests for two and lacks a CPU for seven would be busy for a third of the time if it had one. */
TEST(threads_that_rest_are_not_too_many)
{
	struct world w;

	begin(&w);
	many_threads(&w);
	for (uint32_t i = 0; i < w.g.nodes.n; i++)
		if (w.g.nodes.v[i]->type == &thread_type && !strcmp(GET(thread, w.g.nodes.v[i], name), "omp"))
			set_times(&w, i, 1, 7);
	analyse(&w);
	find(&w);
	assert_int_equal(verdict(&w, "too-many-threads")->verdict, VERDICT_CLEAR);
	done(&w);
}

/* A mask is why there are few CPUs: that is said, though no other CPU idles. */
TEST(too_many_threads_in_a_mask_may_have_a_wider_one)
{
	const struct finding *fi = NULL;
	struct world w;

	begin(&w);
	many_threads(&w);
	for (uint32_t i = 0; i < 4; i++)
		SET(cpu, at(&w, w.cpu[i]), busy_ns, WINDOW);
	for (uint32_t i = 0; i < w.g.edges.n; i++)
		if (w.g.edges.v[i]->type == &numa_access_type && w.g.edges.v[i]->source == w.rank[0])
			SET(numa_access, w.g.edges.v[i], cpus_allowed_list, str(&w, "1-2"));
	for (uint32_t i = 0; i < w.g.nodes.n; i++)
		if (w.g.nodes.v[i]->type == &thread_type && GET(thread, w.g.nodes.v[i], process) == w.rank[0])
			may_use(&w, i, "1-2");
	analyse(&w);
	find(&w);
	vec_for(&w.f.v, it)
		if (!strcmp(it->rule, "too-many-threads"))
			fi = it;
	assert_non_null(fi);
	assert_true(has_command(fi, "taskset -a -p -c 0-3 100"));
	done(&w);
}

/* Threads of a program that is no interpreter: what they hand on is told, but is no interpreter's lock, and may be meant. */
TEST(turns_without_an_interpreter_are_a_notice)
{
	struct world w;

	begin(&w);
	analyse(&w);
	pattern(&w, PATTERN_HANDOVER);
	find(&w);
	assert_int_equal(verdict(&w, "gil")->verdict, VERDICT_CLEAR);
	assert_int_equal(verdict(&w, "lock-convoy")->verdict, VERDICT_FIRED);
	assert_int_equal(w.f.v.n, 1);
	assert_int_equal(w.f.v.v[0].severity, SEVERITY_NOTICE);
	done(&w);
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

/* Both are about one thread, of which nobody knows who has its CPU: that is one finding, however small. */
TEST(who_computes_and_lacks_a_cpu_is_one_finding)
{
	struct wait_root run = {.state = STATE_RUN, .waiters = 3, .waited_ns = 4 * SECOND, .wall_ns = 2 * SECOND};
	struct wait_root ready = {.state = STATE_RUNQ, .waiters = 3, .waited_ns = 20 * SECOND, .wall_ns = 2 * SECOND};
	struct world w;

	begin(&w);
	set_times(&w, w.thread[0], 5, 1.5);
	analyse(&w);
	run.thread = ready.thread = w.thread[0];
	vec_push(&w.w.roots, run);
	vec_push(&w.w.roots, ready);
	find(&w);
	assert_int_equal(w.f.v.n, 1);
	assert_string_equal(w.f.v.v[0].rule, "serial-thread");
	assert_int_equal(w.f.v.v[0].severity, SEVERITY_NOTICE);
	assert_int_equal(w.f.v.v[0].also.n, 1);
	assert_string_equal(w.f.v.v[0].also.v[0].rule, "cpu-wait");
	done(&w);
}

/* A nice value is asked for: it is no more than a notice that others come first, unless somebody waits for the nice one. */
TEST(who_is_nice_gets_what_it_asked_for)
{
	struct wait_root root = {.state = STATE_RUNQ, .waiters = 3, .waited_ns = 20 * SECOND, .wall_ns = WINDOW * 6 / 10};

	for (int waited = 0; waited < 2; waited++) {
		struct world w;

		begin(&w);
		neighbour(&w);
		SET(thread, at(&w, w.thread[0]), nice, 10);
		analyse(&w);
		root.thread = w.thread[0];
		if (waited)
			vec_push(&w.w.roots, root);
		find(&w);
		assert_string_equal(w.f.v.v[0].rule, "cpu-wait");
		assert_int_equal(w.f.v.v[0].severity, waited ? SEVERITY_CRITICAL : SEVERITY_NOTICE);
		done(&w);
	}
}

/* Who has its CPU is not in the recording, but others are late by it: then the finding is about the one they wait for. */
TEST(who_lacks_a_cpu_and_is_waited_for_is_blamed)
{
	struct wait_root root = {.state = STATE_RUNQ, .waiters = 3, .waited_ns = 20 * SECOND, .wall_ns = WINDOW / 2};

	for (int waited = 0; waited < 2; waited++) {
		struct world w;

		begin(&w);
		set_times(&w, w.thread[0], 2, 7);
		analyse(&w);
		root.thread = w.thread[0];
		if (waited)
			vec_push(&w.w.roots, root);
		find(&w);
		assert_string_equal(w.f.v.v[0].rule, "cpu-wait");
		assert_int_equal(w.f.v.v[0].root, waited ? w.thread[0] : NODE_NONE);
		assert_int_equal(w.f.v.v[0].lost_ns, (waited ? 20 : 7) * SECOND);
		done(&w);
	}
}

/* Single waits are no stream, and who is answered within a millisecond waits for its own next question. */
TEST(single_waits_and_short_answers_are_less_grave)
{
	static const struct {
		uint64_t events;
		bool asks;
		enum severity severity;
	} cases[] = {
	    {100, false, SEVERITY_CRITICAL}, {3, false, SEVERITY_NOTICE},      {3, true, SEVERITY_CRITICAL},
	    {7000, true, SEVERITY_CRITICAL}, {7001, true, SEVERITY_WARNING}, {7001, false, SEVERITY_CRITICAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wait_pattern *p;
		struct world w;

		begin(&w);
		analyse(&w);
		producer(&w);
		p = &w.w.patterns.v[w.w.patterns.n - 1];
		p->events = cases[i].events;
		p->asks = cases[i].asks;
		find(&w);
		assert_string_equal(w.f.v.v[0].rule, "slow-producer");
		assert_int_equal(w.f.v.v[0].severity, cases[i].severity);
		done(&w);
	}
}

/* Threads that may just have nothing to do are no grave matter. */
TEST(an_uncertain_hang_is_a_notice)
{
	struct world w;

	begin(&w);
	analyse(&w);
	hang(&w);
	w.w.hangs.v[0].confidence_pct = 40;
	find(&w);
	assert_string_equal(w.f.v.v[0].rule, "hang");
	assert_int_equal(w.f.v.v[0].severity, SEVERITY_NOTICE);
	done(&w);
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

#define HOSTS 9

/* Hosts with different faults, which make a graph of all. */
static void make_hosts(struct world *hosts)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		begin(&hosts[i]);
		if (i % 3 == 1)
			many_threads(&hosts[i]);
		else if (i % 3 == 2)
			memory_stalls(&hosts[i]);
		if (i % 2)
			faults(&hosts[i]);
	}
}

static void gather(struct world *hosts, unsigned n, struct graph *ret)
{
	graph_init(ret);
	for (unsigned i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "node-%u", i);
		hosts_add(ret, &hosts[i].g, name);
	}
}

/* All that findings tell, as text. */
static void tell(const struct findings *f, struct strbuf *b)
{
	strbuf_clear(b);
	vec_for(&f->v, fi) {
		strbuf_addf(b, "%s %d %u %u %llu %s %s %s\n", fi->rule, fi->severity, fi->confidence_pct, fi->root,
			    (unsigned long long)fi->lost_ns, fi->title, fi->why, fi->lost_basis ?: "-");
		vec_for(&fi->subjects, s)
			strbuf_addf(b, " %u", *s);
		vec_for(&fi->values, v)
			strbuf_addf(b, " %s=%.9g of %u", v->name, v->value, v->node);
		vec_for(&fi->advice, a)
			strbuf_addf(b, " %s", *a);
		vec_for(&fi->commands, c)
			strbuf_addf(b, " %s", *c);
		vec_for(&fi->also, a)
			strbuf_addf(b, " %s %s %s", a->rule, a->title, a->why);
		strbuf_addc(b, '\n');
	}
	vec_for(&f->verdicts, v)
		strbuf_addf(b, "%s %d %s %s %u\n", v->rule->id, v->verdict, v->evidence ?: "-", v->how ?: "-", v->findings);
}

/* With these means there is the same to tell as without. @return hosts that were looked at anew */
static size_t analyse_both_ways(struct world *hosts, unsigned n, const struct analysis_means *means)
{
	struct strbuf plain = {0}, other = {0};
	struct hosts_memory_counts counts = {0};
	struct analysis k;
	struct graph g;

	gather(hosts, n, &g);
	analysis_init(&k, &g, NULL, NULL);
	tell(&k.findings, &plain);
	analysis_done(&k);
	graph_done(&g);
	gather(hosts, n, &g);
	analysis_init_with(&k, &g, NULL, NULL, means);
	tell(&k.findings, &other);
	assert_true(k.findings.v.n >= n / 2);
	analysis_done(&k);
	graph_done(&g);
	assert_string_equal(plain.s, other.s);
	strbuf_done(&plain);
	strbuf_done(&other);
	if (means->memory)
		hosts_memory_get(means->memory, &counts);
	assert_int_equal(counts.hosts, means->memory ? n : 0);
	return counts.looked;
}

/* However many threads look, and whatever is known from before: the findings are those of an analysis from the beginning. */
TEST(hosts_that_are_as_they_were_are_not_looked_at_again)
{
	struct world *hosts = mem_alloc(HOSTS * sizeof(*hosts));
	struct analysis_means m = {.threads = 3};

	make_hosts(hosts);
	assert_int_equal(analyse_both_ways(hosts, HOSTS, &m), 0);
	m.memory = hosts_memory_new();
	assert_int_equal(analyse_both_ways(hosts, HOSTS, &m), HOSTS);
	assert_int_equal(analyse_both_ways(hosts, HOSTS, &m), 0);
	/* One field of one of them. */
	set_times(&hosts[4], hosts[4].thread[0], 1.5, 3);
	assert_int_equal(analyse_both_ways(hosts, HOSTS, &m), 1);
	/* A new value where there was none, and the state of a source. */
	SET(process, at(&hosts[1], hosts[1].rank[0]), rss_bytes, 7 * MIB);
	graph_add_status(&hosts[2].g, "counters core", "off", NULL, "not here");
	assert_int_equal(analyse_both_ways(hosts, HOSTS, &m), 2);
	/* Who was away is looked at again. */
	assert_int_equal(analyse_both_ways(hosts, HOSTS - 1, &m), 0);
	m.threads = 1;
	assert_int_equal(analyse_both_ways(hosts, HOSTS, &m), 1);
	hosts_memory_free(m.memory);
	for (unsigned i = 0; i < HOSTS; i++)
		done(&hosts[i]);
	free(hosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(threads_that_rest_are_not_too_many),
		cmocka_unit_test(too_many_threads_in_a_mask_may_have_a_wider_one),
		cmocka_unit_test(turns_without_an_interpreter_are_a_notice),
		cmocka_unit_test(who_waits_for_its_parent_waits_for_work),
		cmocka_unit_test(what_others_wait_counts_where_one_has_the_cpu),
		cmocka_unit_test(what_lost_most_of_the_time_names_a_finding),
		cmocka_unit_test(nobody_is_told_to_slow_down_whom_others_wait_for),
		cmocka_unit_test(who_lacks_cpus_like_all_blames_nobody),
		cmocka_unit_test(who_computes_and_lacks_a_cpu_is_one_finding),
		cmocka_unit_test(who_is_nice_gets_what_it_asked_for),
		cmocka_unit_test(who_lacks_a_cpu_and_is_waited_for_is_blamed),
		cmocka_unit_test(single_waits_and_short_answers_are_less_grave),
		cmocka_unit_test(an_uncertain_hang_is_a_notice),
		cmocka_unit_test(a_stopped_process_that_nobody_waits_for_is_a_notice),
		cmocka_unit_test(each_host_is_measured_by_its_own_cpus_and_window),
		cmocka_unit_test(hosts_that_are_as_they_were_are_not_looked_at_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
