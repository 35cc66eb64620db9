/* Who may ask: rate, host name, origin, token. */
#include "guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "idmap.h"
#include "mem.h"

#define TOKENS_MAX	32
#define BUCKETS		1024 /* clients whose rate is known; a power of two */
#define PROBES		8
#define FAILURES_HZ	5 /* wrong tokens a second and client */

struct token {
	char text[TOKEN_BYTES_MAX]; /* padded with zeros */
	enum right right;
};

/* What a client may still do; refilled as time goes by. */
struct bucket {
	uint64_t client[2], since_ns;
	double left, failures;
};

struct guard {
	bool loopback, has_tokens;
	char own_name[256];
	VEC(struct token) tokens;
	VEC(char *) hosts;
	uint32_t rate_hz;
	pthread_mutex_t lock;
	struct bucket buckets[BUCKETS];
};

static int add_token(struct guard *g, char *line, unsigned number, const char *path, struct err *e)
{
	enum right right = RIGHT_CONTROL;
	char *text = line;
	struct token *t;
	size_t n;

	if (!strncmp(line, "read ", 5)) {
		right = RIGHT_READ;
		text = line + 5;
	} else if (!strncmp(line, "control ", 8)) {
		text = line + 8;
	}
	text += strspn(text, " \t");
	n = strcspn(text, " \t");
	if (n < TOKEN_BYTES_MIN || n >= TOKEN_BYTES_MAX || text[n + strspn(text + n, " \t")]) {
		err_msg(e, -EINVAL, "tokens '%s': line %u holds no token of %d to %d characters", path, number,
			TOKEN_BYTES_MIN, TOKEN_BYTES_MAX - 1);
		return err_hint(e, "make one: head -c 24 /dev/urandom | base64");
	}
	if (g->tokens.n >= TOKENS_MAX)
		return err_msg(e, -E2BIG, "tokens '%s': more than %d", path, TOKENS_MAX);
	t = vec_add(&g->tokens);
	memcpy(t->text, text, n);
	t->right = right;
	return 0;
}

static int read_tokens(struct guard *g, const char *path, struct err *e)
{
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	char line[TOKEN_BYTES_MAX + 64];
	unsigned number = 0;
	struct stat st;
	int rc = 0;

	if (!f)
		return err_set(e, -errno, "open tokens '%s'", path);
	if (fstat(fileno(f), &st) < 0 || !S_ISREG(st.st_mode))
		return err_msg(e, -EINVAL, "tokens '%s': no regular file", path);
	if (st.st_mode & 077) {
		err_msg(e, -EPERM, "tokens '%s': others may read or write it", path);
		return err_hint(e, "chmod 600 '%.200s'", path);
	}
	while (!rc && fgets(line, sizeof(line), f)) {
		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] && line[0] != '#')
			rc = add_token(g, line, number, path, e);
	}
	explicit_bzero(line, sizeof(line));
	if (!rc && !g->tokens.n)
		rc = err_msg(e, -EINVAL, "tokens '%s': there is none in it", path);
	return rc;
}

