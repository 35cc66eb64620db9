/* What comes to the server from outside: subscribers' settings, addresses, queries, tags of routes,
 * encodings that are accepted. The first byte says which. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "encoding.h"
#include "fuzz.h"
#include "mem.h"
#include "net.h"
#include "route.h"
#include "sink_settings.h"

/* `name=value&name=value`, as libmicrohttpd cuts a query. */
struct query {
	char *at;
};

static bool next(void *ctx, const char **name, const char **value)
{
	struct query *q = ctx;
	char *eq;

	if (!q->at || !*q->at)
		return false;
	*name = strsep(&q->at, "&");
	eq = strchr(*name, '=');
	*value = eq ? eq + 1 : NULL;
	if (eq)
		*eq = '\0';
	return true;
}

/* "METHOD PATH?QUERY" */
static void try_route(char *text)
{
	char *path = strchr(text, ' '), *query;
	struct request r = {0};
	struct reply a = {0};
	const struct route *route;
	const char *rest;
	struct query q;
	bool known;

	if (!path)
		return;
	*path++ = '\0';
	query = strchr(path, '?');
	if (query)
		*query++ = '\0';
	q.at = query;
	route = route_find(text, path, &rest, &known);
	if (route && route_arguments(route, next, &q, &r, &a) && a.status != 400)
		abort();
	strbuf_done(&a.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sink_settings settings = {0};
	struct url url, allowed;
	struct err e;
	char *text;

	if (!n)
		return 0;
	text = mem_alloc(n);
	memcpy(text, data + 1, n - 1);
	switch (data[0]) {
	case 's':
		sink_settings_read(&settings, text, n - 1, &e);
		sink_settings_done(&settings);
		break;
	case 'u':
		url_parse("http://127.0.0.1:80/hook", &allowed, &e);
		/* Nothing that is parsed leads elsewhere than where it says. */
		if (!url_parse(text, &url, &e) && url_allowed(&url, &allowed, 1) &&
		    (strcmp(url.host, "127.0.0.1") || url.port != 80 || strncmp(url.path, "/hook", 5)))
			abort();
		break;
	case 'e':
		if (encoding_choose(text) >= ENCODING_COUNT)
			abort();
		break;
	default:
		try_route(text);
	}
	free(text);
	return 0;
}
