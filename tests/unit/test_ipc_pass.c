/* Which sender a received descriptor is said to come from. */
#include "unit.h"

#include <sys/socket.h>

#include "clock.h"
#include "collect_ipc.h"
#include "flows.h"
#include "sock_probe.h"

#define MS 1000000ull

/* Process numbers are also their pids. */
enum { SENDER = 11, STRANGER = 12, RECEIVER = 13 };

struct world {
	struct collect c;
	struct graph g;
	struct ipc_passes *passes;
	uint64_t now_ns;
};

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	procs_init(&w->c.procs, true, true);
	w->c.flows = flows_new();
	w->passes = ipc_passes_new();
	w->now_ns = clock_boot_ns();
	graph_init(&w->g);
}

static void end(struct world *w)
{
	graph_done(&w->g);
	ipc_passes_free(w->passes);
	flows_free(w->c.flows);
	procs_done(&w->c.procs);
}

static void add_socket(struct world *w, uint32_t pid, uint64_t ino, uint64_t peer_ino)
{
	struct sock_facts f = {
		.sk_id = ino * 64, .peer_id = peer_ino * 64, .ino = ino, .peer_ino = peer_ino,
		.family = AF_UNIX, .type = SOCK_STREAM,
	};

	flows_add_holder(w->c.flows, procs_get(&w->c.procs, pid, NS_PER_SEC), &f);
}

/* @ago_ms before now; a file of inode @ino whose open file lies at the one address of this test */
static void pass(struct world *w, enum ipc_pass how, uint32_t pid, uint64_t sock_ino, uint64_t ino,
		 uint64_t ago_ms)
{
	struct ipc_passed ev = {
		.how = how, .kind = IPC_FILE, .file = 0xffff888000001000, .ino = ino, .id = ino,
		.dev = 27, .space = 27, .sock_ino = sock_ino, .time_ns = w->now_ns - ago_ms * MS,
		.task = {.tid = pid, .tgid = pid, .start_ns = NS_PER_SEC, .leader_start_ns = NS_PER_SEC},
		.comm = "test", .name = "file",
	};

	ipc_passes_add(w->passes, &w->c, &ev);
}

static uint64_t pid_of(struct world *w, uint32_t node)
{
	return GET(process, w->g.nodes.v[node], pid);
}

/* Passings from @from to the receiver. */
static unsigned passings(struct world *w, uint32_t from)
{
	unsigned n = 0;

	vec_for(&w->g.edges, d)
		if ((*d)->type == &fd_passed_type && pid_of(w, (*d)->source) == from) {
			assert_int_equal(pid_of(w, (*d)->target), RECEIVER);
			n++;
		}
	return n;
}

TEST(an_address_used_again_is_another_file)
{
	struct world w;

	begin(&w);
	/* Cut off on the way, closed; then another file at its place. */
	pass(&w, IPC_PASS_SENT, STRANGER, 1, 500, 40);
	pass(&w, IPC_PASS_SENT, SENDER, 3, 501, 30);
	pass(&w, IPC_PASS_RECEIVED, RECEIVER, 4, 501, 20);
	ipc_passes_match(w.passes, &w.c, &w.g);
	assert_int_equal(passings(&w, STRANGER), 0);
	assert_int_equal(passings(&w, SENDER), 1);
	end(&w);
}

TEST(without_peers_the_latest_sender_before_the_arrival_is_taken)
{
	struct world w;

	begin(&w);
	pass(&w, IPC_PASS_SENT, STRANGER, 1, 500, 40);
	pass(&w, IPC_PASS_SENT, SENDER, 3, 500, 30);
	pass(&w, IPC_PASS_RECEIVED, RECEIVER, 4, 500, 20);
	pass(&w, IPC_PASS_SENT, STRANGER, 1, 500, 10);
	ipc_passes_match(w.passes, &w.c, &w.g);
	assert_int_equal(passings(&w, SENDER), 1);
	assert_int_equal(passings(&w, STRANGER), 0);
	end(&w);
}

TEST(the_socket_that_leads_to_the_receiver_comes_first)
{
	struct world w;

	begin(&w);
	add_socket(&w, SENDER, 3, 4);
	add_socket(&w, RECEIVER, 4, 3);
	pass(&w, IPC_PASS_SENT, SENDER, 3, 500, 40);
	pass(&w, IPC_PASS_SENT, STRANGER, 1, 500, 30);
	pass(&w, IPC_PASS_RECEIVED, RECEIVER, 4, 500, 20);
	ipc_passes_match(w.passes, &w.c, &w.g);
	assert_int_equal(passings(&w, SENDER), 1);
	assert_int_equal(passings(&w, STRANGER), 0);
	end(&w);
}

TEST(a_connection_to_somebody_else_cannot_have_brought_it)
{
	struct world w;

	begin(&w);
	add_socket(&w, STRANGER, 1, 2);
	add_socket(&w, RECEIVER, 4, 3);
	pass(&w, IPC_PASS_SENT, STRANGER, 1, 500, 30);
	pass(&w, IPC_PASS_RECEIVED, RECEIVER, 4, 500, 20);
	ipc_passes_match(w.passes, &w.c, &w.g);
	assert_int_equal(passings(&w, STRANGER), 0);
	/* The sender's call may return after the receiver's. */
	pass(&w, IPC_PASS_SENT, SENDER, 3, 500, 10);
	ipc_passes_match(w.passes, &w.c, &w.g);
	assert_int_equal(passings(&w, SENDER), 1);
	end(&w);
}

TEST(a_message_that_is_looked_at_first_arrives_at_the_same_receiver_again)
{
	struct world w;

	begin(&w);
	pass(&w, IPC_PASS_SENT, SENDER, 3, 500, 30);
	pass(&w, IPC_PASS_RECEIVED, RECEIVER, 4, 500, 20);
	pass(&w, IPC_PASS_RECEIVED, RECEIVER, 4, 500, 10);
	ipc_passes_match(w.passes, &w.c, &w.g);
	assert_true(passings(&w, SENDER) >= 1);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_used_again_is_another_file),
		cmocka_unit_test(without_peers_the_latest_sender_before_the_arrival_is_taken),
		cmocka_unit_test(the_socket_that_leads_to_the_receiver_comes_first),
		cmocka_unit_test(a_connection_to_somebody_else_cannot_have_brought_it),
		cmocka_unit_test(a_message_that_is_looked_at_first_arrives_at_the_same_receiver_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