int guard_open(struct guard **ret, const struct guard_options *o, struct err *e)
{
	struct guard *g = mem_alloc(sizeof(*g));
	int rc = 0;

	g->loopback = o->loopback;
	g->rate_hz = o->rate_hz;
	g->has_tokens = o->token_file;
	pthread_mutex_init(&g->lock, NULL);
	gethostname(g->own_name, sizeof(g->own_name) - 1);
	for (size_t i = 0; i < o->nhosts; i++)
		vec_push(&g->hosts, mem_strdup(o->hosts[i]));
	if (o->token_file)
		rc = read_tokens(g, o->token_file, e);
	if (rc < 0) {
		guard_free(g);
		return rc;
	}
	*ret = g;
	return 0;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	if (g->tokens.n)
		explicit_bzero(g->tokens.v, g->tokens.n * sizeof(*g->tokens.v));
	vec_done(&g->tokens);
	vec_for(&g->hosts, h)
		free(*h);
	vec_done(&g->hosts);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* IPv6 clients by their network of 64 bits: one of them has all addresses in it. */
static void client_key(const struct sockaddr *a, uint64_t ret[2])
{
	ret[0] = ret[1] = 0;
	if (a && a->sa_family == AF_INET) {
		ret[0] = 4;
		ret[1] = ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr;
	} else if (a && a->sa_family == AF_INET6) {
		const struct in6_addr *in = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

		ret[0] = 6;
		memcpy(&ret[1], in, sizeof(ret[1]));
	}
}

/* The client's bucket; of those that its place may hold the one that was quiet longest is used again. */
static struct bucket *find_bucket(struct guard *g, const struct sockaddr *from, uint64_t now)
{
	uint64_t key[2];
	struct bucket *oldest = NULL;
	size_t at;

	client_key(from, key);
	at = hash_bytes(key, sizeof(key), 1);
	for (size_t i = 0; i < PROBES; i++) {
		struct bucket *b = &g->buckets[(at + i) & (BUCKETS - 1)];

		if (b->since_ns && b->client[0] == key[0] && b->client[1] == key[1])
			return b;
		if (!oldest || b->since_ns < oldest->since_ns)
			oldest = b;
	}
	*oldest = (struct bucket){{key[0], key[1]}, now, 2.0 * g->rate_hz, 2.0 * FAILURES_HZ};
	return oldest;
}

static struct bucket *refill(struct guard *g, const struct sockaddr *from)
{
	uint64_t now = clock_mono_ns();
	struct bucket *b = find_bucket(g, from, now);
	double s = (double)(now - b->since_ns) / 1e9;

	b->since_ns = now;
	b->left += s * g->rate_hz;
	b->failures += s * FAILURES_HZ;
	if (b->left > 2.0 * g->rate_hz)
		b->left = 2.0 * g->rate_hz;
	if (b->failures > 2.0 * FAILURES_HZ)
		b->failures = 2.0 * FAILURES_HZ;
	return b;
}

static bool too_often(struct guard *g, const struct sockaddr *from)
{
	struct bucket *b;
	bool refuse;

	if (!g->rate_hz)
		return false;
	pthread_mutex_lock(&g->lock);
	b = refill(g, from);
	refuse = b->left < 1;
	if (!refuse)
		b->left--;
	pthread_mutex_unlock(&g->lock);
	return refuse;
}

/* Guessing has an end long before a token of 16 characters is found. */
static bool guesses_too_often(struct guard *g, const struct sockaddr *from, bool failed)
{
	struct bucket *b;
	bool refuse;

	pthread_mutex_lock(&g->lock);
	b = refill(g, from);
	refuse = b->failures < 1;
	if (failed && !refuse)
		b->failures--;
	pthread_mutex_unlock(&g->lock);
	return refuse;
}

static bool is_loopback4(const struct in_addr *in)
{
	return ntohl(in->s_addr) >> 24 == 127;
}

static bool is_loopback6(const struct in6_addr *in)
{
	return IN6_IS_ADDR_LOOPBACK(in) || (IN6_IS_ADDR_V4MAPPED(in) && in->s6_addr[12] == 127);
}

bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return is_loopback4(&((const struct sockaddr_in *)(const void *)a)->sin_addr);
	if (a->sa_family == AF_INET6)
		return is_loopback6(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
	return a->sa_family == AF_UNIX;
}

/* "HOST", "HOST:PORT", "[V6]:PORT" → HOST. @return false: it is none of these */
static bool host_name(const char *text, char *ret, size_t size)
{
	const char *end;
	size_t n;

	if (*text == '[') {
		text++;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
	} else {
		end = text + strcspn(text, ":");
	}
	n = (size_t)(end - text);
	if (!n || n >= size)
		return false;
	memcpy(ret, text, n);
	ret[n] = '\0';
	return true;
}

/*
 * A page of somebody else can have its own name lead to this address, but then the browser tells that
 * name: only names that are ours pass, and numbers, which no name service can redirect.
 */
static bool host_is_ours(const struct guard *g, const char *host)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	char name[256];

	if (!host_name(host, name, sizeof(name)))
		return false;
	if (inet_pton(AF_INET, name, &v4.sin_addr) == 1)
		return !g->loopback || is_loopback4(&v4.sin_addr);
	if (inet_pton(AF_INET6, name, &v6.sin6_addr) == 1)
		return !g->loopback || is_loopback6(&v6.sin6_addr);
	if (!strcasecmp(name, "localhost") || (!g->loopback && !strcasecmp(name, g->own_name)))
		return true;
	vec_for(&g->hosts, h)
		if (!strcasecmp(*h, name))
			return true;
	return false;
}

