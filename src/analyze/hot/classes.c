/* What kind of work a thread does: by its figures first, and by its name where they say nothing. */
#include <string.h>

#include "hot_parts.h"

/* A class is taken from CERTAIN on; with a second one from SECOND on the thread is of both.
 * Published. */
#define CERTAIN  0.6
#define SECOND   0.4
#define PART_PCT 10.0 /* of the time: a cause of waits that counts */

struct finding {
	double score[CLASS_COUNT]; /* 0-1 */
	const char *why[CLASS_COUNT];
};

static double blocked_pct(const struct hot_thread *t, const char *const *causes, size_t n)
{
	uint64_t ns = 0;

	vec_for(&t->waits, w)
		for (size_t i = 0; i < n; i++)
			if (!strcmp(w->cause, causes[i]))
				ns += w->waited_ns;
	return hot_share_of(t, ns);
}

static double calls_s(const struct hot_thread *t)
{
	uint64_t calls = 0;

	/* Files are no communication. */
	vec_for(&t->bytes, b)
		if (strcmp(b->kind, "file"))
			calls += b->calls;
	return t->base_ns ? (double)calls * 1e9 / (double)t->base_ns : NAN;
}

static double transfer_s(const struct hot_thread *t)
{
	uint64_t bytes = 0;

	vec_for(&t->bytes, b)
		if (strcmp(b->kind, "file"))
			bytes += b->in_bytes + b->out_bytes;
	return t->base_ns ? (double)bytes * 1e9 / (double)t->base_ns : NAN;
}

static void find_compute(struct hot *h, const struct hot_thread *t, struct finding *f)
{
	const double *v = h->limits.v;
	double score = 0.5;

	if (!hot_has(t->cpu_pct) || t->cpu_pct < v[LIMIT_class_compute_cpu])
		return;
	if (hot_has(t->user_pct))
		score += t->user_pct >= v[LIMIT_class_compute_user] ? 0.3 : -0.3;
	else
		score += transfer_s(t) < v[LIMIT_class_transfer] ? 0.2 : 0;
	if (hot_has(t->voluntary_s) && t->voluntary_s <= v[LIMIT_class_compute_switches])
		score += 0.2;
	f->score[CLASS_COMPUTE] = score;
	f->why[CLASS_COMPUTE] =
	    hot_has(t->user_pct)
		? hot_text(
		      h, "on a CPU %.0f %% of the time, %.0f %% of that in user mode, %.0f waits/s",
		      t->cpu_pct, t->user_pct, hot_has(t->voluntary_s) ? t->voluntary_s : 0)
		: hot_text(h, "on a CPU %.0f %% of the time, %.0f waits/s", t->cpu_pct,
			   hot_has(t->voluntary_s) ? t->voluntary_s : 0);
}

static void find_communication(struct hot *h, const struct hot_thread *t, struct finding *f)
{
	static const char *const causes[] = {"socket", "pipe", "queue", "eventfd"};
	const double *v = h->limits.v;
	double bytes = transfer_s(t), calls = calls_s(t), blocked = blocked_pct(t, causes, 4);

	if (!(bytes >= v[LIMIT_class_transfer] || calls >= v[LIMIT_class_transfer_calls]))
		return;
	f->score[CLASS_COMMUNICATION] = 0.5;
	if (blocked >= PART_PCT)
		f->score[CLASS_COMMUNICATION] += 0.2;
	if (hot_has(t->user_pct) ? t->user_pct <= 70 : blocked >= PART_PCT)
		f->score[CLASS_COMMUNICATION] += 0.2;
	if (t->cpu_pct < v[LIMIT_class_compute_cpu])
		f->score[CLASS_COMMUNICATION] += 0.1;
	f->why[CLASS_COMMUNICATION] = hot_text(h,
					       "moves %.1f MiB/s in %.0f calls/s, %.0f %% of the "
					       "time waiting for sockets, pipes or queues",
					       bytes / 0x1p20, calls, blocked);
}

