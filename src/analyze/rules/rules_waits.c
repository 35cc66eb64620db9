/* What others wait for: locks, barriers, slow sides of queues, threads that all wait for, hangs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"

#define HOW_WAITS                                                                                  \
	"record as root with probe 'sched' (what threads wait for and who wakes them): "           \
	"witty-profiler record"

/* Chains and patterns say something only when waits were recorded. */
static bool has_waits(struct rule_run *r)
{
	if (r->x->s->w && r->x->window_ns && r->x->s->w->recorded)
		return true;
	rule_unknown(r, "what threads wait for and who ends it", HOW_WAITS);
	return false;
}

static uint32_t process_of(const struct facts *x, uint32_t thread)
{
	const struct process_fact *p = thread == NODE_NONE ? NULL : fact_process(x, thread);

	return p ? p->node : NODE_NONE;
}

static void add_threads(struct finding *fi, const uint32_t *v, size_t n)
{
	for (size_t i = 0; i < n && i < 32; i++)
		finding_subject(fi, v[i]);
}

static double mean_share(const struct facts *x, double ns, size_t threads)
{
	return threads ? facts_pct(x, ns) / (double)threads : 0;
}

static uint32_t actor_of(const struct facts *x, uint32_t thread)
{
	uint32_t process = process_of(x, thread);

	return x->s->t && process != NODE_NONE ? x->s->t->actor_of[process] : TOPO_NONE;
}

/*
 * A server that waits for its client's next request is not late, whatever the client does
 * meanwhile: who asks is whose time counts.
 */
static bool is_asked_by(const struct facts *x, uint32_t waiter, uint32_t root)
{
	uint32_t a = actor_of(x, waiter), b = root == NODE_NONE ? TOPO_NONE : actor_of(x, root);

	return a != TOPO_NONE && b != TOPO_NONE && a != b && topo_who_asks(x->s->t, b, a) > 0;
}

static bool descends(const struct facts *x, const struct process_fact *of, const struct process_fact *up)
{
	for (unsigned depth = 0; of && depth < 64; depth++) {
		if (of == up)
			return true;
		of = of->parent == NODE_NONE ? NULL : &x->processes.v[of->parent];
	}
	return false;
}

/* Who was started by the one that it waits for waits for work: a loader for its trainer, a worker for its master. */
static bool waits_for_work(const struct facts *x, const struct wait_pattern *p)
{
	const struct process_fact *up = p->root != NODE_NONE ? fact_process(x, p->root) : NULL;

	if (!up || p->kind != PATTERN_SLOW_PRODUCER)
		return false;
	vec_for(&p->threads, th) {
		const struct process_fact *of = fact_process(x, *th);

		if (!of || of == up || !descends(x, of, up))
			return false;
	}
	return p->threads.n != 0;
}

/* Who started a process and looks whether it has ended or said something has nothing else to do
 * meanwhile. */
static bool watches_child(const struct facts *x, const struct wait_pattern *p)
{
	const struct process_fact *up = p->threads.n ? fact_process(x, p->threads.v[0]) : NULL;
	const struct process_fact *of = p->root != NODE_NONE ? fact_process(x, p->root) : NULL;

	/* Where data is known to go from the child to it, as from a loader, the confidence is
	 * higher. */
	return up && of && up != of && p->confidence_pct <= 60 && descends(x, of, up);
}

#define STREAM_LEAST	10      /* waits of a stream of items: fewer are single events, as the end of another program */
#define ANSWER_SHORT_NS 1000000 /* an answer that comes so soon is no delay by itself */

/*
 * How grave a wait of one side for the other can be. Single waits (a filter for the end of what it reads, a pool of
 * threads for their first task) are no slow side; and whether a thread of a pool waits for an item or for something to
 * do does not show, nor can answers be slow that come within a millisecond.
 */
static enum severity most_of_sides(const struct rule_run *r, const struct wait_pattern *p)
{
	bool inner = p->root != NODE_NONE && p->threads.n && process_of(r->x, p->root) == process_of(r->x, p->threads.v[0]);

	if (p->kind != PATTERN_SLOW_PRODUCER && p->kind != PATTERN_BACK_PRESSURE)
		return SEVERITY_CRITICAL;
	if (!p->asks && (p->events < STREAM_LEAST || p->events < p->threads.n))
		return SEVERITY_NOTICE;
	if ((p->asks && p->ns < p->events * ANSWER_SHORT_NS) || (inner && p->threads.n == 1))
		return SEVERITY_WARNING;
	return SEVERITY_CRITICAL;
}

