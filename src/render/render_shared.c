/* Shared memory as text and JSON: each object, who maps it, and what proves the direction. */
#include <inttypes.h>
#include <string.h>

#include "render.h"
#include "shared_memory.h"
#include "text.h"

#define MAPPERS_IN_REPORT 16
#define UNKNOWN_DIRECTION "mapped, direction unknown"

static void add_object(struct graph *g, struct strbuf *b, const struct shared_object *o)
{
	const struct node *n = g->nodes.v[o->node];
	bool is_file = HAS(shared_memory, n, kind) && !strcmp(GET(shared_memory, n, kind), "file");
	size_t start = b->n;

	strbuf_add(b, "  ");
	text_clean(b, GET(shared_memory, n, shm_name), 60);
	text_pad(b, start, 40);
	start = b->n;
	strbuf_add(b, HAS(shared_memory, n, kind) ? GET(shared_memory, n, kind) : "?");
	text_pad(b, start, 10);
	start = b->n;
	if (HAS(shared_memory, n, shm_size))
		text_bytes(b, (double)GET(shared_memory, n, shm_size));
	else
		strbuf_addc(b, '-');
	text_pad(b, start, 12);
	if (HAS(shared_memory, n, resident_bytes)) {
		text_bytes(b, (double)GET(shared_memory, n, resident_bytes));
		strbuf_add(b, " in memory, ");
	}
	strbuf_addf(b, "%zu process%s", o->mappers.n, o->mappers.n == 1 ? "" : "es");
	if (HAS(shared_memory, n, unlinked) && GET(shared_memory, n, unlinked))
		strbuf_add(b, ", unlinked");
	/* Memory that is a file on a disk, or far away, is what one wants to know of. */
	if (is_file && HAS(shared_memory, n, source) && HAS(shared_memory, n, fs_type)) {
		strbuf_add(b, ", ");
		text_clean(b, GET(shared_memory, n, fs_type), 20);
		strbuf_add(b, " on ");
		text_clean(b, GET(shared_memory, n, source), 40);
	}
	strbuf_addc(b, '\n');
}

static void add_mapper(struct graph *g, struct strbuf *b, const struct shared_mapper *m)
{
	const struct edge *d = g->edges.v[m->access];
	size_t start = b->n;

	strbuf_addf(b, "    %s", HAS(access, d, mode) ? GET(access, d, mode) : "?");
	text_pad(b, start, 9);
	text_end(g, b, m->process);
	text_pad(b, start, 40);
	if (HAS(access, d, memory_bytes))
		text_bytes(b, (double)GET(access, d, memory_bytes));
	else
		strbuf_add(b, "open, not mapped");
	if (HAS(access, d, resident_bytes)) {
		strbuf_add(b, ", ");
		text_bytes(b, (double)GET(access, d, resident_bytes));
		strbuf_add(b, " resident");
	}
	strbuf_addc(b, '\n');
}

static void add_mappers(struct graph *g, struct strbuf *b, const struct shared_object *o,
			size_t most)
{
	for (size_t i = 0; i < o->mappers.n && i < most; i++)
		add_mapper(g, b, &o->mappers.v[i]);
	if (o->mappers.n > most)
		strbuf_addf(b, "    +%zu more\n", o->mappers.n - most);
}

static double wakes_hz(const struct graph *g, const struct shared_wakes *w)
{
	return (double)w->wakeups * 1e9 / (double)g->meta.window_ns;
}

static void add_direction(struct graph *g, struct strbuf *b, const struct shared_object *o)
{
	vec_for(&o->wakes, w) {
		strbuf_add(b, "    ");
		text_end(g, b, w->waker);
		strbuf_add(b, " -> ");
		text_end(g, b, w->waiter);
		strbuf_addf(b, ": %" PRIu64 " wake-ups", w->wakeups);
		if (g->meta.window_ns)
			strbuf_addf(b, " (%.1f/s)", wakes_hz(g, w));
		strbuf_add(b, " on words inside it, after waits of ");
		text_time(b, (double)w->waited_ns);
		strbuf_addc(b, '\n');
	}
	if (!o->wakes.n && o->mappers.n >= 2)
		strbuf_addf(b, "    %s\n", o->writers ? UNKNOWN_DIRECTION : "read only by all");
}

