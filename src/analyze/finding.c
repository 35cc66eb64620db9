/* Findings: the rules are tried in turn, what has one root becomes one, the worst comes first. */
#include <stdlib.h>
#include <string.h>

#include "finding_hosts.h"
#include "rule_parts.h"

#define MUCH_LESS 10 /* times less time lost */

static void finding_done(struct finding *fi)
{
	vec_done(&fi->subjects);
	vec_done(&fi->values);
	vec_done(&fi->advice);
	vec_done(&fi->commands);
	vec_done(&fi->also);
}

static void try_rule(struct findings *f, struct facts *x, const struct rule *rule)
{
	struct rule_run r = {.rule = rule, .f = f, .x = x};
	struct rule_verdict v = {.rule = rule};
	size_t before = f->v.n;

	rule->check(&r);
	v.findings = (uint32_t)(f->v.n - before);
	if (v.findings) {
		v.verdict = VERDICT_FIRED;
		v.evidence = f->v.v[before].title;
	} else if (r.missing && !r.clear) {
		v.verdict = VERDICT_UNKNOWN;
		v.evidence = r.missing;
		v.how = r.how;
	} else {
		v.verdict = VERDICT_CLEAR;
		v.evidence = r.clear ? r.clear : "nothing of the kind was seen";
	}
	vec_push(&f->verdicts, v);
}

/* After those of each host: in the same list, where it stands at @p at. */
static void try_across(struct findings *f, struct facts *x, size_t at)
{
	struct rule_verdict v;

	try_rule(f, x, rule_at(at));
	v = f->verdicts.v[--f->verdicts.n];
	f->verdicts.v[at] = v;
}

static uint32_t first_subject(const struct finding *fi)
{
	return fi->subjects.n ? fi->subjects.v[0] : NODE_NONE;
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int c;

	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->lost_ns != y->lost_ns)
		return x->lost_ns > y->lost_ns ? -1 : 1;
	if (x->confidence_pct != y->confidence_pct)
		return x->confidence_pct > y->confidence_pct ? -1 : 1;
	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	c = strcmp(x->rule, y->rule);
	if (c)
		return c;
	if (first_subject(x) != first_subject(y))
		return first_subject(x) < first_subject(y) ? -1 : 1;
	return strcmp(x->title, y->title);
}

static void sort_findings(struct findings *f)
{
	if (f->v.n)
		qsort(f->v.v, f->v.n, sizeof(*f->v.v), compare_findings);
}

static bool has_text(const char *const *v, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i], text))
			return true;
	return false;
}

static size_t table_index(const struct finding *fi)
{
	size_t i = 0;

	while (rule_at(i) && strcmp(rule_at(i)->id, fi->rule))
		i++;
	return i;
}

static void swap(struct finding *a, struct finding *b)
{
	struct finding t = *a;

	*a = *b;
	*b = t;
}

static bool has_value(const struct finding *fi, const struct finding_value *v)
{
	vec_for(&fi->values, it)
		if (it->node == v->node && !strcmp(it->name, v->name))
			return true;
	return false;
}

/* The time lost is not added up: both look at the same time from two sides. */
static void join(struct finding *into, struct finding *from)
{
	vec_push(&into->also, ((struct finding_part){from->rule, from->title, from->why}));
	vec_for(&from->also, p)
		vec_push(&into->also, *p);
	vec_for(&from->subjects, s)
		finding_subject(into, *s);
	vec_for(&from->values, v)
		if (!has_value(into, v))
			vec_push(&into->values, *v);
	vec_for(&from->advice, a)
		if (!has_text(into->advice.v, into->advice.n, *a))
			vec_push(&into->advice, *a);
	vec_for(&from->commands, c)
		if (!has_text(into->commands.v, into->commands.n, *c))
			vec_push(&into->commands, *c);
	if (!into->lost_basis || (from->lost_basis && from->lost_ns > into->lost_ns)) {
		into->lost_ns = from->lost_ns;
		into->lost_basis = from->lost_basis;
	}
	if (from->severity > into->severity) {
		into->severity = from->severity;
		into->severity_basis = from->severity_basis;
	}
	if (!into->expectation)
		into->expectation = from->expectation;
	finding_done(from);
}

static bool is_much_less(const struct finding *a, const struct finding *b)
{
	return a->lost_basis && b->lost_basis && a->lost_ns < b->lost_ns / MUCH_LESS;
}

/* The rule that stands first in the table is the more specific one, unless it is about much less: the title goes with
 * the time lost that stands beside it. */
static bool names_better(const struct finding *a, const struct finding *b)
{
	if (is_much_less(a, b) || is_much_less(b, a))
		return is_much_less(b, a);
	if (a->severity + 1 < b->severity || b->severity + 1 < a->severity)
		return a->severity > b->severity;
	return table_index(a) < table_index(b);
}

/* Findings of one family with one root are one. */
static void join_equal_roots(struct findings *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->v.n; i++) {
		struct finding *fi = &f->v.v[i], *into = NULL;

		for (size_t k = 0; k < kept && !into && fi->root != NODE_NONE; k++)
			if (f->v.v[k].root == fi->root && !strcmp(f->v.v[k].family, fi->family))
				into = &f->v.v[k];
		if (!into) {
			f->v.v[kept++] = *fi;
			continue;
		}
		if (names_better(fi, into))
			swap(fi, into);
		join(into, fi);
	}
	f->v.n = kept;
}

