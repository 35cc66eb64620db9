/* What checks of rules are written with: findings, their texts, values and grades. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rule_parts.h"
#include "units.h"

struct finding *rule_fire(struct rule_run *r, enum severity severity, unsigned pct, uint32_t root)
{
	struct finding *fi = vec_add(&r->f->v);

	fi->rule = r->rule->id;
	fi->family = r->rule->family ? r->rule->family : r->rule->id;
	fi->layer = r->rule->layer;
	fi->severity = severity;
	fi->severity_basis = r->rule->graded;
	fi->confidence_pct = pct;
	fi->root = root;
	fi->title = r->rule->title;
	fi->why = "";
	return fi;
}

void rule_unknown(struct rule_run *r, const char *missing, const char *how)
{
	r->missing = missing;
	r->how = how;
}

const char *rule_text(struct rule_run *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	return arena_strndup(&r->f->arena, text, strnlen(text, (size_t)n));
}

void rule_clear(struct rule_run *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->clear = arena_strdup(&r->f->arena, text);
}

double rule_limit(const struct rule_run *r, enum limit l)
{
	return r->x->l->v[l];
}

enum severity rule_grade_value(const struct rule_run *r, double v, enum limit notice,
			       enum limit warning, enum limit critical)
{
	if (critical != LIMIT_COUNT && v > rule_limit(r, critical))
		return SEVERITY_CRITICAL;
	if (warning != LIMIT_COUNT && v > rule_limit(r, warning))
		return SEVERITY_WARNING;
	return notice != LIMIT_COUNT && v > rule_limit(r, notice) ? SEVERITY_NOTICE : SEVERITY_INFO;
}

enum severity rule_grade(const struct rule_run *r, double share_pct)
{
	return rule_grade_value(r, share_pct, LIMIT_finding_notice, LIMIT_finding_warning,
				LIMIT_finding_critical);
}

static const char *process_name(const struct node *p)
{
	return HAS(process, p, name) ? GET(process, p, name) : "?";
}

const char *rule_name(struct rule_run *r, uint32_t node)
{
	const struct node *n, *p = NULL;
	const char *name = NULL;

	if (node == NODE_NONE)
		return "?";
	n = r->x->g->nodes.v[node];
	if (n->type == &process_type && HAS(process, n, pid))
		return rule_text(r, "%s[%" PRIu64 "]", process_name(n), GET(process, n, pid));
	if (n->type == &thread_type && HAS(thread, n, tid)) {
		if (HAS(thread, n, process))
			p = r->x->g->nodes.v[GET(thread, n, process)];
		name = HAS(thread, n, name) ? GET(thread, n, name) : p ? process_name(p) : "?";
		if (!p || !HAS(process, p, pid) || GET(process, p, pid) == GET(thread, n, tid))
			return rule_text(r, "%s[%" PRIu64 "]", name, GET(thread, n, tid));
		return rule_text(r, "%s[%" PRIu64 "] of %s[%" PRIu64 "]", name, GET(thread, n, tid),
				 process_name(p), GET(process, p, pid));
	}
	if (n->type == &container_type) {
		if (HAS(container, n, container_name))
			return GET(container, n, container_name);
		return rule_text(r, "container %.12s", GET(container, n, container_id));
	}
	if (n->type == &block_device_type && HAS(block_device, n, name))
		return GET(block_device, n, name);
	if (n->type == &nic_type && HAS(nic, n, name))
		return GET(nic, n, name);
	return graph_node_id(r->x->g, node);
}

const char *rule_names(struct rule_run *r, const uint32_t *nodes, size_t n, size_t most)
{
	const char *text = "";

	for (size_t i = 0; i < n && i < most; i++)
		text = rule_text(r, "%s%s%s", text, i ? ", " : "", rule_name(r, nodes[i]));
	return n > most ? rule_text(r, "%s and %zu more", text, n - most) : text;
}

static const char *unit_text(struct rule_run *r, double v, void (*add)(struct strbuf *, uint64_t))
{
	struct strbuf b = {0};
	const char *ret;

	add(&b, v > 0 ? (uint64_t)llround(fmin(v, 9e18)) : 0);
	ret = arena_strdup(&r->f->arena, b.s);
	strbuf_done(&b);
	return ret;
}

const char *rule_ns(struct rule_run *r, double ns)
{
	return unit_text(r, ns, units_add_ns);
}

const char *rule_bytes(struct rule_run *r, double bytes)
{
	return unit_text(r, bytes, units_add_bytes);
}

const char *rule_count(struct rule_run *r, double n)
{
	return unit_text(r, n, units_add_count);
}

void finding_subject(struct finding *fi, uint32_t node)
{
	vec_for(&fi->subjects, s)
		if (*s == node)
			return;
	vec_push(&fi->subjects, node);
}

void finding_value(struct rule_run *r, struct finding *fi, uint32_t node, const char *name,
		   double value, enum unit unit, enum limit l)
{
	bool has_limit = l != LIMIT_COUNT;

	vec_push(&fi->values,
		 ((struct finding_value){.name = name,
					 .node = node,
					 .value = value,
					 .unit = unit,
					 .limit = has_limit ? rule_limit(r, l) : NAN,
					 .limit_name = has_limit ? limit_types[l].name : NULL}));
}

void finding_lost(struct finding *fi, double lost_ns, const char *basis)
{
	fi->lost_ns = lost_ns > 0 ? (uint64_t)llround(fmin(lost_ns, 9e18)) : 0;
	fi->lost_basis = basis;
}

void finding_advice(struct finding *fi, const char *text)
{
	vec_push(&fi->advice, text);
}

void finding_command(struct finding *fi, const char *text)
{
	vec_push(&fi->commands, text);
}

bool rule_has_run_queues(struct rule_run *r)
{
	if (r->x->hot && r->x->window_ns)
		vec_for(&r->x->hot->threads, th)
			if (hot_has(th->runq_pct))
				return true;
	rule_unknown(r, "run-queue time of threads",
		     "record as root with probe 'sched': witty-profiler record; 'doctor' says what "
		     "is missing");
	return false;
}