static void find_driver(struct hot *h, const struct hot_thread *t, struct finding *f)
{
	static const char *const causes[] = {"device"};
	const double *v = h->limits.v;
	double blocked = blocked_pct(t, causes, 1);
	bool system = hot_has(t->user_pct) && 100 - t->user_pct >= v[LIMIT_class_driver_system];

	if (!hot_has(t->cpu_pct) || t->cpu_pct > v[LIMIT_class_driver_cpu])
		return;
	if (!(blocked >= PART_PCT) && !(t->devices.n && system))
		return;
	f->score[CLASS_DRIVER] =
	    0.3 + (blocked >= PART_PCT ? 0.3 : 0) + (system ? 0.2 : 0) + (t->devices.n ? 0.2 : 0);
	f->why[CLASS_DRIVER] =
	    hot_text(h, "%.0f %% of the time waiting for devices, on a CPU %.0f %%%s", blocked,
		     t->cpu_pct, system ? ", mostly in the kernel" : "");
}

static void find_framework(struct hot *h, const struct hot_thread *t, struct finding *f)
{
	static const char *const causes[] = {"futex", "eventfd", "poll"};
	const double *v = h->limits.v;
	double blocked = blocked_pct(t, causes, 3);

	if (!hot_has(t->cpu_pct) || t->cpu_pct > v[LIMIT_class_framework_cpu] ||
	    !hot_above(h, t->switches_s, LIMIT_class_framework_switches))
		return;
	f->score[CLASS_FRAMEWORK] = 0.4 + (blocked >= PART_PCT ? 0.3 : 0) +
				    (t->waiters.n > 1 ? 0.2 : 0) +
				    (hot_has(t->user_pct) && t->user_pct >= 50 ? 0.1 : 0);
	f->why[CLASS_FRAMEWORK] = hot_text(
	    h, "%.0f switches/s at %.0f %% CPU, %.0f %% of the time waiting for locks or events",
	    t->switches_s, t->cpu_pct, blocked);
}

static enum thread_class best_of(const struct finding *f, enum thread_class but)
{
	enum thread_class best = CLASS_OTHER;

	for (unsigned c = CLASS_COMPUTE; c < CLASS_MIXED; c++)
		if (c != but && f->score[c] > f->score[best])
			best = (enum thread_class)c;
	return best;
}

static const char *by_name(struct hot *h, const struct hot_thread *t, const char *what)
{
	struct strbuf name = {0};
	const char *ret;

	hot_add_name(&name, hot_name(h, t->node));
	ret = what ? hot_text(h, "its name, %s: %s", name.s, what)
		   : hot_text(h, "its name, %s, as its figures say nothing", name.s);
	strbuf_done(&name);
	return ret;
}

void hot_classify(struct hot *h, struct hot_thread *t)
{
	struct finding f = {0};
	enum thread_class first, second, name;
	const char *what;

	find_compute(h, t, &f);
	find_communication(h, t, &f);
	find_driver(h, t, &f);
	find_framework(h, t, &f);
	first = best_of(&f, CLASS_OTHER);
	second = best_of(&f, first);
	name = hot_class_of_name(hot_name(h, t->node), &what);
	if (first != CLASS_OTHER && f.score[first] > CERTAIN && f.score[second] > SECOND) {
		t->class = CLASS_MIXED;
		t->mix[0] = first;
		t->mix[1] = second;
		t->class_why = hot_text(h, "%s; %s", f.why[first], f.why[second]);
	} else if (first != CLASS_OTHER && (f.score[first] > CERTAIN || name == first)) {
		t->class = first;
		t->class_why = name == first
				   ? hot_text(h, "%s; its name says so, too", f.why[first])
				   : f.why[first];
	} else if (name != CLASS_OTHER) {
		t->class = name;
		t->class_why = by_name(h, t, what);
	} else if (first != CLASS_OTHER && f.score[first] >= 0.5) {
		t->class = first;
		t->class_why = f.why[first];
	}
}
