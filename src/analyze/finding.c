/* Findings: the rules are tried in turn, what has one root becomes one, the costliest comes first.
 */
#include <string.h>

#include "finding.h"
#include "study.h"

void findings_init(struct findings *f, const struct study *s)
{
	memset(f, 0, sizeof(*f));
	arena_init(&f->arena);
	f->window_ns = s->g->meta.window_ns;
}

void findings_done(struct findings *f)
{
	vec_for(&f->v, it)
	{
		vec_done(&it->subjects);
		vec_done(&it->values);
		vec_done(&it->advice);
		vec_done(&it->commands);
		vec_done(&it->also);
	}
	vec_done(&f->v);
	vec_done(&f->verdicts);
	vec_done(&f->limits_of_sight);
	arena_done(&f->arena);
}

const struct finding *findings_about(const struct findings *f, uint32_t node)
{
	vec_for(&f->v, it)
	{
		if (it->root == node)
			return it;
		vec_for(&it->subjects, s) if (*s == node) return it;
	}
	return NULL;
}

enum severity findings_worst(const struct findings *f)
{
	enum severity worst = SEVERITY_INFO;

	vec_for(&f->v, it) worst = it->severity > worst ? it->severity : worst;
	return worst;
}
