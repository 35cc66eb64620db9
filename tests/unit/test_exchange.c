/* What flows say in the end, after they were told differently before. */
#include "unit.h"

#include <string.h>
#include <sys/socket.h>

#include "exchange.h"
#include "flows.h"

struct world {
	struct procs procs;
	struct exchange *x;
	struct graph all;
	uint32_t a, b, c;
};

static void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	procs_init(&w->procs, true, false);
	w->a = procs_get(&w->procs, 11, 10 * START_STEP_NS);
	w->b = procs_get(&w->procs, 12, 20 * START_STEP_NS);
	w->c = procs_get(&w->procs, 13, 30 * START_STEP_NS);
	w->x = exchange_new(&w->procs);
	graph_init(&w->all);
}

static void world_done(struct world *w)
{
	exchange_free(w->x);
	graph_done(&w->all);
	procs_done(&w->procs);
}

/* One interval: a sent, somebody received (or holds), and what that makes is merged as a recording
 * does. */
static void interval(struct world *w, uint64_t sent, uint32_t receiver, uint64_t received)
{
	struct moved out = {.bytes = sent, .calls = 1, .first_ns = 5, .last_ns = 6};
	struct moved in = {.bytes = received, .calls = 1, .first_ns = 7, .last_ns = 8};
	struct shares senders = {0}, receivers = {0};
	struct crossing c = {
	    .kind = FLOW_PIPE, .sent = &senders, .received = &receivers, .holder = receiver};
	struct graph g;

	shares_add(&senders, w->a, &out);
	if (received)
		shares_add(&receivers, receiver, &in);
	exchange_begin(w->x);
	exchange_add(w->x, &c, false);
	graph_init(&g);
	exchange_emit(w->x, &g, 0);
	graph_merge(&w->all, &g, NULL, NULL);
	graph_done(&g);
	vec_done(&senders.list);
	vec_done(&receivers.list);
}

static const struct edge *flow_to(const struct world *w, uint32_t pid)
{
	vec_for(&w->all.edges,
		it) if ((*it)->type == &flow_type &&
			GET(process, w->all.nodes.v[(*it)->target], pid) == pid) return *it;
	fail();
	return NULL;
}

TEST(what_nobody_has_read_is_blind)
{
	struct world w;

	world_init(&w);
	interval(&w, 100, w.b, 0);
	assert_int_equal(GET(flow, flow_to(&w, 12), bytes_sent), 100);
	assert_false(HAS(flow, flow_to(&w, 12), bytes_received));
	assert_true(*GET(flow, flow_to(&w, 12), blind));
	world_done(&w);
}

TEST(what_is_read_later_is_not_blind_any_more)
{
	struct world w;

	world_init(&w);
	interval(&w, 100, w.b, 0);
	interval(&w, 100, w.b, 100);
	assert_int_equal(GET(flow, flow_to(&w, 12), bytes_received), 100);
	assert_string_equal(GET(flow, flow_to(&w, 12), blind), "");
	world_done(&w);
}

TEST(what_was_read_at_once_was_never_blind)
{
	struct world w;

	world_init(&w);
	interval(&w, 100, w.b, 40);
	assert_false(HAS(flow, flow_to(&w, 12), blind));
	assert_false(HAS(flow, flow_to(&w, 12), estimated));
	world_done(&w);
}

TEST(what_turns_out_to_be_for_another_is_taken_back)
{
	struct world w;

	world_init(&w);
	interval(&w, 100, w.b, 0);
	interval(&w, 100, w.c, 100);
	assert_int_equal(GET(flow, flow_to(&w, 13), bytes_sent), 100);
	assert_int_equal(GET(flow, flow_to(&w, 12), bytes_sent), 0);
	assert_int_equal(GET(flow, flow_to(&w, 12), messages), 0);
	assert_string_equal(GET(flow, flow_to(&w, 12), blind), "");
	world_done(&w);
}

/* One interval of sockets. */
static void round_of(struct world *w, struct flows *f, bool sweep)
{
	uint64_t used[4] = {0};
	struct graph g;

	flows_look(f);
	exchange_begin(w->x);
	flows_contribute(f, w->x);
	graph_init(&g);
	exchange_emit(w->x, &g, 0);
	graph_merge(&w->all, &g, NULL, NULL);
	graph_done(&g);
	if (sweep)
		flows_sweep(f, w->x, 1000, used);
}

TEST(what_closed_datagram_sockets_got_is_not_forgotten)
{
	struct sock_sample sent = {.dir = SOCK_SENT}, got = {.dir = SOCK_RECEIVED};
	struct flows *f = flows_new();
	struct world w;

	world_init(&w);
	sent.v.sock = (struct sock_facts){.sk_id = 1, .peer_id = 2, .proto = SOCK_PROTO_UNIX_DGRAM, .family = AF_UNIX};
	sent.v.bytes = got.v.bytes = 100;
	sent.v.msgs = got.v.msgs = 2;
	sent.v.first_ns = sent.v.last_ns = got.v.first_ns = got.v.last_ns = 5;
	/* It is not told who sent. */
	got.v.sock = (struct sock_facts){
	    .sk_id = 2, .flags = SOCK_PEER_UNKNOWN, .proto = SOCK_PROTO_UNIX_DGRAM, .family = AF_UNIX};
	flows_add(f, w.a, &sent);
	flows_add(f, w.b, &got);
	for (int i = 0; i < 6; i++)
		round_of(&w, f, i > 2);
	assert_int_equal(GET(flow, flow_to(&w, 12), bytes_received), 100);
	assert_int_equal(GET(flow, flow_to(&w, 12), bytes_sent), 100);
	assert_int_equal(flows_size(f), 0);
	flows_free(f);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_nobody_has_read_is_blind),
	    cmocka_unit_test(what_is_read_later_is_not_blind_any_more),
	    cmocka_unit_test(what_was_read_at_once_was_never_blind),
	    cmocka_unit_test(what_turns_out_to_be_for_another_is_taken_back),
		cmocka_unit_test(what_closed_datagram_sockets_got_is_not_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
