/* The live view without a terminal: rows in order, lines that fit, and keys in any order. */
#include "unit.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "top_state.h"

#define SECOND 1000000000ull
#define T0     (1700000000ull * SECOND)

static const struct column columns[] = {{"N", CELL_COUNT, 6, 0}, {"NAME", CELL_TEXT, 0, 0}};

static struct row *add(struct table *t, const char *name, double n, uint32_t parent)
{
	struct row *r = table_add(t, name, UINT32_MAX, 0);

	r->cells[0].v = n;
	r->cells[1].s = name;
	r->parent = parent;
	return r;
}

static void expect(const struct table *t, const char *names)
{
	struct strbuf b = {0};

	vec_for(&t->rows, r)
		strbuf_addf(&b, "%s%s", b.n ? " " : "", r->cells[1].s);
	assert_string_equal(strbuf_str(&b), names);
	strbuf_done(&b);
}

TEST(rows_sort_by_number_and_text_and_what_is_not_known_comes_last)
{
	struct table t;

	table_init(&t, columns, 2);
	add(&t, "b", 1, UINT32_MAX);
	add(&t, "x", NAN, UINT32_MAX);
	add(&t, "C", 3, UINT32_MAX);
	add(&t, "a", 1, UINT32_MAX);
	table_sort(&t, 0, false);
	expect(&t, "C b a x");
	table_sort(&t, 0, true);
	expect(&t, "b a C x");
	table_sort(&t, 1, false);
	expect(&t, "a b C x");
	table_sort(&t, 1, true);
	expect(&t, "x C b a");
	table_filter(&t, "c");
	expect(&t, "C");
	table_done(&t);
}

TEST(children_stand_below_their_parents_in_the_order_of_the_sort)
{
	struct table t;

	table_init(&t, columns, 2);
	add(&t, "root", 1, UINT32_MAX); /* 0 */
	add(&t, "small", 2, 0);
	add(&t, "large", 9, 0); /* 2 */
	add(&t, "leaf", 5, 2);
	add(&t, "other", 7, UINT32_MAX);
	add(&t, "orphan", 8, 77);
	table_sort(&t, 0, false);
	table_tree(&t);
	expect(&t, "orphan other root large leaf small");
	assert_int_equal(t.rows.v[4].depth, 2);
	assert_int_equal(t.rows.v[1].depth, 0);
	/* Without its parent it is a root; who is its own parent is one, too. */
	table_filter(&t, "l");
	t.rows.v[0].parent = t.rows.v[0].order;
	table_tree(&t);
	assert_int_equal(t.rows.v[0].depth, 0);
	table_done(&t);
}

static unsigned width_of(const char *s)
{
	wchar_t wide[2000];
	size_t n = mbstowcs(wide, s, 2000);

	assert_true(n < 2000);
	return (unsigned)wcswidth(wide, n);
}

TEST(a_line_is_as_wide_as_it_may_be)
{
	static const char *const names[] = {"", "plain", "日本語のプロセス名前", "e\xcc\x81 combining", "\x1b[31mred",
					    "\xff\xfe broken", "a\tb\nc", "\xe2\x80\xae reversed"};
	struct strbuf b = {0};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (unsigned width = 0; width < 30; width++) {
			strbuf_clear(&b);
			table_fit(&b, names[i], width, i % 2, true);
			assert_int_equal(width_of(strbuf_str(&b)), width);
			assert_null(strchr(strbuf_str(&b), 0x1b));
		}
	strbuf_done(&b);
}

static uint32_t process(struct graph *g, uint64_t pid, const char *name)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, start_ns, pid * 10);
	SET(process, n, name, graph_str(g, name));
	SET(process, n, ppid, pid / 2);
	return graph_add_node(g, n)->index;
}

static uint32_t thread(struct graph *g, uint64_t tid, uint32_t of, uint64_t run_ns)
{
	struct node *n = graph_new_node(g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, start_ns, tid);
	SET(thread, n, process, of);
	SET(thread, n, name, graph_str(g, "日本\x01 worker"));
	SET(thread, n, run_ns, run_ns);
	SET(thread, n, runq_ns, 1000);
	SET(thread, n, blocked_ns, SECOND - run_ns - 1000);
	SET(thread, n, observed_ns, SECOND);
	n = graph_add_node(g, n);
	graph_link(g, &own_type, of, n->index);
	return n->index;
}

static void waits(struct graph *g, uint32_t waiter, uint32_t waker)
{
	struct node *f = graph_new_node(g, &futex_type);
	struct edge *d;

	SET(futex, f, futex_key, graph_str(g, "1:0x7f"));
	d = graph_new_edge(g, &waits_for_type, waiter, graph_add_node(g, f)->index);
	SET(waits_for, d, cause, graph_str(g, "futex"));
	SET(waits_for, d, waits, 3);
	SET(waits_for, d, waited_ns, SECOND / 2);
	graph_add_edge(g, d);
	d = graph_new_edge(g, &wakes_type, waker, waiter);
	SET(wakes, d, cause, graph_str(g, "futex"));
	SET(wakes, d, wakeups, 3);
	SET(wakes, d, waited_ns, SECOND / 2);
	graph_add_edge(g, d);
}

