/* What agents publish, and the store in which each message counts once. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/broker.h"
#include "fleet/fleet_json.h"
#include "fleet/fleet_message.h"
#include "fleet/fleet_store.h"
#include "mem.h"

#define SECOND 1000000000ull
#define NOW    (1700000000 * SECOND)

static char folder[] = "/tmp/witty-fleet-XXXXXX";

static struct fleet_message message(const char *host, const char *run, uint64_t seq, const char *payload)
{
	struct fleet_message m = {.seq = seq, .start_ns = NOW + seq * SECOND, .end_ns = NOW + (seq + 1) * SECOND,
				  .interval_ns = SECOND, .part = 1, .parts = 1, .payload = payload, .n = strlen(payload)};

	snprintf(m.host, sizeof(m.host), "%s", host);
	snprintf(m.boot, sizeof(m.boot), "boot-of-%s", host);
	snprintf(m.run, sizeof(m.run), "%s", run);
	return m;
}

static struct fleet_store *open_store(const char *name)
{
	struct fleet_store *s = NULL;
	char path[64];
	struct err e;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(fleet_store_open(&s, path, &e), 0);
	return s;
}

/* As a fleet takes them: all of one call in one transaction. @return what came of the last */
static int put(struct fleet_store *s, const struct fleet_message *m)
{
	struct err e;
	int rc;

	assert_int_equal(fleet_store_begin(s, &e), 0);
	rc = fleet_store_put(s, m, NOW, &e);
	assert_int_equal(fleet_store_commit(s, &e), 0);
	return rc;
}

static int put_seq(struct fleet_store *s, const char *run, uint64_t seq)
{
	struct fleet_message m = message("alpha", run, seq, "payload");

	return put(s, &m);
}

static struct fleet_store_counts counts(struct fleet_store *s)
{
	struct fleet_store_counts c = {0};
	struct err e;

	assert_int_equal(fleet_store_count(s, &c, &e), 0);
	return c;
}

TEST(a_message_reads_back_as_it_was)
{
	struct fleet_message m = message("node-1.rack:2", "r\"un", 7, "bytes\nwith\nlines"), got;
	struct strbuf b = {0};
	char id[128];
	struct err e;

	m.part = 2;
	m.parts = 3;
	fleet_message_write(&m, &b);
	assert_int_equal(fleet_message_read(&got, b.s, b.n, &e), 0);
	assert_string_equal(got.host, m.host);
	assert_string_equal(got.boot, m.boot);
	assert_string_equal(got.run, m.run);
	assert_int_equal(got.seq, 7);
	assert_int_equal(got.end_ns, m.end_ns);
	assert_int_equal(got.part, 2);
	assert_int_equal(got.parts, 3);
	assert_int_equal(got.n, m.n);
	assert_memory_equal(got.payload, m.payload, m.n);
	fleet_message_id(&got, id, sizeof(id));
	assert_string_equal(id, "node-1.rack:2/r\"un/7.2");
	strbuf_done(&b);
}

TEST(what_is_no_message_is_refused)
{
	static const char *const wrong[] = {
	    "", "\n", "witty-fleet 1 {}\n", "witty-fleet 2 {\"host\":\"a\",\"run\":\"r\",\"seq\":1}\n",
	    "witty-fleet 1 {\"host\":\"a\",\"run\":\"r\",\"seq\":1}", "witty-fleet 1 {\"host\":\"a b\",\"run\":\"r\",\"seq\":1}\n",
	    "witty-fleet 1 {\"host\":\"a\",\"run\":\"r\",\"seq\":0}\n", "witty-fleet 1 {\"host\":\"a\",\"run\":\"\",\"seq\":1}\n",
	    "witty-fleet 1 {\"host\":\"a\",\"run\":\"r\",\"seq\":1,\"part\":2}\n",
	    "witty-fleet 1 {\"host\":\"a\",\"run\":\"r\",\"seq\":1,\"parts\":65}\n",
	    "witty-fleet 1 {\"host\":\"a\",\"run\":\"r\",\"seq\":1,\"start_ns\":2,\"end_ns\":1}\n",
	    "witty-fleet 1 {\"host\":\"a\",\"run\":\"r\",\"seq\":18446744073709551615}\n", "PK\3\4 something else\n"};
	struct fleet_message m;
	struct err e;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(fleet_message_read(&m, wrong[i], strlen(wrong[i]), &e), -EBADMSG);
}

