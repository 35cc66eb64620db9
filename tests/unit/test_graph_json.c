/* Graph JSON in: what a repeated entity does, whether or not its text is recognised. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph_json.h"

#define HEAD "{\"nodes\":[],\n\"edges\":[\n"
#define TAIL "\n]}"
/* One relation to the host a line. */
#define EDGE(source)                                                                               \
	"{\"edge_type\":\"BelongEdge\",\"source_node\":" source                                    \
	",\"target_node\":{\"entity_type\":\"NumaSetEntity\",\"numa_id_str\":\"0\"}}"
#define PROCESS(name)  "{\"entity_type\":\"ProcessEntity\",\"pid\":7,\"name\":\"" name "\"}"
#define PID(pid)       "{\"entity_type\":\"ProcessEntity\",\"pid\":" pid "}"
#define THREAD(tid, process, run_ns)                                                               \
	"{\"entity_type\":\"ThreadEntity\",\"tid\":" tid ",\"process\":" process                   \
	",\"run_ns\":" run_ns "}"

static const size_t windows[] = {16, 100, 300, 4096, 0};

static int read_in(struct graph *g, const char *text, size_t n, size_t window, uint32_t depth,
		   struct err *e)
{
	struct json_limits l = JSON_LIMITS_DEFAULT;
	struct json_reader *r;
	int rc;

	l.window_bytes = window;
	l.depth = depth ? depth : l.depth;
	r = json_reader_new_mem(text, n, "FILE", &l);
	graph_init(g);
	rc = graph_read_json(g, r, e);
	json_reader_free(r);
	return rc;
}

static void read_good(struct graph *g, const char *text, size_t window)
{
	struct err e = {0};

	if (read_in(g, text, strlen(text), window, 0, &e))
		fail_msg("%s", e.msg);
}

static const char *process_name(struct graph *g)
{
	uint32_t i = graph_find(g, "process:7");

	assert_true(i != NODE_NONE);
	return GET(process, g->nodes.v[i], name);
}

TEST(the_same_text_is_the_same_entity)
{
	for (size_t k = 0; k < sizeof(windows) / sizeof(*windows); k++) {
		struct graph g;

		read_good(&g,
			  HEAD EDGE(PROCESS("a")) "," EDGE(PROCESS("a")) "," EDGE(PROCESS("a")) TAIL,
			  windows[k]);
		assert_int_equal(g.nodes.n, 2);
		assert_int_equal(g.edges.n, 1);
		assert_string_equal(process_name(&g), "a");
		graph_done(&g);
	}
}

