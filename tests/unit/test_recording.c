/* A recording's totals are the same whether its parts stayed in memory or were read back. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph_json.h"
#include "recording.h"

#define INTERVALS 30
#define CROWD	  1500 /* entities that only one interval observes: so many that sweeping sets in */

static struct node *process(struct graph *g, uint64_t pid, uint64_t start_ns)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, start_ns, start_ns);
	return graph_add_node(g, n);
}

static uint32_t thread(struct graph *g, uint64_t tid, uint64_t start_ns, uint32_t of, uint64_t run_ns)
{
	struct node *n = graph_new_node(g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, start_ns, start_ns);
	SET(thread, n, process, of);
	SET(thread, n, run_ns, run_ns);
	n = graph_add_node(g, n);
	graph_link(g, &own_type, of, n->index);
	return n->index;
}

static void flow(struct graph *g, uint32_t from, uint32_t to, const char *kind, uint64_t bytes)
{
	struct edge *d = graph_new_edge(g, &flow_type, from, to);

	SET(flow, d, kind, graph_str(g, kind));
	SET(flow, d, bytes, bytes);
	graph_add_edge(g, d);
}

static void wake(struct graph *g, uint32_t from, uint32_t to, uint64_t ns)
{
	struct edge *d = graph_new_edge(g, &wakes_type, from, to);

	SET(wakes, d, wakeups, 1);
	SET(wakes, d, longest_ns, ns);
	graph_add_edge(g, d);
}

/* Every interval a crowd of its own; in the first and the last ones the same few, changed. */
static void observe(struct graph *g, unsigned i)
{
	bool few = i < 3 || i > INTERVALS - 3;
	uint32_t crowd = process(g, 100, 1)->index;

	for (unsigned k = 0; k < CROWD; k++)
		thread(g, 1000 + k, 10 + i, crowd, k);
	if (!few)
		return;
	for (unsigned k = 0; k < 5; k++) {
		/* One pid, several lives; the last intervals add one that the first have not. */
		uint64_t start_ns = k + (i > INTERVALS - 2);
		struct node *n = process(g, 7, start_ns);
		uint32_t index = n->index, one, two;

		SET(process, n, cpu_ns, i + 1);
		if (i == 0)
			SET(process, n, exe, graph_str(g, "/bin/first"));
		if (i == 1)
			SET(process, n, name, graph_str(g, "name"));
		one = thread(g, 7, start_ns, index, 3);
		two = thread(g, 8, start_ns, index, i);
		wake(g, one, two, 100 - i);
		flow(g, index, crowd, "tcp", i);
		flow(g, index, crowd, k & 1 ? "pipe" : "unix", i);
	}
}

static char *text_of(struct graph *g)
{
	struct graph_json_style style = {0};
	char name[] = "/tmp/test_recording.XXXXXX", *text;
	int fd = mkstemp(name);
	struct err e;
	struct stat st;

	assert_true(fd >= 0);
	unlink(name);
	g->meta.intervals = 0;
	assert_int_equal(graph_write_json(g, fd, &style, NULL, &e), 0);
	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
	close(fd);
	return text;
}

static void write_recording(const char *path, struct graph *ret_whole)
{
	struct recording *r;
	struct err e;

	assert_int_equal(recording_create(&r, path, true, &e), 0);
	graph_init(ret_whole);
	for (unsigned i = 0; i < INTERVALS; i++) {
		struct graph part;

		graph_init(&part);
		observe(&part, i);
		graph_merge(ret_whole, &part, NULL, NULL);
		assert_int_equal(recording_add(r, &part, i, i + 1, &e), 0);
		graph_done(&part);
	}
	assert_int_equal(recording_close(r, &e), 0);
}

