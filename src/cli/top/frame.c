/* What the live view looks like: lines of text that fit a screen. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mem.h"
#include "top_state.h"

struct maker {
	struct frame *f;
	struct top *t;
	unsigned rows, columns;
};

static void add_line(struct maker *m, enum frame_look look, const char *s)
{
	struct strbuf b = {0};

	if (m->f->lines.n >= m->rows)
		return;
	table_fit(&b, s, m->columns, false, look == LOOK_HEAD || look == LOOK_SELECTED);
	vec_push(&m->f->lines, ((struct frame_line){look, mem_strdup(strbuf_str(&b))}));
	strbuf_done(&b);
}

static const struct node *host_of(const struct graph *g)
{
	vec_for(&g->nodes, n)
		if ((*n)->type == &host_type)
			return *n;
	return NULL;
}

static void add_title(struct maker *m)
{
	const struct node *host = m->t->sight.is_open ? host_of(&m->t->sight.g) : NULL;
	time_t now = (time_t)(m->t->now_ns / 1000000000ull);
	char clock[32], line[400];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(line, sizeof(line), "witty-profiler top - %.64s - %s UTC - last %.3g s%s",
		 host && HAS(host, host, hostname) ? GET(host, host, hostname) : "?", clock,
		 m->t->sight.is_open ? (double)m->t->sight.g.meta.window_ns / 1e9 : 0.0,
		 m->t->paused ? " - PAUSED" : "");
	add_line(m, LOOK_TITLE, line);
}

static void add_use(struct strbuf *b, const struct node *host)
{
	uint64_t busy, idle;

	if (!host || !HAS(host, host, cpu_busy_ns) || !HAS(host, host, cpu_idle_ns))
		return;
	busy = GET(host, host, cpu_busy_ns);
	idle = GET(host, host, cpu_idle_ns);
	if (busy + idle)
		strbuf_addf(b, "CPU %.0f %%", 100.0 * (double)busy / (double)(busy + idle));
	if (HAS(host, host, cpus))
		strbuf_addf(b, " of %" PRIu64, GET(host, host, cpus));
	if (HAS(host, host, load1))
		strbuf_addf(b, ", load %.2f", GET(host, host, load1));
}

static void add_summary(struct maker *m)
{
	struct strbuf b = {0};
	const struct sight *s = &m->t->sight;

	if (!s->is_open) {
		add_line(m, LOOK_PLAIN, "waiting for the first interval");
		return;
	}
	add_use(&b, host_of(&s->g));
	strbuf_addf(&b, "%s%zu processes, %zu threads", b.n ? ", " : "", s->t.n_processes, s->hot.threads.n);
	if (!isnan(m->t->own_cpu_pct))
		strbuf_addf(&b, "; own CPU %.1f %%", m->t->own_cpu_pct);
	if (m->t->lost)
		strbuf_addf(&b, ", %" PRIu64 " lost", m->t->lost);
	add_line(m, LOOK_PLAIN, strbuf_str(&b));
	strbuf_done(&b);
}

static void add_tabs(struct maker *m)
{
	struct strbuf b = {0};

	for (unsigned i = 0; i < VIEW_COUNT; i++) {
		bool here = m->t->view == i;

		strbuf_addf(&b, "%s%s%u %s", i && !here ? " " : "", here ? "[" : "", i + 1, view_names[i]);
		if (i == VIEW_FINDINGS && m->t->wide.is_open)
			strbuf_addf(&b, " %zu", m->t->wide.f.v.n);
		strbuf_add(&b, here ? "]" : i + 1 == m->t->view ? " " : "");
	}
	if (m->t->filter[0])
		strbuf_addf(&b, "  filter: %s", m->t->filter);
	if (m->t->process[0])
		strbuf_addf(&b, "  of %s", m->t->process);
	add_line(m, LOOK_PLAIN, strbuf_str(&b));
	strbuf_done(&b);
}

static enum frame_look look_of(const struct row *r)
{
	return r->severity >= 3 ? LOOK_CRITICAL : r->severity == 2 ? LOOK_WARNING : r->severity ? LOOK_NOTICE : LOOK_PLAIN;
}

static const char *why_empty(const struct top *t)
{
	if (t->view == VIEW_FINDINGS && !t->filter[0])
		return "  nothing is held up, as far as can be told; '?' shows the keys";
	return t->filter[0] ? "  nothing has that text; Esc ends the filter" : "  nothing";
}

static void add_list(struct maker *m, unsigned until)
{
	struct top *t = m->t;
	struct top_view_state *s = &t->states[t->view];
	struct strbuf b = {0};

	if (!t->has_table)
		return;
	table_head(&t->table, s->sort, m->columns, &b);
	add_line(m, LOOK_HEAD, strbuf_str(&b));
	t->page = until > m->f->lines.n ? until - (unsigned)m->f->lines.n : 1;
	if (s->selected < s->first)
		s->first = s->selected;
	if (s->selected != TOP_NO_ROW && s->selected >= s->first + t->page)
		s->first = s->selected - t->page + 1;
	for (size_t i = s->first; i < t->table.rows.n && m->f->lines.n < until; i++) {
		const struct row *r = &t->table.rows.v[i];

		strbuf_clear(&b);
		table_line(&t->table, r, i == s->selected ? '>' : ' ', m->columns, &b);
		add_line(m, i == s->selected ? LOOK_SELECTED : look_of(r), strbuf_str(&b));
	}
	if (!t->table.rows.n)
		add_line(m, LOOK_PLAIN, why_empty(t));
	strbuf_done(&b);
}

struct texts {
	VEC(char *) v;
};

/* Long sentences go on in the next line, under where they began. */
static void add_wrapped(struct maker *m, const char *s, struct texts *out)
{
	size_t n = strlen(s), indent = strspn(s, " "), width = m->columns > 20 ? m->columns : 20, at = 0;

	do {
		size_t room = width - (at ? indent + 2 : 0), take = n - at;
		struct strbuf b = {0};

		if (take > room) {
			take = room;
			while (take > room / 2 && s[at + take] != ' ')
				take--;
			if (s[at + take] != ' ')
				take = room;
			/* Not within a character. */
			while (take > 1 && ((unsigned char)s[at + take] & 0xc0) == 0x80)
				take--;
		}
		strbuf_pad(&b, ' ', at ? indent + 2 : 0);
		strbuf_addn(&b, s + at, take);
		at += take;
		at += strspn(s + at, " ");
		vec_push(&out->v, b.s ?: mem_strdup(""));
	} while (at < n);
}