TEST(the_last_text_of_an_entity_counts)
{
	static const struct {
		const char *text, *name;
	} all[] = {
		{HEAD EDGE(PROCESS("a")) "," EDGE(PROCESS("b")) TAIL, "b"},
		/* Its first text comes again, after another one changed it. */
		{HEAD EDGE(PROCESS("a")) "," EDGE(PROCESS("b")) "," EDGE(PROCESS("a")) TAIL, "a"},
		{HEAD EDGE(PROCESS("a")) "," EDGE(PROCESS("a")) "," EDGE(PROCESS("b")) ","
		 EDGE(PROCESS("a")) "," EDGE(PROCESS("b")) TAIL, "b"},
		/* The same below an entity that refers to it. */
		{HEAD EDGE(THREAD("8", PROCESS("a"), "5")) "," EDGE(PROCESS("b")) ","
		 EDGE(THREAD("8", PROCESS("a"), "5")) TAIL, "a"},
		{HEAD EDGE(PROCESS("a")) "," EDGE(THREAD("8", PROCESS("b"), "5")) ","
		 EDGE(PROCESS("a")) TAIL, "a"},
		/* Braces in a text are none of the object's. */
		{HEAD EDGE(PROCESS("}")) "," EDGE(PROCESS("}x")) "," EDGE(PROCESS("}")) TAIL, "}"},
		{HEAD EDGE(PROCESS("{")) "," EDGE(PROCESS("{{")) "," EDGE(PROCESS("{")) TAIL, "{"},
		{HEAD EDGE(PROCESS("\\\"}")) "," EDGE(PROCESS("\\\"}")) TAIL, "\"}"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (size_t k = 0; k < sizeof(windows) / sizeof(*windows); k++) {
			struct graph g;

			read_good(&g, all[i].text, windows[k]);
			assert_string_equal(process_name(&g), all[i].name);
			graph_done(&g);
		}
	}
}

TEST(sums_are_replaced_not_added)
{
	static const struct {
		const char *text;
		uint64_t run_ns;
	} all[] = {
		{HEAD EDGE(THREAD("8", "null", "5")) "," EDGE(THREAD("8", "null", "5")) TAIL, 5},
		{HEAD EDGE(THREAD("8", "null", "5")) "," EDGE(THREAD("8", "null", "9")) ","
		 EDGE(THREAD("8", "null", "5")) TAIL, 5},
		{HEAD EDGE(THREAD("8", "null", "5")) "," EDGE(THREAD("8", "null", "9")) ","
		 EDGE(THREAD("8", "null", "9")) TAIL, 9},
		/* Not measured takes nothing away. */
		{HEAD EDGE(THREAD("8", "null", "5")) "," EDGE(THREAD("8", "null", "null")) TAIL, 5},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct graph g;
		uint32_t at;

		read_good(&g, all[i].text, 0);
		at = graph_find(&g, "thread:8");
		assert_true(at != NODE_NONE);
		assert_true(GET(thread, g.nodes.v[at], run_ns) == all[i].run_ns);
		graph_done(&g);
	}
}

TEST(errors_behind_repetitions_name_their_line)
{
	static const struct {
		const char *text, *expect;
	} all[] = {
		{HEAD EDGE(PROCESS("a")) ",\n" EDGE(PROCESS("a")) ",\n" EDGE(PROCESS("a\n")) TAIL,
		 "FILE:5: control character"},
		{HEAD EDGE(PROCESS("a\\n")) ",\n" EDGE(PROCESS("a\\n")) "\n,]}",
		 "FILE:5: expected a value"},
		{HEAD EDGE(PROCESS("a")) ",\n" EDGE(PROCESS("a") "}") TAIL, "FILE:4: "},
		{HEAD EDGE(PROCESS("a")) ",\n" EDGE(PROCESS("a") "x") TAIL, "FILE:4: "},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (size_t k = 0; k < sizeof(windows) / sizeof(*windows); k++) {
			struct graph g;
			struct err e = {0};

			assert_int_equal(read_in(&g, all[i].text, strlen(all[i].text), windows[k], 0,
						 &e), -EBADMSG);
			if (strncmp(e.msg, all[i].expect, strlen(all[i].expect)))
				fail_msg("%s instead of %s", e.msg, all[i].expect);
			graph_done(&g);
		}
	}
}

TEST(a_repetition_may_still_be_nested_too_deep)
{
#define NUMA "{\"entity_type\":\"NumaEntity\",\"numa_id\":1,\"mem_info\":{\"a\":[]}}"
	static const char text[] = "{\"nodes\":[],\"edges\":[" EDGE(NUMA) "],\n\"content\":{"
				   "\"nodes\":[],\"edges\":[" EDGE(NUMA) "]}}";
	struct graph g;
	struct err e = {0};

	assert_int_equal(read_in(&g, text, strlen(text), 0, 7, &e), 0);
	graph_done(&g);
	assert_int_equal(read_in(&g, text, strlen(text), 0, 6, &e), -EBADMSG);
	assert_string_equal(e.msg, "FILE:2: nested deeper than 6 levels");
	graph_done(&g);
#undef NUMA
}

static void write_text(struct graph *g, struct strbuf *out)
{
	struct graph_json_style style = {.compact = true};
	int fd = memfd_create("graph", MFD_CLOEXEC);
	struct err e;
	off_t n;

	assert_true(fd >= 0);
	assert_int_equal(graph_write_json(g, fd, &style, NULL, &e), 0);
	n = lseek(fd, 0, SEEK_END);
	strbuf_reserve(out, (size_t)n + 1);
	assert_int_equal(pread(fd, out->s, (size_t)n, 0), n);
	out->n = (size_t)n;
	close(fd);
}

static void add_blanks(struct strbuf *b, unsigned n)
{
	while (n--)
		strbuf_addc(b, ' ');
}

TEST(a_map_is_the_same_in_every_entity_that_has_it)
{
#define NUMA(id, map) "{\"entity_type\":\"NumaEntity\",\"numa_id\":" id ",\"mem_info\":" map "}"
	static const char text[] = HEAD EDGE(NUMA("0", "{ \"a}\" : 1 }")) ","
		EDGE(NUMA("1", "{ \"a}\" : 1 }")) "," EDGE(NUMA("2", "{ \"a}\" : 2 }")) ","
		EDGE(NUMA("3", "{ \"a}\" : 1 }")) "," EDGE(NUMA("4", "{ }")) ","
		EDGE(NUMA("5", "{ }")) "," EDGE(NUMA("6", "{\"a}\":1}")) TAIL;
	static const char *const expect[] = {"{\"a}\":1}", "{\"a}\":1}", "{\"a}\":2}",
					     "{\"a}\":1}", NULL, NULL, "{\"a}\":1}"};
	struct graph g;

	read_good(&g, text, 0);
	for (unsigned i = 0; i < 7; i++) {
		char id[16];
		const struct node *n;

		snprintf(id, sizeof(id), "numa:%u", i);
		assert_true(graph_find(&g, id) != NODE_NONE);
		n = g.nodes.v[graph_find(&g, id)];
		assert_int_equal(HAS(numa, n, mem_info), expect[i] != NULL);
		if (expect[i])
			assert_string_equal(GET(numa, n, mem_info), expect[i]);
	}
	graph_done(&g);
#undef NUMA
}

/* @param blanks differ from one repetition to the next, so that none is recognised; 0: none */
static void add_entity(struct strbuf *b, uint64_t pick, unsigned blanks)
{
	unsigned pid = pick % 5, name = pick >> 8 & 3, tid = pick >> 16 & 3;
	bool is_thread = pick >> 24 & 1, has_name = pick >> 25 & 1;

	if (pick >> 26 & 1) {
		strbuf_addf(b, "{\"entity_type\":\"NumaEntity\",\"numa_id\":%u,\"mem_info\":{", tid);
		strbuf_addf(b, "\"a{\":\"%s\"", name & 1 ? "}" : "\\\"{");
		add_blanks(b, blanks);
		strbuf_add(b, "}}");
		return;
	}
	if (is_thread) {
		strbuf_addf(b, "{\"entity_type\":\"ThreadEntity\",\"tid\":%u,\"x{\":%u,", tid, name);
		strbuf_add(b, "\"process\":");
	}
	strbuf_addf(b, "{\"entity_type\":\"ProcessEntity\",\"pid\":%u", pid);
	if (has_name)
		strbuf_addf(b, ",\"name\":\"%s\",\"cpu_ns\":%u", name & 1 ? "a}" : "b{\\\"", name);
	add_blanks(b, blanks);
	strbuf_addc(b, '}');
	if (is_thread) {
		add_blanks(b, blanks);
		strbuf_addc(b, '}');
	}
}

static void add_document(struct strbuf *b, uint64_t seed, bool alike)
{
	unsigned blanks = 0;

	strbuf_add(b, HEAD);
	for (int i = 0; i < 60; i++) {
		strbuf_addf(b, "%s{\"edge_type\":\"BelongEdge\",\"source_node\":", i ? "," : "");
		add_entity(b, unit_random(&seed), alike ? 0 : ++blanks);
		strbuf_add(b, ",\"target_node\":");
		add_entity(b, unit_random(&seed), alike ? 0 : ++blanks);
		strbuf_addc(b, '}');
	}
	strbuf_add(b, TAIL);
}

TEST(recognised_or_not_makes_no_difference)
{
	for (uint64_t seed = 1; seed < 300; seed++) {
		struct strbuf out[2] = {{0}};

		for (int alike = 0; alike < 2; alike++) {
			struct strbuf text = {0};
			struct graph g;

			add_document(&text, seed, alike);
			read_good(&g, strbuf_str(&text), windows[seed % 5]);
			write_text(&g, &out[alike]);
			graph_done(&g);
			strbuf_done(&text);
		}
		assert_int_equal(out[0].n, out[1].n);
		assert_memory_equal(out[0].s, out[1].s, out[0].n);
		strbuf_done(&out[0]);
		strbuf_done(&out[1]);
	}
}

/* With so many, some are remembered in the place of the one that they are part of. */
TEST(an_entity_inside_another_is_not_mistaken_for_it)
{
	struct strbuf text = {0};
	struct graph g;

	strbuf_add(&text, HEAD);
	for (unsigned i = 1; i < 10000; i++)
		strbuf_addf(&text, "%s" EDGE(THREAD("%u", PID("%u"), "1")), i > 1 ? ",\n" : "", i,
			    i / 2);
	strbuf_add(&text, TAIL);
	read_good(&g, strbuf_str(&text), 0);
	assert_int_equal(g.nodes.n, 9999 + 5000 + 1);
	assert_int_equal(g.edges.n, 9999);
	graph_done(&g);
	strbuf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_text_is_the_same_entity),
		cmocka_unit_test(the_last_text_of_an_entity_counts),
		cmocka_unit_test(sums_are_replaced_not_added),
		cmocka_unit_test(errors_behind_repetitions_name_their_line),
		cmocka_unit_test(a_repetition_may_still_be_nested_too_deep),
		cmocka_unit_test(an_entity_inside_another_is_not_mistaken_for_it),
		cmocka_unit_test(a_map_is_the_same_in_every_entity_that_has_it),
		cmocka_unit_test(recognised_or_not_makes_no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