static bool same_origin(const struct credentials *c)
{
	const char *scheme = c->tls ? "https://" : "http://";
	size_t n = strlen(scheme);

	return !c->origin || (c->host && !strncasecmp(c->origin, scheme, n) && !strcasecmp(c->origin + n, c->host));
}

/* @return number of bytes, or -1: no base64, or more than @p size */
static int base64_decode(const char *s, char *ret, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0, value = 0;
	size_t n = 0;

	for (; *s && *s != '='; s++) {
		const char *d = strchr(digits, *s);

		if (!d)
			return -1;
		value = (value << 6 | (unsigned)(d - digits)) & 0xffff;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (n >= size)
			return -1;
		ret[n++] = (char)(value >> bits & 0xff);
	}
	return (int)n;
}

/* `Bearer TOKEN`, or what browsers can do: `Basic` with the token as password. Padded with zeros. */
static bool given_token(const char *authorization, char ret[TOKEN_BYTES_MAX])
{
	char pair[TOKEN_BYTES_MAX + 64] = {0}, *token = pair;
	size_t n;

	if (authorization && !strncasecmp(authorization, "Bearer ", 7)) {
		n = strlen(authorization + 7);
		if (n >= sizeof(pair))
			return false;
		memcpy(pair, authorization + 7, n);
	} else if (authorization && !strncasecmp(authorization, "Basic ", 6)) {
		if (base64_decode(authorization + 6, pair, sizeof(pair) - 1) < 0)
			return false;
		token = strchr(pair, ':');
		if (!token)
			return false;
		token++;
	} else {
		return false;
	}
	n = strlen(token);
	if (n >= TOKEN_BYTES_MAX)
		return false;
	memset(ret, 0, TOKEN_BYTES_MAX);
	memcpy(ret, token, n);
	explicit_bzero(pair, sizeof(pair));
	return true;
}

/* All tokens in full, whatever was found: the time tells nothing of what was right. */
static enum right right_of(const struct guard *g, const char *authorization)
{
	char given[TOKEN_BYTES_MAX];
	unsigned right = RIGHT_NONE;

	if (!given_token(authorization, given))
		return RIGHT_NONE;
	vec_for(&g->tokens, t) {
		unsigned differ = 0;

		for (size_t i = 0; i < sizeof(given); i++)
			differ |= (unsigned char)given[i] ^ (unsigned char)t->text[i];
		/* All ones when nothing differs. */
		right |= (unsigned)t->right & (unsigned)(((int)differ - 1) >> 31);
	}
	explicit_bzero(given, sizeof(given));
	return right & RIGHT_CONTROL ? RIGHT_CONTROL : right & RIGHT_READ ? RIGHT_READ : RIGHT_NONE;
}

enum refusal guard_check(struct guard *g, const struct credentials *c, enum right wanted,
			 enum right *ret_right)
{
	*ret_right = RIGHT_NONE;
	if (too_often(g, c->from))
		return REFUSE_RATE;
	if (c->host && !host_is_ours(g, c->host))
		return REFUSE_HOST;
	if (!same_origin(c))
		return REFUSE_ORIGIN;
	if (!g->has_tokens) {
		*ret_right = RIGHT_CONTROL;
		return REFUSE_NOT;
	}
	if (guesses_too_often(g, c->from, false))
		return REFUSE_RATE;
	*ret_right = right_of(g, c->authorization);
	if (*ret_right == RIGHT_NONE)
		return guesses_too_often(g, c->from, true) ? REFUSE_RATE : REFUSE_TOKEN;
	return *ret_right < wanted ? REFUSE_RIGHT : REFUSE_NOT;
}
