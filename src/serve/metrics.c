/* Families of figures, and their two formats. */
#include "metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

struct metric *metrics_family(struct metrics *m, enum metric_kind kind, const char *name, const char *unit,
			      const char *help)
{
	struct metric *f;

	vec_for(&m->v, it)
		if (!strcmp(it->name, name))
			return it;
	f = vec_add(&m->v);
	f->kind = kind;
	f->name = name;
	f->unit = unit;
	f->help = help;
	return f;
}

static bool same_labels(const struct metric_sample *a, const struct metric_sample *b)
{
	for (size_t i = 0; i < METRICS_LABELS; i++) {
		if (!a->labels[i].name || !b->labels[i].name)
			return !a->labels[i].name && !b->labels[i].name;
		if (strcmp(a->labels[i].name, b->labels[i].name) || strcmp(a->labels[i].value, b->labels[i].value))
			return false;
	}
	return true;
}

void metrics_sample(struct metrics *m, struct metric *f, double value, ...)
{
	struct metric_sample *s = vec_add(&f->samples);
	const char *name;
	size_t n = 0;
	va_list ap;

	s->value = value;
	va_start(ap, value);
	while (n < METRICS_LABELS && (name = va_arg(ap, const char *))) {
		const char *text = va_arg(ap, const char *);

		s->labels[n++] = (struct metric_label){name, arena_strdup(&m->arena, text ?: "")};
	}
	va_end(ap);
	/* Two of one name, such as containers: a series may be there once. */
	for (size_t i = 0; i + 1 < f->samples.n; i++)
		if (same_labels(&f->samples.v[i], &f->samples.v[f->samples.n - 1])) {
			f->samples.v[i].value += value;
			f->samples.n--;
			return;
		}
}

void metrics_done(struct metrics *m)
{
	vec_for(&m->v, f)
		vec_done(&f->samples);
	vec_done(&m->v);
	arena_done(&m->arena);
}

/* Backslash, quote and line feed are escaped; what is no UTF-8 would make the whole page unreadable. */
static void add_label_value(struct strbuf *b, const char *s)
{
	struct strbuf quoted = {0};

	/* JSON's writer replaces invalid bytes; of its escapes only \" \\ and \n are known here. */
	json_quote(&quoted, s, strlen(s), 0);
	for (size_t i = 0; i < quoted.n; i++) {
		if (quoted.s[i] == '\\' && quoted.s[i + 1] && !strchr("\"\\n", quoted.s[i + 1])) {
			i += quoted.s[i + 1] == 'u' ? 5 : 1;
			strbuf_addc(b, '?');
			continue;
		}
		strbuf_addc(b, quoted.s[i]);
		if (quoted.s[i] == '\\')
			strbuf_addc(b, quoted.s[++i]);
	}
	strbuf_done(&quoted);
}

static void add_value(struct strbuf *b, double v)
{
	if (isnan(v))
		strbuf_add(b, "NaN");
	else if (isinf(v))
		strbuf_add(b, v > 0 ? "+Inf" : "-Inf");
	else
		strbuf_add_f64(b, v);
}

void metrics_prometheus(const struct metrics *m, struct strbuf *b)
{
	vec_for(&m->v, f) {
		if (!f->samples.n)
			continue;
		strbuf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
			    f->kind == METRIC_COUNTER ? "counter" : "gauge");
		vec_for(&f->samples, s) {
			strbuf_add(b, f->name);
			for (size_t i = 0; i < METRICS_LABELS && s->labels[i].name; i++) {
				strbuf_addf(b, "%c%s=", i ? ',' : '{', s->labels[i].name);
				add_label_value(b, s->labels[i].value);
			}
			strbuf_add(b, s->labels[0].name ? "} " : " ");
			add_value(b, s->value);
			strbuf_addc(b, '\n');
		}
	}
}

static void write_attribute(struct json_writer *w, const char *name, const char *value)
{
	json_write_object(w);
	json_key_str(w, "key", name);
	json_write_key(w, "value");
	json_write_object(w);
	json_key_str(w, "stringValue", value);
	json_write_object_end(w);
	json_write_object_end(w);
}

/* 64-bit integers are texts in OTLP's JSON. */
static void write_time(struct json_writer *w, const char *key, uint64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, ns);
	json_key_str(w, key, text);
}

static void write_points(struct json_writer *w, const struct metrics *m, const struct metric *f)
{
	json_write_key(w, "dataPoints");
	json_write_array(w);
	vec_for(&f->samples, s) {
		if (!isfinite(s->value))
			continue;
		json_write_object(w);
		json_write_key(w, "attributes");
		json_write_array(w);
		for (size_t i = 0; i < METRICS_LABELS && s->labels[i].name; i++)
			write_attribute(w, s->labels[i].name, s->labels[i].value);
		json_write_array_end(w);
		if (f->kind == METRIC_COUNTER)
			write_time(w, "startTimeUnixNano", m->start_ns);
		write_time(w, "timeUnixNano", m->now_ns);
		json_write_key(w, "asDouble");
		json_write_f64(w, s->value);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_metric(struct json_writer *w, const struct metrics *m, const struct metric *f)
{
	json_write_object(w);
	json_key_str(w, "name", f->name);
	json_key_str(w, "description", f->help);
	json_key_str(w, "unit", f->unit);
	json_write_key(w, f->kind == METRIC_COUNTER ? "sum" : "gauge");
	json_write_object(w);
	write_points(w, m, f);
	if (f->kind == METRIC_COUNTER) {
		json_key_u64(w, "aggregationTemporality", 2);
		json_write_key(w, "isMonotonic");
		json_write_bool(w, true);
	}
	json_write_object_end(w);
	json_write_object_end(w);
}

void metrics_otlp(const struct metrics *m, const char *host, struct strbuf *b)
{
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, b, 0);
	json_write_object(&w);
	json_write_key(&w, "resourceMetrics");
	json_write_array(&w);
	json_write_object(&w);
	json_write_key(&w, "resource");
	json_write_object(&w);
	json_write_key(&w, "attributes");
	json_write_array(&w);
	write_attribute(&w, "service.name", "witty-profiler");
	write_attribute(&w, "service.version", WITTY_VERSION);
	write_attribute(&w, "host.name", host);
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_write_key(&w, "scopeMetrics");
	json_write_array(&w);
	json_write_object(&w);
	json_write_key(&w, "scope");
	json_write_object(&w);
	json_key_str(&w, "name", "witty-profiler");
	json_key_str(&w, "version", WITTY_VERSION);
	json_write_object_end(&w);
	json_write_key(&w, "metrics");
	json_write_array(&w);
	vec_for(&m->v, f)
		if (f->samples.n)
			write_metric(&w, m, f);
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
}
