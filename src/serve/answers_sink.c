/* The routes of subscribers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answers.h"
#include "json.h"
#include "sink.h"

#define BUILT_IN "witty_profilercore-memory-subscriber"

static void begin(struct server *s, struct json_writer *w, struct strbuf *b)
{
	json_writer_init_strbuf(w, b, 0);
	json_write_object(w);
	json_write_key(w, "env");
	json_write_raw(w, s->env, strlen(s->env));
	json_write_key(w, "content");
	json_write_object(w);
}

static void end(struct json_writer *w)
{
	struct err e;

	json_write_object_end(w);
	json_write_object_end(w);
	json_writer_finish(w, &e);
}

static void answer_add(struct server *s, const struct request *r, struct reply *a)
{
	char name[SINK_NAME_BYTES];
	struct json_writer w;
	struct err e;
	int rc = sinks_add(s->sinks, r->body, r->body_n, false, name, &e);

	if (rc < 0) {
		reply_error(a, rc == -EINVAL ? 400 : rc == -EACCES ? 403 : rc == -EMFILE ? 409 : 500, "%s", e.msg);
		return;
	}
	begin(s, &w, &a->body);
	json_key_str(&w, "status", "success");
	json_key_str(&w, "message", "Subscriber registered");
	json_key_str(&w, "subscriber_name", name);
	end(&w);
}

static void answer_remove(struct server *s, const struct request *r, struct reply *a)
{
	struct json_writer w;

	if (!strcmp(r->rest, BUILT_IN)) {
		reply_error(a, 403, "this one is built in");
		return;
	}
	if (sinks_remove(s->sinks, r->rest) < 0) {
		reply_error(a, 404, "no subscriber '%.100s'", r->rest);
		return;
	}
	begin(s, &w, &a->body);
	json_key_str(&w, "status", "success");
	json_key_str(&w, "message", "Subscriber removed");
	end(&w);
}

static void write_one(struct json_writer *w, const char *name, const char *type, double interval_s)
{
	json_key_str(w, "name", name);
	json_key_str(w, "type", type);
	json_write_key(w, "expected_update_interval");
	json_write_f64(w, interval_s);
}

static void answer_list(struct server *s, const struct request *r, struct reply *a)
{
	struct sink_counts list[SINKS_MAX];
	size_t n = sinks_get(s->sinks, list);
	struct json_writer w;

	(void)r;
	begin(s, &w, &a->body);
	json_key_u64(&w, "count", n + 1);
	json_write_key(&w, "subscribers");
	json_write_array(&w);
	json_write_object(&w);
	write_one(&w, BUILT_IN, sink_memory.name, (double)s->o->interval_ns / 1e9);
	json_write_object_end(&w);
	for (size_t i = 0; i < n; i++) {
		json_write_object(&w);
		write_one(&w, list[i].name, list[i].type, (double)list[i].interval_ns / 1e9);
		json_key_u64(&w, "delivered", list[i].delivered);
		json_key_u64(&w, "failed", list[i].failed);
		json_key_u64(&w, "dropped", list[i].dropped);
		json_key_u64(&w, "waiting_bytes", list[i].spool_bytes);
		json_write_key(&w, "last_failure");
		json_write_str(&w, list[i].failure[0] ? list[i].failure : NULL);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_key(&w, "available_types");
	json_write_array(&w);
	for (const struct sink_kind *const *k = sink_kinds; *k; k++)
		json_write_str(&w, (*k)->name);
	json_write_array_end(&w);
	end(&w);
}

#define JSON "application/json"
#define DONE                                                                                                 \
	"{\"type\":\"object\",\"required\":[\"env\",\"content\"],\"properties\":{\"content\":{\"type\":\"object\","  \
	"\"required\":[\"status\",\"message\"]}}}"

const struct route route_subscriber = {"POST", "/subscriber", "Add a subscriber, or replace the one with its name",
				       RIGHT_CONTROL, true, JSON, DONE, .takes_body = true, .answer = answer_add};
const struct route route_unsubscribe = {"DELETE", "/subscriber/{name}", "Remove a subscriber", RIGHT_CONTROL, true,
					JSON, DONE, .answer = answer_remove};
const struct route route_subscribers = {
	"GET", "/subscribers", "The subscribers, and the types that there are", RIGHT_READ, true, JSON,
	"{\"type\":\"object\",\"required\":[\"env\",\"content\"],\"properties\":{\"content\":{\"type\":\"object\","
	"\"required\":[\"count\",\"subscribers\",\"available_types\"]}}}",
	.answer = answer_list};
