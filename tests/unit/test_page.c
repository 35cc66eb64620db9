/* The page's data: hostile names stay within it, and what is too much is added up, not lost. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "page_parts.h"
#include "render_html.h"

struct world {
	struct graph g;
	struct topology t;
	struct study s;
};

static uint32_t add_process(struct graph *g, uint64_t pid, const char *name)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, ppid, 1);
	SET(process, n, name, graph_str(g, name));
	SET(process, n, cmdline, graph_str(g, name));
	SET(process, n, cpu_ns, 1000);
	return graph_add_node(g, n)->index;
}

static void add_flow(struct graph *g, uint32_t from, uint32_t to, uint64_t bytes)
{
	struct edge *d = graph_new_edge(g, &flow_type, from, to);

	SET(flow, d, kind, graph_str(g, "tcp"));
	SET(flow, d, bytes, bytes);
	SET(flow, d, messages, 1);
	graph_add_edge(g, d);
}

static void analyse(struct world *w)
{
	topology_init(&w->t, &w->g);
	w->s = (struct study){.g = &w->g, .t = &w->t};
}

static void done(struct world *w)
{
	topology_done(&w->t);
	graph_done(&w->g);
}

static void json_of(struct world *w, struct strbuf *b)
{
	struct json_writer writer;
	struct err e;

	json_writer_init_strbuf(&writer, b, JSON_ASCII);
	render_page_json(&w->s, NULL, NULL, &writer);
	assert_int_equal(json_writer_finish(&writer, &e), 0);
}

/* Sum of all numbers that follow a key, as far as @p end. */
static uint64_t sum_of(const char *json, const char *end, const char *key)
{
	const char *stop = strstr(json, end);
	uint64_t ret = 0;

	for (const char *at = json; (at = strstr(at, key)) && at < stop; at += strlen(key))
		ret += strtoull(at + strlen(key), NULL, 10);
	return ret;
}

TEST(names_cannot_end_the_data)
{
	struct world w;
	struct strbuf b = {0};
	struct err e;
	const char *data;

	graph_init(&w.g);
	add_process(&w.g, 10, "</script><img src=x onerror=alert(1)>");
	add_process(&w.g, 11, "<!-- <script> \xe2\x80\xa8 \xe2\x80\xae");
	analyse(&w);
	if (html_is_built()) {
		assert_int_equal(render_html(&w.s, NULL, NULL, &b, &e), 0);
		data = strstr(strbuf_str(&b), "id=\"data\">");
		assert_non_null(data);
		/* The first '<' behind the data is the one of the page. */
		assert_int_equal(strncmp(strchr(data, '<'), "</script>\n<script>", 18), 0);
		assert_non_null(strstr(data, "\\u003c/script"));
		assert_null(strstr(strbuf_str(&b), "\xe2\x80\xa8"));
	} else {
		assert_int_equal(render_html(&w.s, NULL, NULL, &b, &e), -ENOTSUP);
		assert_non_null(strstr(e.hint, "web"));
	}
	strbuf_done(&b);
	done(&w);
}

TEST(long_text_is_cut_between_characters)
{
	struct world w;
	struct strbuf b = {0};
	char name[PAGE_TEXT_MAX * 2];

	for (size_t i = 0; i + 4 < sizeof(name); i += 3)
		memcpy(name + i, "\xe2\x82\xac", 4);
	graph_init(&w.g);
	add_process(&w.g, 10, name);
	analyse(&w);
	json_of(&w, &b);
	assert_non_null(strstr(strbuf_str(&b), "\\u20ac"));
	assert_null(strstr(strbuf_str(&b), "\\ufffd"));
	strbuf_done(&b);
	done(&w);
}

TEST(what_is_too_much_is_added_up)
{
	enum { CLIENTS = PAGE_PROCESSES_MAX + 700 };
	struct world w;
	struct strbuf b = {0};
	const char *json;
	uint32_t server;
	uint64_t bytes = 0;

	graph_init(&w.g);
	server = add_process(&w.g, 2, "server");
	for (uint32_t i = 0; i < CLIENTS; i++) {
		add_flow(&w.g, add_process(&w.g, 10 + i, "client"), server, 100 + i);
		bytes += 100 + i;
	}
	analyse(&w);
	json_of(&w, &b);
	json = strbuf_str(&b);
	assert_int_equal(sum_of(json, "\"links\":", "\"stands_for\":"),
			 CLIENTS + 1 - PAGE_PROCESSES_MAX);
	assert_int_equal(sum_of(strstr(json, "\"links\":"), "\"threads\":", "\"bytes\":"), bytes);
	assert_non_null(
	    strstr(strbuf_str(&b), "{\"what\":\"processes\",\"kept\":2500,\"all\":3201}"));
	strbuf_done(&b);
	done(&w);
}

TEST(the_same_graph_gives_the_same_page)
{
	struct world w;
	struct strbuf a = {0}, b = {0};

	graph_init(&w.g);
	add_flow(&w.g, add_process(&w.g, 10, "a"), add_process(&w.g, 11, "b"), 5);
	analyse(&w);
	json_of(&w, &a);
	json_of(&w, &b);
	assert_string_equal(strbuf_str(&a), strbuf_str(&b));
	strbuf_done(&a);
	strbuf_done(&b);
	done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_cannot_end_the_data),
	    cmocka_unit_test(long_text_is_cut_between_characters),
	    cmocka_unit_test(what_is_too_much_is_added_up),
	    cmocka_unit_test(the_same_graph_gives_the_same_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