static void add_objects(struct graph *g, const struct selection *s, bool paths, struct strbuf *b)
{
	struct shared_objects all;
	uint64_t shown = 0, other = 0;

	shared_memory_objects(g, &all);
	vec_for(&all.v, o) {
		if (paths && !shared_memory_is_path(o)) {
			other++;
			continue;
		}
		if (s->limit && shown >= s->limit)
			continue;
		add_object(g, b, o);
		add_mappers(g, b, o, paths ? MAPPERS_IN_REPORT : o->mappers.n);
		add_direction(g, b, o);
		shown++;
	}
	text_omitted(b, shown, all.v.n - other);
	if (other)
		strbuf_addf(b,
			    "  %" PRIu64 " more with one process, or that nobody writes: show FILE "
			    "shared-memory\n",
			    other);
	else if (!all.v.n)
		strbuf_add(b, "  none\n");
	shared_memory_done(&all);
}

void render_shared_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	add_objects(g, s, false, b);
}

void render_shared_paths_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	add_objects(g, s, true, b);
}

void render_shared_note(struct graph *g, struct strbuf *b)
{
	struct shared_objects all;
	uint64_t paths = 0, proven = 0;

	shared_memory_objects(g, &all);
	vec_for(&all.v, o) {
		paths += shared_memory_is_path(o);
		proven += shared_memory_is_path(o) && o->wakes.n;
	}
	if (paths)
		strbuf_addf(b,
			    "and %" PRIu64 " objects of shared memory, whose bytes nobody counts (of %" PRIu64
			    " the direction is known): show FILE shared-memory\n",
			    paths, proven);
	shared_memory_done(&all);
}

static void write_mapper(struct graph *g, const struct shared_mapper *m, struct json_writer *w)
{
	const struct edge *d = g->edges.v[m->access];

	json_write_object(w);
	json_write_key(w, "process");
	json_end(g, m->process, w);
	json_fields(g, d->type, d->measured, d->data, w);
	json_write_object_end(w);
}

static void write_wakes(struct graph *g, const struct shared_wakes *k, struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "source");
	json_end(g, k->waker, w);
	json_write_key(w, "target");
	json_end(g, k->waiter, w);
	json_write_key(w, "wakeups");
	json_write_u64(w, k->wakeups);
	json_write_key(w, "waited_ns");
	json_write_u64(w, k->waited_ns);
	json_write_key(w, "rate_hz");
	if (g->meta.window_ns)
		json_write_f64(w, wakes_hz(g, k));
	else
		json_write_null(w);
	json_write_object_end(w);
}

static void write_object(struct graph *g, const struct shared_object *o, struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "object");
	json_entity(g, g->nodes.v[o->node], w);
	json_write_key(w, "mappers");
	json_write_array(w);
	vec_for(&o->mappers, m)
		write_mapper(g, m, w);
	json_write_array_end(w);
	json_key_str(w, "direction", o->wakes.n	       ? "proven by wake-ups"
				     : shared_memory_is_path(o) ? UNKNOWN_DIRECTION
								: NULL);
	json_write_key(w, "wakes");
	json_write_array(w);
	vec_for(&o->wakes, k)
		write_wakes(g, k, w);
	json_write_array_end(w);
	json_write_object_end(w);
}

void render_shared_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct shared_objects all;

	shared_memory_objects(g, &all);
	json_write_array(w);
	for (size_t i = 0; i < all.v.n && (!s->limit || i < s->limit); i++)
		write_object(g, &all.v.v[i], w);
	json_write_array_end(w);
	shared_memory_done(&all);
}
