/* Samples accesses to memory with perf_event_open(2): see mem_sample.h. */
#include "mem_sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mem.h"

#define RING_PAGES  16 /* a power of two; a sample takes 24 bytes */
#define PERIOD_LOAD 10007 /* loads; a prime, so that loops are not hit at the same place */
#define PERIOD_OP   262144

/* linux/perf_event.h: the level's number says what, the bit `remote` where; older kernels set bits only. */
enum mem_answer mem_answer_of(uint64_t data_src)
{
	union perf_mem_data_src d = {.val = data_src};
	uint64_t lvl = d.mem_lvl;
	bool far = d.mem_remote || (lvl & (PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2 | PERF_MEM_LVL_REM_CCE1 |
					   PERF_MEM_LVL_REM_CCE2));

	if (!(lvl & PERF_MEM_LVL_NA) && (lvl & (PERF_MEM_LVL_IO | PERF_MEM_LVL_UNC)))
		return MEM_UNKNOWN;
	if (far)
		return MEM_REMOTE;
	if ((lvl & PERF_MEM_LVL_LOC_RAM) || d.mem_lvl_num == PERF_MEM_LVLNUM_RAM || d.mem_lvl_num == PERF_MEM_LVLNUM_PMEM)
		return MEM_LOCAL;
	if ((lvl & (PERF_MEM_LVL_L1 | PERF_MEM_LVL_LFB | PERF_MEM_LVL_L2 | PERF_MEM_LVL_L3)) ||
	    (d.mem_lvl_num >= PERF_MEM_LVLNUM_L1 && d.mem_lvl_num <= PERF_MEM_LVLNUM_L4) ||
	    d.mem_lvl_num == PERF_MEM_LVLNUM_LFB || d.mem_lvl_num == PERF_MEM_LVLNUM_ANY_CACHE)
		return MEM_OWN;
	return MEM_UNKNOWN;
}

static const struct pmu *pmu_named(const struct pmus *p, const char *name)
{
	vec_for(&p->v, x)
		if (!strcmp(x->name, name))
			return x;
	return NULL;
}

/* Only the performance cores of a hybrid machine, if its PMU says so. */
static int find_loads(const struct pmu *p, struct mem_sampler *ret, struct err *e)
{
	const struct pmu_event *loads = p ? pmu_event(p, "mem-loads") : NULL, *lead = p ? pmu_event(p, "mem-loads-aux") : NULL;

	if (!loads)
		return -ENOENT;
	*ret = (struct mem_sampler){.name = "mem-loads", .type = p->type, .period = PERIOD_LOAD, .precise = 2};
	ret->has_leader = lead != NULL;
	if (lead && pmu_encode(p, lead->terms, ret->leader_config, e) < 0)
		return e->code;
	return pmu_encode(p, loads->terms, ret->config, e);
}

int mem_sampler_find(const struct pmus *p, struct mem_sampler *ret, struct err *e)
{
	const struct pmu *ibs = pmu_named(p, "ibs_op");

	if (!find_loads(pmu_named(p, "cpu"), ret, e) || !find_loads(pmu_named(p, "cpu_core"), ret, e))
		return 0;
	if (ibs) {
		*ret = (struct mem_sampler){.name = "ibs_op", .type = ibs->type, .period = PERIOD_OP};
		return 0;
	}
	return err_msg(e, -ENOENT, "%s",
		       pmu_named(p, "arm_spe_0")
			       ? "not available: this machine samples by SPE, which is not read"
			       : "not available: no PMU here samples accesses to memory (mem-loads of Intel, ibs_op of AMD)");
}

size_t mem_records(const uint8_t *buf, size_t size, void (*cb)(void *ctx, uint32_t tid, enum mem_answer a), void *ctx,
		   uint64_t *ret_lost)
{
	struct perf_event_header h;
	size_t at = 0;

	while (size - at >= sizeof(h)) {
		const uint8_t *body = buf + at + sizeof(h);
		uint64_t v;
		uint32_t tid;

		memcpy(&h, buf + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > size - at)
			break;
		if (h.type == PERF_RECORD_SAMPLE && h.size >= sizeof(h) + 16) {
			memcpy(&tid, body + 4, sizeof(tid));
			memcpy(&v, body + 8, sizeof(v));
			cb(ctx, tid, mem_answer_of(v));
		} else if (h.type == PERF_RECORD_LOST && h.size >= sizeof(h) + 16) {
			memcpy(&v, body + 8, sizeof(v));
			*ret_lost += v;
		}
		at += h.size;
	}
	return at;
}

static int open_event(const struct mem_sampler *s, bool leader, int cpu, int group)
{
	const uint64_t *config = leader ? s->leader_config : s->config;
	struct perf_event_attr attr = {
		.type = s->type,
		.size = sizeof(attr),
		.config = config[0],
		.config1 = config[1],
		.config2 = config[2],
		.sample_period = leader ? 0 : s->period,
		.sample_type = leader ? 0 : PERF_SAMPLE_TID | PERF_SAMPLE_DATA_SRC,
		.precise_ip = leader ? 0 : s->precise,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

int mem_rings_add(struct mem_rings *r, const struct mem_sampler *s, uint32_t cpu, struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mem_ring x = {.leader = -1, .fd = -1};

	if (s->has_leader)
		x.leader = open_event(s, true, (int)cpu, -1);
	if (!s->has_leader || x.leader >= 0)
		x.fd = open_event(s, false, (int)cpu, x.leader);
	x.map = x.fd < 0 ? MAP_FAILED : mmap(NULL, (1 + RING_PAGES) * page, PROT_READ | PROT_WRITE, MAP_SHARED, x.fd, 0);
	if (x.map == MAP_FAILED) {
		err_set(e, -errno, "sample memory accesses by '%s' on CPU %u", s->name, cpu);
		if (e->code == -EACCES || e->code == -EPERM)
			err_hint(e, "needs CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1");
		if (x.fd >= 0)
			close(x.fd);
		if (x.leader >= 0)
			close(x.leader);
		return e->code;
	}
	vec_push(&r->v, x);
	return 0;
}

static void read_ring(struct mem_rings *r, struct mem_ring *x, uint8_t *copy,
		      void (*cb)(void *ctx, uint32_t tid, enum mem_answer a), void *ctx)
{
	struct perf_event_mmap_page *m = x->map;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = RING_PAGES * page, n, first;
	const uint8_t *data = (const uint8_t *)x->map + page;
	uint64_t head = __atomic_load_n(&m->data_head, __ATOMIC_ACQUIRE), tail = m->data_tail;

	n = head - tail > size ? size : (size_t)(head - tail);
	first = size - tail % size < n ? (size_t)(size - tail % size) : n;
	memcpy(copy, data + tail % size, first);
	memcpy(copy + first, data, n - first);
	mem_records(copy, n, cb, ctx, &r->lost);
	__atomic_store_n(&m->data_tail, head, __ATOMIC_RELEASE);
}

void mem_rings_read(struct mem_rings *r, void (*cb)(void *ctx, uint32_t tid, enum mem_answer a), void *ctx)
{
	uint8_t *copy = mem_alloc(RING_PAGES * (size_t)sysconf(_SC_PAGESIZE));

	vec_for(&r->v, x)
		read_ring(r, x, copy, cb, ctx);
	free(copy);
}

void mem_rings_done(struct mem_rings *r)
{
	vec_for(&r->v, x) {
		munmap(x->map, (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
		close(x->fd);
		if (x->leader >= 0)
			close(x->leader);
	}
	vec_done(&r->v);
}
