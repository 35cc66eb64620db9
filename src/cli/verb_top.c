/* witty-profiler top: this host now, in the terminal. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "mem.h"
#include "options.h"
#include "top_screen.h"

#define SECOND_NS  1000000000ull
#define KEEP_NS	   (60 * SECOND_NS)
#define KEEP_BYTES (128u << 20)
#define ONCE_ROWS  40
#define FILTER_MOST 60
#define ONCE_WIDTH 100

struct top_args {
	struct live_options o;
	struct option_pids pids;
	uint64_t interval_ns, window_ns, rows;
	enum view view;
	const char *filter;
	bool once;
};

struct running {
	struct top_args *a;
	struct top t;
	struct live *live;
	struct screen *screen;
	int signals;
	uint64_t next_ns, cpu_ns, cpu_at_ns;
	unsigned ticks;
};

static uint64_t clock_ns(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Children that look for it included would need their statistics at each tick; the view itself is what grows. */
static void measure_self(struct running *r)
{
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), now = clock_ns(CLOCK_MONOTONIC);

	if (r->cpu_at_ns && now > r->cpu_at_ns)
		r->t.own_cpu_pct = 100.0 * (double)(cpu - r->cpu_ns) / (double)(now - r->cpu_at_ns);
	r->cpu_ns = cpu;
	r->cpu_at_ns = now;
}

#define LOSSES_EVERY 5 /* ticks */

static void count_losses(struct running *r)
{
	struct graph about;

	if (r->ticks % LOSSES_EVERY != 1)
		return;
	graph_init(&about);
	live_describe(r->live, &about);
	r->t.lost = 0;
	vec_for(&about.losses, l)
		r->t.lost += l->count;
	graph_done(&about);
}

static void tick(struct running *r)
{
	live_tick(r->live);
	r->ticks++;
	measure_self(r);
	count_losses(r);
	top_update(&r->t);
	r->next_ns = clock_ns(CLOCK_MONOTONIC) + r->a->interval_ns;
}

/* @return false: end */
static bool read_signals(struct running *r)
{
	struct signalfd_siginfo info;
	bool go_on = true;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			screen_resized(r->screen);
		else
			go_on = false;
	}
	return go_on;
}

static int time_left(const struct running *r)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), due = live_due_ns(r->live);

	if (r->t.paused)
		return -1;
	due = due < r->next_ns ? due : r->next_ns;
	return now >= due ? 0 : (int)((due - now) / 1000000) + 1;
}

/* Until a key, a signal or the next tick; what is due meanwhile changes nothing on the screen. */
static bool next_event(struct running *r, struct pollfd p[2])
{
	int n;

	do {
		live_due(r->live);
		n = poll(p, 2, time_left(r));
	} while (!n && !r->t.paused && clock_ns(CLOCK_MONOTONIC) < r->next_ns);
	return n >= 0 || errno == EINTR;
}

static void loop(struct running *r)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = r->signals, .events = POLLIN}};
	uint32_t key;

	while (!r->t.quit) {
		screen_draw(r->screen, &r->t);
		if (!next_event(r, p))
			return;
		if ((p[1].revents & POLLIN) && !read_signals(r))
			return;
		/* The terminal is gone. */
		if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		while (!r->t.quit && screen_key(r->screen, &key))
			top_key(&r->t, key);
		if (!r->t.quit && !r->t.paused && clock_ns(CLOCK_MONOTONIC) >= r->next_ns)
			tick(r);
	}
}

