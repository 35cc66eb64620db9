/* Compact text: what is written in fewer words is read back as the same graph, and nothing else is.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph.h"
#include "graph_json.h"
#include "graph_text.h"

static int read_text(struct graph *g, const char *text)
{
	struct err e;
	int rc;

	graph_init(g);
	rc = graph_read_text(g, text, strlen(text), "FILE", &e);
	if (rc < 0)
		graph_done(g);
	return rc;
}

/* Graph JSON says all of a graph, in order. */
static char *json_of(struct graph *g)
{
	const struct graph_json_style style = {.compact = true};
	int fd = memfd_create("graph", 0);
	struct err e;
	off_t n;
	char *s;

	assert_true(fd >= 0);
	assert_int_equal(graph_write_json(g, fd, &style, NULL, &e), 0);
	n = lseek(fd, 0, SEEK_END);
	s = calloc(1, (size_t)n + 1);
	assert_int_equal(pread(fd, s, (size_t)n, 0), n);
	close(fd);
	return s;
}

/* Write @p g as text and read that. @return the text, the caller's */
static char *round_trip(struct graph *g)
{
	struct strbuf text = {0};
	struct graph again;
	char *a, *b;

	graph_write_text(g, &text);
	assert_int_equal(read_text(&again, text.s), 0);
	a = json_of(g);
	b = json_of(&again);
	assert_string_equal(a, b);
	free(a);
	free(b);
	graph_done(&again);
	return text.s;
}

static void check_contains(const char *text, const char *part)
{
	/* The sanitizer's own check for NULL makes gcc see one in the message. */
	if (!text || !part)
		fail_msg("nothing to compare");
	else if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

static uint32_t add_process(struct graph *g, uint64_t pid, const char *cmdline)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, name, graph_str(g, "worker"));
	SET(process, n, cmdline, graph_str(g, cmdline));
	return graph_add_node(g, n)->index;
}

static uint32_t add_thread(struct graph *g, uint64_t tid, uint32_t process, const char *name)
{
	struct node *n = graph_new_node(g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, process, process);
	SET(thread, n, name, graph_str(g, name));
	return graph_add_node(g, n)->index;
}

static uint32_t add_numa(struct graph *g, uint64_t id, const char *cpus, const char *mem_info)
{
	struct node *n = graph_new_node(g, &numa_type);

	SET(numa, n, numa_id, id);
	SET(numa, n, cpu_set, graph_str(g, cpus));
	SET(numa, n, mem_info, graph_str(g, mem_info));
	return graph_add_node(g, n)->index;
}

static uint32_t add_set(struct graph *g, const char *ids)
{
	const struct value v = {.type = T_STR, .str = graph_str(g, ids)};
	struct node *n = graph_new_node(g, &numa_set_type);

	/* gcc takes SET() on a struct of one member for another type than the array below it. */
	field_set(&numa_set_type.fields[numa_set_f_numa_id_str], n->data, &v);
	n->measured |= FIELD_BIT(numa_set, numa_id_str);
	return graph_add_node(g, n)->index;
}

TEST(ends_are_written_in_runs)
{
	struct graph g;
	uint32_t p, t[6];
	char *text;

	graph_init(&g);
	p = add_process(&g, 7, "a");
	for (unsigned i = 0; i < 6; i++)
		t[i] = add_thread(&g, 10 + i, p, "x");
	for (unsigned i = 0; i < 6; i++)
		if (i != 3)
			graph_link(&g, &own_type, p, t[i]);
	for (unsigned i = 0; i < 6; i++)
		graph_link(&g, &belong_type, t[i], p);
	for (unsigned i = 0; i < 3; i++)
		graph_link(&g, &peer_type, t[i], t[i + 3]);
	text = round_trip(&g);
	check_contains(text, "\n1 2..4,6..7\n");
	check_contains(text, "\n2..7 1\n");
	check_contains(text, "\n2..4 5..7\n");
	free(text);
	graph_done(&g);
}

