/* What the live view shows and what keys do, without a terminal. */
#include "top_state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "utf8.h"

#define SECOND_NS	  1000000000ull
#define WIDE_NS		  (30 * SECOND_NS) /* rules look at so much */
#define WIDE_PAUSE_NS	  (3 * SECOND_NS)
#define WIDE_SHARE	  20 /* they may take this part of the time */
#define WINDOW_MOST_NS	  (60 * SECOND_NS)

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

void top_init(struct top *t, struct history *h, uint64_t window_ns)
{
	memset(t, 0, sizeof(*t));
	limits_init(&t->limits);
	t->history = h;
	t->window_ns = window_ns;
	t->own_cpu_pct = NAN;
	for (size_t i = 0; i < VIEW_COUNT; i++)
		t->states[i].sort = SIZE_MAX;
	/* Links come by their ends. */
	t->states[VIEW_FLOWS].sort = 0;
	t->states[VIEW_PROCESSES].sort = 1;
	t->page = 1;
}

static void drop_table(struct top *t)
{
	if (t->has_table)
		table_done(&t->table);
	t->has_table = false;
}

static void drop_detail(struct top *t)
{
	if (t->has_detail)
		lines_done(&t->detail);
	t->has_detail = false;
}

void top_done(struct top *t)
{
	drop_table(t);
	drop_detail(t);
	sight_close(&t->sight);
	sight_close(&t->wide);
}

static struct sight *seen(struct top *t, enum view view)
{
	return view == VIEW_FINDINGS ? &t->wide : &t->sight;
}

/* The row that was selected may have moved, or gone. */
static void follow_selected(struct top *t)
{
	struct top_view_state *s = &t->states[t->view];

	if (s->id[0])
		for (size_t i = 0; i < t->table.rows.n; i++)
			if (!strcmp(t->table.rows.v[i].id, s->id)) {
				s->selected = i;
				break;
			}
	if (s->selected >= t->table.rows.n)
		s->selected = t->table.rows.n ? t->table.rows.n - 1 : 0;
}

/* The first row stays on top unless the user moved away from it. */
static void keep_selected(struct top *t)
{
	struct top_view_state *s = &t->states[t->view];

	s->id[0] = '\0';
	if (s->selected && s->selected < t->table.rows.n)
		snprintf(s->id, sizeof(s->id), "%s", t->table.rows.v[s->selected].id);
}

static void make_detail(struct top *t)
{
	struct sight *s = seen(t, t->detail_view);
	struct table all;

	if (!s->is_open)
		return;
	view_table(&all, t->detail_view, s, NULL);
	for (size_t i = 0; i < all.rows.n; i++)
		if (!strcmp(all.rows.v[i].id, t->detail_id)) {
			drop_detail(t);
			lines_init(&t->detail);
			view_detail(&t->detail, t->detail_view, s, &all.rows.v[i]);
			t->has_detail = true;
			break;
		}
	table_done(&all);
}

void top_list(struct top *t)
{
	struct sight *s = seen(t, t->view);
	const struct top_view_state *v = &t->states[t->view];

	drop_table(t);
	if (!s->is_open)
		return;
	view_table(&t->table, t->view, s, t->process[0] ? t->process : NULL);
	t->has_table = true;
	if (v->sort < t->table.ncolumns)
		table_sort(&t->table, v->sort, v->reverse);
	table_filter(&t->table, t->filter);
	if (t->tree && t->view == VIEW_PROCESSES)
		table_tree(&t->table);
	follow_selected(t);
	if (t->mode == TOP_DETAIL)
		make_detail(t);
}

static void look_wide(struct top *t)
{
	uint64_t now = monotonic_ns(), pause = t->wide.took_ns * WIDE_SHARE;
	uint64_t since = t->now_ns > WIDE_NS ? t->now_ns - WIDE_NS : 0;

	if (t->wide_at_ns && now - t->wide_at_ns < (pause > WIDE_PAUSE_NS ? pause : WIDE_PAUSE_NS))
		return;
	sight_close(&t->wide);
	sight_open(&t->wide, t->history, since, &t->limits, true);
	t->wide_at_ns = now;
}

