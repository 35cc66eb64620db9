/* The protocol of NATS: lines, headers, and messages of known length. */
#include "fleet/nats.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "clock.h"
#include "fleet/fleet_json.h"
#include "fleet/nkey.h"
#include "json.h"
#include "mem.h"

#define LINE_MAX_BYTES (256u << 10) /* INFO of a large cluster */
#define READ_BYTES     (64u << 10)
#define SUBJECT_MAX    512
#define NONCE_MAX      128

struct nats {
	struct stream *s;
	struct strbuf in; /* received, from `at` on not yet used */
	size_t at;
	size_t payload_max;
	char inbox[64], reply[96];
	uint64_t asked; /* answers that were waited for */
	char subject[SUBJECT_MAX], to[SUBJECT_MAX];
	char nonce[NONCE_MAX]; /* that the server wants to have signed; "": none */
};

/* More bytes. @return 0, -ETIMEDOUT or another -errno */
static int fill(struct nats *n, uint64_t deadline_ns, struct err *e)
{
	ssize_t k;

	if (n->at && n->at == n->in.n) {
		/* What a large message took is given back. */
		if (n->in.cap > 4 * READ_BYTES)
			strbuf_done(&n->in);
		strbuf_clear(&n->in);
		n->at = 0;
	} else if (n->at > READ_BYTES) {
		memmove(n->in.s, n->in.s + n->at, n->in.n - n->at + 1);
		n->in.n -= n->at;
		n->at = 0;
	}
	strbuf_reserve(&n->in, READ_BYTES);
	stream_deadline(n->s, deadline_ns);
	k = stream_read(n->s, n->in.s + n->in.n, READ_BYTES - 1, e);
	if (k < 0)
		return (int)k;
	if (!k)
		return err_msg(e, -EPIPE, "NATS: the server hung up");
	n->in.n += (size_t)k;
	n->in.s[n->in.n] = '\0';
	return 0;
}

/* A line without CR LF, which is replaced by NUL. It is used up only when it is whole. */
static int read_line(struct nats *n, char **ret, uint64_t deadline_ns, struct err *e)
{
	size_t seen = 0;

	for (;;) {
		char *begin = n->in.s ? n->in.s + n->at : NULL;
		char *end = begin ? memchr(begin + seen, '\n', n->in.n - n->at - seen) : NULL;
		int rc;

		if (end) {
			n->at = (size_t)(end + 1 - n->in.s);
			if (end > begin && end[-1] == '\r')
				end--;
			*end = '\0';
			*ret = begin;
			return 0;
		}
		seen = n->in.n - n->at;
		if (seen > LINE_MAX_BYTES)
			return err_msg(e, -EPROTO, "NATS: a line is too long");
		rc = fill(n, deadline_ns, e);
		if (rc < 0)
			return rc;
	}
}

/* Have @p size bytes there, from n->at on. */
static int need(struct nats *n, size_t size, uint64_t deadline_ns, struct err *e)
{
	while (n->in.n - n->at < size) {
		int rc = fill(n, deadline_ns, e);

		if (rc < 0)
			/* In the middle of a message there is no going on. */
			return rc == -ETIMEDOUT ? err_msg(e, -EIO, "NATS: a message does not arrive whole") : rc;
	}
	return 0;
}

static int send_all(struct nats *n, const void *p, size_t size, uint64_t deadline_ns, struct err *e)
{
	int rc;

	stream_deadline(n->s, deadline_ns);
	rc = stream_write(n->s, p, size, e);
	/* Cut off within a line: the rest cannot follow later. */
	return rc == -ETIMEDOUT ? err_msg(e, -EIO, "NATS: the server does not read") : rc;
}

static bool read_size(const char *s, size_t *ret)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*s))
		return false;
	v = strtoull(s, &end, 10);
	*ret = (size_t)v;
	return !*end && v <= NATS_BODY_MAX;
}

/* "SUBJECT SID [REPLY] [HEADER-BYTES] BYTES" */
static int read_head(struct nats *n, char *words, bool headers, size_t *ret_headers, size_t *ret_all, struct err *e)
{
	char *word[6], *save = NULL;
	size_t count = 0, least = headers ? 4 : 3;

	for (char *w = strtok_r(words, " \t", &save); w && count < 6; w = strtok_r(NULL, " \t", &save))
		word[count++] = w;
	*ret_headers = 0;
	if (count < least || count > least + 1 || strlen(word[0]) >= SUBJECT_MAX ||
	    (count > least && strlen(word[2]) >= SUBJECT_MAX) || !read_size(word[count - 1], ret_all) ||
	    (headers && (!read_size(word[count - 2], ret_headers) || *ret_headers > *ret_all)))
		return err_msg(e, -EPROTO, "NATS: the server announces a message in a way that is not known");
	strcpy(n->subject, word[0]);
	strcpy(n->to, count > least ? word[2] : "");
	return 0;
}