TEST(courses_of_ends_stand_in_the_header)
{
	struct graph g;
	uint32_t p;
	char *text;

	graph_init(&g);
	p = add_process(&g, 7, "a");
	for (unsigned i = 0; i < 4; i++) {
		uint32_t t = add_thread(&g, 10 + i, p, "x");
		struct edge *d = graph_new_edge(&g, &access_type, t, p);

		SET(access, d, memory_bytes, 100 + i * i);
		graph_add_edge(&g, d);
	}
	text = round_trip(&g);
	check_contains(text, "@@access from=2+ to=1 memory_bytes\n100\n101\n104\n109\n");
	free(text);
	graph_done(&g);
}

TEST(texts_share_both_ends_with_the_one_above)
{
	struct graph g;
	char *text;

	graph_init(&g);
	add_process(&g, 7, "/usr/bin/python3 worker --rank 0 --multiprocessing-fork");
	add_process(&g, 8, "/usr/bin/python3 worker --rank 17 --multiprocessing-fork");
	add_process(&g, 9, "/usr/bin/python3 worker --rank 17");
	add_process(&g, 10, "/usr/bin/python3 worker --rank \xc3\xa4 x");
	add_process(&g, 11, "/usr/bin/python3 worker --rank \xc3\xb6 x");
	add_process(&g, 12, "");
	add_process(&g, 13, "^3~x~4");
	add_process(&g, 14, "'*3");
	add_process(&g, 15, "=");
	add_process(&g, 16, "-");
	text = round_trip(&g);
	check_contains(text, "\n8 ^31~17~23\n");
	check_contains(text, "\n9 ^33~\"\"\n");
	check_contains(text, "\n11 ^31~\"\xc3\xb6 x\"\n");
	free(text);
	graph_done(&g);
}

TEST(threads_are_called_as_their_process)
{
	struct graph g;
	uint32_t p;
	char *text;

	graph_init(&g);
	p = add_process(&g, 7, "a");
	add_thread(&g, 7, p, "worker");
	add_thread(&g, 8, p, "worker");
	add_thread(&g, 9, p, "helper");
	text = round_trip(&g);
	check_contains(text, "\n8 =\n9 helper\n");
	free(text);
	graph_done(&g);
}

TEST(maps_share_keys_units_constants_and_sums)
{
	struct graph g;
	char *text, map[256];

	graph_init(&g);
	for (unsigned i = 0; i < 6; i++) {
		unsigned total = 1000000 + 17 * i, used = 3000 + 7 * i * i, slab = 90 + i * i;

		snprintf(
		    map, sizeof(map),
		    "{\"MemTotal\":\"%u kB\",\"MemFree\":\"%u kB\",\"MemUsed\":\"%u kB\","
		    "\"Slab\":\"%u kB\",\"Copy\":\"%u kB\",\"Mlocked\":\"0 kB\",\"Pages\":\"0\","
		    "\"n\":3}",
		    total, total - used, used, 100000 + slab, 100000 + slab);
		add_numa(&g, i, "", map);
	}
	text = round_trip(&g);
	check_contains(text, "mem_info{MemTotal$ kB==MemFree+MemUsed,MemFree,MemUsed,"
			     "Slab==Copy,Copy,Mlocked=0,Pages$=0,n$#=3}\n0 997000,3000,100090\n");
	free(text);
	graph_done(&g);
}

/* A sum that fails in one row, a number with a zero in front, a unit that changes: all as they are.
 */
