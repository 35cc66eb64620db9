/* What changed between two recordings of small hosts whose truth is plain. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "compare.h"
#include "hot.h"
#include "waitfor.h"

#define SECOND    1000000000ull
#define INTERVALS 6

/* One process with a thread whose CPU time of each second is given in percent, and a flow to
 * another one. */
struct side {
	struct graph g;
	struct topology t;
	struct hot hot;
	struct timeline time;
	struct study study;
	struct findings f;
	uint32_t process, thread, other;
};

static uint32_t add_process(struct side *s, uint64_t pid, const char *name)
{
	struct node *n = graph_new_node(&s->g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, name, graph_str(&s->g, name));
	return graph_add_node(&s->g, n)->index;
}

static void begin(struct side *s, uint64_t pid, const char *thread, const double pct[INTERVALS],
		  uint64_t messages)
{
	uint64_t run = 0;
	struct node *n;
	struct edge *d;

	memset(s, 0, sizeof(*s));
	graph_init(&s->g);
	s->g.meta.window_ns = INTERVALS * SECOND;
	s->process = add_process(s, pid, "server");
	s->other = add_process(s, pid + 1, "client");
	n = graph_new_node(&s->g, &thread_type);
	SET(thread, n, tid, pid);
	SET(thread, n, process, s->process);
	SET(thread, n, name, graph_str(&s->g, thread));
	s->thread = graph_add_node(&s->g, n)->index;
	for (uint32_t i = 0; i < INTERVALS; i++) {
		struct thread_slice slice = {.thread = s->thread, .interval = i};

		slice.run_ns = (uint64_t)(pct[i] * SECOND / 100);
		slice.blocked_ns = SECOND - slice.run_ns;
		run += slice.run_ns;
		vec_push(&s->time.intervals,
			 ((struct time_span){i * SECOND + 1, (i + 1) * SECOND + 1}));
		vec_push(&s->time.slices, slice);
	}
	n = s->g.nodes.v[s->thread];
	SET(thread, n, run_ns, run);
	SET(thread, n, runq_ns, 0);
	SET(thread, n, blocked_ns, INTERVALS * SECOND - run);
	SET(thread, n, observed_ns, INTERVALS * SECOND);
	SET(thread, n, voluntary_switches, 60);
	SET(thread, n, involuntary_switches, 6);
	d = graph_new_edge(&s->g, &flow_type, s->other, s->process);
	SET(flow, d, kind, graph_str(&s->g, "tcp"));
	SET(flow, d, bytes, messages * 1000);
	SET(flow, d, messages, messages);
	graph_add_edge(&s->g, d);
}

static void analyse(struct side *s)
{
	hot_init(&s->hot, &s->g, NULL);
	topology_init(&s->t, &s->g);
	timeline_sort(&s->time);
	s->study = (struct study){.g = &s->g, .t = &s->t, .hot = &s->hot, .time = &s->time};
	findings_init(&s->f, &s->study);
}

static void done(struct side *s)
{
	findings_done(&s->f);
	topology_done(&s->t);
	hot_done(&s->hot);
	timeline_done(&s->time);
	graph_done(&s->g);
}

static void compare(struct compare *c, const struct side *a, const struct side *b)
{
	compare_init(c, &(struct compared){&a->study, &a->f}, &(struct compared){&b->study, &b->f});
}

static const double calm[INTERVALS] = {5, 20, 21, 19, 20, 20},
		    same[INTERVALS] = {90, 21, 19, 20, 22, 19},
		    busy[INTERVALS] = {60, 95, 94, 96, 95, 95},
		    wild[INTERVALS] = {5, 2, 80, 1, 60, 3};

TEST(other_pids_and_numbers_are_the_same_threads)
{
	struct side a, b;
	struct compare c;

	begin(&a, 100, "worker-1", calm, 1000);
	begin(&b, 7000, "worker-9", same, 1010);
	analyse(&a);
	analyse(&b);
	compare(&c, &a, &b);
	assert_int_equal(c.threads.n, 1);
	assert_string_equal(c.threads.v[0].name, "worker- of server");
	assert_int_equal(c.threads.v[0].a_n, 1);
	assert_int_equal(c.threads.v[0].b_n, 1);
	/* The first second of b does not count: hooks were attached in it. */
	assert_false(c.threads.v[0].cpu_pct.significant);
	assert_int_equal(c.flows.n, 1);
	assert_false(c.flows.v[0].bytes_s.significant);
	compare_done(&c);
	done(&a);
	done(&b);
}