/* The root itself lacks a CPU, and who has it is not in the recording: as with cpu-wait, one level
 * less. */
static enum severity known_grade(const struct rule_run *r, enum severity grade, uint32_t root)
{
	const struct hot_thread *th =
	    root == NODE_NONE || !r->x->hot ? NULL : hot_of(r->x->hot, root);

	/* Less weight than usual is why, whoever has the CPU instead. */
	if (!th || fact_has_less_weight(r->x, th) || th->runq_ns <= 2 * th->run_ns || grade <= SEVERITY_NOTICE ||
	    fact_neighbour(r->x, th, NULL) != NEIGHBOUR_UNKNOWN)
		return grade;
	return grade - 1;
}

/* --- patterns --- */

struct pattern_text {
	enum wait_pattern_kind kind;
	const char *basis;
	const char *value; /* what `events` are */
	const char *advice[3];
	const char *expectation;
};

static const struct pattern_text texts[] = {
    {PATTERN_CONVOY,
     "time that threads were blocked on the lock",
     "waits",
     {"Hold the lock for less: move I/O, allocation and computing out of it; copy under the lock, "
      "work outside.",
      "Split the lock (a lock for each shard or queue), or use a structure that needs none for "
      "readers."},
     "Up to the time that they waited, as far as the CPUs have room for all of them at once."},
    {PATTERN_HANDOVER,
     "time that threads were blocked until another one handed the interpreter's lock over",
     "hand-overs",
     {"Threads of this interpreter run one at a time: use processes (multiprocessing, several "
      "workers) or native code that "
      "gives the lock up.",
      "For I/O threads a longer switch interval (sys.setswitchinterval) saves hand-overs, not "
      "time."},
     "With processes, as many CPUs as there are; with threads, nothing beyond one CPU."},
    {PATTERN_SLOW_PRODUCER,
     "time that the consumers were blocked for what it makes",
     "waits",
     {"Make the producer faster or run several of them: more loader workers, prefetching, cheaper "
      "preprocessing.",
      "Look at what it does meanwhile: the finding's evidence and 'hotspots' say whether it "
      "computes, has no CPU or waits for a "
      "disk."},
     "Up to the time that the consumers waited; then the next slowest part limits."},
    {PATTERN_BACK_PRESSURE,
     "time that the producers were blocked until it took what they had",
     "waits",
     {"Make the consumer faster, or run several of them; a larger buffer only hides bursts.",
      "If the producers are late for nothing else by it, this is flow control as it should be."},
     "Up to the time that the producers waited, if something waits for them in turn."},
    {PATTERN_BARRIER,
     "time that threads were blocked at the barrier until the last one came",
     "rounds",
     {"Give the last one less work, or split the work by time needed rather than by number.",
      "Look at what it does while the others wait: CPU, disk, lock."},
     "The time between the mean and the last arrival of each round."},
    {PATTERN_HERD,
     "time of the threads that were woken and went back to wait",
     "wake-ups",
     {"Wake one thread for one item (pthread_cond_signal, EPOLLEXCLUSIVE, one queue for each "
      "worker), not all of them."},
     "The switches of those who were woken for nothing."},
    {PATTERN_INVERSION,
     "time that threads were blocked while the holder had no CPU",
     "waits",
     {"Let the holder inherit the priority of who waits (PTHREAD_PRIO_INHERIT), or do not hold the "
      "lock at low priority.",
      "Give the holder a CPU: no nice value, no quota, no pinning beside a busy thread."},
     "The part of the wait in which the holder was runnable without a CPU."},
};

/* Of a program that is no interpreter. */
static const struct pattern_text one_at_a_time = {
    PATTERN_HANDOVER,
    "time that threads were blocked until another one handed on what they wait for",
    "hand-overs",
    {"If they are to work at the same time, find what only one of them has: a lock of their own making, a token, a "
     "queue of one item.",
     NULL},
    "Up to the time that they waited, as far as there are CPUs; nothing if they are to take turns."};

static const struct pattern_text *text_of(const struct wait_pattern *p)
{
	if (p->kind == PATTERN_HANDOVER && !p->interpreter)
		return &one_at_a_time;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].kind == p->kind)
			return &texts[i];
	return NULL;
}

