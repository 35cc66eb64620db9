/* HTTP by libmicrohttpd: from a connection to a route's answer, within limits. */
#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "mem.h"
#include "server.h"

#define BODY_MAX     (64u << 10)
#define MEMORY_MAX   (32u << 10) /* of a connection: its request line and headers */
#define TARGET_MAX   4096	 /* bytes of path */
#define KEY_FILE_MAX (1u << 20)
#define ANSWER_S     60 /* to take an answer */
#define TICK_WAIT_NS (15 * NS_PER_SEC)

enum phase { PHASE_FREE, PHASE_READING, PHASE_ANSWERING, PHASE_STREAM };

/* A connection, from accept to close. */
struct slot {
	int fd;
	enum phase phase;
	uint64_t since_ns; /* monotonic, of the phase */
};

struct http {
	struct server *s;
	struct MHD_Daemon *daemon;
	int fd;
	char *cert, *key;
	pthread_mutex_t lock; /* of the slots */
	struct slot *slots;   /* [nslots] */
	size_t nslots, used;
	atomic_uint_fast64_t requests[6], refused[REFUSE_COUNT], timed_out, too_large, busy_ns;
};

/* One request. */
struct call {
	const struct route *route;
	char *rest;
	enum right right;
	struct strbuf body;
	bool too_large, answered, waiting;
	uint64_t tick, waiting_since_ns;
	unsigned status;
};

static struct slot *slot_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static void set_phase(struct http *h, struct slot *s, enum phase p)
{
	if (!s)
		return;
	pthread_mutex_lock(&h->lock);
	s->phase = p;
	s->since_ns = clock_mono_ns();
	pthread_mutex_unlock(&h->lock);
}

static void on_connection(void *ctx, struct MHD_Connection *c, void **socket_ctx,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http *h = ctx;

	pthread_mutex_lock(&h->lock);
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		for (size_t k = 0; i && k < h->nslots && !*socket_ctx; k++)
			if (h->slots[k].phase == PHASE_FREE) {
				h->slots[k] = (struct slot){i->connect_fd, PHASE_READING, clock_mono_ns()};
				*socket_ctx = &h->slots[k];
				h->used++;
			}
	} else if (*socket_ctx) {
		((struct slot *)*socket_ctx)->phase = PHASE_FREE;
		*socket_ctx = NULL;
		h->used--;
	}
	pthread_mutex_unlock(&h->lock);
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **call_ctx,
			 enum MHD_RequestTerminationCode how)
{
	struct http *h = ctx;
	struct call *k = *call_ctx;

	set_phase(h, slot_of(c), PHASE_READING);
	if (!k)
		return;
	atomic_fetch_add(&h->requests[k->answered && k->status < 600 ? k->status / 100 : 0], 1);
	strbuf_done(&k->body);
	free(k->rest);
	free(k);
	*call_ctx = NULL;
}

void http_sweep(struct http *h)
{
	uint64_t now = clock_mono_ns();

	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->nslots; i++) {
		struct slot *s = &h->slots[i];
		uint64_t most = s->phase == PHASE_READING ? h->s->o->timeout_s : ANSWER_S;

		if (s->phase == PHASE_FREE || s->phase == PHASE_STREAM || now < s->since_ns + most * NS_PER_SEC)
			continue;
		atomic_fetch_add(&h->timed_out, 1);
		shutdown(s->fd, SHUT_RDWR);
		s->since_ns = now;
	}
	pthread_mutex_unlock(&h->lock);
}

static void release(void *ctx)
{
	snapshot_unref(ctx);
}

static struct MHD_Response *body_response(struct reply *a)
{
	struct MHD_Response *r;
	void *text;