TEST(totals_survive_being_forgotten)
{
	char path[] = "/tmp/test_recording.wpdb.XXXXXX", *want, *got;
	int fd = mkstemp(path);
	struct graph whole, stored;
	struct stored *s;
	struct err e;

	assert_true(fd >= 0);
	close(fd);
	write_recording(path, &whole);
	assert_int_equal(stored_open(&s, path, &e), 0);
	graph_init(&stored);
	assert_int_equal(stored_load(s, &stored, &e), 0);
	for (size_t i = 0; i < n_entity_types; i++) {
		int64_t n = 0;

		vec_for(&whole.nodes, it)
			n += (*it)->type == entity_types[i];
		assert_int_equal(stored_count(s, entity_types[i]), n);
	}
	assert_true(whole.nodes.n > INTERVALS * CROWD);
	assert_int_equal(stored.nodes.n, whole.nodes.n);
	assert_int_equal(stored.edges.n, whole.edges.n);
	stored.meta = whole.meta;
	want = text_of(&whole);
	got = text_of(&stored);
	assert_true(!strcmp(want, got));
	free(want);
	free(got);
	stored_close(s);
	graph_done(&whole);
	graph_done(&stored);
	unlink(path);
}

/* The id that a program sees in the file is the one that reading it gives. */
TEST(ids_in_the_file_are_those_of_the_graph)
{
	char path[] = "/tmp/test_recording.wpdb.XXXXXX";
	int fd = mkstemp(path);
	struct graph whole;
	struct stored *s;
	struct err e;

	assert_true(fd >= 0);
	close(fd);
	write_recording(path, &whole);
	assert_int_equal(stored_open(&s, path, &e), 0);
	for (uint32_t i = 0; i < whole.nodes.n; i += i < 50 ? 1 : 997) {
		const struct node *got, *want;
		struct graph g;

		graph_init(&g);
		assert_int_equal(stored_load_around(s, &g, graph_node_id(&whole, i), 0, 0, &e), 0);
		/* What it refers to comes before it. */
		got = g.nodes.v[g.nodes.n - 1];
		want = whole.nodes.v[i];
		assert_ptr_equal(got->type, want->type);
		if (got->type == &thread_type) {
			assert_int_equal(GET(thread, got, tid), GET(thread, want, tid));
			assert_int_equal(GET(thread, got, start_ns), GET(thread, want, start_ns));
		}
		graph_done(&g);
	}
	stored_close(s);
	graph_done(&whole);
	unlink(path);
}

TEST(readers_do_not_keep_it_from_being_closed)
{
	char path[] = "/tmp/test_recording.wpdb.XXXXXX";
	struct recording *r;
	struct stored *s;
	struct graph part, got;
	sqlite3 *reader;
	struct err e;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(recording_create(&r, path, true, &e), 0);
	graph_init(&part);
	process(&part, 1, 1);
	assert_int_equal(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM entity", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(recording_add(r, &part, 1, 2, &e), 0);
	assert_int_equal(recording_close(r, &e), 0);
	sqlite3_close(reader);
	assert_int_equal(stored_open(&s, path, &e), 0);
	graph_init(&got);
	assert_int_equal(stored_load(s, &got, &e), 0);
	assert_int_equal(got.nodes.n, 1);
	stored_close(s);
	graph_done(&got);
	graph_done(&part);
	unlink(path);
}

static int take_count(void *ctx, int n, char **text, char **names)
{
	*(int *)ctx = n ? atoi(text[0]) : -1;
	return 0;
}

/* Looks again and again, until it is killed. At a file that has no tables yet it looks for long. */
static pid_t start_reader(const char *path)
{
	pid_t child = fork();
	sqlite3 *db;
	int tables;

	assert_true(child >= 0);
	if (child)
		return child;
	/* A test that fails leaves nobody behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		tables = -1;
		if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
			sqlite3_exec(db, "BEGIN; SELECT count(*) FROM sqlite_schema", take_count, &tables, NULL);
		if (!tables)
			usleep(20000);
		sqlite3_close(db);
	}
}

TEST(readers_do_not_keep_it_from_being_made)
{
	char folder[] = "/tmp/test_recording.XXXXXX", path[64];
	struct recording *r;
	struct err e;
	pid_t reader;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x.wpdb", folder);
	reader = start_reader(path);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(recording_create(&r, path, true, &e), 0);
		recording_drop(r);
	}
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/x.wpdb%s", folder, i == 0 ? "" : i == 1 ? "-wal" : "-shm");
		unlink(path);
	}
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_survive_being_forgotten),
		cmocka_unit_test(ids_in_the_file_are_those_of_the_graph),
		cmocka_unit_test(readers_do_not_keep_it_from_being_closed),
		cmocka_unit_test(readers_do_not_keep_it_from_being_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
