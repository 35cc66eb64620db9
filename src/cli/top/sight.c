/* The newest intervals as a graph, with the analyses that the live view shows. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "top_views.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

void sight_open(struct sight *s, struct history *h, uint64_t since_ns, const struct limits *l, bool findings)
{
	uint64_t start = now_ns();

	memset(s, 0, sizeof(*s));
	graph_init(&s->g);
	history_window(h, since_ns, &s->g, NULL);
	hot_init(&s->hot, &s->g, l);
	topology_init(&s->t, &s->g);
	waitfor_init(&s->w, &s->g, NULL);
	hot_follow_waits(&s->hot, &s->w);
	s->study = (struct study){.g = &s->g, .t = &s->t, .hot = &s->hot, .w = &s->w, .l = &s->hot.limits};
	if (findings)
		findings_init(&s->f, &s->study);
	s->has_findings = findings;
	s->is_open = true;
	s->took_ns = now_ns() - start;
}

void sight_close(struct sight *s)
{
	if (!s->is_open)
		return;
	if (s->has_findings)
		findings_done(&s->f);
	waitfor_done(&s->w);
	topology_done(&s->t);
	hot_done(&s->hot);
	graph_done(&s->g);
	s->is_open = false;
}

void lines_init(struct lines *l)
{
	memset(l, 0, sizeof(*l));
	arena_init(&l->arena);
}

void lines_done(struct lines *l)
{
	vec_done(&l->v);
	arena_done(&l->arena);
}

void lines_add(struct lines *l, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	vec_push(&l->v, arena_strdup(&l->arena, text));
}
