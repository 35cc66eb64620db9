/* Recordings made by hand: nodes, waits, and what must hold for each analysis of them. */
#include "unit.h"

#include <string.h>

#include "waits_made.h"

void make(struct made *m, uint64_t window_ms)
{
	memset(m, 0, sizeof(*m));
	graph_init(&m->g);
	m->window_ns = window_ms * MS;
	m->g.meta.start_ns = BEGIN;
	m->g.meta.window_ns = m->window_ns;
	m->t.spans_from_ns = BEGIN;
}

uint32_t process(struct made *m, uint64_t pid, uint64_t ppid, const char *name)
{
	struct node *n = graph_new_node(&m->g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, ppid, ppid);
	SET(process, n, name, graph_str(&m->g, name));
	return graph_add_node(&m->g, n)->index;
}

uint32_t thread(struct made *m, uint32_t of, uint64_t tid, const char *name)
{
	struct node *n = graph_new_node(&m->g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, process, of);
	SET(thread, n, name, graph_str(&m->g, name));
	return graph_add_node(&m->g, n)->index;
}

uint32_t word(struct made *m, const char *key, uint64_t lock_waits)
{
	struct node *n = graph_new_node(&m->g, &futex_type);

	SET(futex, n, futex_key, graph_str(&m->g, key));
	if (lock_waits)
		SET(futex, n, lock_waits, lock_waits);
	return graph_add_node(&m->g, n)->index;
}

uint32_t object(struct made *m, const char *kind, const char *name)
{
	struct node *n = graph_new_node(&m->g, &wait_object_type);

	SET(wait_object, n, kind, graph_str(&m->g, kind));
	if (name)
		SET(wait_object, n, name, graph_str(&m->g, name));
	return graph_add_node(&m->g, n)->index;
}

void put_edges(struct made *m, uint32_t waiter, uint64_t ns, uint32_t waker, const char *cause, uint32_t on)
{
	struct edge *d = graph_new_edge(&m->g, &waits_for_type, waiter, on);

	SET(waits_for, d, cause, graph_str(&m->g, cause));
	SET(waits_for, d, waits, 1);
	SET(waits_for, d, waited_ns, ns);
	graph_add_edge(&m->g, d);
	if (waker == NODE_NONE)
		return;
	d = graph_new_edge(&m->g, &wakes_type, waker, waiter);
	SET(wakes, d, cause, graph_str(&m->g, cause));
	SET(wakes, d, wakeups, 1);
	SET(wakes, d, waited_ns, ns);
	graph_add_edge(&m->g, d);
}

/* Waits from @out to @wake, and is on a CPU again at @in; all in us after the begin. */
void waited(struct made *m, uint32_t waiter, uint64_t out, uint64_t wake, uint64_t in, uint32_t waker,
		   const char *cause, uint32_t on)
{
	const struct node *by = m->g.nodes.v[waker];
	struct wait_span s = {.out_ns = BEGIN + out * 1000,
			      .wake_ns = BEGIN + wake * 1000,
			      .in_ns = BEGIN + in * 1000,
			      .waiter = waiter,
			      .waker = by->type == &thread_type ? waker : NODE_NONE,
			      .object = on,
			      .cause = (uint8_t)wait_cause_find(cause)};

	s.ender = by->type == &thread_type ? ENDER_THREAD : (uint8_t)wait_ender_find(GET(wait_object, by, kind));
	put_edges(m, waiter, s.wake_ns - s.out_ns, waker, cause, on);
	vec_push(&m->t.spans, s);
}

/* A wait that has not ended. */
void waits_still(struct made *m, uint32_t waiter, uint64_t out_us, const char *cause, uint32_t on)
{
	put_edges(m, waiter, m->window_ns - out_us * 1000, NODE_NONE, cause, on);
}

void ran(struct made *m, uint32_t of, uint64_t run_us, uint64_t runq_us)
{
	struct node *n = m->g.nodes.v[of];

	SET(thread, n, run_ns, run_us * 1000);
	SET(thread, n, runq_ns, runq_us * 1000);
	SET(thread, n, blocked_ns, m->window_ns - (run_us + runq_us) * 1000);
	SET(thread, n, observed_ns, m->window_ns);
}

/* What has to hold of every analysis. */
void check_sums(struct waitfor *w)
{
	vec_for(&w->chains, c) {
		uint64_t sum = 0, late = 0;

		vec_for(&c->parts, p) {
			sum += p->ns;
			late += p->idle ? 0 : p->ns;
		}
		assert_int_equal(sum, c->waited_ns);
		assert_int_equal(late, c->late_ns);
	}
	vec_for(&w->paths, p) {
		uint64_t at = p->from_ns, sum = 0;

		vec_for(&p->steps, s) {
			assert_int_equal(s->from_ns, at);
			assert_true(s->to_ns > s->from_ns);
			at = s->to_ns;
		}
		assert_int_equal(at, p->to_ns);
		vec_for(&p->parts, part)
			sum += part->ns;
		assert_int_equal(sum, p->to_ns - p->from_ns);
	}
}

void analyse(struct made *m)
{
	timeline_sort(&m->t);
	waitfor_init(&m->w, &m->g, &m->t);
	m->analysed = true;
	check_sums(&m->w);
}

void unmake(struct made *m)
{
	if (m->analysed)
		waitfor_done(&m->w);
	timeline_done(&m->t);
	graph_done(&m->g);
}

const struct wait_pattern *pattern(const struct made *m, enum wait_pattern_kind kind)
{
	vec_for(&m->w.patterns, p)
		if (p->kind == kind)
			return p;
	return NULL;
}

void meet(struct made *m, uint32_t *rank, unsigned n, int slow, uint32_t on)
{
	uint32_t timer = object(m, "timer", NULL);

	for (unsigned round = 0; round < 40; round++) {
		unsigned last = slow >= 0 ? (unsigned)slow : round * 7 % n;
		uint64_t at = round * 25000ull;

		for (unsigned i = 0, k = 0; i < n; i++) {
			/* All rest for 3 ms as if for a device, then work for 4, the last one for 20. */
			if (i != last) {
				waited(m, rank[i], at + 7000, at + 23000 + k, at + 23000 + k, rank[last], "futex", on);
				k++;
			}
			waited(m, rank[i], at + 23100, at + 25000, at + 25000, timer, "sleep", timer);
		}
	}
}