/* An interpreter's lock is one process's own: what several hand on is something else. */
static bool is_one_process(const struct facts *x, const struct wait_pattern *p)
{
	vec_for(&p->threads, th)
		if (process_of(x, *th) != process_of(x, p->threads.v[0]))
			return false;
	return true;
}

/* Of equals at a barrier, the last one works no more than the others: it is last by chance, or by its CPU. */
static bool works_like_equals(const struct facts *x, const struct wait_pattern *p)
{
	const struct hot_thread *root = p->root == NODE_NONE ? NULL : hot_of(x->hot, p->root);
	uint64_t run = 0;
	size_t n = 0;

	if (p->kind != PATTERN_BARRIER)
		return false;
	vec_for(&p->threads, it) {
		const struct hot_thread *th = *it == p->root ? NULL : hot_of(x->hot, *it);

		if (!th)
			continue;
		run += th->run_ns;
		n++;
	}
	return !root || root->run_ns * n * 2 < run * 3;
}

/*
 * What of a wait is the doing of who is waited for: not the time in which that one paces itself, and not what it lacks
 * a CPU like everybody, which another rule tells once for all. Who works longer lacks one for longer, though.
 */
static uint64_t own_ns(const struct facts *x, const struct wait_pattern *p)
{
	double all = (double)p->ns - (double)p->rest_ns, shortage = fact_shared_shortage(x, p->root, NODE_NONE), own;

	if (p->kind == PATTERN_INVERSION || shortage <= 0)
		return all > 0 ? (uint64_t)all : 0;
	own = all - (double)p->ready_ns;
	if (!works_like_equals(x, p))
		own = fmin(all, own * shortage);
	return own > 0 ? (uint64_t)own : 0;
}

static void pattern_fired(struct rule_run *r, const struct wait_pattern *p)
{
	const struct pattern_text *text = text_of(p);
	uint32_t root = p->root != NODE_NONE ? p->root
			: p->threads.n       ? process_of(r->x, p->threads.v[0])
					     : NODE_NONE;
	size_t late = 0;
	struct finding *fi;
	double share, ns;

	vec_for(&p->threads, th)
		late += !is_asked_by(r->x, *th, p->root);
	if (!late || (p->kind == PATTERN_HANDOVER && !is_one_process(r->x, p)))
		return;
	ns = (double)own_ns(r->x, p) * (double)late / (double)p->threads.n;
	share = mean_share(r->x, ns, late);
	if (rule_grade(r, share) == SEVERITY_INFO)
		return;
	fi = rule_fire(r, known_grade(r, rule_grade(r, share), p->root), p->confidence_pct, root);
	if (fi->severity > most_of_sides(r, p))
		fi->severity = most_of_sides(r, p);
	if (p->kind == PATTERN_HANDOVER && fi->severity > SEVERITY_WARNING)
		fi->severity = SEVERITY_WARNING;
	/* Taking turns may be what they are for. */
	if (p->kind == PATTERN_HANDOVER && !p->interpreter)
		fi->severity = SEVERITY_NOTICE;
	if (watches_child(r->x, p) || waits_for_work(r->x, p))
		fi->severity = SEVERITY_NOTICE;
	fi->chains = p->root != NODE_NONE;
	for (size_t i = 0; i < p->threads.n && fi->subjects.n < 32; i++)
		if (!is_asked_by(r->x, p->threads.v[i], p->root))
			finding_subject(fi, p->threads.v[i]);
	finding_lost(fi, ns, text->basis);
	finding_value(r, fi, NODE_NONE, "share of the window that each waited", share, PERCENT,
		      LIMIT_finding_notice);
	finding_value(r, fi, NODE_NONE, text->value, (double)p->events, COUNT, LIMIT_COUNT);
	if (p->root != NODE_NONE && p->root_pct > 0)
		finding_value(r, fi, p->root, "share of it that is its own", p->root_pct, PERCENT,
			      LIMIT_COUNT);
	fi->title = p->text;
	fi->why = p->why;
	for (size_t i = 0; i < 3 && text->advice[i]; i++)
		finding_advice(fi, text->advice[i]);
	if (p->root != NODE_NONE)
		finding_command(fi, rule_text(r,
					      "perf trace -s -t %" PRIu64
					      "   # or: gdb -p, to see where it stands",
					      GET(thread, r->x->g->nodes.v[p->root], tid)));
	fi->expectation = text->expectation;
}

