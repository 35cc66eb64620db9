/* Figures for monitoring: the largest of each kind, by host where there are several, and one sample for all others. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hosts.h"
#include "metrics.h"

#define HOSTS	  30
#define PROCESSES 40
#define WINDOW	  10000000000ull

/* A host with one CPU more than the one before, and processes that used more and more of them. */
static void add_host(struct graph *all, unsigned number)
{
	struct graph g;
	struct node *n;
	char name[16];

	graph_init(&g);
	g.meta.start_ns = 1;
	g.meta.window_ns = WINDOW;
	n = graph_new_node(&g, &host_type);
	SET(host, n, hostname, graph_str(&g, "box"));
	SET(host, n, cpus, number + 1);
	graph_add_node(&g, n);
	for (unsigned i = 0; i < PROCESSES; i++) {
		n = graph_new_node(&g, &process_type);
		SET(process, n, pid, 100 + i);
		SET(process, n, start_ns, 1);
		SET(process, n, name, graph_str(&g, "train"));
		SET(process, n, cpu_ns, (i * HOSTS + number) * (WINDOW / 1000));
		graph_add_node(&g, n);
	}
	snprintf(name, sizeof(name), "node-%02u", number);
	hosts_add(all, &g, name);
	graph_done(&g);
}

static const struct metric *family(const struct metrics *m, const char *name)
{
	vec_for(&m->v, f)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

static const char *label(const struct metric_sample *s, const char *name)
{
	for (size_t i = 0; i < METRICS_LABELS && s->labels[i].name; i++)
		if (!strcmp(s->labels[i].name, name))
			return s->labels[i].value;
	return NULL;
}

static double sum(const struct metric *f)
{
	double all = 0;

	vec_for(&f->samples, s)
		all += s->value;
	return all;
}

TEST(figures_of_many_hosts_are_bounded_and_add_up)
{
	const struct metric *cpus, *cores;
	struct metrics m = {0};
	struct graph g;

	arena_init(&m.arena);
	graph_init(&g);
	for (unsigned i = 0; i < HOSTS; i++)
		add_host(&g, i);
	metrics_add_graph(&m, &g);
	vec_for(&m.v, f)
		assert_in_range(f->samples.n, 0, METRICS_TOP + 1);
	cpus = family(&m, "witty_host_cpus");
	assert_int_equal(cpus->samples.n, METRICS_TOP + 1);
	assert_string_equal(label(&cpus->samples.v[0], "host"), "node-29");
	assert_true(cpus->samples.v[0].value == 30);
	assert_string_equal(label(&cpus->samples.v[METRICS_TOP], "host"), "other");
	assert_true(sum(cpus) == HOSTS * (HOSTS + 1) / 2.0);
	/* The same pid and name on each: who used most, on which host. */
	cores = family(&m, "witty_process_cpu_cores");
	assert_int_equal(cores->samples.n, METRICS_TOP + 1);
	assert_string_equal(label(&cores->samples.v[0], "pid"), "139");
	assert_string_equal(label(&cores->samples.v[0], "host"), "node-29");
	assert_string_equal(label(&cores->samples.v[1], "host"), "node-28");
	assert_true(fabs(cores->samples.v[0].value - (39 * HOSTS + 29) / 1000.0) < 1e-9);
	assert_true(fabs(sum(cores) - 1199 * 1200 / 2 / 1000.0) < 1e-6);
	metrics_done(&m);
	graph_done(&g);
}

TEST(one_host_needs_no_name)
{
	struct metrics m = {0};
	struct strbuf b = {0};
	struct graph g;
	struct node *n;

	arena_init(&m.arena);
	graph_init(&g);
	n = graph_new_node(&g, &host_type);
	SET(host, n, cpus, 4);
	graph_add_node(&g, n);
	metrics_add_graph(&m, &g);
	metrics_prometheus(&m, &b);
	assert_non_null(strstr(b.s, "\nwitty_host_cpus 4"));
	strbuf_done(&b);
	metrics_done(&m);
	graph_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_many_hosts_are_bounded_and_add_up),
		cmocka_unit_test(one_host_needs_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
