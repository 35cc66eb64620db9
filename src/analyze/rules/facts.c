/* What all rules look at: CPUs with their load, processes with the sums over their threads. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "rule_parts.h"

static double share_pct(const struct facts *x, uint64_t ns)
{
	return x->window_ns ? (double)ns * 100 / (double)x->window_ns : NAN;
}

static int compare_cpus(const void *a, const void *b)
{
	const struct cpu_fact *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void add_cpus(struct facts *x)
{
	uint32_t *of = mem_alloc((x->g->nodes.n + 1) * sizeof(*of));
	bool any_ran = false;

	memset(of, 0xff, (x->g->nodes.n + 1) * sizeof(*of));
	vec_for(&x->g->nodes, n) {
		struct cpu_fact f = {.node = (*n)->index, .busy_pct = NAN, .irq_pct = NAN};

		if ((*n)->type == &host_type && x->host == NODE_NONE)
			x->host = (*n)->index;
		if ((*n)->type != &cpu_type || (HAS(cpu, *n, online) && !GET(cpu, *n, online)))
			continue;
		f.id = (uint32_t)GET(cpu, *n, cpu_id);
		of[(*n)->index] = (uint32_t)x->cpus.n;
		vec_push(&x->cpus, f);
	}
	vec_for(&x->g->edges, d)
		if ((*d)->type == &ran_on_type && of[(*d)->target] != UINT32_MAX) {
			x->cpus.v[of[(*d)->target]].ran_ns += GET(ran_on, *d, run_ns);
			any_ran = true;
		}
	vec_for(&x->cpus, c) {
		const struct node *n = x->g->nodes.v[c->node];

		if (HAS(cpu, n, busy_ns))
			c->busy_pct = share_pct(x, GET(cpu, n, busy_ns));
		/* The kernel counts ticks, the probe what it sees: neither sees less than there is.
		 */
		if (any_ran)
			c->busy_pct = fmax(c->busy_pct, share_pct(x, c->ran_ns));
		if (HAS(cpu, n, irq_ns) && HAS(cpu, n, softirq_ns))
			c->irq_pct = share_pct(x, GET(cpu, n, irq_ns) + GET(cpu, n, softirq_ns));
	}
	if (x->cpus.n)
		qsort(x->cpus.v, x->cpus.n, sizeof(*x->cpus.v), compare_cpus);
	free(of);
}

static void set_allowed(struct process_fact *p, const char *cpus)
{
	struct err e;

	if (p->allowed || !cpus || idrange_parse(cpus, &p->mask, &e))
		return;
	p->allowed = cpus;
	p->mask_n = (uint32_t)idrange_count(&p->mask);
}

static void add_relations(struct facts *x)
{
	vec_for(&x->g->edges, d) {
		struct process_fact *p;
		uint32_t at = x->process_of[(*d)->source];

		if (at == NODE_NONE)
			continue;
		p = &x->processes.v[at];
		if ((*d)->type == &run_on_type)
			p->container = (*d)->target;
		else if ((*d)->type == &numa_access_type && HAS(numa_access, *d, cpus_allowed_list))
			set_allowed(p, GET(numa_access, *d, cpus_allowed_list));
		else if ((*d)->type == &parent_of_type && x->process_of[(*d)->target] != NODE_NONE)
			x->processes.v[x->process_of[(*d)->target]].parent = at;
	}
}