TEST(a_rule_with_an_exception_is_none)
{
	static const char *const maps[] = {
	    "{\"a\":\"30000 kB\",\"b\":\"10000 kB\",\"c\":\"20000 kB\",\"d\":\"1 "
	    "kB\",\"e\":\"007\"}",
	    "{\"a\":\"30001 kB\",\"b\":\"10001 kB\",\"c\":\"20000 kB\",\"d\":\"2 "
	    "kB\",\"e\":\"007\"}",
	    "{\"a\":\"30007 kB\",\"b\":\"10005 kB\",\"c\":\"20002 kB\",\"d\":\"3 "
	    "kB\",\"e\":\"008\"}",
	    "{\"a\":\"30009 kB\",\"b\":\"10005 kB\",\"c\":\"20005 kB\",\"d\":\"4 B\",\"e\":\"-\"}",
	    "{\"a\":\"90009 kB\",\"b\":\"40005 kB\",\"c\":\"50004 kB\",\"d\":\"x y\",\"e\":\"\"}",
	};
	struct graph g;
	char *text;

	graph_init(&g);
	for (unsigned i = 0; i < 5; i++)
		add_numa(&g, i, "", maps[i]);
	text = round_trip(&g);
	assert_null(strstr(text, "=="));
	free(text);
	graph_done(&g);
}

TEST(maps_that_differ_keep_their_keys)
{
	struct graph g;
	char *text;

	graph_init(&g);
	add_numa(&g, 0, "", "{\"0\":1.0,\"a b\":{\"x\":[1,\"2\",null]},\"c:d\":\"e:f\"}");
	add_numa(&g, 1, "", "{}");
	add_numa(&g, 2, "", "{\"\":-1}");
	add_numa(&g, 3, "", "{\"@x\":true}");
	add_numa(&g, 4, "", "[\"true\",\"-\"]");
	add_numa(&g, 5, "", "\"-\"");
	add_numa(&g, 6, "", "\"a:b\"");
	text = round_trip(&g);
	free(text);
	graph_done(&g);
}

TEST(maps_with_odd_keys_keep_them)
{
	static const char *const maps[] = {
	    "{\"a\":%u,\"\":2,\"b\":3}",        "{\"a\":%u,\"a\":2,\"b\":3}",
	    "{\"a=b\":%u,\"c\":2,\"d\":3}",     "{\"a]\":%u,\"c\":2,\"d\":3}",
	    "{\"a\":\"%u [\",\"c\":2,\"d\":3}", "{\"+\":%u,\"a-b\":7%u,\"-\":3%u}",
	};

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		struct graph g;
		char map[64];

		graph_init(&g);
		for (unsigned k = 0; k < 5; k++) {
			snprintf(map, sizeof(map), maps[i], k, k, k);
			add_numa(&g, k, "", map);
		}
		free(round_trip(&g));
		graph_done(&g);
	}
}

/* A host with two NUMA nodes, and a process with two threads. */
static void add_host(struct graph *g, bool plain)
{
	uint32_t numa[2], all, one, p, t;
	struct edge *d;

	numa[0] = add_numa(g, 0, "0-3", "{}");
	numa[1] = add_numa(g, 1, "4-7", "{}");
	all = add_set(g, "0-1");
	one = add_set(g, "1");
	graph_link(g, &numa_set_contain_type, all, numa[0]);
	graph_link(g, &numa_set_contain_type, all, numa[1]);
	if (plain)
		graph_link(g, &numa_set_contain_type, one, numa[1]);
	p = add_process(g, 7, "a");
	t = add_thread(g, 7, p, "worker");
	d = graph_new_edge(g, &access_with_proc_status_type, t, all);
	SET(access_with_proc_status, d, voluntary_ctxt_switches, 5);
	SET(access_with_proc_status, d, cpus_allowed_list, graph_str(g, "0-7"));
	SET(access_with_proc_status, d, numa_index_to_cpu_runtime, graph_str(g, "{\"0\":3000.0}"));
	graph_add_edge(g, d);
	t = add_thread(g, 8, p, "worker");
	d = graph_new_edge(g, &access_with_proc_status_type, t, one);
	SET(access_with_proc_status, d, cpus_allowed_list, graph_str(g, plain ? "4-7" : "4-6"));
	SET(access_with_proc_status, d, numa_index_to_cpu_runtime, graph_str(g, "{\"1\":1000.0}"));
	graph_add_edge(g, d);
	d = graph_new_edge(g, &numa_access_type, p, all);
	SET(numa_access, d, voluntary_ctxt_switches, plain ? 5 : 6);
	SET(numa_access, d, dirty_anon_pages, graph_str(g, "{\"1\":3}"));
	SET(numa_access, d, total_pages, graph_str(g, plain ? "{\"1\":3}" : "{\"1\":4}"));
	SET(numa_access, d, cpu_runtime_pct_in_each_numa,
	    graph_str(g, plain ? "[0.75,0.25]" : "[0.75,0.250]"));
	SET(numa_access, d, mem_pages_in_each_numa, graph_str(g, plain ? "[0,3]" : "[0,3.0]"));
	SET(numa_access, d, total_dirty_anon_pages, plain ? 3 : 4);
	SET(numa_access, d, local_share, plain ? 0.25 : 0.25 + 1e-16);
	graph_add_edge(g, d);
}