/* @return how many there are; of hand-overs, those of interpreters, or all others */
static size_t fire_patterns(struct rule_run *r, enum wait_pattern_kind kind, bool interpreter)
{
	size_t n = 0;

	vec_for(&r->x->s->w->patterns, p) {
		if (p->kind != kind || p->interpreter != interpreter)
			continue;
		n++;
		pattern_fired(r, p);
	}
	return n;
}

static void say_clear(struct rule_run *r, size_t n)
{
	rule_clear(r, "waits of %zu roles; %zu of the kind, all short", r->x->s->w->roles.n, n);
}

static void check_pattern(struct rule_run *r, enum wait_pattern_kind kind)
{
	if (has_waits(r))
		say_clear(r, fire_patterns(r, kind, false));
}

static void check_convoy(struct rule_run *r)
{
	size_t n;

	if (!has_waits(r))
		return;
	n = fire_patterns(r, PATTERN_CONVOY, false);
	say_clear(r, n + fire_patterns(r, PATTERN_HANDOVER, false));
}

static void check_inversion(struct rule_run *r)
{
	check_pattern(r, PATTERN_INVERSION);
}

static void check_handover(struct rule_run *r)
{
	if (has_waits(r))
		say_clear(r, fire_patterns(r, PATTERN_HANDOVER, true));
}

static void check_herd(struct rule_run *r)
{
	check_pattern(r, PATTERN_HERD);
}

static void check_producer(struct rule_run *r)
{
	check_pattern(r, PATTERN_SLOW_PRODUCER);
}

static void check_pressure(struct rule_run *r)
{
	check_pattern(r, PATTERN_BACK_PRESSURE);
}

/* --- stragglers: ranks that are processes, else threads at a barrier --- */

static bool is_rank(const struct rule_run *r, const struct wait_straggler *s, uint32_t thread)
{
	const struct node *n = r->x->g->nodes.v[thread];

	vec_for(&s->ranks, rank)
		if (HAS(thread, n, process) && GET(thread, n, process) == *rank)
			return true;
	return false;
}

/*
 * Whoever comes last may do so because of another process, such as its loader. Steps can be as short as a
 * message, so that this does not show in them, but it does in their critical path.
 */
static const struct path_part *outside_of_ranks(const struct rule_run *r, const struct wait_straggler *s,
						double *ret_pct)
{
	vec_for(&r->x->s->w->paths, path) {
		const struct path_part *most = path->parts.n ? &path->parts.v[0] : NULL;
		uint64_t all = 0;

		if (!path->rounds || !most || !is_rank(r, s, path->thread))
			continue;
		vec_for(&path->parts, part)
			all += part->ns;
		*ret_pct = (double)most->ns * 100 / (double)all;
		if (most->ns * 2 > all && most->state != STATE_SLEEP && most->state != STATE_OUTSIDE &&
		    most->state != STATE_BLOCKED &&
		    !is_rank(r, s, most->thread))
			return most;
	}
	return NULL;
}

static void blame_outside(struct rule_run *r, struct finding *fi, const struct wait_straggler *s,
			  const struct path_part *outside, double pct)
{
	const char *name = rule_name(r, outside->thread);

	fi->chains = true;
	fi->title = rule_text(r, "%zu ranks wait for %s, which is none of them", s->ranks.n, name);
	fi->why = rule_text(r, "%.0f %% of the critical path of their steps is %s, %s; one by one, %s", pct, name,
			    wait_state_text(outside->state), s->why);
	finding_advice(fi, rule_text(r, "Look at why %s is %s for so long: the ranks can do nothing meanwhile.", name,
				     wait_state_text(outside->state)));
}

/* Who sleeps until a time for longer than its equals does so by itself: it paces, as it was told to. */
static enum severity paced_grade(const struct wait_straggler *s, enum severity grade)
{
	bool paced = s->fixed && (s->extra == STATE_SLEEP || s->extra == STATE_OUTSIDE);

	return paced && grade > SEVERITY_NOTICE ? SEVERITY_NOTICE : grade;
}

