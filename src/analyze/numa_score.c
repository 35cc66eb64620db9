/* How well CPU time and memory agree in where they are: see numa_score.h. */
#include "numa_score.h"

#include <math.h>
#include <string.h>

struct numa_score numa_score(const double *cpu, const double *memory, size_t n)
{
	double dot = 0, cc = 0, mm = 0, c = 0, m = 0, local = 0;
	struct numa_score s = {0};

	for (size_t i = 0; i < n; i++) {
		dot += cpu[i] * memory[i];
		cc += cpu[i] * cpu[i];
		mm += memory[i] * memory[i];
		c += cpu[i];
		m += memory[i];
	}
	/* Also when something is not finite. */
	if (!(cc > 0 && mm > 0 && isfinite(dot) && isfinite(cc) && isfinite(mm)))
		return s;
	/* Shares stay as they are, to the last bit: the compact text leaves out what follows from them. */
	if (fabs(c - 1) < 1e-6)
		c = 1;
	for (size_t i = 0; i < n; i++)
		local += cpu[i] / c * memory[i] / m;
	s.known = true;
	s.similarity = fmin(dot / sqrt(cc) / sqrt(mm), 1);
	s.local_share = fmin(local, 1);
	s.remote_share = 1 - s.local_share;
	return s;
}

uint64_t numa_samples(const struct node *n)
{
	if (n->type == &thread_type && HAS(thread, n, memory_samples) && HAS(thread, n, remote_samples))
		return GET(thread, n, memory_samples);
	if (n->type == &process_type && HAS(process, n, memory_samples) && HAS(process, n, remote_samples))
		return GET(process, n, memory_samples);
	return 0;
}

double numa_measured_share(const struct node *n)
{
	uint64_t all = numa_samples(n), remote;

	if (all < NUMA_SAMPLES_LEAST)
		return -1;
	remote = n->type == &thread_type ? GET(thread, n, remote_samples) : GET(process, n, remote_samples);
	/* A file may say anything. */
	return fmin((double)remote / (double)all, 1);
}

const char *numa_verdict(const struct numa_score *s)
{
	if (!s->known)
		return NULL;
	return s->similarity > 0.8 ? "local" : s->similarity >= 0.5 ? "mixed" : s->similarity >= 0.3 ? "cross" : "remote";
}

double *by_node_at(struct by_node *b, uint32_t node)
{
	size_t i = 0;

	while (i < b->v.n && b->v.v[i].node < node)
		i++;
	if (i < b->v.n && b->v.v[i].node == node)
		return &b->v.v[i].amount;
	vec_add(&b->v);
	memmove(&b->v.v[i + 1], &b->v.v[i], (b->v.n - 1 - i) * sizeof(b->v.v[0]));
	b->v.v[i] = (struct node_amount){.node = node};
	return &b->v.v[i].amount;
}

struct numa_score numa_score_by_node(const struct by_node *cpu, const struct by_node *memory)
{
	VEC(double) c = {0}, m = {0};
	size_t i = 0, j = 0;
	struct numa_score s;

	while (i < cpu->v.n || j < memory->v.n) {
		bool has_c = i < cpu->v.n, has_m = j < memory->v.n;
		uint32_t node = has_c ? cpu->v.v[i].node : memory->v.v[j].node;

		if (has_m && memory->v.v[j].node < node)
			node = memory->v.v[j].node;
		vec_push(&c, has_c && cpu->v.v[i].node == node ? cpu->v.v[i++].amount : 0);
		vec_push(&m, has_m && memory->v.v[j].node == node ? memory->v.v[j++].amount : 0);
	}
	s = numa_score(c.v, m.v, c.n);
	vec_done(&c);
	vec_done(&m);
	return s;
}
