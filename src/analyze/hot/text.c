/* Texts of the analysis of threads, and what threads are called in them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hot_parts.h"

const char *hot_text(struct hot *h, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* Longer ones hold names of devices without end, which nobody misses. */
	if (n < 0 || n >= (int)sizeof(line))
		n = sizeof(line) - 1;
	return arena_strndup(&h->arena, line, strnlen(line, (size_t)n));
}

const char *hot_name(const struct hot *h, uint32_t node)
{
	const struct node *n = h->g->nodes.v[node], *p;

	if (n->type != &thread_type)
		return n->type->name;
	if (HAS(thread, n, name))
		return GET(thread, n, name);
	p = HAS(thread, n, process) ? h->g->nodes.v[GET(thread, n, process)] : NULL;
	return p && HAS(process, p, name) ? GET(process, p, name) : "?";
}

void hot_add_name(struct strbuf *b, const char *name)
{
	for (size_t i = 0; name[i] && i < 32; i++)
		strbuf_addc(b, (unsigned char)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i]);
}

const char *hot_label(struct hot *h, uint32_t node)
{
	const struct node *n = h->g->nodes.v[node];
	struct strbuf b = {0};
	const char *ret;

	if (n->type == &thread_type) {
		hot_add_name(&b, hot_name(h, node));
		strbuf_addf(&b, "[%" PRIu64 "]", GET(thread, n, tid));
	} else if (n->type == &wait_object_type && HAS(wait_object, n, kind)) {
		hot_add_name(&b, GET(wait_object, n, kind));
	} else {
		hot_add_name(&b, n->type->name);
	}
	ret = arena_strdup(&h->arena, strbuf_str(&b));
	strbuf_done(&b);
	return ret;
}