static int open_signals(sigset_t *old)
{
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigaddset(&wanted, SIGQUIT);
	sigaddset(&wanted, SIGWINCH);
	sigprocmask(SIG_BLOCK, &wanted, old);
	return signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int watch(struct running *r, struct err *e)
{
	int rc = screen_open(&r->screen, e);

	if (rc < 0)
		return rc;
	r->next_ns = clock_ns(CLOCK_MONOTONIC) + r->a->interval_ns;
	loop(r);
	screen_close(r->screen);
	return 0;
}

/* @return false: a signal came */
static bool wait_interval(struct running *r)
{
	struct pollfd p = {.fd = r->signals, .events = POLLIN};

	r->next_ns = clock_ns(CLOCK_MONOTONIC) + r->a->window_ns;
	while (clock_ns(CLOCK_MONOTONIC) < r->next_ns) {
		live_due(r->live);
		if (poll(&p, 1, time_left(r)) > 0 && !read_signals(r))
			return false;
	}
	return true;
}

static unsigned width_of_output(void)
{
	const char *s = getenv("COLUMNS");
	uint64_t n;

	return s && !parse_number(s, &n) && n >= 20 && n <= 1000 ? (unsigned)n : ONCE_WIDTH;
}

static int print_once(struct running *r, struct err *e)
{
	struct strbuf b = {0};
	struct frame f;
	int rc;

	if (!wait_interval(r))
		return err_msg(e, -EINTR, "interrupted");
	tick(r);
	r->t.states[r->t.view].selected = TOP_NO_ROW;
	frame_make(&f, &r->t, (unsigned)r->a->rows + 5, width_of_output());
	/* Without the line of keys. */
	for (size_t i = 0; i + 1 < f.lines.n; i++) {
		size_t n = strlen(f.lines.v[i].text);

		while (n && f.lines.v[i].text[n - 1] == ' ')
			n--;
		strbuf_addn(&b, f.lines.v[i].text, n);
		strbuf_addc(&b, '\n');
	}
	while (b.n > 1 && b.s[b.n - 2] == '\n')
		b.s[--b.n] = '\0';
	rc = write_output(NULL, false, &b, e);
	frame_done(&f);
	strbuf_done(&b);
	return rc;
}

static int run_top(struct top_args *a, struct err *e)
{
	struct running r = {.a = a};
	sigset_t old;
	int rc;

	if (!a->once && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return screen_open(&r.screen, e);
	r.signals = open_signals(&old);
	if (!a->once)
		fprintf(stderr, "opening the sources ...\n");
	rc = live_open(&r.live, &a->o, e);
	if (!rc) {
		top_init(&r.t, live_history(r.live), a->window_ns);
		r.t.live = r.live;
		r.t.view = a->view;
		snprintf(r.t.filter, sizeof(r.t.filter), "%s", a->filter ?: "");
		measure_self(&r);
		rc = a->once ? print_once(&r, e) : watch(&r, e);
		top_done(&r.t);
		live_close(r.live);
	}
	close(r.signals);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static enum view find_view(const char *name)
{
	unsigned i = 0;

	while (i + 1 < VIEW_COUNT && strcmp(name, view_names[i]))
		i++;
	return (enum view)i;
}

static int run(int argc, char **argv)
{
	struct top_args a = {.o = {.keep_ns = KEEP_NS, .keep_bytes = KEEP_BYTES},
			     .interval_ns = SECOND_NS, .window_ns = 5 * SECOND_NS, .rows = ONCE_ROWS};
	const char *view = "threads";
	const struct verb_option options[] = {
		{"pid", 'p', OPTION_PIDS, &a.pids},
		{"interval", 'i', OPTION_TIME, &a.interval_ns, .least = 100000000},
		{"window", 'w', OPTION_TIME, &a.window_ns, .least = SECOND_NS, .most = KEEP_NS},
		{"limit", 'n', OPTION_NUMBER, &a.rows, .least = 1, .most = 1000000},
		{"once", 0, OPTION_FLAG, &a.once},
		{"view", 0, OPTION_CHOICE, &view, "threads, processes, flows, devices or findings"},
		{"filter", 0, OPTION_TEXT, &a.filter},
		{"no-ebpf", 0, OPTION_FLAG, &a.o.collect.no_ebpf},
		{"no-redact", 0, OPTION_FLAG, &a.o.collect.no_redact},
		{0}};
	struct err e;
	int first, rc = parse_options(&verb_top, options, argc, argv, &first);

	if (!rc && first != argc)
		rc = usage_error(&verb_top, "'%s' is too much", argv[first]);
	if (!rc && a.filter && strlen(a.filter) > FILTER_MOST)
		rc = usage_error(&verb_top, "a filter has at most %d bytes", FILTER_MOST);
	if (!rc) {
		a.view = find_view(view);
		a.o.collect.pids = a.pids.v;
		a.o.collect.npids = a.pids.n;
		/* The terminal's characters; numbers and sorting stay as they are. */
		setlocale(LC_CTYPE, "");
		mem_give_back();
		rc = run_top(&a, &e);
		if (rc < 0) {
			fail(&e);
			rc = e.code == -ENOTTY || e.code == -ENOTSUP ? EXIT_USAGE : EXIT_FAILED;
		}
	}
	vec_done(&a.pids);
	return rc;
}

const struct verb verb_top = {
	.name = "top",
	.usage = "[-p PID]... [-i TIME] [-w TIME] [OPTION]...",
	.summary = "Show this host now: hot threads, flows, devices, findings",
	.help = "  -p, --pid PID         only this process, its descendants and the other ends of their\n"
		"                        flows; may be given several times\n"
		"  -i, --interval TIME   look anew after TIME (default 1s, at least 100ms)\n"
		"  -w, --window TIME     amounts are those of the last TIME (default 5s, 1s to 60s)\n"
		"      --view VIEW       begin with threads (default), processes, flows, devices or findings\n"
		"      --filter TEXT     begin with rows that have TEXT\n"
		"      --once            observe for the window, print one look as text, and end\n"
		"  -n, --limit N         with --once: at most N rows (default 40); $COLUMNS is its width\n"
		"      --no-ebpf         read /proc only\n"
		"      --no-redact       keep secrets in command lines\n"
		"'?' shows the keys. NO_COLOR switches colours off.\n",
	.run = run,
};
