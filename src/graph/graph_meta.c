/* The observation itself as JSON: window, options, what was off, what was lost, what it cost. */
#include "graph_meta.h"

#include <errno.h>
#include <string.h>

static void write_losses(const struct graph *g, struct json_writer *w)
{
	json_write_key(w, "lost");
	json_write_array(w);
	vec_for(&g->losses, l) {
		json_write_object(w);
		json_key_str(w, "source", l->source);
		json_key_str(w, "cause", l->cause);
		json_key_u64(w, "count", l->count);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_status(const struct graph *g, struct json_writer *w)
{
	json_write_key(w, "status");
	json_write_array(w);
	vec_for(&g->status, s) {
		json_write_object(w);
		json_key_str(w, "source", s->source);
		json_key_str(w, "state", s->state);
		json_key_str(w, "rung", s->rung);
		json_key_str(w, "reason", s->reason);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_costs(const struct graph *g, struct json_writer *w)
{
	json_write_key(w, "cost");
	json_write_array(w);
	vec_for(&g->costs, c) {
		json_write_object(w);
		json_key_str(w, "name", c->name);
		json_key_str(w, "unit", c->unit);
		json_write_key(w, "value");
		json_write_f64(w, c->value);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void graph_write_about(const struct graph *g, struct json_writer *w)
{
	const struct snapshot_meta *m = &g->meta;

	json_key_u64(w, "start_ns", m->start_ns);
	if (m->window_ns) {
		json_key_u64(w, "window_ns", m->window_ns);
	} else {
		json_write_key(w, "window_ns");
		json_write_null(w);
	}
	json_key_u64(w, "intervals", m->intervals);
	json_write_key(w, "complete");
	json_write_bool(w, m->complete);
	json_key_str(w, "tool", m->tool);
	json_key_str(w, "options", m->options);
	write_losses(g, w);
	write_status(g, w);
	write_costs(g, w);
}

void graph_write_meta(const struct graph *g, struct json_writer *w)
{
	json_write_object(w);
	json_key_u64(w, "schema_version", GRAPH_SCHEMA_VERSION);
	graph_write_about(g, w);
	json_write_object_end(w);
}

/* One row of a table: its members as text and number. */
struct row {
	const char *text[4]; /* in the order of the names */
	double number;
};

static int read_row(struct graph *g, struct json_reader *r, const char *const names[4],
		    const char *number, struct row *row, struct err *e)
{
	memset(row, 0, sizeof(*row));
	for (;;) {
		int token = json_next(r, e), i = 0;

		if (token < 0 || token == JSON_OBJECT_END)
			return token < 0 ? token : 0;
		while (i < 4 && names[i] && !json_is(r, names[i]))
			i++;
		if (i == 4 || !names[i])
			i = number && json_is(r, number) ? 4 : 5;
		token = json_next(r, e);
		if (token < 0)
			return token;
		if (i < 4 && token == JSON_STRING)
			row->text[i] = graph_str(g, json_text(r, NULL));
		else if (i == 4 && token == JSON_NUMBER && !json_get_f64(r, &row->number))
			continue;
		else if (token == JSON_NULL)
			continue;
		else if (i < 5)
			return json_refuse(r, e, "strange value in \"witty\"");
		else if (json_skip(r, token, e) < 0)
			return e->code;
	}
}

enum table { STATUS, LOST, COST };

static int read_table(struct graph *g, struct json_reader *r, enum table which, struct err *e)
{
	static const char *const names[][4] = {[STATUS] = {"source", "state", "rung", "reason"},
					       [LOST] = {"source", "cause"},
					       [COST] = {"name", "unit"}};
	static const char *const numbers[] = {[LOST] = "count", [COST] = "value"};
	struct row row;
	int token = json_next(r, e), rc;

	if (token >= 0 && token != JSON_ARRAY)
		return json_refuse(r, e, "table in \"witty\" is no array");
	while ((token = json_next(r, e)) == JSON_OBJECT) {
		rc = read_row(g, r, names[which], which == STATUS ? NULL : numbers[which], &row, e);
		if (rc < 0)
			return rc;
		if (!row.text[0] || !row.text[1] || row.number < 0)
			return json_refuse(r, e, "incomplete row in \"witty\"");
		if (which == STATUS)
			graph_add_status(g, row.text[0], row.text[1], row.text[2], row.text[3]);
		else if (which == LOST)
			graph_add_loss(g, row.text[0], row.text[1], (uint64_t)row.number);
		else
			graph_add_cost(g, row.text[0], row.text[1], row.number);
	}
	if (token < 0)
		return token;
	return token == JSON_ARRAY_END ? 0 : json_refuse(r, e, "row in \"witty\" is no object");
}

static int read_scalar(struct graph *g, struct json_reader *r, const char *key, struct err *e)
{
	struct snapshot_meta *m = &g->meta;
	uint64_t *number = !strcmp(key, "start_ns")	? &m->start_ns
			   : !strcmp(key, "window_ns") ? &m->window_ns
			   : !strcmp(key, "intervals") ? &m->intervals
						       : NULL;
	const char **text = !strcmp(key, "tool")      ? &m->tool
			    : !strcmp(key, "options") ? &m->options
						      : NULL;
	int token = json_next(r, e);

	if (token < 0 || token == JSON_NULL)
		return token < 0 ? token : 0;
	if (number && (token != JSON_NUMBER || json_get_u64(r, number)))
		return json_refuse(r, e, "\"%s\" is no number", key);
	if (text && token == JSON_STRING)
		*text = graph_str(g, json_text(r, NULL));
	if (!strcmp(key, "complete"))
		m->complete = token == JSON_TRUE;
	return json_skip(r, token, e);
}

int graph_read_meta(struct graph *g, struct json_reader *r, struct err *e)
{
	char key[32];
	int token = json_next(r, e), rc;

	if (token >= 0 && token != JSON_OBJECT)
		return json_refuse(r, e, "\"witty\" is no object");
	while ((token = json_next(r, e)) == JSON_KEY) {
		strncpy(key, json_text(r, NULL), sizeof(key) - 1);
		key[sizeof(key) - 1] = '\0';
		if (!strcmp(key, "status"))
			rc = read_table(g, r, STATUS, e);
		else if (!strcmp(key, "lost"))
			rc = read_table(g, r, LOST, e);
		else if (!strcmp(key, "cost"))
			rc = read_table(g, r, COST, e);
		else
			rc = read_scalar(g, r, key, e);
		if (rc < 0)
			return rc;
	}
	return token < 0 ? token : 0;
}