static void add_threads(struct facts *x)
{
	uint32_t *next = mem_alloc((x->processes.n + 1) * sizeof(*next)), at = 0;

	vec_for(&x->hot->threads, th)
		if (th->process != HOT_NONE && x->process_of[th->process] != NODE_NONE)
			x->processes.v[x->process_of[th->process]].n++;
	for (size_t i = 0; i < x->processes.n; i++) {
		x->processes.v[i].first = next[i] = at;
		at += x->processes.v[i].n;
	}
	vec_reserve(&x->by_process, at);
	x->by_process.n = at;
	for (uint32_t i = 0; i < x->hot->threads.n; i++) {
		const struct hot_thread *th = &x->hot->threads.v[i];
		struct process_fact *p;
		uint32_t of;

		if (th->process == HOT_NONE || x->process_of[th->process] == NODE_NONE)
			continue;
		of = x->process_of[th->process];
		p = &x->processes.v[of];
		x->by_process.v[next[of]++] = i;
		p->run_ns += th->run_ns;
		p->runq_ns += th->runq_ns;
		x->run_ns += th->run_ns;
		x->runq_ns += th->runq_ns;
		/* The first thread's mask stands for the process where nobody asked for that. */
		if (GET(thread, x->g->nodes.v[th->node], tid) ==
		    GET(process, x->g->nodes.v[p->node], pid))
			set_allowed(p, th->cpus_allowed);
	}
	vec_for(&x->processes, p)
		if (x->window_ns)
			p->busy_threads = (double)(p->run_ns + p->runq_ns) / (double)x->window_ns;
	free(next);
}

void facts_init(struct facts *x, const struct study *s)
{
	memset(x, 0, sizeof(*x));
	x->s = s;
	x->g = s->g;
	x->hot = s->hot;
	x->l = s->l;
	if (!x->l) {
		limits_init(&x->own_limits);
		x->l = &x->own_limits;
	}
	x->window_ns = s->g->meta.window_ns;
	x->host = NODE_NONE;
	x->process_of = mem_alloc((x->g->nodes.n + 1) * sizeof(*x->process_of));
	memset(x->process_of, 0xff, (x->g->nodes.n + 1) * sizeof(*x->process_of));
	vec_for(&x->g->nodes, n) {
		if ((*n)->type != &process_type)
			continue;
		x->process_of[(*n)->index] = (uint32_t)x->processes.n;
		vec_push(&x->processes,
			 ((struct process_fact){.node = (*n)->index,
						.container = NODE_NONE,
						.parent = NODE_NONE,
						.kernel = HAS(process, *n, kthread) &&
							  GET(process, *n, kthread)}));
	}
	add_cpus(x);
	add_relations(x);
	if (x->hot)
		add_threads(x);
	x->n_cpus = (uint32_t)x->cpus.n;
	if (!x->n_cpus && x->host != NODE_NONE && HAS(host, x->g->nodes.v[x->host], cpus))
		x->n_cpus = (uint32_t)GET(host, x->g->nodes.v[x->host], cpus);
}

void facts_done(struct facts *x)
{
	vec_for(&x->processes, p)
		idrange_done(&p->mask);
	vec_done(&x->processes);
	vec_done(&x->cpus);
	vec_done(&x->by_process);
	free(x->process_of);
}

const struct process_fact *fact_process(const struct facts *x, uint32_t node)
{
	const struct node *n = x->g->nodes.v[node];

	if (n->type == &thread_type && HAS(thread, n, process))
		node = GET(thread, n, process);
	return x->process_of[node] == NODE_NONE ? NULL : &x->processes.v[x->process_of[node]];
}

const struct cpu_fact *fact_cpu(const struct facts *x, uint32_t id)
{
	vec_for(&x->cpus, c)
		if (c->id == id)
			return c;
	return NULL;
}

const struct hot_thread *fact_thread(const struct facts *x, const struct process_fact *p,
				     uint32_t i)
{
	return &x->hot->threads.v[x->by_process.v[p->first + i]];
}

int facts_idle_cpus(const struct facts *x, double pct, struct idrange *ret)
{
	int n = 0;

	vec_for(&x->cpus, c) {
		if (isnan(c->busy_pct))
			return -1;
		if (100 - c->busy_pct < pct)
			continue;
		n++;
		if (ret)
			idrange_add(ret, c->id);
	}
	return x->cpus.n ? n : -1;
}

double facts_pct(const struct facts *x, double ns)
{
	return x->window_ns ? ns * 100 / (double)x->window_ns : 0;
}

bool facts_has_source(const struct facts *x, const char *source)
{
	vec_for(&x->g->status, s)
		if (!strcmp(s->source, source))
			return strcmp(s->state, "off") != 0;
	return false;
}