TEST(a_snapshot_travels_with_its_findings)
{
	struct strbuf packed = {0}, findings = {0};
	struct graph g, back;
	struct node *n;
	struct err e;

	graph_init(&g);
	n = graph_new_node(&g, &process_type);
	SET(process, n, pid, 4711);
	SET(process, n, name, graph_str(&g, "train.py"));
	graph_add_node(&g, n);
	fleet_pack(&g, "[{\"rule\":\"cpu-wait\"}]", &packed);
	graph_init(&back);
	assert_int_equal(fleet_unpack(packed.s, packed.n, &back, &findings, &e), 0);
	assert_string_equal(findings.s, "[{\"rule\":\"cpu-wait\"}]");
	assert_int_equal(back.nodes.n, 1);
	assert_string_equal(GET(process, back.nodes.v[0], name), "train.py");
	graph_done(&back);
	/* Whatever is cut off or turned over is damaged, and that is said. */
	for (size_t i = 0; i < packed.n; i++) {
		graph_init(&back);
		assert_true(fleet_unpack(packed.s, i, &back, NULL, &e) < 0);
		graph_done(&back);
	}
	graph_done(&g);
	strbuf_done(&packed);
	strbuf_done(&findings);
}

TEST(each_message_counts_once_whoever_brings_it)
{
	struct fleet_store *s = open_store("once.db"), *other = open_store("once.db");

	assert_int_equal(put_seq(s, "r", 1), 1);
	assert_int_equal(put_seq(s, "r", 1), 0);
	assert_int_equal(put_seq(other, "r", 1), 0);
	assert_int_equal(put_seq(other, "r", 2), 1);
	/* Another run has numbers of its own. */
	assert_int_equal(put_seq(s, "q", 1), 1);
	assert_int_equal(counts(s).taken, 3);
	assert_int_equal(counts(s).duplicates, 2);
	assert_int_equal(counts(s).hosts, 1);
	fleet_store_close(s);
	fleet_store_close(other);
	/* It is the same after a restart. */
	s = open_store("once.db");
	assert_int_equal(put_seq(s, "r", 2), 0);
	assert_int_equal(counts(s).taken, 3);
	fleet_store_close(s);
}