static int read_message(struct nats *n, char *words, bool headers, struct nats_message *ret, uint64_t deadline_ns,
			struct err *e)
{
	size_t head = 0, all = 0;
	int rc = read_head(n, words, headers, &head, &all, e);

	rc = rc ?: need(n, all + 2, deadline_ns, e);
	if (rc < 0)
		return rc;
	memset(ret, 0, sizeof(*ret));
	ret->subject = n->subject;
	ret->reply = n->to;
	ret->headers = head ? n->in.s + n->at : NULL;
	ret->headers_n = head;
	ret->data = n->in.s + n->at + head;
	ret->n = all - head;
	/* In place of the CR: texts end. */
	n->in.s[n->at + all] = '\0';
	if (head > 12 && !strncmp(ret->headers, "NATS/1.0 ", 9))
		ret->status = (unsigned)strtoul(ret->headers + 9, NULL, 10);
	n->at += all + 2;
	return 1;
}

static int refused(const char *line, struct err *e)
{
	return err_msg(e, strstr(line, "Maximum Payload") ? -EBADMSG : strstr(line, "uthorization") ? -EACCES : -EIO,
		       "NATS: %.150s", line);
}

int nats_next(struct nats *n, struct nats_message *ret, uint64_t deadline_ns, struct err *e)
{
	for (;;) {
		char *line;
		int rc = read_line(n, &line, deadline_ns, e);

		if (rc < 0)
			return rc == -ETIMEDOUT ? 0 : rc;
		if (!strncasecmp(line, "MSG ", 4) || !strncasecmp(line, "HMSG ", 5)) {
			bool headers = toupper((unsigned char)*line) == 'H';

			/* The rest of a message that has begun has time of its own. */
			return read_message(n, line + (headers ? 5 : 4), headers, ret,
					    clock_mono_ns() + 10 * NS_PER_SEC, e);
		}
		if (!strcasecmp(line, "PING"))
			rc = send_all(n, "PONG\r\n", 6, clock_mono_ns() + 10 * NS_PER_SEC, e);
		else if (!strncasecmp(line, "-ERR", 4))
			rc = refused(line, e);
		if (rc < 0)
			return rc;
	}
}

static int await_pong(struct nats *n, uint64_t deadline_ns, struct err *e)
{
	for (;;) {
		char *line;
		int rc = read_line(n, &line, deadline_ns, e);

		if (rc < 0)
			return rc;
		if (!strcasecmp(line, "PONG"))
			return 0;
		if (!strcasecmp(line, "PING"))
			rc = send_all(n, "PONG\r\n", 6, deadline_ns, e);
		else if (!strncasecmp(line, "-ERR", 4))
			rc = refused(line, e);
		if (rc < 0)
			return rc;
	}
}

int nats_flush(struct nats *n, uint64_t deadline_ns, struct err *e)
{
	int rc = send_all(n, "PING\r\n", 6, deadline_ns, e);

	return rc ?: await_pong(n, deadline_ns, e);
}

static void add_text(struct strbuf *b, const char *name, const char *text)
{
	if (!text)
		return;
	strbuf_addf(b, ",\"%s\":", name);
	json_quote(b, text, strlen(text), 0);
}

/* The server's nonce, signed: the key itself stays here. */
static int add_signature(const struct nats *n, struct strbuf *b, const char *path, struct err *e)
{
	char signature[NKEY_SIGNATURE_BYTES];
	struct nkey k;
	int rc;

	if (!n->nonce[0])
		return err_msg(e, -EACCES, "NATS: the server asks for no signature, and there are credentials");
	rc = nkey_read(&k, path, e);
	if (rc < 0)
		return rc;
	rc = nkey_sign(&k, n->nonce, signature, e);
	if (!rc) {
		add_text(b, "jwt", k.jwt);
		add_text(b, "nkey", k.jwt ? NULL : k.name);
		add_text(b, "sig", signature);
	}
	nkey_done(&k);
	return rc;
}

static int greet(struct nats *n, const struct nats_options *o, uint64_t deadline_ns, struct err *e)
{
	const struct login *l = &o->login;
	struct strbuf b = {0};
	int rc = 0;

	strbuf_add(&b, "CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"witty-profiler\",\"lang\":\"c\",\"version\":\""
		       WITTY_VERSION "\",\"protocol\":1,\"headers\":true,\"no_responders\":true,\"echo\":false");
	add_text(&b, "auth_token", l->token);
	add_text(&b, "user", l->user);
	add_text(&b, "pass", l->password);
	if (l->credentials_file)
		rc = add_signature(n, &b, l->credentials_file, e);
	strbuf_add(&b, "}\r\n");
	if (!o->only_sends)
		strbuf_addf(&b, "SUB %s.* 1\r\n", n->inbox);
	strbuf_add(&b, "PING\r\n");
	rc = rc ?: send_all(n, b.s, b.n, deadline_ns, e);
	explicit_bzero(b.s, b.n);
	strbuf_done(&b);
	return rc ?: await_pong(n, deadline_ns, e);
}

