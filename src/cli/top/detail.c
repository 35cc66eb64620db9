/* More on one row of the live view. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "render_findings.h"
#include "text.h"
#include "top_views.h"
#include "units.h"

static const char *ns_text(char *buffer, size_t size, uint64_t ns)
{
	struct strbuf b = {0};

	units_add_ns(&b, ns);
	snprintf(buffer, size, "%s", strbuf_str(&b));
	strbuf_done(&b);
	return buffer;
}

static const char *pct_text(char *buffer, size_t size, double v)
{
	if (isnan(v))
		snprintf(buffer, size, "-");
	else
		snprintf(buffer, size, "%.1f %%", v);
	return buffer;
}

/* As in reports: "python3[4711]", "EngineCore[4712] of python3[4711]", or the printed id. */
static void party(char *buffer, size_t size, struct graph *g, uint32_t node)
{
	struct strbuf b = {0};

	text_party(g, &b, node);
	snprintf(buffer, size, "%s", strbuf_str(&b));
	strbuf_done(&b);
}

/* "EngineCore[4711]" of a thread, alone; others as in reports. */
static void who(char *buffer, size_t size, struct graph *g, uint32_t node)
{
	const struct node *n = node == NODE_NONE ? NULL : g->nodes.v[node];

	if (!n)
		snprintf(buffer, size, "?");
	else if (n->type == &thread_type && HAS(thread, n, name))
		snprintf(buffer, size, "%s[%" PRIu64 "]", GET(thread, n, name), GET(thread, n, tid));
	else
		party(buffer, size, g, node);
}

static void add_waits(struct lines *l, struct graph *g, const struct hot_thread *x)
{
	char time[32], longest[32], object[128];

	lines_add(l, " ");
	lines_add(l, "WAITS FOR                        time    share   times   longest");
	if (!x->waits.n)
		lines_add(l, "  nothing in this window");
	vec_for(&x->waits, w) {
		who(object, sizeof(object), g, w->object);
		lines_add(l, "  %-9s %-16.16s %9s %6.1f %% %7" PRIu64 " %9s%s", w->cause, object,
			  ns_text(time, sizeof(time), w->waited_ns), hot_share_of(x, w->waited_ns), w->waits,
			  ns_text(longest, sizeof(longest), w->longest_ns), w->idle ? "  idle" : "");
	}
}

static void add_party(struct lines *l, struct graph *g, const struct hot_thread *x, const struct hot_party *p)
{
	char time[32], longest[32], name[128];

	who(name, sizeof(name), g, p->node);
	lines_add(l, "  %-26.26s %9s %6.1f %% %7" PRIu64 " %9s  %s", name, ns_text(time, sizeof(time), p->waited_ns),
		  hot_share_of(x, p->waited_ns), p->wakeups, ns_text(longest, sizeof(longest), p->longest_ns), p->cause);
}

static void thread_detail(struct lines *l, struct sight *s, const struct hot_thread *x)
{
	const struct node *n = s->g.nodes.v[x->node];
	char a[32], b[32], c[32], user[32], process[128] = "?";

	if (x->process != HOT_NONE)
		who(process, sizeof(process), &s->g, x->process);
	lines_add(l, "thread %" PRIu64 " %s of %s", GET(thread, n, tid), HAS(thread, n, name) ? GET(thread, n, name) : "?",
		  process);
	lines_add(l, "on CPU %s (user %s), waiting for a CPU %s, blocked %s", pct_text(a, sizeof(a), x->cpu_pct),
		  pct_text(user, sizeof(user), x->user_pct), pct_text(b, sizeof(b), x->runq_pct),
		  pct_text(c, sizeof(c), x->blocked_pct));
	lines_add(l, "class %s%s%s; held up by: %s%s%s", thread_class_name(x->class), x->class_why ? ": " : "",
		  x->class_why ?: "", hot_cause_name(x->cause), x->cause_why ? ": " : "", x->cause_why ?: "");
	if (x->root_why)
		lines_add(l, "%s", x->root_why);
	lines_add(l, "score %u of %u: %s", x->points, x->possible, hot_level_name(x->level));
	vec_for(&x->reasons, r)
		lines_add(l, "  %s", r->text);
	vec_for(&x->rules, r)
		lines_add(l, "  %s: %s", r->rule, r->text);
	add_waits(l, &s->g, x);
	lines_add(l, " ");
	lines_add(l, "WHO ENDS ITS WAITS               time    share   times   longest");
	vec_for(&x->wakers, p)
		add_party(l, &s->g, x, p);
	lines_add(l, " ");
	lines_add(l, "WHO WAITS FOR IT                 time    share   times   longest");
	vec_for(&x->waiters, p)
		add_party(l, &s->g, x, p);
}