TEST(what_follows_is_left_out)
{
	struct graph g;
	char *text;

	graph_init(&g);
	add_host(&g, true);
	text = round_trip(&g);
	check_contains(text, "@@numa_set_contain ==\n");
	check_contains(text, "cpus_allowed_list== ");
	check_contains(text, "voluntary_ctxt_switches== ");
	check_contains(text,
		       "total_pages== cpu_runtime_pct_in_each_numa== mem_pages_in_each_numa== "
		       "total_dirty_anon_pages== local_share==\n");
	free(text);
	graph_done(&g);
}

TEST(what_does_not_quite_follow_is_kept)
{
	struct graph g;
	char *text;

	graph_init(&g);
	add_host(&g, false);
	text = round_trip(&g);
	assert_null(strstr(text, "_contain =="));
	check_contains(text, "0.250]");
	free(text);
	graph_done(&g);
}

/* The words of a header that are not columns may not be names of fields. */
TEST(no_relation_has_a_field_called_as_a_word_of_the_format)
{
	static const char *const words[] = {"from", "to", "weight", "extra", "namespace"};

	for (size_t i = 0; i < n_edge_types; i++)
		for (size_t k = 0; k < 4; k++)
			assert_int_equal(type_field(edge_types[i], words[k]), -1);
	for (size_t i = 0; i < n_entity_types; i++)
		for (size_t k = 3; k < 5; k++)
			assert_int_equal(type_field(entity_types[i], words[k]), -1);
}

static void check_refused(const char *rest, const char *what)
{
	char text[4096];
	struct graph g;
	struct err e;

	snprintf(text, sizeof(text), "# witty-text 1\n@process 1 pid name\n7 a\n8 '\n%s", rest);
	graph_init(&g);
	assert_int_equal(graph_read_text(&g, text, strlen(text), "FILE", &e), -EBADMSG);
	if (!strstr(e.msg, what))
		fail_msg("'%s' says '%s'", rest, e.msg);
	graph_done(&g);
}