static void straggler_fired(struct rule_run *r, const struct wait_straggler *s)
{
	uint64_t wait = 0;
	double pct = 0;
	const struct path_part *outside = outside_of_ranks(r, s, &pct);
	size_t others = 0;
	double share, lost;
	uint32_t last = s->ranks.v[s->last], root = s->thread != NODE_NONE ? s->thread : last;
	struct finding *fi;

	for (size_t i = 0; i < s->ranks.n && i < s->wait_ns.n; i++) {
		if (s->fixed && i == s->last)
			continue;
		wait += s->wait_ns.v[i];
		others++;
	}
	share =
	    others && s->period_ns ? (double)wait * 100 / (double)others / (double)s->period_ns : 0;
	if ((!s->fixed || s->extra == STATE_RUNQ) && fact_shared_shortage(r->x, s->fixed ? root : NODE_NONE, NODE_NONE) > 0)
		share *= 1 - s->ready_pct / 100;
	lost = share / 100 * (double)r->x->window_ns * (double)others;
	if (rule_grade(r, share) == SEVERITY_INFO)
		return;
	if (outside)
		root = outside->thread;
	fi = rule_fire(r, paced_grade(s, rule_grade(r, share)), s->confidence_pct, root);
	fi->chains = s->fixed;
	for (size_t i = 0; i < s->ranks.n && i < 32; i++)
		if (!s->fixed || i != s->last)
			finding_subject(fi, s->ranks.v[i]);
	finding_lost(fi, lost,
		     "median wait of the other ranks in a step, times the steps of the window");
	finding_value(r, fi, NODE_NONE, "share of a step that the others wait", share, PERCENT,
		      LIMIT_finding_notice);
	finding_value(r, fi, NODE_NONE, "length of a step", (double)s->period_ns, NS, LIMIT_COUNT);
	if (s->last < s->last_count.n)
		finding_value(r, fi, last, "steps in which it was last", s->last_count.v[s->last],
			      COUNT, LIMIT_COUNT);
	finding_value(r, fi, NODE_NONE, "steps", s->steps, COUNT, LIMIT_COUNT);
	fi->expectation = "A step becomes at most as short as that of the median rank.";
	if (outside)
		return blame_outside(r, fi, s, outside, pct);
	fi->title = s->text;
	fi->why = s->why;
	finding_advice(fi, s->fixed ? rule_text(r,
						"Look at why %s takes longer: it is %s for %s more "
						"in each step than its equals.",
						rule_name(r, last), wait_state_text(s->extra),
						rule_ns(r, (double)s->extra_ns))
				    : "Another rank is last each time: look for what hits them by "
				      "turns (garbage collection, uneven "
				      "batches, interrupts), and synchronise less often.");
}

static void check_straggler(struct rule_run *r)
{
	if (!has_waits(r))
		return;
	vec_for(&r->x->s->w->stragglers, s)
		if (s->uneven && s->ranks.n && s->last < s->ranks.n)
			straggler_fired(r, s);
	check_pattern(r, PATTERN_BARRIER);
	rule_clear(r, "%zu sets of ranks that take steps together", r->x->s->w->stragglers.n);
}

/* --- hangs --- */

static void check_hang(struct rule_run *r)
{
	if (!has_waits(r))
		return;
	vec_for(&r->x->s->w->hangs, h) {
		struct finding *fi = rule_fire(r, SEVERITY_CRITICAL, h->confidence_pct, h->thread);
		size_t held = h->threads.n ? h->threads.n : 1;

		/* A process that somebody stopped is no fault as long as nobody waits for it. */
		if ((!h->threads.n && h->kind == HANG_STOPPED) || h->confidence_pct < 50)
			fi->severity = SEVERITY_NOTICE;
		else if (h->confidence_pct < 70)
			fi->severity = SEVERITY_WARNING;
		fi->chains = true;
		finding_subject(fi, h->thread);
		add_threads(fi, h->threads.v, h->threads.n);
		finding_lost(fi, (double)h->since_ns * (double)held,
			     "time without progress, of all who are held up");
		finding_value(r, fi, h->thread, "time without progress", (double)h->since_ns, NS,
			      LIMIT_COUNT);
		fi->title = h->text;
		fi->why = h->why;
		if (h->kind == HANG_STOPPED) {
			finding_advice(fi, "Somebody or something stopped it: a debugger, a job "
					   "control key, a cgroup freezer. Let it go on.");
			finding_command(fi,
					rule_text(r, "kill -CONT %" PRIu64,
						  GET(thread, r->x->g->nodes.v[h->thread], tid)));
		} else {
			finding_advice(fi, "Look at the stacks of those who wait, and of the one "
					   "that is different.");
			finding_command(
			    fi,
			    rule_text(
				r,
				"gdb -p %" PRIu64
				" -batch -ex 'thread apply all bt'   # Python: py-spy dump --pid",
				GET(thread, r->x->g->nodes.v[h->thread], tid)));
		}
		fi->expectation = "Nothing goes on until it does.";
	}
	rule_clear(r, "progress of %zu roles", r->x->s->w->roles.n);
}