	if (a->has_file)
		return MHD_create_response_from_fd64(a->file_bytes, a->file_fd);
	if (a->borrowed && a->holds && !a->body.n) {
		r = MHD_create_response_from_buffer_with_free_callback_cls(
			a->borrowed->n, a->borrowed->n ? a->borrowed->s : (void *)(uintptr_t)"", release, a->holds);
		if (r)
			a->holds = NULL;
		return r;
	}
	text = a->body.s;
	r = text ? MHD_create_response_from_buffer(a->body.n, text, MHD_RESPMEM_MUST_FREE)
		 : MHD_create_response_from_buffer(0, (void *)(uintptr_t)"", MHD_RESPMEM_PERSISTENT);
	if (r)
		memset(&a->body, 0, sizeof(a->body));
	return r;
}

static void add_headers(struct MHD_Connection *c, struct MHD_Response *r, const struct reply *a,
			const struct route *route, unsigned status)
{
	const char *mime = a->mime ?: route ? route->mime : "application/json";
	char text[300];

	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, mime);
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	MHD_add_response_header(r, "Vary", "Accept, Accept-Encoding");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
	if (!strncmp(mime, "text/html", 9))
		MHD_add_response_header(r, "Content-Security-Policy",
					"default-src 'none'; script-src 'unsafe-inline'; style-src "
					"'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; "
					"form-action 'none'; frame-ancestors 'none'");
	if (a->encoding != ENCODING_PLAIN)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING,
					encoding_name(a->encoding));
	if (a->etag[0]) {
		snprintf(text, sizeof(text), "\"%s%s%s\"", a->etag,
			 a->encoding == ENCODING_PLAIN ? "" : "-",
			 a->encoding == ENCODING_PLAIN ? "" : encoding_name(a->encoding));
		MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, text);
	}
	if (a->file_name[0]) {
		snprintf(text, sizeof(text), "attachment; filename=\"%s\"", a->file_name);
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_DISPOSITION, text);
	}
	if (a->retry_after_s) {
		snprintf(text, sizeof(text), "%u", a->retry_after_s);
		MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, text);
	}
	if (status == 401)
		MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"witty-profiler\"");
}

/* Without "-gzip" at the end, or another encoding's name. */
static size_t bare_length(const char *tag, size_t n)
{
	for (int i = ENCODING_GZIP; i < ENCODING_COUNT; i++) {
		size_t name = strlen(encoding_name(i));

		if (n > name + 1 && tag[n - name - 1] == '-' &&
		    !memcmp(tag + n - name, encoding_name(i), name))
			return n - name - 1;
	}
	return n;
}

/* `"A"`, `W/"A", "B-gzip"` or `*` against our tag, whichever encoding it was sent in. */
static bool etag_matches(const char *sent, const char *tag)
{
	size_t n = strlen(tag);

	if (!sent || !n)
		return false;
	if (!strcmp(sent, "*"))
		return true;
	for (const char *at = strchr(sent, '"'); at; at = strchr(at, '"')) {
		const char *end = strchr(++at, '"');
		size_t len = end ? bare_length(at, (size_t)(end - at)) : 0;

		if (end && len == n && !memcmp(at, tag, n))
			return true;
		if (!end)
			return false;
		at = end + 1;
	}
	return false;
}

static void drop_reply(struct reply *a)
{
	strbuf_done(&a->body);
	snapshot_unref(a->holds);
	if (a->has_file)
		close(a->file_fd);
}