TEST(numbers_may_come_in_any_order_and_gaps_are_told)
{
	struct fleet_store *s = open_store("order.db");
	uint64_t seed = 42, order[64];
	struct err e;

	for (uint64_t i = 0; i < 64; i++)
		order[i] = i + 1;
	for (size_t i = 63; i > 0; i--) {
		size_t k = (size_t)(unit_random(&seed) % (i + 1));
		uint64_t t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	assert_int_equal(fleet_store_begin(s, &e), 0);
	for (size_t i = 0; i < 64; i++) {
		struct fleet_message m = message("alpha", "r", order[i], "x");

		/* One is lost on the way. */
		if (order[i] != 17)
			assert_int_equal(fleet_store_put(s, &m, NOW, &e), 1);
	}
	assert_int_equal(fleet_store_commit(s, &e), 0);
	assert_int_equal(counts(s).taken, 63);
	assert_int_equal(counts(s).missing, 1);
	for (uint64_t i = 1; i <= 64; i++)
		assert_int_equal(put_seq(s, "r", i), i == 17);
	assert_int_equal(counts(s).missing, 0);
	assert_int_equal(counts(s).taken, 64);
	fleet_store_close(s);
}

TEST(what_was_rolled_back_never_was)
{
	struct fleet_store *s = open_store("back.db");
	struct fleet_message m = message("alpha", "r", 1, "x");
	struct err e;

	assert_int_equal(fleet_store_begin(s, &e), 0);
	assert_int_equal(fleet_store_put(s, &m, NOW, &e), 1);
	fleet_store_rollback(s);
	assert_int_equal(counts(s).taken, 0);
	assert_int_equal(put(s, &m), 1);
	fleet_store_close(s);
}

struct newest {
	char payload[64];
	uint64_t seq, hosts;
};

static int see(void *ctx, const struct fleet_host *h, struct err *e)
{
	struct newest *n = ctx;

	(void)e;
	n->hosts++;
	n->seq = h->seq;
	if (h->payload)
		snprintf(n->payload, sizeof(n->payload), "%.*s", (int)h->n, h->payload);
	return 0;
}

static struct newest newest(struct fleet_store *s, uint64_t since_ns)
{
	struct newest n = {0};
	struct err e;

	assert_int_equal(fleet_store_each(s, since_ns, true, see, &n, &e), 0);
	return n;
}

TEST(the_newest_snapshot_stays_whatever_comes_later)
{
	struct fleet_message a = message("alpha", "r", 5, "five"), b = message("alpha", "r", 4, "four");
	struct fleet_store *s = open_store("newest.db");
	struct err e;

	assert_int_equal(put(s, &a), 1);
	assert_int_equal(put(s, &b), 1);
	assert_string_equal(newest(s, 0).payload, "five");
	assert_int_equal(newest(s, 0).seq, 5);
	/* Silent hosts are left out, and forgotten when they are asked to be. */
	assert_int_equal(newest(s, a.end_ns).hosts, 0);
	assert_int_equal(fleet_store_forget(s, NOW, &e), 0);
	assert_int_equal(fleet_store_forget(s, NOW + 1, &e), 1);
	assert_int_equal(counts(s).taken, 0);
	fleet_store_close(s);
}

TEST(parts_make_a_snapshot_when_all_are_there)
{
	struct fleet_message m[3];
	struct fleet_store *s = open_store("parts.db");

	for (uint32_t i = 0; i < 3; i++) {
		m[i] = message("alpha", "r", 1, i == 0 ? "one," : i == 1 ? "two," : "three");
		m[i].part = i + 1;
		m[i].parts = 3;
	}
	assert_int_equal(put(s, &m[2]), 1);
	assert_int_equal(put(s, &m[0]), 1);
	assert_int_equal(put(s, &m[0]), 1);
	assert_int_equal(counts(s).taken, 0);
	assert_int_equal(newest(s, 0).hosts, 0);
	assert_int_equal(put(s, &m[1]), 1);
	assert_int_equal(counts(s).taken, 1);
	assert_string_equal(newest(s, 0).payload, "one,two,three");
	assert_int_equal(put(s, &m[1]), 0);
	fleet_store_close(s);
}

TEST(parts_of_two_snapshots_may_come_between_each_other)
{
	struct fleet_store *s = open_store("between.db");
	struct fleet_message m[4];

	for (uint32_t i = 0; i < 4; i++) {
		m[i] = message("alpha", "r", 1 + i / 2, "some");
		m[i].part = 1 + i % 2;
		m[i].parts = 2;
	}
	assert_int_equal(put(s, &m[0]), 1);
	assert_int_equal(put(s, &m[2]), 1);
	assert_int_equal(put(s, &m[3]), 1);
	assert_int_equal(put(s, &m[1]), 1);
	assert_int_equal(counts(s).taken, 2);
	fleet_store_close(s);
}

TEST(runs_are_remembered_up_to_a_limit)
{
	struct fleet_store *s = open_store("runs.db");
	char run[16];

	for (int i = 0; i < FLEET_RUNS_MAX + 8; i++) {
		snprintf(run, sizeof(run), "run%d", i);
		assert_int_equal(put_seq(s, run, 1), 1);
	}
	assert_int_equal(put_seq(s, run, 1), 0);
	fleet_store_close(s);
}

TEST(addresses_name_servers_and_a_stream)
{
	static const char *const wrong[] = {"nats:/a", "nats://", "nats://a,,b/x", "nats://a/x.y", "://a", "nats://a/",
					    "nats://user@a/x", "nats://a b/x"};
	struct broker_address a;
	struct err e;

	assert_int_equal(broker_address_parse("nats://a:1,nats://b,[::1]:3/job-1", &a, &e), 0);
	assert_string_equal(a.scheme, "nats");
	assert_string_equal(a.name, "job-1");
	assert_int_equal(a.servers.n, 3);
	assert_string_equal(a.servers.v[0], "a:1");
	assert_string_equal(a.servers.v[1], "b");
	assert_string_equal(a.servers.v[2], "[::1]:3");
	broker_address_done(&a);
	assert_int_equal(broker_address_parse("TLS://broker", &a, &e), 0);
	assert_string_equal(a.scheme, "tls");
	assert_string_equal(a.name, "witty");
	broker_address_done(&a);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(broker_address_parse(wrong[i], &a, &e), -EINVAL);
	assert_false(broker_is_address("http://a/x"));
	assert_true(broker_is_address("nats://a/x"));
}

TEST(members_are_found_by_their_path)
{
	static const char json[] = "{\"a\":{\"n\":7,\"t\":\"x\\\"y\"},\"n\":8,\"b\":true,\"l\":[{\"n\":1}]}";
	char text[8];

	assert_int_equal(fleet_json_u64(json, "a.n", 0), 7);
	assert_int_equal(fleet_json_u64(json, "n", 0), 8);
	assert_int_equal(fleet_json_u64(json, "l.n", 3), 3);
	assert_int_equal(fleet_json_u64("no json", "n", 3), 3);
	assert_true(fleet_json_bool(json, "b"));
	assert_false(fleet_json_bool(json, "a"));
	assert_true(fleet_json_text(json, "a.t", text, sizeof(text)));
	assert_string_equal(text, "x\"y");
	assert_false(fleet_json_text(json, "a.u", text, sizeof(text)));
	assert_string_equal(text, "");
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

TEST(parts_of_a_new_host_are_not_forgotten)
{
	struct fleet_store *s = open_store("new.db");
	struct fleet_message m = message("a", "r", 1, "first ");
	struct err e;

	m.parts = 2;
	put(s, &m);
	assert_int_equal(fleet_store_forget(s, NOW - SECOND, &e), 0);
	m.part = 2;
	m.payload = "second";
	m.n = strlen(m.payload);
	put(s, &m);
	assert_int_equal(counts(s).taken, 1);
	fleet_store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_message_reads_back_as_it_was),
	    cmocka_unit_test(what_is_no_message_is_refused),
	    cmocka_unit_test(a_snapshot_travels_with_its_findings),
	    cmocka_unit_test(each_message_counts_once_whoever_brings_it),
	    cmocka_unit_test(numbers_may_come_in_any_order_and_gaps_are_told),
	    cmocka_unit_test(what_was_rolled_back_never_was),
	    cmocka_unit_test(the_newest_snapshot_stays_whatever_comes_later),
	    cmocka_unit_test(parts_make_a_snapshot_when_all_are_there),
	    cmocka_unit_test(parts_of_two_snapshots_may_come_between_each_other),
	    cmocka_unit_test(runs_are_remembered_up_to_a_limit),
	    cmocka_unit_test(addresses_name_servers_and_a_stream),
	    cmocka_unit_test(members_are_found_by_their_path),
	    cmocka_unit_test(parts_of_a_new_host_are_not_forgotten),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