static void interval(struct history *h, uint64_t number, unsigned processes)
{
	struct graph g;
	uint32_t before = NODE_NONE;

	graph_init(&g);
	for (unsigned i = 1; i <= processes; i++) {
		uint32_t p = process(&g, i, i % 2 ? "odd" : "even"), t = thread(&g, 1000 + i, p, i * 1000000);
		struct edge *d;

		if (before != NODE_NONE) {
			waits(&g, t, before);
			d = graph_new_edge(&g, &flow_type, p, process(&g, i - 1, i % 2 ? "even" : "odd"));
			SET(flow, d, kind, graph_str(&g, "tcp"));
			SET(flow, d, bytes, number * i * 1000);
			SET(flow, d, messages, number);
			graph_add_edge(&g, d);
		}
		before = t;
	}
	history_add(h, &g, T0 + number * SECOND);
}

static struct history *seconds(unsigned n, unsigned processes)
{
	struct history *h = history_new(60 * SECOND, 0);
	struct graph g;

	graph_init(&g);
	history_begin(h, &g, T0);
	graph_done(&g);
	for (unsigned i = 1; i <= n; i++)
		interval(h, i, processes);
	return h;
}

static bool has(struct top *t, const char *text)
{
	struct frame f;
	bool found = false;

	frame_make(&f, t, 24, 80);
	vec_for(&f.lines, l)
		found |= strstr(l->text, text) != NULL;
	frame_done(&f);
	return found;
}

TEST(amounts_are_of_the_window)
{
	struct history *h = seconds(10, 4);
	struct top t;

	top_init(&t, h, 5 * SECOND);
	top_update(&t);
	assert_int_equal(t.sight.g.meta.window_ns, 5 * SECOND);
	top_key(&t, '3');
	/* Four thousand bytes in each second. */
	assert_true(has(&t, "3.9 KiB/s"));
	assert_true(has(&t, "tcp"));
	top_key(&t, '1');
	top_key(&t, KEY_TOP_ENTER);
	assert_true(has(&t, "WAITS FOR"));
	top_done(&t);
	history_free(h);
}

TEST(the_selected_row_is_followed)
{
	struct history *h = seconds(2, 9);
	struct top t;
	char id[256];

	top_init(&t, h, SECOND);
	top_update(&t);
	top_key(&t, '2');
	top_key(&t, '<');
	top_key(&t, 'j');
	top_key(&t, 'j');
	snprintf(id, sizeof(id), "%s", t.table.rows.v[2].id);
	top_key(&t, 'r');
	assert_int_not_equal(t.states[VIEW_PROCESSES].selected, 2);
	assert_string_equal(t.table.rows.v[t.states[VIEW_PROCESSES].selected].id, id);
	interval(h, 3, 9);
	top_update(&t);
	assert_string_equal(t.table.rows.v[t.states[VIEW_PROCESSES].selected].id, id);
	top_done(&t);
	history_free(h);
}

/* Whatever is typed, and however small the screen is, every line fits. */
TEST(any_keys_on_any_screen)
{
	static const uint32_t keys[] = {'1', '2', '3', '4', '5', '/', 'o', 'd', '<', '>', 'r', 't', ' ', '+', '-', 's', '?',
					'j', 'k', 0x15, 0x65e5, KEY_TOP_UP, KEY_TOP_DOWN, KEY_TOP_PAGE_UP,
					KEY_TOP_PAGE_DOWN, KEY_TOP_HOME, KEY_TOP_END, KEY_TOP_LEFT, KEY_TOP_RIGHT,
					KEY_TOP_ENTER, KEY_TOP_BACK, KEY_TOP_ESCAPE, KEY_TOP_TAB};
	struct history *h = seconds(1, 30);
	uint64_t seed = 42, number = 1;
	struct top t;

	top_init(&t, h, 2 * SECOND);
	for (int i = 0; i < 4000; i++) {
		unsigned rows = 1 + (unsigned)(unit_random(&seed) % 40), width = 1 + (unsigned)(unit_random(&seed) % 160);
		struct frame f;

		if (i % 50 == 0) {
			interval(h, ++number, (unsigned)(unit_random(&seed) % 30));
			top_update(&t);
		}
		top_key(&t, keys[unit_random(&seed) % (sizeof(keys) / sizeof(keys[0]))]);
		frame_make(&f, &t, rows, width);
		assert_true(f.lines.n <= rows);
		vec_for(&f.lines, l)
			assert_true(width_of(l->text) <= width);
		frame_done(&f);
	}
	assert_false(t.quit);
	top_key(&t, KEY_TOP_ESCAPE);
	top_key(&t, KEY_TOP_ESCAPE);
	top_key(&t, 'q');
	assert_true(t.quit);
	top_done(&t);
	history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_sort_by_number_and_text_and_what_is_not_known_comes_last),
		cmocka_unit_test(children_stand_below_their_parents_in_the_order_of_the_sort),
		cmocka_unit_test(a_line_is_as_wide_as_it_may_be),
		cmocka_unit_test(amounts_are_of_the_window),
		cmocka_unit_test(the_selected_row_is_followed),
		cmocka_unit_test(any_keys_on_any_screen),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
