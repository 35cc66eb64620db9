/* Analyses of the newest snapshot, and word of findings that come and go. */
#include "analyzer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "clock.h"
#include "fleet/fleet.h"
#include "flight.h"
#include "json.h"
#include "mem.h"
#include "render_findings.h"
#include "render_hot.h"
#include "render_topology.h"
#include "render_waitfor.h"
#include "server.h"
#include "studied.h"

#define REST_TIMES 4
#define LIST_MAX   50 /* of each list in an answer */

#define PAST_MAX   1000

/* A finding that was there last time: its rule and what it is about. */
struct known {
	char *key, *text;
	bool still;
	uint64_t first_ns, last_ns; /* of the windows that it was found in, since 1970 */
	uint64_t times;
};

struct analyzer {
	struct server *s;
	pthread_t thread;
	struct limits limits;
	struct analysis_means means;
	VEC(struct known) known;
	VEC(struct known) past; /* that are over, in that order; without their keys */
	uint64_t past_from_ns;	/* before this some were forgotten */
	pthread_mutex_t lock; /* of these and the counts, and for waiting */
	pthread_cond_t wake;
	bool quit;
	struct analyzer_counts counts;
};

/* An answer that says which snapshot it is of. */
static void render(const struct snapshot *snap, struct analysis *k, void (*write)(struct analysis *k, struct json_writer *w),
		   struct strbuf *b)
{
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, b, 0);
	json_write_object(&w);
	json_key_u64(&w, "snapshot", snap->seq);
	json_key_u64(&w, "start_ns", snap->start_ns);
	json_key_u64(&w, "end_ns", snap->end_ns);
	json_write_key(&w, "analysis");
	write(k, &w);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
}

static void write_topology(struct analysis *k, struct json_writer *w)
{
	struct topology_view v = {.parts = PARTS_ALL, .focus = TOPO_NONE};

	render_topology_json(&k->topology, &v, w);
}

static void write_waitfor(struct analysis *k, struct json_writer *w)
{
	struct waitfor_view v = {.limit = LIST_MAX};

	render_waitfor_json(&k->waits, k->study.g, &v, w);
}

static void write_hotspots(struct analysis *k, struct json_writer *w)
{
	struct hot_view v = {.limit = LIST_MAX, .waits = &k->waits};

	render_hot_json(&k->hot, &v, w);
}

static void write_finding(struct json_writer *w, struct graph *g, const struct finding *f)
{
	json_write_object(w);
	json_key_str(w, "rule", f->rule);
	json_key_str(w, "layer", layer_name(f->layer));
	json_key_str(w, "severity", severity_name(f->severity));
	json_key_u64(w, "confidence_pct", f->confidence_pct);
	json_key_str(w, "title", f->title);
	json_write_key(w, "root");
	json_write_str(w, f->root == NODE_NONE ? NULL : graph_node_id(g, f->root));
	json_write_key(w, "subjects");
	json_write_array(w);
	vec_for(&f->subjects, n)
		json_write_str(w, graph_node_id(g, *n));
	json_write_array_end(w);
	json_key_str(w, "why", f->why);
	json_write_key(w, "lost_ns");
	if (f->lost_basis)
		json_write_u64(w, f->lost_ns);
	else
		json_write_null(w);
	json_write_key(w, "advice");
	json_write_array(w);
	vec_for(&f->advice, a)
		json_write_str(w, *a);
	json_write_array_end(w);
	json_write_object_end(w);
}

static void write_bottlenecks(struct analysis *k, struct json_writer *w)
{
	struct findings_view v = {.least = SEVERITY_INFO};

	render_findings_json(&k->study, &k->findings, &v, w);
}

static void write_findings(struct analysis *k, struct json_writer *w)
{
	json_write_array(w);
	vec_for(&k->findings.v, f)
		write_finding(w, k->study.g, f);
	json_write_array_end(w);
}

/* Which finding it is, from one snapshot to the next: ids may change, but seldom do. */
static char *key_of(struct graph *g, const struct finding *f)
{
	struct strbuf b = {0};
	uint32_t about = f->root != NODE_NONE ? f->root : f->subjects.n ? f->subjects.v[0] : NODE_NONE;

	strbuf_addf(&b, "%s %s", f->rule, about == NODE_NONE ? "" : graph_node_id(g, about));
	return b.s;
}

