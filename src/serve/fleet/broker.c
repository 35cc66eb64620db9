/* The table of brokers, and their addresses. */
#include "fleet/broker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "mem.h"

#define SERVERS_MAX 16
#define NAME_DEFAULT "witty"

static const struct broker_backend *const backends[] = {&broker_nats,
#ifdef HAVE_KAFKA
							&broker_kafka,
#endif
							NULL};

void deliveries_clear(struct deliveries *d)
{
	vec_for(&d->v, it) {
		free(it->data);
		free(it->handle);
	}
	vec_clear(&d->v);
	d->pending = UINT64_MAX;
}

void deliveries_done(struct deliveries *d)
{
	deliveries_clear(d);
	vec_done(&d->v);
}

static const struct broker_backend *find(const char *address)
{
	const char *end = strstr(address, "://");
	char word[16];

	if (!end || end == address || (size_t)(end - address) > sizeof(word) - 3)
		return NULL;
	snprintf(word, sizeof(word), "|%.*s|", (int)(end - address), address);
	for (const struct broker_backend *const *k = backends; *k; k++)
		if (strcasestr((*k)->schemes, word))
			return *k;
	return NULL;
}

bool broker_is_address(const char *address)
{
	return find(address);
}

int broker_open(struct broker **ret, const struct broker_options *o, struct err *e)
{
	const struct broker_backend *k = find(o->address);

	if (!k)
		return err_msg(e, -EINVAL, "'%.200s' is no address of a broker", o->address);
	return k->open(ret, o, e);
}

void broker_close(struct broker *b)
{
	if (b)
		b->backend->close(b);
}

int broker_publish(struct broker *b, const char *host, const char *id, const void *data, size_t n, uint64_t deadline_ns,
		   struct err *e)
{
	return b->backend->publish(b, host, id, data, n, deadline_ns, e);
}

int broker_fetch(struct broker *b, size_t most, uint64_t wait_ns, struct deliveries *ret, struct err *e)
{
	deliveries_clear(ret);
	return b->backend->fetch(b, most, wait_ns, ret, e);
}

int broker_ack(struct broker *b, const struct deliveries *d, struct err *e)
{
	return b->backend->ack(b, d, e);
}

static bool is_name(const char *s)
{
	size_t n = strlen(s);

	return n && n < BROKER_NAME_BYTES &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

/* Servers may repeat the scheme, as others write such lists. */
static int add_server(struct broker_address *ret, const char *s, size_t n, struct err *e)
{
	size_t scheme = strlen(ret->scheme);
	char *copy;

	if (n > scheme + 3 && !strncasecmp(s, ret->scheme, scheme) && !strncmp(s + scheme, "://", 3)) {
		s += scheme + 3;
		n -= scheme + 3;
	}
	if (!n || n > 260 || ret->servers.n >= SERVERS_MAX)
		return err_msg(e, -EINVAL, "an address names 1 to %d servers", SERVERS_MAX);
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f || strchr("/@?#\\\"", s[i]))
			return err_msg(e, -EINVAL, "'%.*s' is no HOST or HOST:PORT", (int)n, s);
	copy = mem_alloc(n + 1);
	memcpy(copy, s, n);
	vec_push(&ret->servers, copy);
	return 0;
}

int broker_address_parse(const char *text, struct broker_address *ret, struct err *e)
{
	const char *at = strstr(text, "://"), *end = text + strlen(text), *slash;
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	if (!at || at == text || (size_t)(at - text) >= sizeof(ret->scheme))
		return err_msg(e, -EINVAL, "'%.200s' is no address of a broker", text);
	for (const char *s = text; s < at; s++)
		ret->scheme[s - text] = (char)(*s | 0x20);
	at += 3;
	slash = strrchr(at, '/');
	snprintf(ret->name, sizeof(ret->name), "%s", NAME_DEFAULT);
	if (slash && !(slash > at && slash[-1] == '/')) {
		if (!is_name(slash + 1))
			return err_msg(e, -EINVAL, "'%.100s': a stream has a name of letters, digits, '-' and '_'",
				       slash + 1);
		snprintf(ret->name, sizeof(ret->name), "%s", slash + 1);
		end = slash;
	}
	while (!rc && at <= end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t n = (size_t)((comma ?: end) - at);

		rc = add_server(ret, at, n, e);
		at += n + 1;
	}
	if (rc < 0)
		broker_address_done(ret);
	return rc;
}

void broker_address_done(struct broker_address *a)
{
	vec_for(&a->servers, s)
		free(*s);
	vec_done(&a->servers);
}