static void add_detail(struct maker *m, unsigned until)
{
	struct top *t = m->t;
	struct texts lines = {0};

	if (!t->has_detail) {
		add_line(m, LOOK_PLAIN, "it is gone; Esc goes back");
		return;
	}
	vec_for(&t->detail.v, s)
		add_wrapped(m, *s, &lines);
	t->page = until - (unsigned)m->f->lines.n;
	if (t->detail_first + t->page > lines.v.n)
		t->detail_first = lines.v.n > t->page ? lines.v.n - t->page : 0;
	for (size_t i = t->detail_first; i < lines.v.n && m->f->lines.n < until; i++)
		add_line(m, i ? LOOK_PLAIN : LOOK_TITLE, lines.v.v[i]);
	vec_for(&lines.v, s)
		free(*s);
	vec_done(&lines.v);
}

static void add_help(struct maker *m)
{
	static const char *const lines[] = {
		"1 to 5, Tab    threads, processes, flows, devices, findings",
		"up, down, page up, page down, home, end, j, k   move",
		"Enter, right   more: what a thread waits for, threads of a process, evidence",
		"Esc, left      back; ends the filter",
		"/              only rows with a text; Enter keeps it, Esc leaves",
		"<  >           sort by another column; r reverses",
		"t              processes as a tree, or as a list",
		"space, p       pause: nothing is observed until it is pressed again",
		"+  -           amounts of a longer or shorter time",
		"s              save what the amounts are of as a recording",
		"q              quit",
		"CPU%, RUNQ%, WAIT%: time on a CPU, runnable without one, blocked. HOT: points of the score.",
	};

	struct texts all = {0};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		add_wrapped(m, lines[i], &all);
	vec_for(&all.v, s) {
		add_line(m, LOOK_PLAIN, *s);
		free(*s);
	}
	vec_done(&all.v);
}

static void add_last(struct maker *m)
{
	static const char keys[] = "? help  / filter  < > sort  Enter more  space pause  s save  q quit";
	struct top *t = m->t;
	char line[400];

	while (m->f->lines.n + 1 < m->rows)
		add_line(m, LOOK_PLAIN, "");
	if (t->mode == TOP_FILTER || t->mode == TOP_SAVE) {
		snprintf(line, sizeof(line), "%s%s_", t->mode == TOP_FILTER ? "only rows with: " : "save to: ", t->input);
		add_line(m, LOOK_TITLE, line);
	} else if (t->message[0]) {
		add_line(m, LOOK_TITLE, t->message);
	} else {
		add_line(m, LOOK_PLAIN, keys);
	}
}

void frame_make(struct frame *f, struct top *t, unsigned rows, unsigned columns)
{
	struct maker m = {.f = f, .t = t, .rows = rows, .columns = columns};
	unsigned until = rows > 1 ? rows - 1 : 1;

	memset(f, 0, sizeof(*f));
	/* What matters most where there is no room for all. */
	if (rows >= 6) {
		add_title(&m);
		add_summary(&m);
		add_tabs(&m);
	}
	if (t->mode == TOP_HELP)
		add_help(&m);
	else if (t->mode == TOP_DETAIL)
		add_detail(&m, until);
	else
		add_list(&m, until);
	if (rows >= 2)
		add_last(&m);
}

void frame_done(struct frame *f)
{
	vec_for(&f->lines, l)
		free(l->text);
	vec_done(&f->lines);
}