TEST(a_steady_change_is_significant_and_scatter_is_not)
{
	struct side a, b, w;
	struct compare c;

	begin(&a, 100, "worker", calm, 1000);
	begin(&b, 200, "worker", busy, 5000);
	begin(&w, 300, "worker", wild, 1000);
	analyse(&a);
	analyse(&b);
	analyse(&w);
	compare(&c, &a, &b);
	assert_true(c.threads.v[0].cpu_pct.significant);
	assert_true(c.threads.v[0].cpu_pct.t > 10);
	assert_true(c.flows.v[0].bytes_s.significant);
	assert_true(c.flows.v[0].messages_s.significant);
	compare_done(&c);
	compare(&c, &a, &w);
	assert_false(c.threads.v[0].cpu_pct.significant);
	compare_done(&c);
	done(&a);
	done(&b);
	done(&w);
}

TEST(who_is_gone_or_new_is_a_row_of_its_own)
{
	struct side a, b;
	struct compare c;

	begin(&a, 100, "reader", busy, 1000);
	begin(&b, 200, "writer", busy, 1000);
	analyse(&a);
	analyse(&b);
	compare(&c, &a, &b);
	assert_int_equal(c.threads.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct thread_change *t = &c.threads.v[i];

		assert_int_equal(t->a_n + t->b_n, 1);
		assert_true(t->cpu_pct.significant);
	}
	compare_done(&c);
	done(&a);
	done(&b);
}

TEST(findings_are_new_gone_worse_and_the_same)
{
	struct side a, b;
	struct compare c;

	begin(&a, 100, "worker", calm, 1000);
	begin(&b, 200, "worker", busy, 1000);
	analyse(&a);
	analyse(&b);
	compare(&c, &a, &b);
	assert_int_equal(c.findings.n, 1);
	assert_int_equal(c.findings.v[0].fate, FATE_NEW);
	assert_string_equal(c.findings.v[0].b->rule, "busy-thread");
	assert_int_equal(compare_worst(&c), SEVERITY_NOTICE);
	compare_done(&c);
	compare(&c, &b, &a);
	assert_int_equal(c.findings.v[0].fate, FATE_GONE);
	assert_int_equal(compare_worst(&c), SEVERITY_INFO);
	compare_done(&c);
	compare(&c, &b, &b);
	assert_int_equal(c.findings.v[0].fate, FATE_SAME);
	compare_done(&c);
	b.f.v.v[0].severity = SEVERITY_CRITICAL;
	done(&a);
	begin(&a, 300, "worker", busy, 1000);
	analyse(&a);
	compare(&c, &a, &b);
	assert_int_equal(c.findings.v[0].fate, FATE_WORSE);
	assert_int_equal(compare_worst(&c), SEVERITY_CRITICAL);
	compare_done(&c);
	done(&a);
	done(&b);
}

TEST(without_a_window_nothing_is_called_a_rate)
{
	struct side a, b;
	struct compare c;

	begin(&a, 100, "worker", calm, 1000);
	begin(&b, 200, "worker", busy, 1000);
	a.g.meta.window_ns = 0;
	analyse(&a);
	analyse(&b);
	compare(&c, &a, &b);
	assert_int_equal(c.flows.n, 0);
	vec_for(&c.threads, t) {
		assert_true(isnan(t->cpu_pct.a));
		assert_false(t->cpu_pct.significant);
	}
	compare_done(&c);
	done(&a);
	done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(other_pids_and_numbers_are_the_same_threads),
	    cmocka_unit_test(a_steady_change_is_significant_and_scatter_is_not),
	    cmocka_unit_test(who_is_gone_or_new_is_a_row_of_its_own),
	    cmocka_unit_test(findings_are_new_gone_worse_and_the_same),
	    cmocka_unit_test(without_a_window_nothing_is_called_a_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
