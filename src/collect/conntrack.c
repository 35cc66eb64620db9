/* Rewritten addresses, as the kernel's connection tracking lists them. */
#include "conntrack.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* "NAME=VALUE" at or behind *at. @return the value, with *at behind it; NULL: none */
static const char *next_value(const char **at, const char *name, char *value, size_t size)
{
	size_t n = strlen(name), len;

	for (const char *s = *at; (s = strstr(s, name)) != NULL; s += n) {
		if (s > *at && s[-1] != ' ')
			continue;
		s += n;
		len = strcspn(s, " \n");
		if (len >= size)
			return NULL;
		memcpy(value, s, len);
		value[len] = '\0';
		*at = s + len;
		return value;
	}
	return NULL;
}

static bool read_address(const char *text, struct sock_addr_abi *ret)
{
	memset(ret, 0, sizeof(*ret));
	return inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, ret->addr) == 1;
}

static bool read_port(const char *text, struct sock_addr_abi *ret)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	ret->port = (uint16_t)v;
	return end > text && !*end && v <= UINT16_MAX;
}

/* "src=A dst=B sport=P dport=Q" */
static bool read_direction(const char **at, struct sock_addr_abi *src, struct sock_addr_abi *dst)
{
	char text[64];

	return next_value(at, "src=", text, sizeof(text)) && read_address(text, src) &&
	       next_value(at, "dst=", text, sizeof(text)) && read_address(text, dst) &&
	       next_value(at, "sport=", text, sizeof(text)) && read_port(text, src) &&
	       next_value(at, "dport=", text, sizeof(text)) && read_port(text, dst);
}

static bool equal(const struct sock_addr_abi *a, const struct sock_addr_abi *b)
{
	return a->port == b->port && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

bool conntrack_parse(const char *line, struct conntrack *ret)
{
	const char *at = line, *tcp = strstr(line, " tcp "), *udp = strstr(line, " udp ");

	if (!tcp == !udp)
		return false;
	ret->proto = tcp ? SOCK_PROTO_TCP : SOCK_PROTO_UDP;
	return read_direction(&at, &ret->src, &ret->dst) &&
	       read_direction(&at, &ret->reply_src, &ret->reply_dst) &&
	       !(equal(&ret->src, &ret->reply_dst) && equal(&ret->dst, &ret->reply_src));
}
