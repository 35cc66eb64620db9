/* Who maps shared memory, and what wake-ups on words inside it prove. */
#include "unit.h"

#include <stdio.h>

#include "shared_memory.h"

struct world {
	struct graph g;
	uint32_t process[4], thread[4]; /* one thread each */
};

static void begin(struct world *w)
{
	graph_init(&w->g);
	for (uint32_t i = 0; i < 4; i++) {
		struct node *p = graph_new_node(&w->g, &process_type), *t;

		SET(process, p, pid, 40 - i);
		w->process[i] = graph_add_node(&w->g, p)->index;
		t = graph_new_node(&w->g, &thread_type);
		SET(thread, t, tid, 40 - i);
		SET(thread, t, process, w->process[i]);
		w->thread[i] = graph_add_node(&w->g, t)->index;
	}
}

static uint32_t memory(struct world *w, const char *name, uint64_t inode, uint64_t size)
{
	struct node *n = graph_new_node(&w->g, &shared_memory_type);

	SET(shared_memory, n, shm_name, graph_str(&w->g, name));
	SET(shared_memory, n, inode, inode);
	SET(shared_memory, n, dev, graph_str(&w->g, "0:27"));
	SET(shared_memory, n, shm_size, size);
	return graph_add_node(&w->g, n)->index;
}

static void map(struct world *w, uint32_t process, uint32_t object, const char *mode)
{
	struct edge *d = graph_new_edge(&w->g, &access_type, process, object);

	SET(access, d, mode, graph_str(&w->g, mode));
	graph_add_edge(&w->g, d);
}

static void wait_on(struct world *w, uint32_t thread, const char *key, uint64_t waits)
{
	struct node *n = graph_new_node(&w->g, &futex_type);
	struct edge *d;

	SET(futex, n, futex_key, graph_str(&w->g, key));
	n = graph_add_node(&w->g, n);
	d = graph_new_edge(&w->g, &waits_for_type, thread, n->index);
	SET(waits_for, d, cause, graph_str(&w->g, "futex"));
	SET(waits_for, d, waits, waits);
	SET(waits_for, d, waited_ns, waits * 1000);
	graph_add_edge(&w->g, d);
}

static void wake(struct world *w, uint32_t waker, uint32_t waiter, uint64_t wakeups)
{
	struct edge *d = graph_new_edge(&w->g, &wakes_type, waker, waiter);

	SET(wakes, d, wakeups, wakeups);
	SET(wakes, d, waited_ns, wakeups * 1000);
	graph_add_edge(&w->g, d);
}

TEST(paths_come_first_and_mappers_by_pid)
{
	struct shared_objects all;
	struct world w;
	uint32_t alone, read_only, small, large;

	begin(&w);
	alone = memory(&w, "alone", 1, 1 << 30);
	read_only = memory(&w, "read only", 2, 1 << 29);
	small = memory(&w, "small", 3, 1);
	large = memory(&w, "large", 4, 2);
	map(&w, w.process[0], alone, "rw");
	for (int i = 0; i < 3; i++) {
		map(&w, w.process[i], read_only, "r");
		map(&w, w.process[i], small, i == 1 ? "w" : "r");
		map(&w, w.process[i], large, "rw");
	}
	shared_memory_objects(&w.g, &all);
	assert_int_equal(all.v.n, 4);
	assert_int_equal(all.v.v[0].node, large);
	assert_int_equal(all.v.v[1].node, small);
	assert_int_equal(all.v.v[2].node, alone);
	assert_int_equal(all.v.v[3].node, read_only);
	assert_true(shared_memory_is_path(&all.v.v[1]));
	assert_int_equal(all.v.v[1].writers, 1);
	assert_false(shared_memory_is_path(&all.v.v[2]));
	assert_false(shared_memory_is_path(&all.v.v[3]));
	assert_int_equal(all.v.v[0].mappers.n, 3);
	assert_int_equal(all.v.v[0].mappers.v[0].process, w.process[2]);
	assert_int_equal(all.v.v[0].mappers.v[2].process, w.process[0]);
	shared_memory_done(&all);
	graph_done(&w.g);
}

TEST(wake_ups_on_words_inside_prove_a_direction)
{
	struct shared_objects all;
	struct world w;
	uint32_t object;

	begin(&w);
	object = memory(&w, "ring", 77, 4096);
	for (int i = 0; i < 3; i++)
		map(&w, w.process[i], object, "rw");
	wait_on(&w, w.thread[1], "0:27:77:64", 10);
	wait_on(&w, w.thread[1], "0:27:77:128", 5);
	wake(&w, w.thread[0], w.thread[1], 9);
	/* Maps nothing of it; the same process; and waits elsewhere. */
	wake(&w, w.thread[3], w.thread[1], 9);
	wake(&w, w.thread[1], w.thread[1], 9);
	wake(&w, w.thread[0], w.thread[2], 9);
	wait_on(&w, w.thread[2], "0:27:770:64", 10);
	wait_on(&w, w.thread[2], "0:2:77:64", 10);
	wait_on(&w, w.thread[2], "40:7f0012345678", 10);
	shared_memory_objects(&w.g, &all);
	assert_int_equal(all.v.n, 1);
	assert_int_equal(all.v.v[0].wakes.n, 1);
	assert_int_equal(all.v.v[0].wakes.v[0].waker, w.process[0]);
	assert_int_equal(all.v.v[0].wakes.v[0].waiter, w.process[1]);
	assert_int_equal(all.v.v[0].wakes.v[0].wakeups, 9 + 5);
	shared_memory_done(&all);
	graph_done(&w.g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_come_first_and_mappers_by_pid),
		cmocka_unit_test(wake_ups_on_words_inside_prove_a_direction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
