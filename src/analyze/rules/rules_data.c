/* Data plane: loaders that are too slow or hand over too little at a time. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"

static double per_s(const struct facts *x, uint64_t n)
{
	return x->window_ns ? (double)n * 1e9 / (double)x->window_ns : 0;
}

/* As much comes back: requests and answers, which are small by nature, and one waits for the other. */
static bool is_answered(const struct topology *t, const struct topo_link *l)
{
	uint64_t back = 0;

	for (uint32_t i = t->first_link[l->to]; i < t->first_link[l->to + 1]; i++)
		if (t->links.v[i].to == l->from)
			back += t->links.v[i].messages;
	return back * 2 >= l->messages;
}

static void check_messages(struct rule_run *r)
{
	const struct topology *t = r->x->s->t;
	size_t known = 0;

	if (t)
		vec_for(&t->links, l) {
			const struct topo_actor *from = &t->actors.v[l->from];
			enum severity grade;
			double mean, share;
			struct finding *fi;
			bool answered;

			if (!l->messages || !l->measured || from->kind != ACTOR_PROCESS ||
			    t->actors.v[l->to].kind != ACTOR_PROCESS)
				continue;
			known++;
			mean = (double)l->bytes / (double)l->messages;
			/* Both sides: what the receiver waits, and what the calls cost. */
			share = facts_pct(
			    r->x, fmax((double)l->waited_ns,
				       (double)l->messages * rule_limit(r, LIMIT_message_cost)));
			if (mean > rule_limit(r, LIMIT_loader_message) ||
			    per_s(r->x, l->messages) < rule_limit(r, LIMIT_loader_calls))
				continue;
			grade = rule_grade(r, share);
			answered = is_answered(t, l);
			if (grade < SEVERITY_NOTICE || answered)
				grade = SEVERITY_NOTICE;
			fi = rule_fire(r, grade, answered ? MESSAGES_ANSWERED_PCT : MESSAGES_PCT, from->node);
			finding_subject(fi, from->node);
			finding_subject(fi, t->actors.v[l->to].node);
			finding_lost(
			    fi, share / 100 * (double)r->x->window_ns,
			    "time that the receiver was blocked until the sender woke it, or what "
			    "the calls cost (message.cost), whichever is more");
			finding_value(r, fi, from->node, "mean size of a message", mean, BYTES,
				      LIMIT_loader_message);
			finding_value(r, fi, from->node, "messages a second",
				      per_s(r->x, l->messages), COUNT_S, LIMIT_loader_calls);
			fi->title = rule_text(
			    r, "%s hands over %.0f bytes at a time to %s, %s times a second",
			    from->label, mean, t->actors.v[l->to].label,
			    rule_count(r, per_s(r->x, l->messages)));
			fi->why = rule_text(r,
					    "By %s; the receiver waited for %s in all. Each "
					    "message costs two calls, and often two switches.",
					    l->kind, rule_ns(r, (double)l->waited_ns));
			finding_advice(fi, "Hand over whole batches: larger writes, a larger batch "
					   "or chunk size, shared memory for the data and "
					   "messages for its place only.");
			fi->expectation =
			    "The cost of calls and switches, about a microsecond or two each.";
		}
	if (known)
		rule_clear(r, "messages of %zu links", known);
	else
		rule_unknown(r, "numbers and sizes of messages",
			     "record as root with probes 'sock' and 'ipc'");
}

const struct rule rules_data[] = {
    {.id = "tiny-messages",
     .layer = LAYER_DATA,
     .title = "Data is handed over in very small parts",
     .fires = "one process gives another at least `loader.calls` "
	      "messages of at most `loader.message` on average.",
     .graded =
	 "share of time lost: time that the receiver was "
	 "blocked until the sender woke it, or messages times `message.cost`; at least a notice, "
	 "and no more where as many messages come back: requests and answers.",
     .needs = "flows with bytes and messages (probes sock, ipc).",
     .advice = "larger batches, shared memory.",
     RULE_LIMITS(LIMIT_loader_message, LIMIT_loader_calls, LIMIT_message_cost),
     .family = "messages",
     .check = check_messages},
    {0}};
