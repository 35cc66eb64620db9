/* The table of routes: finding one, checking its parameters, telling of all. */
#include "route.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

const char *request_arg(const struct request *r, const char *name)
{
	for (size_t i = 0; i < r->nargs; i++)
		if (!strcmp(r->args[i].name, name))
			return r->args[i].value;
	return NULL;
}

uint64_t request_count(const struct request *r, const char *name, uint64_t absent)
{
	for (size_t i = 0; i < r->nargs; i++)
		if (!strcmp(r->args[i].name, name))
			return r->args[i].number;
	return absent;
}

void reply_error(struct reply *a, unsigned status, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strbuf_clear(&a->body);
	strbuf_add(&a->body, "{\"detail\":");
	json_quote(&a->body, text, strlen(text), 0);
	strbuf_add(&a->body, "}");
	a->status = status;
	a->mime = "application/json";
}

void reply_text(struct reply *a, const struct request *r, struct snapshot *s, enum rendering what,
		void (*make)(void *ctx, struct snapshot *s, struct strbuf *b), void *ctx)
{
	a->borrowed = snapshot_text(s, what, make, ctx, r->wants, &a->encoding);
	a->holds = s;
	if (!a->borrowed)
		reply_error(a, 404, "the snapshot has no such text");
}

/* @return whether the pattern matches, with what stands for its `{…}` */
static bool matches(const char *pattern, const char *path, const char **ret_rest)
{
	const char *brace = strchr(pattern, '{');
	size_t n = brace ? (size_t)(brace - pattern) : strlen(pattern);

	*ret_rest = NULL;
	if (!brace)
		return !strcmp(pattern, path);
	if (strncmp(pattern, path, n) || !path[n])
		return false;
	*ret_rest = path + n;
	return true;
}

const struct route *route_find(const char *method, const char *path, const char **ret_rest, bool *ret_known)
{
	const char *rest;

	*ret_known = false;
	for (const struct route *const *r = routes_all(); *r; r++) {
		if (!matches((*r)->path, path, &rest))
			continue;
		*ret_known = true;
		if (!strcmp((*r)->method, method) ||
		    (!strcmp(method, "HEAD") && !strcmp((*r)->method, "GET"))) {
			*ret_rest = rest;
			return *r;
		}
	}
	return NULL;
}

void route_allow(const char *path, struct strbuf *b)
{
	const char *rest;

	for (const struct route *const *r = routes_all(); *r; r++)
		if (matches((*r)->path, path, &rest))
			strbuf_addf(b, "%s%s", b->n ? ", " : "", (*r)->method);
}

