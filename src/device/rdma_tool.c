/* RDMA devices and resources by the tool rdma of iproute2: see rdma_tool.h. */
#include "rdma_tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "json.h"
#include "spawn.h"

#define TOOL_MS	  2000
#define TEXT_MOST (16U << 20)

/* The names that the tool has for kinds, and for the number of each. */
static const struct {
	const char *name, *number;
} kinds[] = {
	[RDMA_QP] = {"qp", "lqpn"}, [RDMA_MR] = {"mr", "mrn"}, [RDMA_PD] = {"pd", "pdn"}, [RDMA_CQ] = {"cq", "cqn"},
};

/* A member's value. Keys of memory are text with hexadecimal digits: "36c", "0x36c". */
struct value {
	const char *text;
	uint64_t number, hex; /* RDMA_UNKNOWN: none */
};

static uint64_t number_of(const char *text, int base)
{
	char *end;
	uint64_t v = strtoull(text, &end, base);

	return end == text || *end ? RDMA_UNKNOWN : v;
}

static struct value value_of(const char *text)
{
	return (struct value){text, number_of(text, 10), number_of(text, 16)};
}

static uint32_t named(const char *text, const char *(*name)(uint32_t), uint32_t most)
{
	for (uint32_t i = 0; i <= most; i++)
		if (name(i) && !strcmp(name(i), text))
			return i;
	return RDMA_UNKNOWN;
}

static uint32_t find_device(const struct rdma_state *s, const char *name)
{
	vec_for(&s->devices, d)
		if (!strcmp(d->name, name))
			return d->index;
	return RDMA_UNKNOWN;
}

/* "[ib_core]" or "ib_core": a part of the kernel, where no process is told. */
static void set_owner(struct rdma_resource *r, const char *comm)
{
	size_t n = strlen(comm);

	if (n > 2 && comm[0] == '[' && comm[n - 1] == ']')
		snprintf(r->owner, sizeof(r->owner), "%.*s", (int)(n - 2), comm + 1);
	else
		snprintf(r->owner, sizeof(r->owner), "%s", comm);
}

static void set_member(const struct rdma_state *s, struct rdma_resource *r, const char *key, const struct value *v)
{
	const struct {
		const char *key;
		uint32_t *to;
	} numbers[] = {
		{kinds[r->kind].number, &r->number}, {"pdn", &r->pdn},	 {"pid", &r->pid},   {"port", &r->port},
		{"rqpn", &r->remote},
		{"sq-psn", &r->sq_psn},
		{"rq-psn", &r->rq_psn},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key, numbers[i].key) && v->number <= UINT32_MAX)
			*numbers[i].to = (uint32_t)v->number;
	if (!strcmp(key, "lkey") && v->hex <= UINT32_MAX)
		r->lkey = (uint32_t)v->hex;
	else if (!strcmp(key, "rkey") && v->hex <= UINT32_MAX)
		r->rkey = (uint32_t)v->hex;
	else if (!strcmp(key, "ifname"))
		r->dev = find_device(s, v->text);
	else if (!strcmp(key, "type"))
		r->type = named(v->text, rdma_qp_type_name, 0xff);
	else if (!strcmp(key, "state"))
		r->state = named(v->text, rdma_qp_state_name, 16);
	else if (!strcmp(key, "comm"))
		set_owner(r, v->text);
	else if ((!strcmp(key, "mrlen") || !strcmp(key, "cqe")) && v->number != RDMA_UNKNOWN)
		r->length = v->number;
}