static void flow_detail(struct lines *l, struct sight *s, const struct topo_link *k)
{
	const struct topo_actor *from = &s->t.actors.v[k->from], *to = &s->t.actors.v[k->to];
	struct strbuf b = {0};

	lines_add(l, "%s by %s", k->kind, k->measured ? "counted transfers" : "what nobody counts");
	lines_add(l, "from  %s  %s", from->label, graph_node_id(&s->g, from->node));
	lines_add(l, "to    %s  %s", to->label, graph_node_id(&s->g, to->node));
	if (k->measured) {
		units_add_bytes(&b, k->bytes);
		strbuf_addf(&b, " in %" PRIu64 " messages", k->messages);
		lines_add(l, "moved %s", b.s);
	}
	strbuf_clear(&b);
	units_add_ns(&b, k->waited_ns);
	lines_add(l, "threads of the receiver were blocked for %s until threads of the sender woke them", b.s);
	if (k->shared)
		lines_add(l, "several send and several receive: who gave to whom is a guess");
	strbuf_done(&b);
}

static void put_value(struct strbuf *b, const struct field *f, const uint64_t *data)
{
	struct value v = field_get(f, data);

	switch (f->type) {
	case T_BOOL:
		strbuf_add(b, v.b ? "yes" : "no");
		break;
	case T_STR:
	case T_JSON:
		strbuf_add(b, v.str);
		break;
	case T_F64:
		strbuf_addf(b, "%.6g", v.f64);
		break;
	default:
		if (f->unit == BYTES)
			units_add_bytes(b, v.u64);
		else if (f->unit == NS && f->merge == SUM)
			units_add_ns(b, v.u64);
		else
			strbuf_add_u64(b, v.u64);
	}
}

static void entity_detail(struct lines *l, struct sight *s, uint32_t node)
{
	const struct node *n = s->g.nodes.v[node];
	struct strbuf b = {0};

	lines_add(l, "%s: %s", graph_node_id(&s->g, node), n->type->doc);
	for (int i = 0; i < n->type->nfields; i++) {
		const struct field *f = &n->type->fields[i];

		if (!(n->measured & (1ull << i)) || f->type == T_REF)
			continue;
		strbuf_clear(&b);
		put_value(&b, f, n->data);
		lines_add(l, "  %-24s %s", f->name, strbuf_str(&b));
	}
	strbuf_done(&b);
}

static void add_values(struct lines *l, const struct sight *s, const struct finding *f)
{
	struct strbuf b = {0};

	vec_for(&f->values, v) {
		strbuf_clear(&b);
		finding_value_text(&s->study, v, &b);
		lines_add(l, "  %s", strbuf_str(&b));
	}
	strbuf_done(&b);
	vec_for(&f->also, part)
		lines_add(l, "same root: %s", part->title);
}

static void finding_detail(struct lines *l, struct sight *s, const struct finding *f)
{
	char name[128], lost[32];

	lines_add(l, "%s", f->title);
	lines_add(l, "%s, %s, rule %s, confidence %u %%", severity_name(f->severity), layer_name(f->layer), f->rule,
		  f->confidence_pct);
	if (f->lost_basis)
		lines_add(l, "time lost: %s (%s)", ns_text(lost, sizeof(lost), f->lost_ns), f->lost_basis);
	if (f->why)
		lines_add(l, "%s", f->why);
	add_values(l, s, f);
	if (f->root != NODE_NONE) {
		party(name, sizeof(name), &s->g, f->root);
		lines_add(l, "cause: %s", name);
	}
	for (size_t i = 0; i < f->subjects.n && i < 8; i++) {
		party(name, sizeof(name), &s->g, f->subjects.v[i]);
		lines_add(l, "%s %s%s", i ? "      " : "about:", name, i == 7 && f->subjects.n > 8 ? " and others" : "");
	}
	vec_for(&f->advice, a)
		lines_add(l, "- %s", *a);
	vec_for(&f->commands, c)
		lines_add(l, "    %s", *c);
	if (f->expectation)
		lines_add(l, "what that can gain: %s", f->expectation);
}

void view_detail(struct lines *l, enum view view, struct sight *s, const struct row *r)
{
	if (view == VIEW_THREADS)
		thread_detail(l, s, &s->hot.threads.v[r->item]);
	else if (view == VIEW_FLOWS)
		flow_detail(l, s, &s->t.links.v[r->item]);
	else if (view == VIEW_FINDINGS)
		finding_detail(l, s, &s->f.v.v[r->item]);
	else
		entity_detail(l, s, r->node);
}
