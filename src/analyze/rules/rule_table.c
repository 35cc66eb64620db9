/* The table of rules as a whole, and the reference that is made of it. */
#include <string.h>

#include "rule_parts.h"

/* The more specific ones first: of findings with one root, the first gives the name. */
static const struct rule *const parts[] = {
    rules_affinity, rules_cpu,     rules_device, rules_memory, rules_counters, rules_numa,
    rules_network,  rules_rdma,    rules_storage, rules_waits,  rules_data, rules_ranks, rules_control};

const struct rule *rule_at(size_t i)
{
	for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++)
		for (const struct rule *r = parts[p]; r->id; r++)
			if (!i--)
				return r;
	return NULL;
}

const struct rule *rule_find(const char *id)
{
	for (size_t i = 0; rule_at(i); i++)
		if (!strcmp(rule_at(i)->id, id))
			return rule_at(i);
	return NULL;
}

static void add_limit(struct strbuf *b, enum limit l, const char *before)
{
	strbuf_addf(b, "%s`%s` (", before, limit_types[l].name);
	limit_format(b, l, limit_types[l].usual);
	strbuf_addc(b, ')');
}

static void add_rule(struct strbuf *b, const struct rule *r)
{
	strbuf_addf(b, "\n### `%s`: %s\n\n", r->id, r->title);
	strbuf_addf(b, "- **Fires when** %s\n", r->fires);
	strbuf_addf(b, "- **Severity** %s\n", r->graded);
	strbuf_addf(b, "- **Needs** %s\n", r->needs);
	if (r->n_limits) {
		strbuf_add(b, "- **Limits** ");
		for (unsigned i = 0; i < r->n_limits; i++)
			add_limit(b, r->limits[i], i ? ", " : "");
		strbuf_addc(b, '\n');
	}
	strbuf_addf(b, "- **Advice** %s\n", r->advice);
	if (r->family)
		strbuf_addf(
		    b, "- **Family** `%s`: one finding with others of it that have the same root\n",
		    r->family);
}

void rules_write_md(struct strbuf *b)
{
	strbuf_add(
	    b, "# Rules\n\n"
	       "Made by `witty-profiler bottlenecks --list-rules` from the table in "
	       "src/analyze/rules; a test "
	       "keeps it\n"
	       "current. [bottlenecks.md](bottlenecks.md) says how to read what they find.\n\n"
	       "Limits are replaced by `--limits FILE`, presets are in [limits.md](limits.md).\n"
	       "\"Share of time lost\" is graded by ");
	add_limit(b, LIMIT_finding_critical, "");
	add_limit(b, LIMIT_finding_warning, ", ");
	add_limit(b, LIMIT_finding_notice, ", ");
	strbuf_add(b, ": critical, warning, notice; less is not shown.\n");
	for (int l = 0; l < LAYER_COUNT; l++) {
		strbuf_addf(b, "\n## Layer %d: %s\n", l + 1, layer_name(l));
		for (size_t i = 0; rule_at(i); i++)
			if ((int)rule_at(i)->layer == l)
				add_rule(b, rule_at(i));
	}
}