TEST(wrong_texts_are_refused)
{
	check_refused("@@own\n1 2..3\n", "FILE:6: no entity with that number");
	check_refused("@@own\n1..2 1,2,1\n", "no ends");
	check_refused("@@own\n1 2..1\n", "no ends");
	check_refused("@@own\n1 2,\n", "no ends");
	check_refused("@@own\n1 2x\n", "no ends");
	check_refused("@@own\n0 1\n", "no ends");
	check_refused("@@own\n1 99999999999999999999\n", "no ends");
	check_refused("@@own\n1 2\n1 1..2\n", "twice");
	check_refused("@@own ==\n", "nothing follows");
	check_refused("@@numa_set_contain ==\n@@numa_set_contain ==\n", "nothing follows");
	check_refused("@@access from=2+ to=1 memory_bytes\n1\n2\n", "no entity");
	check_refused("@@access from=x to=1 memory_bytes\n", "no number");
	check_refused("@@access from=1 to=2 memory_bytes\n=\n", "nothing follows");
	check_refused("@@access from=1 to=2 memory_bytes\n'\n", "above");
	check_refused("@@access from=1 to=2 memory_bytes\n-*0\n", "does not fit");
	check_refused("@@access from=1 to=2 memory_bytes\n-*99999999\n", "does not fit");
	check_refused("@@access from=1 to=2 memory_bytes\n-*3\n", "too long");
	check_refused("@process 3 pid cmdline\n9 abc\n10 ^4~d\n", "above");
	check_refused("@process 3 pid cmdline\n9 abc\n10 ^2~d~2\n", "above");
	check_refused("@process 3 pid cmdline\n9 -\n10 ^0~d\n11 ^2~d\n", "above");
	check_refused("@process 3 pid cmdline\n9 abc\n10 \xff\n", "does not fit");
	check_refused("@process 3 pid cmdline\n9 \"\xc3\xa4\"\n10 ^1~x\n", "character");
	check_refused("@numa 3 numa_id mem_info{a,b==a+x}\n0 1,2\n", "keys");
	check_refused("@numa 3 numa_id mem_info{a,b==c,c==a}\n0 1,2\n", "keys");
	check_refused("@numa 3 numa_id mem_info{a,b,c==a-b}\n0 1,2\n", "does not fit");
	check_refused("@numa 3 numa_id mem_info{a,b,c==a-b}\n0 1\n", "does not fit");
	check_refused("@numa 3 numa_id mem_info{a,b,c==a-b}\n0 3,2,1\n", "does not fit");
	check_refused("@numa 3 numa_id mem_info{a,b,c==a-b}\n0 3,2}\n", "does not fit");
	check_refused("@numa 3 numa_id{a,b,c}\n1\n", "keys");
}

/* A kilobyte of text may not become gigabytes in memory. */
TEST(texts_that_grow_are_refused)
{
	struct strbuf b = {0};
	struct graph g;
	struct err e;

	strbuf_add(&b, "# witty-text 1\n@process 1 pid cmdline\n1 ");
	strbuf_pad(&b, 'x', 1 << 20);
	for (unsigned i = 2; i < 200; i++)
		strbuf_addf(&b, "\n%u ^1048576~y", i);
	graph_init(&g);
	assert_int_equal(graph_read_text(&g, b.s, b.n, "FILE", &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "too long in all"));
	graph_done(&g);
	strbuf_clear(&b);
	strbuf_add(&b, "# witty-text 1\n@process 1 pid\n");
	for (unsigned i = 1; i <= 3000; i++)
		strbuf_addf(&b, "%u\n", i);
	strbuf_add(&b, "@@own\n");
	for (unsigned i = 1; i <= 3000; i++)
		strbuf_addf(&b, "%u 1..3000\n", i);
	graph_init(&g);
	assert_int_equal(graph_read_text(&g, b.s, b.n, "FILE", &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "more than 5000000 relations"));
	graph_done(&g);
	strbuf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_written_in_runs),
		cmocka_unit_test(courses_of_ends_stand_in_the_header),
		cmocka_unit_test(texts_share_both_ends_with_the_one_above),
		cmocka_unit_test(threads_are_called_as_their_process),
		cmocka_unit_test(maps_share_keys_units_constants_and_sums),
		cmocka_unit_test(a_rule_with_an_exception_is_none),
		cmocka_unit_test(maps_that_differ_keep_their_keys),
		cmocka_unit_test(maps_with_odd_keys_keep_them),
		cmocka_unit_test(what_follows_is_left_out),
		cmocka_unit_test(what_does_not_quite_follow_is_kept),
		cmocka_unit_test(no_relation_has_a_field_called_as_a_word_of_the_format),
		cmocka_unit_test(wrong_texts_are_refused),
		cmocka_unit_test(texts_that_grow_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