const char *facts_source_reason(const struct facts *x, const char *source)
{
	vec_for(&x->g->status, s)
		if (!strcmp(s->source, source) && strcmp(s->state, "ok"))
			return s->reason;
	return NULL;
}

/* Times that a thread lost its CPU, above which it counts who took it. */
#define PREEMPTED_LEAST 10
/* Time wanted for each of time on a CPU: from where on a thread is short of CPUs, and how much
 * more than for all others is its own. */
#define SHORT_LEAST 1.5
#define SHORT_OWN   2.5

static double stretch(uint64_t run_ns, uint64_t runq_ns)
{
	return run_ns ? (double)(run_ns + runq_ns) / (double)run_ns : 1;
}

int64_t fact_nice(const struct facts *x, uint32_t thread)
{
	const struct node *n = x->g->nodes.v[thread];

	return n->type == &thread_type && HAS(thread, n, nice) ? GET(thread, n, nice) : 0;
}

bool fact_has_less_weight(const struct facts *x, const struct hot_thread *th)
{
	int64_t nice = fact_nice(x, th->node);
	const struct node *other = th->preempter == HOT_NONE ? NULL : x->g->nodes.v[th->preempter];

	return nice > 0 && (!other || !HAS(thread, other, nice) || GET(thread, other, nice) < nice);
}

double fact_shared_shortage(const struct facts *x, uint32_t thread, uint32_t rival)
{
	const struct hot_thread *own =
	    x->hot && thread != NODE_NONE ? hot_of(x->hot, thread) : NULL;
	const struct hot_thread *but =
	    x->hot && rival != NODE_NONE && rival != thread ? hot_of(x->hot, rival) : NULL;
	double others =
	    stretch(x->run_ns - (own ? own->run_ns : 0) - (but ? but->run_ns : 0),
		    x->runq_ns - (own ? own->runq_ns : 0) - (but ? but->runq_ns : 0));

	if (others < SHORT_LEAST)
		return 0;
	return !own || stretch(own->run_ns, own->runq_ns) < SHORT_OWN * others ? others : 0;
}

/* Equal but for numbers: ranks, ports, pids. */
static bool is_same_line(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (isdigit((unsigned char)*a))
			a++;
		while (isdigit((unsigned char)*b))
			b++;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
	}
}

/* One that plays the same part: the same command line but for numbers, and the same parent. */
static bool is_equal(const struct facts *x, const struct process_fact *a,
		     const struct process_fact *b)
{
	const struct node *m = x->g->nodes.v[a->node], *n = x->g->nodes.v[b->node];

	if (a == b)
		return true;
	if (a->parent == NODE_NONE || a->parent != b->parent)
		return false;
	if (HAS(process, m, cmdline) && HAS(process, n, cmdline))
		return is_same_line(GET(process, m, cmdline), GET(process, n, cmdline));
	return HAS(process, m, name) && HAS(process, n, name) &&
	       GET(process, m, name) == GET(process, n, name);
}

enum neighbour fact_neighbour(const struct facts *x, const struct hot_thread *th,
			      const struct hot_rival **ret_other)
{
	const struct process_fact *p = fact_process(x, th->node);
	const struct hot_rival *other = NULL;
	uint64_t others = 0, equals = 0;
	bool known = th->preempted >= PREEMPTED_LEAST;

	vec_for(&th->rivals, v) {
		const struct process_fact *o = fact_process(x, v->node);

		if (p && o && is_equal(x, p, o)) {
			equals += v->run_ns;
			continue;
		}
		/* Who ran on its CPUs at other times took nothing from it. */
		if (!other || (known && !other->times && v->times))
			other = v;
		others += v->run_ns;
	}
	if (ret_other)
		*ret_other = other;
	if (others * 2 >= th->runq_ns)
		return NEIGHBOUR_OTHER;
	return equals * 2 >= th->runq_ns ? NEIGHBOUR_EQUAL : NEIGHBOUR_UNKNOWN;
}