static enum MHD_Result send_reply(struct http *h, struct MHD_Connection *c, struct call *k, struct reply *a,
				  const struct request *r)
{
	unsigned status = a->status ?: 200;
	struct MHD_Response *resp;
	enum MHD_Result rc;

	if (status == 200 && r && etag_matches(r->if_none_match, a->etag)) {
		status = 304;
		strbuf_done(&a->body);
		resp = MHD_create_response_from_buffer(0, (void *)(uintptr_t)"", MHD_RESPMEM_PERSISTENT);
	} else if (a->stream) {
		const char *types = request_arg(r, "types");

		resp = events_response(h->s->events, c, types, r->last_event_id);
	} else {
		resp = body_response(a);
		if (resp)
			a->has_file = false;
	}
	if (!resp) {
		drop_reply(a);
		return MHD_NO;
	}
	add_headers(c, resp, a, k->route, status);
	if (status == 405) {
		struct strbuf b = {0};

		route_allow(strbuf_str(&k->body), &b);
		MHD_add_response_header(resp, MHD_HTTP_HEADER_ALLOW, strbuf_str(&b));
		strbuf_done(&b);
	}
	k->status = status;
	k->answered = true;
	set_phase(h, slot_of(c), a->stream && status == 200 ? PHASE_STREAM : PHASE_ANSWERING);
	rc = MHD_queue_response(c, status, resp);
	MHD_destroy_response(resp);
	drop_reply(a);
	return rc;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result refuse(struct http *h, struct MHD_Connection *c, struct call *k, enum refusal why)
{
	static const struct {
		unsigned status;
		const char *text;
	} said[REFUSE_COUNT] = {
		[REFUSE_RATE] = {429, "too many requests from this address"},
		[REFUSE_HOST] = {403, "the name in Host is not one of this server: see --allow-host"},
		[REFUSE_ORIGIN] = {403, "pages of other servers may not ask"},
		[REFUSE_TOKEN] = {401, "a token is needed: Authorization: Bearer TOKEN"},
		[REFUSE_RIGHT] = {403, "this token may read, but not control"},
	};
	struct reply a = {0};

	atomic_fetch_add(&h->refused[why], 1);
	reply_error(&a, said[why].status, "%s", said[why].text);
	if (why == REFUSE_RATE)
		a.retry_after_s = 1;
	return send_reply(h, c, k, &a, NULL);
}

static enum MHD_Result begin(struct http *h, struct MHD_Connection *c, struct call *k, const char *path,
			     const char *method)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct credentials who = {.from = i ? i->client_addr : NULL, .host = header(c, "Host"),
				  .origin = header(c, "Origin"), .authorization = header(c, "Authorization"),
				  .tls = h->s->o->cert_file};
	const char *length = header(c, "Content-Length"), *rest;
	struct reply a = {0};
	enum refusal why;
	bool known;

	k->route = route_find(method, path, &rest, &known);
	why = guard_check(h->s->guard, &who, k->route ? k->route->right : RIGHT_READ, &k->right);
	if (why != REFUSE_NOT)
		return refuse(h, c, k, why);
	if (!k->route && known) {
		strbuf_add(&k->body, path);
		reply_error(&a, 405, "Method Not Allowed");
		return send_reply(h, c, k, &a, NULL);
	}
	if (!k->route || strlen(path) > TARGET_MAX) {
		reply_error(&a, 404, "Not Found");
		return send_reply(h, c, k, &a, NULL);
	}
	/* MHD has decoded it. */
	if (rest)
		k->rest = mem_strdup(rest);
	if (length && strtoull(length, NULL, 10) > (k->route->takes_body ? BODY_MAX : 4096)) {
		atomic_fetch_add(&h->too_large, 1);
		reply_error(&a, 413, "the body is larger than %u bytes", BODY_MAX);
		return send_reply(h, c, k, &a, NULL);
	}
	return MHD_YES;
}

struct query {
	size_t n, at;
	struct {
		const char *name, *value;
	} v[ROUTE_PARAMS_MAX + 1];
};

static enum MHD_Result add_argument(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query *q = ctx;

	(void)kind;
	if (q->n > ROUTE_PARAMS_MAX)
		return MHD_NO;
	q->v[q->n].name = name;
	q->v[q->n++].value = value;
	return MHD_YES;
}

static bool next_argument(void *ctx, const char **name, const char **value)
{
	struct query *q = ctx;

	if (q->at >= q->n)
		return false;
	*name = q->v[q->at].name;
	*value = q->v[q->at++].value;
	return true;
}