static uint32_t process_of(const struct graph *g, uint32_t node)
{
	const struct node *n = g->nodes.v[node];

	return n->type == &thread_type && HAS(thread, n, process) ? GET(thread, n, process) : node;
}

/* About that thread, or about its process by way of whichever thread. */
static bool is_about(const struct graph *g, const struct finding *fi, uint32_t thread)
{
	uint32_t process = process_of(g, thread);

	if (fi->root == thread || fi->root == process)
		return true;
	return fi->subjects.n && process_of(g, fi->subjects.v[0]) == process;
}

/* The same waits seen from the data: then it is one finding however small. */
static bool is_of_messages(const struct finding *fi)
{
	return !strcmp(fi->family, "messages");
}

/* That somebody waits for a thread says less than that it waits for a disk, or hands over crumbs. */
static bool reason_names(const struct finding *wait, const struct finding *reason)
{
	bool plain = !strcmp(wait->rule, "slow-producer") || !strcmp(wait->rule, "back-pressure") ||
		     !strcmp(wait->rule, "serial-thread");

	if (is_of_messages(reason))
		return plain && reason->confidence_pct >= MESSAGES_PCT;
	return plain && !strcmp(reason->family, "disk") && reason->severity + 1 >= wait->severity;
}

/*
 * Others wait for a thread, and another finding says what holds that thread up (no CPU, a disk,
 * page faults, messages that are too small): one finding, named by the wait, with the reason in it.
 */
static void join_reasons(struct findings *f, const struct graph *g)
{
	static const char *const reasons[] = {"cpu", "disk", "memory", "messages"};
	size_t kept = 0;

	for (size_t i = 0; i < f->v.n; i++) {
		struct finding *fi = &f->v.v[i], *into = NULL;
		bool reason = false;

		for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++)
			reason |= !strcmp(fi->family, reasons[k]);
		for (size_t k = 0; k < f->v.n && reason && !into; k++) {
			struct finding *other = &f->v.v[k];

			/* Behind i they still stand where they were; before it, those that were
			 * kept. */
			if ((k >= kept && k <= i) || !other->chains || other->root == NODE_NONE ||
			    (other->severity < SEVERITY_WARNING && !is_of_messages(fi) && fi->root != other->root) ||
			    !is_about(g, fi, other->root))
				continue;
			into = other;
		}
		if (!into) {
			f->v.v[kept++] = *fi;
			continue;
		}
		if (reason_names(into, fi))
			swap(into, fi);
		join(into, fi);
	}
	f->v.n = kept;
}

/* It has too little CPU, and no single other one has it instead. */
static bool is_of_a_crowd(const struct finding *fi)
{
	return !strcmp(fi->rule, "cpu-wait") && fi->root == NODE_NONE;
}

/* Too few CPUs for all is one finding, not one for each process that had too little. */
static void join_shortage(struct findings *f)
{
	struct finding *all = NULL;
	size_t kept = 0;

	vec_for(&f->v, fi)
		if (!strcmp(fi->rule, "cpu-oversubscribed"))
			all = fi;
	if (!all)
		return;
	for (size_t i = 0; i < f->v.n; i++) {
		struct finding *fi = &f->v.v[i];

		if (is_of_a_crowd(fi)) {
			enum severity own = all->severity;

			join(all, fi);
			all->severity = own;
			continue;
		}
		/* Things move to the front: the one that all others join, too. */
		if (fi == all)
			all = &f->v.v[kept];
		f->v.v[kept++] = *fi;
	}
	f->v.n = kept;
}

static void add_sight(struct findings *f, const char *text)
{
	if (!has_text(f->limits_of_sight.v, f->limits_of_sight.n, text))
		vec_push(&f->limits_of_sight, text);
}

void findings_init(struct findings *f, const struct study *s)
{
	struct facts x;
	bool several;

	memset(f, 0, sizeof(*f));
	arena_init(&f->arena);
	f->window_ns = s->g->meta.window_ns;
	several = findings_of_hosts(f, s);
	facts_init(&x, s);
	for (size_t i = 0; rule_at(i); i++)
		if (!several)
			try_rule(f, &x, rule_at(i));
		else if (rule_at(i)->across)
			try_across(f, &x, i);
	facts_done(&x);
	sort_findings(f);
	join_equal_roots(f);
	join_reasons(f, s->g);
	if (!several)
		join_shortage(f);
	sort_findings(f);
	vec_for(&f->v, fi)
		f->counts[fi->severity]++;
	if (s->hot)
		vec_for(&s->hot->unseen, u)
			add_sight(f, *u);
	if (s->t)
		vec_for(&s->t->unseen, u)
			add_sight(f, *u);
}

void findings_done(struct findings *f)
{
	vec_for(&f->v, fi)
		finding_done(fi);
	vec_done(&f->v);
	vec_done(&f->verdicts);
	vec_done(&f->limits_of_sight);
	arena_done(&f->arena);
}

const struct finding *findings_about(const struct findings *f, uint32_t node)
{
	vec_for(&f->v, fi) {
		if (fi->root == node)
			return fi;
		vec_for(&fi->subjects, s)
			if (*s == node)
				return fi;
	}
	return NULL;
}

enum severity findings_worst(const struct findings *f)
{
	enum severity worst = SEVERITY_INFO;

	vec_for(&f->v, fi)
		worst = fi->severity > worst ? fi->severity : worst;
	return worst;
}