static void tell(struct analyzer *z, const char *state, const char *text, uint64_t seq)
{
	struct strbuf b = {0};

	strbuf_addf(&b, "{\"state\":\"%s\",\"snapshot\":%" PRIu64 ",\"finding\":%s}", state, seq, text);
	events_put(z->s->events, "finding", b.s);
	strbuf_done(&b);
}

static void raise_finding(struct analyzer *z, struct analysis *k, const struct finding *f, char *key,
			  const struct snapshot *snap)
{
	struct strbuf text = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &text, 0);
	write_finding(&w, k->study.g, f);
	json_writer_finish(&w, &e);
	tell(z, "raised", text.s, snap->seq);
	vec_push(&z->known, ((struct known){key, text.s, true, snap->start_ns, snap->end_ns, 1}));
	z->counts.raised++;
	if (f->severity >= SEVERITY_WARNING && z->s->flight)
		flight_finding(z->s->flight, f->rule);
}

static void keep_past(struct analyzer *z, const struct known *gone)
{
	if (z->past.n >= PAST_MAX) {
		z->past_from_ns = z->past.v[0].last_ns;
		free(z->past.v[0].text);
		memmove(z->past.v, z->past.v + 1, (z->past.n - 1) * sizeof(*z->past.v));
		z->past.n--;
	}
	vec_push(&z->past, *gone);
}

static void clear_gone(struct analyzer *z, const struct snapshot *snap)
{
	size_t kept = 0;

	vec_for(&z->known, it) {
		if (it->still) {
			z->known.v[kept++] = *it;
			continue;
		}
		tell(z, "cleared", it->text, snap->seq);
		z->counts.cleared++;
		free(it->key);
		keep_past(z, it);
	}
	z->known.n = kept;
}

/* @return whether something came or went */
static bool compare(struct analyzer *z, struct analysis *k, const struct snapshot *snap)
{
	uint64_t before;

	pthread_mutex_lock(&z->lock);
	before = z->counts.raised + z->counts.cleared;
	memset(z->counts.current, 0, sizeof(z->counts.current));
	vec_for(&z->known, it)
		it->still = false;
	vec_for(&k->findings.v, f) {
		char *key = key_of(k->study.g, f);
		struct known *found = NULL;

		z->counts.current[f->severity]++;
		vec_for(&z->known, it)
			if (!strcmp(it->key, key))
				found = it;
		if (found) {
			found->still = true;
			found->last_ns = snap->end_ns;
			found->times++;
		}
		if (found || f->severity < SEVERITY_NOTICE)
			free(key);
		else
			raise_finding(z, k, f, key, snap);
	}
	clear_gone(z, snap);
	before = z->counts.raised + z->counts.cleared - before;
	pthread_mutex_unlock(&z->lock);
	return before > 0;
}

static const struct {
	enum rendering what;
	void (*write)(struct analysis *k, struct json_writer *w);
} texts[] = {{RENDER_TOPOLOGY, write_topology}, {RENDER_WAITFOR, write_waitfor},
	     {RENDER_HOTSPOTS, write_hotspots}, {RENDER_BOTTLENECKS, write_bottlenecks}, {RENDER_FINDINGS, write_findings}};
#define NTEXTS (sizeof(texts) / sizeof(texts[0]))

/* A host has its work to do. A fleet has its machine to itself: no longer than until the next graph is due. */
static uint64_t rest_after(const struct server *s, uint64_t took_ns)
{
	uint64_t interval = s->o->interval_ns, left = interval > took_ns ? interval - took_ns : 0;

	if (!s->fleet)
		return took_ns * REST_TIMES;
	return took_ns < left ? took_ns : left;
}

static void analyse(struct analyzer *z, struct snapshot *snap)
{
	struct hosts_memory_counts hosts = {0};
	struct strbuf made[NTEXTS] = {0};
	uint64_t began = clock_mono_ns(), one = 1;
	struct studied *k = mem_alloc(sizeof(*k));
	bool news;

	studied_init(k, snap, &z->limits, &z->means);
	for (size_t i = 0; i < NTEXTS; i++)
		render(snap, &k->all, texts[i].write, &made[i]);
	news = compare(z, &k->all, snap);
	studied_done(k);
	free(k);
	for (size_t i = 0; i < NTEXTS; i++)
		snapshot_keep_text(snap, texts[i].what, &made[i]);
	atomic_store_explicit(&snap->analysed, true, memory_order_release);
	if (z->means.memory)
		hosts_memory_get(z->means.memory, &hosts);
	pthread_mutex_lock(&z->lock);
	z->counts.hosts = hosts.hosts;
	z->counts.hosts_looked = hosts.looked;
	z->counts.analyses++;
	z->counts.last_ns = clock_mono_ns() - began;
	z->counts.busy_ns += z->counts.last_ns;
	z->counts.rest_ns = rest_after(z->s, z->counts.last_ns);
	z->counts.newest_ns = snap->end_ns;
	pthread_mutex_unlock(&z->lock);
	if (news && write(z->s->news_fd, &one, sizeof(one)) < 0)
		return;
}

