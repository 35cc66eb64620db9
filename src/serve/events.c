/* Server-sent events: a ring, and clients that wait for more without a thread of their own. */
#include "events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "vec.h"

#define RING  256 /* events kept for clients that come back or are slow */
#define CHUNK 16384

struct event {
	uint64_t id;
	char type[16]; /* "": a comment */
	char *text;    /* as it is sent */
	size_t n;
};

struct event_stream {
	struct events *hub;
	struct MHD_Connection *connection;
	uint64_t next; /* id of the event to send */
	char types[64];
	struct strbuf pending; /* of it, from @p sent on */
	size_t sent;
};

struct events {
	pthread_mutex_t lock;
	struct event ring[RING];
	uint64_t last; /* id of the newest; 0: none */
	VEC(struct MHD_Connection *) waiting;
	size_t clients;
	uint64_t missed;
	bool ended;
};

struct events *events_new(void)
{
	struct events *h = mem_alloc(sizeof(*h));

	pthread_mutex_init(&h->lock, NULL);
	return h;
}

void events_free(struct events *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < RING; i++)
		free(h->ring[i].text);
	vec_done(&h->waiting);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* @param data NULL: a comment */
static void put(struct events *h, const char *type, const char *data)
{
	struct strbuf b = {0};
	struct event *ev;

	pthread_mutex_lock(&h->lock);
	ev = &h->ring[++h->last % RING];
	if (data)
		strbuf_addf(&b, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", h->last, type, data);
	else
		strbuf_add(&b, ": still here\n\n");
	free(ev->text);
	ev->id = h->last;
	snprintf(ev->type, sizeof(ev->type), "%s", type);
	ev->text = b.s;
	ev->n = b.n;
	pthread_mutex_unlock(&h->lock);
}

void events_put(struct events *h, const char *type, const char *data)
{
	put(h, type, data);
}

void events_ping(struct events *h)
{
	put(h, "", NULL);
}

void events_wake(struct events *h)
{
	typeof(h->waiting) list;

	pthread_mutex_lock(&h->lock);
	list = h->waiting;
	memset(&h->waiting, 0, sizeof(h->waiting));
	pthread_mutex_unlock(&h->lock);
	vec_for(&list, c)
		MHD_resume_connection(*c);
	vec_done(&list);
}

void events_end(struct events *h)
{
	pthread_mutex_lock(&h->lock);
	h->ended = true;
	pthread_mutex_unlock(&h->lock);
	events_wake(h);
}

bool events_put_off(struct events *h, struct MHD_Connection *c)
{
	bool ok;

	pthread_mutex_lock(&h->lock);
	ok = !h->ended;
	if (ok) {
		MHD_suspend_connection(c);
		vec_push(&h->waiting, c);
	}
	pthread_mutex_unlock(&h->lock);
	return ok;
}

static bool wants(const struct event_stream *s, const struct event *ev)
{
	size_t n = strlen(ev->type);

	if (!s->types[0] || !n)
		return true;
	for (const char *at = s->types; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == n && !memcmp(at, ev->type, n))
			return true;
	return false;
}

/* Under the lock. @return whether there is something to send */
static bool fetch(struct event_stream *s)
{
	struct events *h = s->hub;

	strbuf_clear(&s->pending);
	s->sent = 0;
	if (s->next + RING <= h->last) {
		uint64_t missed = h->last - RING + 1 - s->next;

		h->missed += missed;
		strbuf_addf(&s->pending, "event: lost\ndata: {\"events\":%" PRIu64 "}\n\n", missed);
		s->next = h->last - RING + 1;
	}
	while (s->next <= h->last && s->pending.n < CHUNK) {
		const struct event *ev = &h->ring[s->next++ % RING];

		if (wants(s, ev))
			strbuf_addn(&s->pending, ev->text, ev->n);
	}
	return s->pending.n > 0;
}

static ssize_t read_stream(void *ctx, uint64_t pos, char *buf, size_t max)
{
	struct event_stream *s = ctx;
	struct events *h = s->hub;
	size_t n;

	if (s->sent == s->pending.n) {
		bool got, ended;

		pthread_mutex_lock(&h->lock);
		got = fetch(s);
		ended = h->ended;
		if (!got && !ended) {
			MHD_suspend_connection(s->connection);
			vec_push(&h->waiting, s->connection);
		}
		pthread_mutex_unlock(&h->lock);
		if (!got)
			return ended ? MHD_CONTENT_READER_END_OF_STREAM : 0;
	}
	n = s->pending.n - s->sent < max ? s->pending.n - s->sent : max;
	memcpy(buf, s->pending.s + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

static void end_stream(void *ctx)
{
	struct event_stream *s = ctx;

	pthread_mutex_lock(&s->hub->lock);
	s->hub->clients--;
	pthread_mutex_unlock(&s->hub->lock);
	strbuf_done(&s->pending);
	free(s);
}

struct MHD_Response *events_response(struct events *h, struct MHD_Connection *c, const char *types,
				     const char *last_id)
{
	struct event_stream *s = mem_alloc(sizeof(*s));
	uint64_t after = last_id ? strtoull(last_id, NULL, 10) : UINT64_MAX;

	s->hub = h;
	s->connection = c;
	snprintf(s->types, sizeof(s->types), "%s", types ?: "");
	/* So that the client has its headers at once. */
	strbuf_add(&s->pending, "retry: 3000\n\n");
	pthread_mutex_lock(&h->lock);
	s->next = after <= h->last ? after + 1 : h->last + 1;
	h->clients++;
	pthread_mutex_unlock(&h->lock);
	return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK, read_stream, s, end_stream);
}

size_t events_clients(struct events *h)
{
	size_t n;

	pthread_mutex_lock(&h->lock);
	n = h->clients;
	pthread_mutex_unlock(&h->lock);
	return n;
}

uint64_t events_missed(struct events *h)
{
	uint64_t n;

	pthread_mutex_lock(&h->lock);
	n = h->missed;
	pthread_mutex_unlock(&h->lock);
	return n;
}
