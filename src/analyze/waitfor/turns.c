/*
 * Threads that hand one word on and run by turns, one at a time: the lock of an interpreter, or something like it in
 * another program. Threads that lack CPUs run one at a time, too, so the word is what tells.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "waitfor/cascade.h"

#define TURNS_PCT  60  /* of their busy time threads that run by turns are alone: who was woken may have to wait for a CPU */
#define TURNS_CPUS 1.2 /* they cannot use more than one */
#define WORD_PCT   60  /* of what they wait for each other, for words of one lock */
/* Two mutexes and two conditions of the C library lie beside each other in CPython's lock (ceval_gil.c): 176 bytes. */
#define LOCK_BYTES 192

/* A word that threads of a role wait for until another one of it ends the wait. */
struct turn_word {
	uint32_t role, object;
	uint64_t pid, address, ns;
};

/* What a role does to itself, without locks: accounts by role. */
struct turns {
	uint64_t inner_ns, all_ns;
};

struct turning {
	struct turns *of; /* [roles.n] */
	VEC(struct turn_word) words;
};

static int word_order(const void *a, const void *b)
{
	const struct turn_word *x = a, *y = b;

	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static bool begins_with(const char *name, const char *word)
{
	return name && !strncmp(name, word, strlen(word));
}

bool wf_has_interpreter_lock(const struct node *process)
{
	static const char *const names[] = {"python", "pypy", "ruby"};
	const char *exe = process->type == &process_type ? base_name(wf_str(process, process_f_exe)) : NULL;
	const char *line = process->type == &process_type ? wf_str(process, process_f_cmdline) : NULL;
	char first[256];

	/* A program can give itself another command line; the file that it is stays. */
	if (!exe && line) {
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(line, " "), line);
		exe = base_name(first);
	}
	for (size_t i = 0; exe && i < sizeof(names) / sizeof(names[0]); i++) {
		const char *version = exe + strlen(names[i]);

		/* "python3.11-dbg"; but "python3.13t" has no such lock. */
		if (begins_with(exe, names[i]))
			return !isalpha((unsigned char)version[strspn(version, "0123456789.")]);
	}
	return false;
}

/* Of the words of one role, sorted: those of one lock that account for most. @return their time */
static uint64_t largest_lock(const struct turn_word *v, size_t n, uint32_t *ret_object)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t sum = 0, one = 0;
		uint32_t object = v[i].object;

		for (size_t k = i; k < n && v[k].pid == v[i].pid && v[k].address - v[i].address < LOCK_BYTES; k++) {
			sum += v[k].ns;
			object = v[k].ns > one ? v[k].object : object;
			one = v[k].ns > one ? v[k].ns : one;
		}
		if (sum > most) {
			most = sum;
			*ret_object = object;
		}
	}
	return most;
}

/* Whether one of them alone is active while any is, and they are busy at all. @ret_pct how often */
static bool is_by_turns(struct wf *x, const struct wait_role *r, uint64_t inner_ns, double *ret_pct)
{
	uint32_t *no = mem_alloc(r->threads.n * sizeof(*no)), busy = 0;
	uint64_t burst = 0;

	for (size_t i = 0; i < r->threads.n; i++) {
		const struct wf_thread *th = &x->threads.v[x->no[r->threads.v[i]]];

		no[i] = x->no[r->threads.v[i]];
		burst += x->burst_ns[no[i]];
		busy += (th->run_ns + th->runq_ns) * 20 > x->w->window_ns;
	}
	*ret_pct = wf_one_active_pct(x, no, r->threads.n, false, NULL);
	free(no);
	return busy > 1 && *ret_pct >= TURNS_PCT && burst * 2 <= inner_ns &&
	       (double)r->run_ns <= TURNS_CPUS * (double)x->w->window_ns &&
	       (r->run_ns + r->runq_ns) * 5 >= x->w->window_ns * 2;
}

static void add_turn(struct wf *x, uint32_t role, const struct turns *t, const struct turn_word *words, size_t n)
{
	const struct wait_role *r = &x->w->roles.v[role];
	struct wait_pattern p = {.kind = PATTERN_HANDOVER, .object = NODE_NONE, .root = NODE_NONE, .ns = t->inner_ns};
	uint64_t lock_ns = largest_lock(words, n, &p.object);

	if (lock_ns * 100 < t->inner_ns * WORD_PCT || !is_by_turns(x, r, t->inner_ns, &p.root_pct))
		return;
	p.interpreter = r->process != NODE_NONE && wf_has_interpreter_lock(x->g->nodes.v[r->process]);
	/* Who is ready and has no CPU runs by turns for that reason; only where it is known that one can run at a time
	 * is there another. */
	if (!p.interpreter && r->runq_ns * 2 > r->run_ns)
		return;
	vec_for(&r->threads, th)
		vec_push(&p.threads, *th);
	vec_for(&x->w->links, l)
		if (l->waiter == role && l->waker == role)
			p.events += l->waits;
	p.confidence_pct = p.interpreter ? 85 : 60;
	p.text = wf_text(x->w, "%s run by turns, one at a time%s", r->text,
			 p.interpreter ? ": they hand on the lock of their interpreter" : ": they hand one word on");
	p.why = wf_text(x->w,
			"%" PRIu64 " times one ended the wait of another, %.0f %% of the time waited at one place in memory; in "
			"%.0f %% of the time one alone was active; together they ran %.2f of a CPU",
			p.events, (double)lock_ns * 100 / (double)t->inner_ns, p.root_pct,
			(double)r->run_ns / (double)x->w->window_ns);
	vec_push(&x->w->patterns, p);
}

static void add_account(const struct wf *x, struct turning *t, const struct wf_account *a)
{
	uint32_t role = x->threads.v[a->waiter].role, from = a->source < x->g->nodes.n ? x->no[a->source] : NODE_NONE;
	struct turn_word w = {.role = role, .object = a->object, .ns = a->total_ns};

	t->of[role].all_ns += a->total_ns;
	if (a->cause != CAUSE_FUTEX || a->held || (from != NODE_NONE && x->threads.v[from].role != role))
		return;
	t->of[role].inner_ns += a->total_ns;
	if (a->object != NODE_NONE && wf_word_place(x->g->nodes.v[a->object], &w.pid, &w.address))
		vec_push(&t->words, w);
}

void wf_add_turns(struct wf *x)
{
	struct turning t = {.of = mem_alloc((x->w->roles.n + 1) * sizeof(*t.of))};

	vec_for(&x->c->accounts, a)
		add_account(x, &t, a);
	if (t.words.n)
		qsort(t.words.v, t.words.n, sizeof(*t.words.v), word_order);
	for (size_t i = 0, end; i < t.words.n; i = end) {
		uint32_t role = t.words.v[i].role;
		const struct turns *of = &t.of[role];

		for (end = i + 1; end < t.words.n && t.words.v[end].role == role; end++)
			;
		if (x->w->roles.v[role].threads.n > 1 && of->inner_ns >= 5 * wf_least_ns(x) && of->inner_ns * 2 > of->all_ns)
			add_turn(x, role, of, &t.words.v[i], end - i);
	}
	vec_done(&t.words);
	free(t.of);
}