/* --- a thread on a CPU that others wait for --- */

static bool all_asked_by(const struct rule_run *r, const struct wait_root *root)
{
	vec_for(&root->roles, role)
		vec_for(&r->x->s->w->roles.v[*role].threads, th)
			if (!is_asked_by(r->x, *th, root->thread))
				return false;
	return root->roles.n != 0;
}

static void serial_fired(struct rule_run *r, const struct wait_root *root)
{
	const struct hot_thread *th = r->x->hot ? hot_of(r->x->hot, root->thread) : NULL;
	double share = mean_share(r->x, (double)root->waited_ns, root->waiters), cpu;
	struct finding *fi;

	cpu = th ? facts_pct(r->x, (double)th->run_ns) : NAN;
	/* All of the waiters at one time or other: what the least of them loses is not told apart.
	 */
	if (root->wall_ns)
		share = fmin(share, facts_pct(r->x, (double)root->wall_ns));
	if (rule_grade(r, share) == SEVERITY_INFO || !(cpu >= share / 2) || all_asked_by(r, root))
		return;
	fi = rule_fire(r, rule_grade(r, share), 80, root->thread);
	fi->chains = true;
	vec_for(&root->roles, role) {
		const struct wait_role *w = &r->x->s->w->roles.v[*role];

		add_threads(fi, w->threads.v, w->threads.n);
	}
	finding_lost(fi, (double)root->waited_ns, "time that others were blocked while it ran");
	finding_value(r, fi, root->thread, "time on a CPU", cpu, PERCENT, LIMIT_serial_cpu);
	finding_value(r, fi, NODE_NONE, "share of the window that each waiter waited", share,
		      PERCENT, LIMIT_finding_notice);
	fi->title = rule_text(
	    r, "%u thread%s waited for %s, which was on a CPU for %.0f %% of the window",
	    root->waiters, root->waiters == 1 ? "" : "s", rule_name(r, root->thread), cpu);
	fi->why = rule_text(
	    r, "They waited %s in all while it computed, %.0f %% of the window each%s%s.",
	    rule_ns(r, (double)root->waited_ns), share, root->roles.n ? "; most of them " : "",
	    root->roles.n ? r->x->s->w->roles.v[root->roles.v[0]].text : "");
	finding_advice(fi, "Its work is serial: split it over threads or processes, move parts of "
			   "it to those who wait, or make it "
			   "faster.");
	finding_advice(fi, "In Python, a thread that computes holds the interpreter's lock: use "
			   "processes or native code.");
	finding_command(
	    fi,
	    rule_text(r, "perf top -t %" PRIu64 "   # Python: py-spy top --pid %" PRIu64,
		      GET(thread, r->x->g->nodes.v[root->thread], tid),
		      process_of(r->x, root->thread) == NODE_NONE
			  ? GET(thread, r->x->g->nodes.v[root->thread], tid)
			  : GET(process, r->x->g->nodes.v[process_of(r->x, root->thread)], pid)));
	fi->expectation = "The waiters gain at most what they waited, as far as CPUs are free.";
}

static void check_serial(struct rule_run *r)
{
	if (!has_waits(r))
		return;
	vec_for(&r->x->s->w->roots, root)
		if (root->state == STATE_RUN && !root->idle)
			serial_fired(r, root);
	rule_clear(r, "%zu threads that others wait for", r->x->s->w->roots.n);
}

#define NEEDS_WAITS "waits_for, wakes and single waits (probe sched)."
#define GRADED_WAIT "share of time lost: mean time blocked of those who wait, of the window."