void top_update(struct top *t)
{
	size_t n = history_intervals(t->history);

	if (!n)
		return;
	t->now_ns = history_interval(t->history, n - 1)->end_ns;
	/* Half an interval of grace: ticks come a little early or late. */
	t->since_ns = t->now_ns - t->window_ns + SECOND_NS / 2;
	drop_table(t);
	sight_close(&t->sight);
	sight_open(&t->sight, t->history, t->since_ns, &t->limits, false);
	look_wide(t);
	top_list(t);
}

static void move(struct top *t, long by)
{
	struct top_view_state *s = &t->states[t->view];
	long to = (long)s->selected + by, last = t->has_table ? (long)t->table.rows.n - 1 : -1;

	to = to > last ? last : to;
	s->selected = to < 0 ? 0 : (size_t)to;
	if (t->has_table)
		keep_selected(t);
}

static void scroll(struct top *t, long by)
{
	long to = (long)t->detail_first + by, last = (long)t->detail.v.n - (long)t->page;

	to = to > last ? last : to;
	t->detail_first = to < 0 ? 0 : (size_t)to;
}

static bool move_key(struct top *t, uint32_t key)
{
	long page = t->page > 1 ? (long)t->page - 1 : 1, by;

	switch (key) {
	case KEY_TOP_UP:
	case 'k':
		by = -1;
		break;
	case KEY_TOP_DOWN:
	case 'j':
		by = 1;
		break;
	case KEY_TOP_PAGE_UP:
		by = -page;
		break;
	case KEY_TOP_PAGE_DOWN:
		by = page;
		break;
	case KEY_TOP_HOME:
		by = -1000000000;
		break;
	case KEY_TOP_END:
		by = 1000000000;
		break;
	default:
		return false;
	}
	if (t->mode == TOP_DETAIL)
		scroll(t, by);
	else
		move(t, by);
	return true;
}

static void enter(struct top *t)
{
	struct top_view_state *s = &t->states[t->view];
	const struct row *r = t->has_table && s->selected < t->table.rows.n ? &t->table.rows.v[s->selected] : NULL;

	if (!r)
		return;
	if (t->view == VIEW_PROCESSES) {
		snprintf(t->process, sizeof(t->process), "%s", r->id);
		t->view = VIEW_THREADS;
		t->states[VIEW_THREADS].selected = 0;
		t->states[VIEW_THREADS].id[0] = '\0';
		top_list(t);
		return;
	}
	snprintf(t->detail_id, sizeof(t->detail_id), "%s", r->id);
	t->detail_view = t->view;
	t->detail_first = 0;
	drop_detail(t);
	make_detail(t);
	t->mode = TOP_DETAIL;
}

static void go_back(struct top *t)
{
	if (t->mode != TOP_LIST)
		t->mode = TOP_LIST;
	else if (t->process[0] && t->view == VIEW_THREADS) {
		t->process[0] = '\0';
		t->view = VIEW_PROCESSES;
	} else
		t->filter[0] = '\0';
	top_list(t);
}

static void show(struct top *t, enum view view)
{
	t->view = view;
	t->mode = TOP_LIST;
	top_list(t);
}

static void sort_by(struct top *t, int step)
{
	struct top_view_state *s = &t->states[t->view];
	size_t n = t->has_table ? t->table.ncolumns : 0;

	if (!n)
		return;
	if (s->sort >= n)
		s->sort = step > 0 ? 0 : n - 1;
	else if ((step < 0 && !s->sort) || (step > 0 && s->sort + 1 == n))
		s->sort = SIZE_MAX;
	else
		s->sort += (size_t)step;
	s->reverse = false;
	if (s->sort == SIZE_MAX)
		snprintf(t->message, sizeof(t->message), "in the order of importance");
	else
		snprintf(t->message, sizeof(t->message), "sorted by %s", t->table.columns[s->sort].title);
	top_list(t);
}

static void set_window(struct top *t, bool longer)
{
	uint64_t w = longer ? t->window_ns * 2 : t->window_ns / 2;

	t->window_ns = w < SECOND_NS ? SECOND_NS : w > WINDOW_MOST_NS ? WINDOW_MOST_NS : w;
	snprintf(t->message, sizeof(t->message), "amounts are of the last %.0f s", (double)t->window_ns / SECOND_NS);
	if (!t->paused)
		top_update(t);
}

