/* What a subscriber is asked to do: JSON of openEuler's interface, and our additions. */
#include "sink_settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "fleet/publisher.h"
#include "json.h"
#include "mem.h"

#define INTERVAL_DEFAULT_NS (5 * NS_PER_SEC)
#define TEXT_MAX	    4096

void sink_settings_done(struct sink_settings *s)
{
	free(s->path);
	free(s->url_text);
	free(s->extra);
	free(s->subject);
	publisher_free(s->publisher);
	memset(s, 0, sizeof(*s));
}

static bool is_plain(const char *s, const char *more)
{
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
		      strchr(more, *s)))
			return false;
	return true;
}

static int set_type(struct sink_settings *s, const char *name, struct err *e)
{
	struct strbuf b = {0};

	for (const struct sink_kind *const *k = sink_kinds; *k; k++) {
		if (!strcmp((*k)->name, name))
			s->kind = *k;
		strbuf_addf(&b, "%s%s", b.n ? ", " : "", (*k)->name);
	}
	if (!s->kind)
		err_msg(e, -EINVAL, "no subscriber type '%.60s': there are %s", name, b.s);
	strbuf_done(&b);
	return s->kind ? 0 : -EINVAL;
}

static int set_name(struct sink_settings *s, const char *name, struct err *e)
{
	if (!*name || strlen(name) >= sizeof(s->name) || !is_plain(name, "_-") )
		return err_msg(e, -EINVAL, "name: up to %d letters, digits, '-' and '_'", SINK_NAME_BYTES - 1);
	snprintf(s->name, sizeof(s->name), "%s", name);
	return 0;
}

static int set_interval(struct sink_settings *s, double seconds, struct err *e)
{
	if (!(seconds >= 0.1) || seconds > 86400)
		return err_msg(e, -EINVAL, "expected_update_interval: 0.1 to 86400 seconds");
	s->interval_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

/* The members of an object, without its braces. */
static char *members_of(const struct strbuf *object)
{
	return object->n > 2 ? mem_strdup(object->s + 1) : NULL;
}

static int set_extra(struct sink_settings *s, struct json_reader *r, int token, struct err *e)
{
	struct strbuf b = {0};
	int rc;

	if (token != JSON_OBJECT)
		return err_msg(e, -EINVAL, "post_attr: an object");
	rc = json_copy(r, token, &b, e);
	if (!rc) {
		free(s->extra);
		s->extra = members_of(&b);
		if (s->extra)
			s->extra[strlen(s->extra) - 1] = '\0';
	}
	strbuf_done(&b);
	return rc;
}

static int set_text(struct sink_settings *s, const char *key, const char *text, struct err *e)
{
	char **to = !strcmp(key, "dump_path") ? &s->path : !strcmp(key, "url") ? &s->url_text : &s->subject;

	if (!strcmp(key, "subscriber_type"))
		return set_type(s, text, e);
	if (!strcmp(key, "name"))
		return set_name(s, text, e);
	if (!strcmp(key, "mode")) {
		if (strcmp(text, "a") && strcmp(text, "w"))
			return err_msg(e, -EINVAL, "mode: 'a' appends, 'w' replaces");
		s->append = *text == 'a';
		return 0;
	}
	if (strlen(text) > TEXT_MAX)
		return err_msg(e, -EINVAL, "%s: more than %d bytes", key, TEXT_MAX);
	free(*to);
	*to = mem_strdup(text);
	return 0;
}

static int read_member(struct sink_settings *s, struct json_reader *r, const char *key, struct err *e)
{
	static const char *const texts[] = {"subscriber_type", "name", "mode", "dump_path", "url", "subject"};
	int token = json_next(r, e);
	double v;
	size_t n;

	if (token < 0)
		return token;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(key, texts[i]))
			continue;
		/* The older tool's null is "not given". */
		if (token == JSON_NULL)
			return 0;
		if (token != JSON_STRING || strlen(json_text(r, &n)) != n)
			return err_msg(e, -EINVAL, "%s: a text", key);
		return set_text(s, key, json_text(r, NULL), e);
	}
	if (!strcmp(key, "expected_update_interval")) {
		if (token != JSON_NUMBER || json_get_f64(r, &v))
			return err_msg(e, -EINVAL, "expected_update_interval: a number of seconds");
		return set_interval(s, v, e);
	}
	if (!strcmp(key, "async_notify"))
		return token == JSON_TRUE || token == JSON_FALSE ? 0 : err_msg(e, -EINVAL, "async_notify: true or false");
	if (!strcmp(key, "post_attr"))
		return set_extra(s, r, token, e);
	return err_msg(e, -EINVAL, "no setting '%.60s'", key);
}

static int read_object(struct sink_settings *s, struct json_reader *r, struct err *e)
{
	int token = json_next(r, e), rc = 0;
	char key[64];

	if (token < 0)
		return token;
	if (token != JSON_OBJECT)
		return err_msg(e, -EINVAL, "the body has to be an object");
	while (!rc && (token = json_next(r, e)) == JSON_KEY) {
		snprintf(key, sizeof(key), "%s", json_text(r, NULL));
		rc = read_member(s, r, key, e);
	}
	if (!rc && token >= 0)
		token = json_next(r, e);
	return rc ?: token < 0 ? token : 0;
}

static int complete(struct sink_settings *s, struct err *e)
{
	uint32_t random = 0;

	if (!s->kind)
		return err_msg(e, -EINVAL, "subscriber_type is needed");
	if (!s->name[0]) {
		if (getrandom(&random, sizeof(random), 0) < 0)
			random = (uint32_t)clock_mono_ns();
		snprintf(s->name, sizeof(s->name), "%s_%08x", s->kind->name, random);
	}
	if ((s->path && !s->kind->takes_path) || ((s->url_text || s->extra) && !s->kind->takes_url) ||
	    (s->subject && !s->kind->takes_subject))
		return err_msg(e, -EINVAL, "%s has no such setting", s->kind->name);
	if (s->kind->takes_url) {
		if (!s->url_text)
			return err_msg(e, -EINVAL, "url is needed");
		if (!s->kind->takes_broker && url_parse(s->url_text, &s->url, e) < 0)
			return e->code;
		if (!s->kind->takes_broker && !strstr(s->kind->schemes, s->url.scheme))
			return err_msg(e, -EINVAL, "url: %s takes %s", s->kind->name, s->kind->schemes);
	}
	if (s->subject && (!*s->subject || !is_plain(s->subject, "._-")))
		return err_msg(e, -EINVAL, "subject: letters, digits, '.', '-' and '_'");
	return 0;
}

int sink_settings_read(struct sink_settings *s, const char *json, size_t n, struct err *e)
{
	struct json_limits limits = {.depth = 16, .string_bytes = 32768};
	struct json_reader *r = json_reader_new_mem(json, n, "body", &limits);
	int rc;

	s->append = true;
	s->interval_ns = INTERVAL_DEFAULT_NS;
	rc = read_object(s, r, e);
	json_reader_free(r);
	rc = rc ?: complete(s, e);
	return rc < 0 && rc != -EINVAL ? -EINVAL : rc;
}