const struct rule rules_waits[] = {
    {.id = "hang",
     .layer = LAYER_CONTROL,
     .title = "Nothing goes on: stopped, deadlocked, or a wake-up was lost",
     .fires = "threads that worked before make no progress for ten periods or more, wait in a "
	      "circle, or wait for a process that "
	      "is stopped.",
     .graded = "critical; a warning where it is not certain, a notice for a stopped process that nobody waits for, and for "
	       "threads beside one that waits for events: they may have nothing to do.",
     .needs = NEEDS_WAITS,
     .advice = "stacks of all; kill -CONT for a stopped one.",
     .family = "thread",
     .check = check_hang},
    {.id = "straggler",
     .across = true,
     .layer = LAYER_CONTROL,
     .title = "Ranks or threads wait for the last one of them",
     .fires = "equal processes, or threads at a barrier, take steps together, and one (or a "
	      "different one each time) arrives so "
	      "late that the others wait for a share of time that is worth telling. Time in which the last one had no CPU "
	      "counts only if it lacks CPUs more than all others.",
     .graded = "share of time lost: median wait of the others in a step, of the step; of threads: "
	       "mean time blocked, of the window. At most a notice where the last one sleeps until a time, or waits for a "
	       "person: it paces.",
     .needs = NEEDS_WAITS,
     .advice = "look at what the last one does meanwhile.",
     .family = "thread",
     .check = check_straggler},
    {.id = "lock-convoy",
     .layer = LAYER_CONTROL,
     .title = "Threads queue for a lock",
     .fires = "threads are blocked on a lock that another thread holds, for a share of time that is worth telling; or "
	      "several threads of a process that is no interpreter hand one word to each other, and one of them runs at a "
	      "time, although they have CPUs.",
     .graded = GRADED_WAIT " Of a hand-over always a notice: taking turns may be what they are for.",
     .needs = NEEDS_WAITS,
     .advice = "hold it for less, split it.",
     .family = "thread",
     .check = check_convoy},
    {.id = "priority-inversion",
     .layer = LAYER_CONTROL,
     .title = "Who holds a lock has no CPU",
     .fires = "threads are blocked on a lock while its holder is runnable without a CPU, and the holder's priority is "
	      "lower than theirs, or not known.",
     .graded = GRADED_WAIT,
     .needs = NEEDS_WAITS,
     .advice = "PTHREAD_PRIO_INHERIT; no low priority for who holds locks.",
     .family = "thread",
     .check = check_inversion},
    {.id = "gil",
     .layer = LAYER_CONTROL,
     .title = "Threads run by turns: an interpreter lock",
     .fires = "several threads of one interpreter (Python, Ruby) hand one lock to each other, and one of them runs at a "
	      "time. Of other programs that is told as lock-convoy, and where CPUs are short not at all.",
     .graded = GRADED_WAIT " At most a warning.",
     .needs = NEEDS_WAITS,
     .advice = "processes instead of threads.",
     .family = "handover",
     .check = check_handover},
    {.id = "thundering-herd",
     .layer = LAYER_CONTROL,
     .title = "Many threads are woken for what one can have",
     .fires =
	 "one wake-up makes several threads run that go back to wait at once, again and again.",
     .graded = GRADED_WAIT,
     .needs = NEEDS_WAITS,
     .advice = "wake one, not all.",
     .family = "thread",
     .check = check_herd},
    {.id = "slow-producer",
     .across = true,
     .layer = LAYER_DATA,
     .title = "Consumers wait for what a slow producer makes",
     .fires = "threads are blocked reading a pipe, socket, queue or condition until one thread "
	      "gives them something, while that one "
	      "works: a loader, an upstream server.",
     .graded = GRADED_WAIT " At most a warning where answers come within a millisecond or one thread waits for another of "
			   "its process; a notice for fewer than ten waits.",
     .needs = NEEDS_WAITS,
     .advice = "a faster producer, or more of them.",
     .family = "thread",
     .check = check_producer},
    {.id = "back-pressure",
     .across = true,
     .layer = LAYER_DATA,
     .title = "Producers wait until a slow consumer takes what they have",
     .fires = "threads are blocked writing into a full pipe, socket or queue until one thread "
	      "takes something.",
     .graded = GRADED_WAIT " A notice for fewer than ten waits.",
     .needs = NEEDS_WAITS,
     .advice = "a faster consumer, or more of them.",
     .family = "thread",
     .check = check_pressure},
    {.id = "serial-thread",
     .across = true,
     .layer = LAYER_COMPUTE,
     .title = "Threads wait for one that computes",
     .fires = "following the waits ends at a thread that is on a CPU meanwhile, for a share of "
	      "time that is worth telling.",
     .graded = GRADED_WAIT,
     .needs = NEEDS_WAITS,
     .advice = "split its work.",
     RULE_LIMITS(LIMIT_serial_cpu),
     .family = "thread",
     .check = check_serial},
    {0}};