static void start_save(struct top *t)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(t->input, sizeof(t->input), "top-%Y%m%d-%H%M%S.wpdb", &tm);
	t->mode = TOP_SAVE;
}

static void save(struct top *t)
{
	struct err e;

	t->mode = TOP_LIST;
	if (!t->input[0])
		return;
	if (!t->live)
		snprintf(t->message, sizeof(t->message), "error: there is nothing to save from");
	else if (live_save(t->live, t->since_ns, t->input, false, "top", &e) < 0)
		snprintf(t->message, sizeof(t->message), "error: %.280s", e.msg);
	else
		snprintf(t->message, sizeof(t->message), "saved to %.280s", t->input);
}

static void erase_last(char *s)
{
	size_t n = strlen(s);

	while (n && ((unsigned char)s[n - 1] & 0xc0) == 0x80)
		n--;
	s[n ? n - 1 : 0] = '\0';
}

static void add_typed(struct top *t, uint32_t key)
{
	size_t n = strlen(t->input), most = t->mode == TOP_FILTER ? sizeof(t->filter) : sizeof(t->input);
	char c[4];
	int len;

	if (key < ' ' || key >= 0x110000 || key == 0x7f)
		return;
	len = utf8_encode(key, c);
	if (n + (size_t)len + 1 > most)
		return;
	memcpy(t->input + n, c, (size_t)len);
	t->input[n + (size_t)len] = '\0';
}

static void type(struct top *t, uint32_t key)
{
	if (key == KEY_TOP_ESCAPE) {
		t->mode = TOP_LIST;
		return;
	}
	if (key == KEY_TOP_ENTER) {
		if (t->mode == TOP_SAVE) {
			save(t);
			return;
		}
		t->mode = TOP_LIST;
	} else if (key == KEY_TOP_BACK) {
		erase_last(t->input);
	} else if (key == 0x15) { /* ^U */
		t->input[0] = '\0';
	} else {
		add_typed(t, key);
	}
	if (t->mode == TOP_SAVE)
		return;
	/* It works while it is typed. */
	snprintf(t->filter, sizeof(t->filter), "%.63s", t->input);
	top_list(t);
}

static void list_key(struct top *t, uint32_t key)
{
	switch (key) {
	case '/':
		snprintf(t->input, sizeof(t->input), "%s", t->filter);
		t->mode = TOP_FILTER;
		break;
	case '<':
		sort_by(t, -1);
		break;
	case '>':
		sort_by(t, 1);
		break;
	case 'r':
		t->states[t->view].reverse = !t->states[t->view].reverse;
		top_list(t);
		break;
	case 't':
		t->tree = !t->tree;
		show(t, VIEW_PROCESSES);
		break;
	case KEY_TOP_ENTER:
	case KEY_TOP_RIGHT:
		enter(t);
		break;
	case KEY_TOP_TAB:
		show(t, (enum view)((t->view + 1) % VIEW_COUNT));
		break;
	}
}

void top_key(struct top *t, uint32_t key)
{
	t->message[0] = '\0';
	if (t->mode == TOP_FILTER || t->mode == TOP_SAVE) {
		type(t, key);
		return;
	}
	if (key == 'q' || key == 3)
		t->quit = true;
	else if (key >= '1' && key < '1' + VIEW_COUNT)
		show(t, (enum view)(key - '1'));
	else if (key == '?' || key == 'h')
		t->mode = t->mode == TOP_HELP ? TOP_LIST : TOP_HELP;
	else if (key == KEY_TOP_ESCAPE || key == KEY_TOP_BACK || key == KEY_TOP_LEFT)
		go_back(t);
	else if (key == ' ' || key == 'p')
		t->paused = !t->paused;
	else if (key == '+' || key == '-')
		set_window(t, key == '+');
	else if (key == 's')
		start_save(t);
	else if (t->mode != TOP_HELP && !move_key(t, key) && t->mode == TOP_LIST)
		list_key(t, key);
}