static void rest(struct analyzer *z, uint64_t ns)
{
	uint64_t until = clock_mono_ns() + ns;
	struct timespec at = {.tv_sec = (time_t)(until / NS_PER_SEC), .tv_nsec = (long)(until % NS_PER_SEC)};

	pthread_mutex_lock(&z->lock);
	while (!z->quit && clock_mono_ns() < until)
		pthread_cond_timedwait(&z->wake, &z->lock, &at);
	pthread_mutex_unlock(&z->lock);
}

static void *run(void *ctx)
{
	struct analyzer *z = ctx;
	struct snapshot *snap;
	uint64_t seq = 0;

	prctl(PR_SET_NAME, "witty-analyse");
	while ((snap = board_wait(z->s->board, seq))) {
		seq = snap->seq;
		analyse(z, snap);
		snapshot_unref(snap);
		rest(z, z->counts.rest_ns);
	}
	return NULL;
}

int analyzer_start(struct analyzer **ret, struct server *s, struct err *e)
{
	struct analyzer *z = mem_alloc(sizeof(*z));
	pthread_condattr_t attr;
	int rc;

	z->s = s;
	z->limits = *s->o->limits;
	if (s->fleet)
		z->means = (struct analysis_means){.threads = fleet_threads(), .memory = hosts_memory_new()};
	pthread_mutex_init(&z->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&z->wake, &attr);
	pthread_condattr_destroy(&attr);
	rc = -pthread_create(&z->thread, NULL, run, z);
	if (rc < 0) {
		hosts_memory_free(z->means.memory);
		free(z);
		return err_set(e, rc, "start the analysing thread");
	}
	*ret = z;
	return 0;
}

void analyzer_stop(struct analyzer *z)
{
	if (!z)
		return;
	pthread_mutex_lock(&z->lock);
	z->quit = true;
	pthread_cond_broadcast(&z->wake);
	pthread_mutex_unlock(&z->lock);
	pthread_join(z->thread, NULL);
	vec_for(&z->known, it) {
		free(it->key);
		free(it->text);
	}
	vec_done(&z->known);
	vec_for(&z->past, it)
		free(it->text);
	vec_done(&z->past);
	hosts_memory_free(z->means.memory);
	pthread_cond_destroy(&z->wake);
	pthread_mutex_destroy(&z->lock);
	free(z);
}

static void write_past(struct json_writer *w, const struct known *f, bool current)
{
	json_write_object(w);
	json_key_u64(w, "first_ns", f->first_ns);
	json_key_u64(w, "last_ns", f->last_ns);
	json_key_u64(w, "analyses", f->times);
	json_write_key(w, "current");
	json_write_bool(w, current);
	json_write_key(w, "finding");
	json_write_raw(w, f->text, strlen(f->text));
	json_write_object_end(w);
}

uint64_t analyzer_between(struct analyzer *z, uint64_t from_ns, uint64_t to_ns, struct strbuf *b)
{
	struct json_writer w;
	uint64_t since;
	struct err e;

	json_writer_init_strbuf(&w, b, 0);
	json_write_array(&w);
	pthread_mutex_lock(&z->lock);
	vec_for(&z->past, f)
		if (f->first_ns <= to_ns && f->last_ns >= from_ns)
			write_past(&w, f, false);
	vec_for(&z->known, f)
		if (f->first_ns <= to_ns && f->last_ns >= from_ns)
			write_past(&w, f, true);
	since = z->past_from_ns;
	pthread_mutex_unlock(&z->lock);
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	return since;
}

void analyzer_get(struct analyzer *z, struct analyzer_counts *ret)
{
	pthread_mutex_lock(&z->lock);
	*ret = z->counts;
	pthread_mutex_unlock(&z->lock);
}