static bool put_off(struct http *h, struct MHD_Connection *c, struct call *k, const struct reply *a)
{
	uint64_t now = clock_mono_ns();

	if (!k->waiting)
		k->waiting_since_ns = now;
	k->waiting = true;
	k->tick = a->tick;
	return now < k->waiting_since_ns + TICK_WAIT_NS && events_put_off(h->s->events, c);
}

static enum MHD_Result answer(struct http *h, struct MHD_Connection *c, struct call *k)
{
	const char *accept = header(c, "Accept");
	struct request r = {.route = k->route, .rest = k->rest, .right = k->right, .body = strbuf_str(&k->body),
			    .body_n = k->body.n, .if_none_match = header(c, "If-None-Match"),
			    .last_event_id = header(c, "Last-Event-ID"), .passed = k->waiting, .tick = k->tick};
	struct query q = {0};
	struct reply a = {0};
	uint64_t began = clock_mono_ns();

	r.wants_html = accept && strstr(accept, "text/html");
	r.wants = encoding_choose(header(c, "Accept-Encoding"));
	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, add_argument, &q);
	if (k->too_large)
		reply_error(&a, 413, "the body is larger than %u bytes", BODY_MAX);
	else if (!route_arguments(k->route, next_argument, &q, &r, &a))
		k->route->answer(h->s, &r, &a);
	if (!a.has_file && !a.borrowed) {
		struct strbuf packed = {0};

		if (encoding_pack(r.wants, &a.body, &packed)) {
			strbuf_done(&a.body);
			a.body = packed;
			a.encoding = r.wants;
		}
	}
	atomic_fetch_add(&h->busy_ns, clock_mono_ns() - began);
	if (a.wait_tick) {
		if (put_off(h, c, k, &a))
			return MHD_YES;
		a.wait_tick = false;
		reply_error(&a, 500, "no collection ended within %llu s", TICK_WAIT_NS / NS_PER_SEC);
	}
	return send_reply(h, c, k, &a, &r);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *path, const char *method,
				  const char *version, const char *data, size_t *data_n, void **call_ctx)
{
	struct http *h = ctx;
	struct call *k = *call_ctx;

	(void)version;
	if (!k) {
		k = *call_ctx = mem_alloc(sizeof(*k));
		return begin(h, c, k, path, method);
	}
	if (*data_n) {
		if (k->body.n + *data_n > BODY_MAX) {
			if (!k->too_large)
				atomic_fetch_add(&h->too_large, 1);
			k->too_large = true;
		} else {
			strbuf_addn(&k->body, data, *data_n);
		}
		*data_n = 0;
		return MHD_YES;
	}
	if (k->answered)
		return MHD_YES;
	return answer(h, c, k);
}

static int load_pem(const char *path, bool secret, char **ret, struct err *e)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_size > KEY_FILE_MAX)
		return err_msg(e, -EINVAL, "'%s' is no file of PEM", path);
	if (secret && st.st_mode & 077) {
		err_msg(e, -EPERM, "key '%s': others may read or write it", path);
		return err_hint(e, "chmod 600 '%.200s'", path);
	}
	*ret = mem_alloc((size_t)st.st_size + 1);
	n = read(fd, *ret, (size_t)st.st_size);
	return n < 0 ? err_set(e, -errno, "read '%s'", path) : 0;
}