static int connect_to(struct nats *n, const struct nats_options *o, const struct url *u, uint64_t deadline_ns,
		      struct err *e)
{
	uint64_t most;
	char *info;
	bool tls;
	int rc = stream_open(&n->s, u, deadline_ns, e);

	rc = rc ?: read_line(n, &info, deadline_ns, e);
	if (rc < 0)
		return rc;
	if (strncasecmp(info, "INFO ", 5))
		return err_msg(e, -EPROTO, "NATS: the server does not say INFO");
	if (!fleet_json_bool(info + 5, "headers"))
		return err_msg(e, -EPROTO, "NATS: a server before 2.2, without headers");
	fleet_json_text(info + 5, "nonce", n->nonce, sizeof(n->nonce));
	tls = !strcmp(u->scheme, "tls") || fleet_json_bool(info + 5, "tls_required");
	most = fleet_json_u64(info + 5, "max_payload", 1 << 20);
	n->payload_max = most < NATS_BODY_MAX ? (size_t)most : NATS_BODY_MAX;
	if (tls) {
		/* Whatever came in the clear behind INFO is nothing to go by. */
		strbuf_clear(&n->in);
		n->at = 0;
		rc = stream_secure(n->s, u, &o->login, e);
	}
	return rc ?: greet(n, o, deadline_ns, e);
}

int nats_open(struct nats **ret, const struct nats_options *o, uint64_t deadline_ns, struct err *e)
{
	uint64_t random[2] = {clock_real_ns(), clock_mono_ns()};
	size_t first;
	int rc = err_msg(e, -EINVAL, "no server is named");

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) < 0)
		random[1] ^= (uint64_t)(uintptr_t)ret;
	first = o->n ? (size_t)(random[0] % o->n) : 0;
	for (size_t i = 0; i < o->n; i++) {
		const struct url *u = &o->servers[(first + i) % o->n];
		struct nats *n = mem_alloc(sizeof(*n));
		uint64_t now = clock_mono_ns(), left = deadline_ns > now ? deadline_ns - now : 0;

		snprintf(n->inbox, sizeof(n->inbox), "_INBOX.%016" PRIx64 "%08x", random[1],
			 (unsigned)(random[0] >> 32));
		rc = connect_to(n, o, u, now + left / (o->n - i), e);
		if (!rc) {
			*ret = n;
			return 0;
		}
		err_ctx(e, "%s://%s:%u", u->scheme, u->host, u->port);
		nats_close(n);
	}
	return rc;
}

void nats_close(struct nats *n)
{
	if (!n)
		return;
	stream_close(n->s);
	strbuf_done(&n->in);
	free(n);
}

size_t nats_payload_max(const struct nats *n)
{
	return n->payload_max;
}

const char *nats_inbox(struct nats *n)
{
	snprintf(n->reply, sizeof(n->reply), "%s.%" PRIu64, n->inbox, ++n->asked);
	return n->reply;
}

int nats_publish(struct nats *n, const char *subject, const char *reply, const char *headers, const void *data,
		 size_t size, uint64_t deadline_ns, struct err *e)
{
	struct strbuf b = {0};
	size_t head = *headers ? strlen("NATS/1.0\r\n\r\n") + strlen(headers) : 0;
	int rc;

	if (head)
		strbuf_addf(&b, "HPUB %s %s%s%zu %zu\r\nNATS/1.0\r\n%s\r\n", subject, reply, *reply ? " " : "", head,
			    head + size, headers);
	else
		strbuf_addf(&b, "PUB %s %s%s%zu\r\n", subject, reply, *reply ? " " : "", size);
	strbuf_addn(&b, data, size);
	strbuf_add(&b, "\r\n");
	rc = send_all(n, b.s, b.n, deadline_ns, e);
	strbuf_done(&b);
	return rc;
}

int nats_request(struct nats *n, const char *subject, const char *headers, const void *data, size_t size,
		 struct nats_message *ret, uint64_t deadline_ns, struct err *e)
{
	char inbox[sizeof(n->reply)];
	int rc;

	snprintf(inbox, sizeof(inbox), "%s", nats_inbox(n));
	rc = nats_publish(n, subject, inbox, headers, data, size, deadline_ns, e);
	while (!rc) {
		rc = nats_next(n, ret, deadline_ns, e);
		if (!rc)
			return err_msg(e, -ETIMEDOUT, "NATS: no answer in time");
		if (rc > 0)
			rc = strcmp(ret->subject, inbox) ? 0 : 1;
	}
	if (rc < 0)
		return rc;
	if (ret->status == 503)
		return err_msg(e, -ENOENT, "NATS: nobody takes '%.200s'", subject);
	return 0;
}