static int parse_object(struct json_reader *reader, enum rdma_kind kind, struct rdma_state *ret, struct err *e)
{
	struct rdma_dev dev = {.index = RDMA_UNKNOWN};
	struct rdma_resource r = {
		.kind = kind, .dev = RDMA_UNKNOWN, .number = RDMA_UNKNOWN, .pid = RDMA_UNKNOWN, .pdn = RDMA_UNKNOWN,
		.port = RDMA_UNKNOWN, .remote = RDMA_UNKNOWN, .type = RDMA_UNKNOWN, .state = RDMA_UNKNOWN,
		.lkey = RDMA_UNKNOWN, .rkey = RDMA_UNKNOWN, .sq_psn = RDMA_UNKNOWN, .rq_psn = RDMA_UNKNOWN,
	};
	char key[32];
	int token;

	while ((token = json_next(reader, e)) == JSON_KEY) {
		struct value v;

		snprintf(key, sizeof(key), "%.31s", json_text(reader, NULL));
		token = json_next(reader, e);
		if (token < 0 || (token != JSON_STRING && token != JSON_NUMBER)) {
			token = token < 0 ? token : json_skip(reader, token, e);
			if (token < 0)
				return token;
			continue;
		}
		v = value_of(json_text(reader, NULL));
		if (kind < RDMA_KINDS)
			set_member(ret, &r, key, &v);
		else if (!strcmp(key, "ifindex") && v.number < UINT32_MAX)
			dev.index = (uint32_t)v.number;
		else if (!strcmp(key, "ifname"))
			snprintf(dev.name, sizeof(dev.name), "%s", v.text);
	}
	if (token < 0)
		return token;
	if (kind == RDMA_KINDS && dev.index != RDMA_UNKNOWN && dev.name[0])
		vec_push(&ret->devices, dev);
	if (kind == RDMA_KINDS || r.dev == RDMA_UNKNOWN)
		return 0;
	if (r.pid != RDMA_UNKNOWN)
		r.owner[0] = '\0';
	if (kind == RDMA_PD)
		r.number = r.pdn;
	vec_push(&ret->resources, r);
	return 0;
}

int rdma_tool_parse(const char *text, size_t n, enum rdma_kind kind, struct rdma_state *ret, struct err *e)
{
	CLEANUP(cleanup_json_reader) struct json_reader *r = json_reader_new_mem(text, n, "rdma", NULL);
	int token;

	/* Without any it writes nothing, or an empty list. */
	if (strspn(text, " \t\r\n") >= n)
		return 0;
	token = json_next(r, e);
	if (token >= 0 && token != JSON_ARRAY)
		return err_msg(e, -EBADMSG, "rdma -j: a list is expected");
	while (token >= 0 && (token = json_next(r, e)) == JSON_OBJECT)
		token = parse_object(r, kind, ret, e);
	return token < 0 ? token : 0;
}

static int run(const char *const argv[], enum rdma_kind kind, struct rdma_state *ret, struct err *e)
{
	struct strbuf out = {0};
	struct spawn_result ran;
	int rc = spawn_run(argv, TOOL_MS, TEXT_MOST, &out, &ran, e);

	if (rc >= 0 && ran.timed_out)
		rc = err_msg(e, -ETIMEDOUT, "'rdma' did not end within %d s", TOOL_MS / 1000);
	else if (rc >= 0 && ran.exit_code)
		rc = err_msg(e, -EIO, "'rdma' ended with status %d", ran.exit_code);
	else if (rc >= 0 && ran.truncated)
		rc = err_msg(e, -EFBIG, "'rdma' wrote more than %u MiB", TEXT_MOST >> 20);
	if (rc >= 0)
		rc = rdma_tool_parse(strbuf_str(&out), out.n, kind, ret, e);
	strbuf_done(&out);
	return rc;
}

int rdma_tool_read(struct rdma_state *ret, struct err *e)
{
	const char *const devices[] = {"rdma", "-j", "dev", "show", NULL};
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = run(devices, RDMA_KINDS, ret, e);
	for (enum rdma_kind kind = 0; rc >= 0 && kind < RDMA_KINDS; kind++) {
		const char *const argv[] = {"rdma", "-j", "-d", "resource", "show", kinds[kind].name, NULL};

		rc = run(argv, kind, ret, e);
	}
	if (rc < 0)
		rdma_state_done(ret);
	return rc < 0 ? rc : 0;
}