static const struct param *find_param(const struct route *r, const char *name)
{
	for (const struct param *p = r->params; p < r->params + ROUTE_PARAMS_MAX && p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	for (const char *at = choices; n; at++) {
		size_t len = strcspn(at, "|");

		if (len == n && !memcmp(at, value, n))
			return true;
		at += len;
		if (!*at)
			break;
	}
	return false;
}

static int check(const struct param *p, struct argument *arg, struct reply *a)
{
	char *end;

	switch (p->kind) {
	case PARAM_TEXT:
		if (strlen(arg->value) <= p->max)
			return 0;
		reply_error(a, 400, "parameter '%s': longer than %llu bytes", p->name,
			    (unsigned long long)p->max);
		return -EINVAL;
	case PARAM_CHOICE:
		if (is_choice(p->choices, arg->value))
			return 0;
		reply_error(a, 400, "parameter '%s': one of %s", p->name, p->choices);
		return -EINVAL;
	case PARAM_FLAG:
		arg->number = strcmp(arg->value, "0") && strcmp(arg->value, "false");
		if (!arg->number || !*arg->value || !strcmp(arg->value, "1") || !strcmp(arg->value, "true"))
			return 0;
		reply_error(a, 400, "parameter '%s': true or false", p->name);
		return -EINVAL;
	case PARAM_COUNT_OF:
		errno = 0;
		arg->number = strtoull(arg->value, &end, 10);
		if (*arg->value >= '0' && *arg->value <= '9' && !*end && !errno && arg->number <= p->max)
			return 0;
		reply_error(a, 400, "parameter '%s': a number from 0 to %llu", p->name,
			    (unsigned long long)p->max);
		return -EINVAL;
	}
	return 0;
}

int route_arguments(const struct route *r, bool (*next)(void *ctx, const char **name, const char **value),
		    void *ctx, struct request *ret, struct reply *a)
{
	const char *name, *value;

	while (next(ctx, &name, &value)) {
		const struct param *p = find_param(r, name);
		struct argument *arg = &ret->args[ret->nargs];

		if (!p && r->old)
			continue;
		if (!p) {
			reply_error(a, 400, "no parameter '%.64s'", name);
			return -EINVAL;
		}
		if (request_arg(ret, p->name)) {
			reply_error(a, 400, "parameter '%s' is there twice", p->name);
			return -EINVAL;
		}
		*arg = (struct argument){.name = p->name, .value = value ?: ""};
		if (check(p, arg, a))
			return -EINVAL;
		ret->nargs++;
	}
	return 0;
}

void routes_help(struct strbuf *b)
{
	strbuf_add(b, "Witty Profiler Topology API\n\nUsage:\n");
	for (const struct route *const *r = routes_all(); *r; r++)
		strbuf_addf(b, "%s %s - %s\n", (*r)->method, (*r)->path, (*r)->summary);
}

static void write_schema(struct json_writer *w, const struct param *p)
{
	json_write_key(w, "schema");
	json_write_object(w);
	switch (p->kind) {
	case PARAM_TEXT:
		json_key_str(w, "type", "string");
		json_key_u64(w, "maxLength", p->max);
		break;
	case PARAM_FLAG:
		json_key_str(w, "type", "boolean");
		break;
	case PARAM_COUNT_OF:
		json_key_str(w, "type", "integer");
		json_key_u64(w, "minimum", 0);
		json_key_u64(w, "maximum", p->max);
		break;
	case PARAM_CHOICE:
		json_key_str(w, "type", "string");
		json_write_key(w, "enum");
		json_write_array(w);
		for (const char *at = p->choices;; at++) {
			size_t n = strcspn(at, "|");

			json_write_strn(w, at, n);
			at += n;
			if (!*at)
				break;
		}
		json_write_array_end(w);
		break;
	}
	json_write_object_end(w);
}

static void write_params(struct json_writer *w, const struct route *r)
{
	const char *brace = strchr(r->path, '{');

	json_write_key(w, "parameters");
	json_write_array(w);
	if (brace) {
		json_write_object(w);
		json_write_key(w, "name");
		json_write_strn(w, brace + 1, strcspn(brace + 1, "}"));
		json_key_str(w, "in", "path");
		json_write_key(w, "required");
		json_write_bool(w, true);
		json_write_key(w, "schema");
		json_write_raw(w, "{\"type\":\"string\"}", 17);
		json_write_object_end(w);
	}
	for (const struct param *p = r->params; p < r->params + ROUTE_PARAMS_MAX && p->name; p++) {
		json_write_object(w);
		json_key_str(w, "name", p->name);
		json_key_str(w, "in", "query");
		json_key_str(w, "description", p->doc);
		write_schema(w, p);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_response(struct json_writer *w, const char *status, const char *text, const char *mime,
			   const char *schema)
{
	json_write_key(w, status);
	json_write_object(w);
	json_key_str(w, "description", text);
	if (mime) {
		json_write_key(w, "content");
		json_write_object(w);
		json_write_key(w, mime);
		json_write_object(w);
		json_write_key(w, "schema");
		if (schema)
			json_write_raw(w, schema, strlen(schema));
		else
			json_write_raw(w, "{}", 2);
		json_write_object_end(w);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

/* GET /api/v1/entities/{id} → get_api_v1_entities_id */
static void write_operation_id(struct json_writer *w, const struct route *r)
{
	struct strbuf b = {0};

	for (const char *m = r->method; *m; m++)
		strbuf_addc(&b, (char)(*m | 0x20));
	for (const char *p = r->path; *p; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_';

		if (plain)
			strbuf_addc(&b, *p);
		else if (*p != '}' && b.s[b.n - 1] != '_' && p[1])
			strbuf_addc(&b, '_');
	}
	json_key_str(w, "operationId", b.s);
	strbuf_done(&b);
}

static void write_operation(struct json_writer *w, const struct route *r)
{
	static const char body[] = "{\"required\":true,\"content\":{\"application/json\":{\"schema\":"
				   "{\"type\":\"object\"}}}}";
	static const char detail[] = "{\"$ref\":\"#/components/schemas/Error\"}";
	char key[8];

	for (size_t i = 0; i <= strlen(r->method); i++)
		key[i] = r->method[i] ? (char)(r->method[i] | 0x20) : '\0';
	json_write_key(w, key);
	json_write_object(w);
	write_operation_id(w, r);
	json_key_str(w, "summary", r->summary);
	json_write_key(w, "tags");
	json_write_array(w);
	json_write_str(w, r->old ? "openEuler" : r->right == RIGHT_CONTROL ? "control" : "v1");
	json_write_array_end(w);
	json_key_str(w, "x-role", r->right == RIGHT_CONTROL ? "control" : "read");
	write_params(w, r);
	if (r->takes_body) {
		json_write_key(w, "requestBody");
		json_write_raw(w, body, sizeof(body) - 1);
	}
	json_write_key(w, "responses");
	json_write_object(w);
	write_response(w, "200", "done", r->mime, r->schema);
	write_response(w, "400", "the request is wrong", "application/json", detail);
	write_response(w, "401", "a token is missing or wrong", "application/json", detail);
	write_response(w, "403", "not allowed with this token, host or origin", "application/json", detail);
	if (strchr(r->path, '{') || !r->old)
		write_response(w, "404", "there is no such thing", "application/json", detail);
	write_response(w, "429", "too many requests", "application/json", detail);
	write_response(w, "503", "there is nothing to show yet, or too many clients", "application/json",
		       detail);
	json_write_object_end(w);
	json_write_object_end(w);
}

/* A path is one object with all of its methods. */
static void write_paths(struct json_writer *w)
{
	const struct route *const *all = routes_all();

	json_write_key(w, "paths");
	json_write_object(w);
	for (size_t i = 0; all[i]; i++) {
		size_t first = 0;

		while (strcmp(all[first]->path, all[i]->path))
			first++;
		if (first < i)
			continue;
		json_write_key(w, all[i]->path);
		json_write_object(w);
		for (size_t k = i; all[k]; k++)
			if (!strcmp(all[k]->path, all[i]->path))
				write_operation(w, all[k]);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

void routes_openapi(struct strbuf *b)
{
	static const char components[] =
		"{\"schemas\":{\"Error\":{\"type\":\"object\",\"required\":[\"detail\"],\"properties\":"
		"{\"detail\":{\"type\":\"string\"}}},\"List\":{\"type\":\"object\",\"required\":[\"snapshot\","
		"\"start_ns\",\"end_ns\",\"items\",\"next\"],\"properties\":{\"snapshot\":{\"type\":\"integer\"},"
		"\"total\":{\"type\":\"integer\"},\"items\":{\"type\":\"array\"},\"next\":{\"type\":[\"string\","
		"\"null\"]}}}},\"securitySchemes\":{\"token\":{\"type\":\"http\","
		"\"scheme\":\"bearer\"}}}";
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, b, 0);
	json_write_object(&w);
	json_key_str(&w, "openapi", "3.1.0");
	json_write_key(&w, "info");
	json_write_object(&w);
	json_key_str(&w, "title", "witty-profiler");
	json_key_str(&w, "version", WITTY_VERSION);
	json_key_str(&w, "description",
		     "What a host does. Times in ns, sizes in bytes, null is not measured; docs/json.md of "
		     "the program has the fields.");
	json_write_object_end(&w);
	write_paths(&w);
	json_write_key(&w, "components");
	json_write_raw(&w, components, sizeof(components) - 1);
	json_write_key(&w, "security");
	json_write_raw(&w, "[{},{\"token\":[]}]", 17);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
}