static int open_socket(struct http *h, uint16_t *ret_port, struct err *e)
{
	const struct serve_options *o = h->s->o;
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				 .ai_socktype = SOCK_STREAM},
			*list = NULL;
	struct sockaddr_storage own;
	socklen_t size = sizeof(own);
	char port[8];
	int rc, on = 1;

	snprintf(port, sizeof(port), "%u", o->port);
	if (getaddrinfo(o->host, port, &hints, &list))
		return err_msg(e, -EINVAL, "listen at '%s': no address of IPv4 or IPv6", o->host);
	h->fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(h->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (list->ai_family == AF_INET6)
		setsockopt(h->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	rc = h->fd < 0 || bind(h->fd, list->ai_addr, list->ai_addrlen) < 0 || listen(h->fd, 511) < 0 ? -errno : 0;
	freeaddrinfo(list);
	if (rc == -EADDRINUSE) {
		err_set(e, rc, "listen at %s port %u", o->host, o->port);
		return err_hint(e, "another program has that port: choose one with --listen ADDRESS:PORT");
	}
	if (rc)
		return err_set(e, rc, "listen at %s port %u", o->host, o->port);
	getsockname(h->fd, (struct sockaddr *)&own, &size);
	*ret_port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&own)->sin6_port
						    : ((struct sockaddr_in *)(void *)&own)->sin_port);
	return 0;
}

int http_open(struct http **ret, struct server *s, uint16_t *ret_port, struct err *e)
{
	struct http *h = mem_alloc(sizeof(*h));
	int rc;

	h->s = s;
	h->fd = -1;
	h->nslots = s->o->clients + 16;
	h->slots = mem_alloc(h->nslots * sizeof(*h->slots));
	pthread_mutex_init(&h->lock, NULL);
	rc = s->o->cert_file ? load_pem(s->o->cert_file, false, &h->cert, e) : 0;
	rc = rc ?: s->o->key_file ? load_pem(s->o->key_file, true, &h->key, e) : 0;
	rc = rc ?: open_socket(h, ret_port, e);
	if (rc < 0) {
		http_close(h);
		return rc;
	}
	*ret = h;
	return 0;
}

static void log_mhd(void *ctx, const char *fmt, va_list ap)
{
	char text[300];

	(void)ctx;
	if (!(log_on & 1U << LOG_SERVE))
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	log_debug(SERVE, "%s", text);
}

int http_start(struct http *h, struct err *e)
{
	const struct serve_options *o = h->s->o;
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
			 MHD_USE_ITC | (h->cert ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, h->cert},
				       {MHD_OPTION_HTTPS_MEM_KEY, 0, h->key},
				       {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
				       {MHD_OPTION_END, 0, NULL}};

	h->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, log_mhd, h,
		MHD_OPTION_LISTEN_SOCKET, h->fd, MHD_OPTION_THREAD_POOL_SIZE, o->threads,
		MHD_OPTION_CONNECTION_LIMIT, o->clients, MHD_OPTION_CONNECTION_TIMEOUT, o->timeout_s,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
		h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_ARRAY, h->cert ? tls : tls + 3, MHD_OPTION_END);
	if (!h->daemon) {
		err_msg(e, -EINVAL, "cannot start the HTTP server%s",
			h->cert ? ": are certificate and key PEM, and do they belong together?" : "");
		return -EINVAL;
	}
	h->fd = -1; /* now of the daemon */
	return 0;
}

void http_quiesce(struct http *h)
{
	/* Its threads may still be about to use it: it is closed after they have ended. */
	if (h->daemon)
		h->fd = MHD_quiesce_daemon(h->daemon);
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	if (h->fd >= 0)
		close(h->fd);
	free(h->cert);
	if (h->key)
		explicit_bzero(h->key, strlen(h->key));
	free(h->key);
	free(h->slots);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

void http_get(struct http *h, struct http_counts *ret)
{
	for (size_t i = 0; i < 6; i++)
		ret->requests[i] = atomic_load(&h->requests[i]);
	for (size_t i = 0; i < REFUSE_COUNT; i++)
		ret->refused[i] = atomic_load(&h->refused[i]);
	ret->timed_out = atomic_load(&h->timed_out);
	ret->too_large = atomic_load(&h->too_large);
	ret->busy_ns = atomic_load(&h->busy_ns);
	pthread_mutex_lock(&h->lock);
	ret->connections = h->used;
	pthread_mutex_unlock(&h->lock);
}
