/* Messages of agents: the line in front, and the packing of what follows. */
#include "fleet/fleet_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "fleet/fleet_json.h"
#include "graph_text.h"
#include "hosts.h"
#include "json.h"
#include "mem.h"

#define MAGIC	   "witty-fleet 1 "
#define HEAD_MAX   2048
#define ZSTD_LEVEL 3

void fleet_message_write(const struct fleet_message *m, struct strbuf *b)
{
	strbuf_add(b, MAGIC "{\"host\":");
	json_quote(b, m->host, strlen(m->host), 0);
	strbuf_add(b, ",\"boot\":");
	json_quote(b, m->boot, strlen(m->boot), 0);
	strbuf_add(b, ",\"run\":");
	json_quote(b, m->run, strlen(m->run), 0);
	strbuf_addf(b, ",\"seq\":%" PRIu64 ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"interval_ns\":%" PRIu64,
		    m->seq, m->start_ns, m->end_ns, m->interval_ns);
	if (m->parts > 1)
		strbuf_addf(b, ",\"part\":%" PRIu32 ",\"parts\":%" PRIu32, m->part, m->parts);
	strbuf_add(b, "}\n");
	strbuf_addn(b, m->payload, m->n);
}

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

int fleet_message_read(struct fleet_message *ret, const char *data, size_t n, struct err *e)
{
	const char *end = memchr(data, '\n', n < HEAD_MAX ? n : HEAD_MAX);
	size_t magic = strlen(MAGIC);
	char head[HEAD_MAX];
	uint64_t part, parts;

	memset(ret, 0, sizeof(*ret));
	if (!end || n < magic || memcmp(data, MAGIC, magic))
		return err_msg(e, -EBADMSG, "a message that no agent of this version wrote");
	snprintf(head, sizeof(head), "%.*s", (int)((size_t)(end - data) - magic), data + magic);
	fleet_json_text(head, "host", ret->host, sizeof(ret->host));
	fleet_json_text(head, "boot", ret->boot, sizeof(ret->boot));
	fleet_json_text(head, "run", ret->run, sizeof(ret->run));
	ret->seq = fleet_json_u64(head, "seq", 0);
	ret->start_ns = fleet_json_u64(head, "start_ns", 0);
	ret->end_ns = fleet_json_u64(head, "end_ns", 0);
	ret->interval_ns = fleet_json_u64(head, "interval_ns", 0);
	part = fleet_json_u64(head, "part", 1);
	parts = fleet_json_u64(head, "parts", 1);
	if (!is_host_name(ret->host) || !ret->run[0] || !is_printable(ret->run) || !is_printable(ret->boot) ||
	    !ret->seq || ret->seq > INT64_MAX || ret->end_ns > INT64_MAX || ret->start_ns > ret->end_ns ||
	    ret->interval_ns > INT64_MAX || !parts || parts > FLEET_PARTS_MAX || !part || part > parts)
		return err_msg(e, -EBADMSG, "a message without host, run or number, or with wrong ones");
	ret->part = (uint32_t)part;
	ret->parts = (uint32_t)parts;
	ret->payload = end + 1;
	ret->n = n - (size_t)(end + 1 - data);
	return 0;
}

void fleet_message_id(const struct fleet_message *m, char *ret, size_t size)
{
	snprintf(ret, size, m->parts > 1 ? "%s/%s/%" PRIu64 ".%" PRIu32 : "%s/%s/%" PRIu64, m->host, m->run, m->seq,
		 m->part);
}

void fleet_pack(struct graph *g, const char *findings, struct strbuf *ret)
{
	struct strbuf plain = {0};
	size_t most, n;

	strbuf_add(&plain, findings ?: "null");
	strbuf_addc(&plain, '\n');
	graph_write_text(g, &plain);
	most = ZSTD_compressBound(plain.n);
	strbuf_reserve(ret, most + 1);
	n = ZSTD_compress(ret->s + ret->n, most, plain.s, plain.n, ZSTD_LEVEL);
	/* The only reason to fail is memory. */
	if (ZSTD_isError(n))
		mem_exhausted(most);
	ret->n += n;
	ret->s[ret->n] = '\0';
	strbuf_done(&plain);
}

int fleet_unpack(const char *payload, size_t n, struct graph *g, struct strbuf *ret_findings, struct err *e)
{
	unsigned long long plain_n = ZSTD_getFrameContentSize(payload, n);
	const char *end;
	char *plain;
	size_t got;
	int rc;

	/* Both errors are very large numbers. */
	if (plain_n > FLEET_PLAIN_MAX)
		return err_msg(e, -EBADMSG, "a payload that is not compressed with zstd, or too large");
	plain = mem_alloc(plain_n + 1);
	got = ZSTD_decompress(plain, plain_n, payload, n);
	end = ZSTD_isError(got) || got != plain_n ? NULL : memchr(plain, '\n', got);
	if (!end) {
		free(plain);
		return err_msg(e, -EBADMSG, "a payload that is damaged");
	}
	if (ret_findings)
		strbuf_addn(ret_findings, plain, (size_t)(end - plain));
	end++;
	rc = g ? graph_read_text(g, end, got - (size_t)(end - plain), "snapshot", e) : 0;
	free(plain);
	return rc;
}
