/* Samples accesses to memory with perf_event_open(2): see mem_sample.h. */
#include "mem_sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mem.h"

#define RING_PAGES  16 /* a power of two; a sample takes 32 bytes */
#define PERIOD_LOAD 10007 /* loads; a prime, so that loops are not hit at the same place */
#define PERIOD_OP   262144
#define PERIOD_SPE  (1U << 20)	/* operations; the CPU adds some at random. About 2000 accesses a second */
#define AUX_BYTES   (256U << 10) /* of a CPU: two such seconds. A power of two, and of 2 pages and more */

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

static bool has_format(const struct pmu *p, const char *name)
{
	vec_for(&p->formats, f)
		if (!strcmp(f->name, name))
			return true;
	return false;
}

/*
 * Loads and stores, at distances that loops do not meet. Timestamps would only make records longer; no access is
 * too quick to count. The kernel adds who ran, if it can.
 */
static int find_spe(const struct pmus *p, struct mem_sampler *ret, struct err *e)
{
	static const struct {
		const char *name, *term;
		bool is_needed;
	} terms[] = {{"load_filter", "load_filter=1", true}, {"store_filter", "store_filter=1", true},
		     {"jitter", "jitter=1", false}, {"ts_enable", "ts_enable=0", false},
		     {"min_latency", "min_latency=0", false}};
	struct strbuf b = {0};
	int rc = -ENOENT;

	vec_for(&p->v, x) {
		if (strncmp(x->name, "arm_spe_", 8))
			continue;
		rc = 0;
		for (size_t i = 0; !rc && i < sizeof(terms) / sizeof(terms[0]); i++) {
			if (has_format(x, terms[i].name))
				strbuf_addf(&b, "%s%s", b.n ? "," : "", terms[i].term);
			else if (terms[i].is_needed)
				rc = err_msg(e, -ENODATA, "not available: '%s' has no format '%s'", x->name,
					     terms[i].name);
		}
		*ret = (struct mem_sampler){.name = "arm_spe", .type = x->type, .period = PERIOD_SPE, .is_spe = true};
		ret->cpus = idrange_count(&x->cpus) ? &x->cpus : NULL;
		rc = rc ?: pmu_encode(x, b.s, ret->config, e);
		break;
	}
	strbuf_done(&b);
	return rc;
}

int mem_sampler_find(const struct pmus *p, struct mem_sampler *ret, struct err *e)
{
	const struct pmu *ibs = pmu_named(p, "ibs_op");
	int rc;

	if (!find_loads(pmu_named(p, "cpu"), ret, e) || !find_loads(pmu_named(p, "cpu_core"), ret, e))
		return 0;
	if (ibs) {
		*ret = (struct mem_sampler){.name = "ibs_op", .type = ibs->type, .period = PERIOD_OP};
		return 0;
	}
	rc = find_spe(p, ret, e);
	if (rc != -ENOENT)
		return rc;
	return err_msg(e, -ENOENT,
		       "not available: no PMU here samples accesses to memory (mem-loads of Intel, ibs_op of AMD, "
		       "arm_spe_0 of Arm)");
}

size_t mem_records(const uint8_t *buf, size_t size, void (*cb)(void *ctx, const struct mem_access *a), void *ctx,
		   uint64_t *ret_lost)
{
	struct perf_event_header h;
	size_t at = 0;

	while (size - at >= sizeof(h)) {
		const uint8_t *body = buf + at + sizeof(h);
		uint64_t v;

		memcpy(&h, buf + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > size - at)
			break;
		if (h.type == PERF_RECORD_SAMPLE && h.size >= sizeof(h) + 24) {
			struct mem_access a;
			uint64_t weight;

			memcpy(&a.tid, body + 4, sizeof(a.tid));
			memcpy(&weight, body + 8, sizeof(weight));
			memcpy(&v, body + 16, sizeof(v));
			a.answer = mem_answer_of(v);
			a.cycles = weight < UINT32_MAX ? (uint32_t)weight : 0;
			cb(ctx, &a);
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
		.sample_type = leader ? 0 : PERF_SAMPLE_TID | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC,
		.precise_ip = leader ? 0 : s->precise,
		.disabled = s->is_spe, /* until it has a place to write to */
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

/* Beside the ring, which then only tells what was written here. @return 0, or -1 with errno */
static int map_aux(struct mem_ring *x)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *m = x->map;

	m->aux_offset = (1 + RING_PAGES) * page;
	m->aux_size = AUX_BYTES;
	x->aux = mmap(NULL, AUX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, x->fd, (off_t)m->aux_offset);
	if (x->aux != MAP_FAILED)
		return ioctl(x->fd, PERF_EVENT_IOC_ENABLE, 0);
	x->aux = NULL;
	return -1;
}

static void close_ring(struct mem_ring *x)
{
	if (x->aux)
		munmap(x->aux, AUX_BYTES);
	if (x->map && x->map != MAP_FAILED)
		munmap(x->map, (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
	if (x->fd >= 0)
		close(x->fd);
	if (x->leader >= 0)
		close(x->leader);
}

int mem_rings_add(struct mem_rings *r, const struct mem_sampler *s, uint32_t cpu, enum spe_codes codes, struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mem_ring x = {.leader = -1, .fd = -1, .codes = codes};

	if (s->has_leader)
		x.leader = open_event(s, true, (int)cpu, -1);
	if (!s->has_leader || x.leader >= 0)
		x.fd = open_event(s, false, (int)cpu, x.leader);
	x.map = x.fd < 0 ? MAP_FAILED : mmap(NULL, (1 + RING_PAGES) * page, PROT_READ | PROT_WRITE, MAP_SHARED, x.fd, 0);
	if (x.map == MAP_FAILED || (s->is_spe && map_aux(&x) < 0)) {
		err_set(e, -errno, "sample memory accesses by '%s' on CPU %u", s->name, cpu);
		if (e->code == -EACCES || e->code == -EPERM)
			err_hint(e, "needs CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1");
		if (e->code == -EBUSY)
			err_hint(e, "another program samples by it");
		close_ring(&x);
		return e->code;
	}
	vec_push(&r->v, x);
	return 0;
}

static void read_ring(struct mem_rings *r, struct mem_ring *x, uint8_t *copy,
		      void (*cb)(void *ctx, const struct mem_access *a), void *ctx)
{
	struct perf_event_mmap_page *m = x->map;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = RING_PAGES * page, n;
	uint64_t head = __atomic_load_n(&m->data_head, __ATOMIC_ACQUIRE);

	n = ring_copy(copy, (const uint8_t *)x->map + page, size, m->data_tail, head);
	mem_records(copy, n, cb, ctx, &r->lost);
	__atomic_store_n(&m->data_tail, head, __ATOMIC_RELEASE);
}

/* What the CPU wrote is told when its buffer is half full, or when it is stopped. */
static void read_spe(struct mem_rings *r, struct mem_ring *x, uint8_t *copy,
		     void (*cb)(void *ctx, const struct mem_access *a), void *ctx)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct spe_ring ring = {.m = x->map, .data = (const uint8_t *)x->map + page, .data_size = RING_PAGES * page,
				.aux = x->aux, .aux_size = AUX_BYTES, .codes = x->codes};

	ioctl(x->fd, PERF_EVENT_IOC_DISABLE, 0);
	spe_ring_read(&ring, copy, cb, ctx, &r->spe);
	/* Also after the buffer was full, when the kernel has stopped it. */
	ioctl(x->fd, PERF_EVENT_IOC_ENABLE, 0);
}

void mem_rings_read(struct mem_rings *r, void (*cb)(void *ctx, const struct mem_access *a), void *ctx)
{
	uint8_t *copy = mem_alloc(RING_PAGES * (size_t)sysconf(_SC_PAGESIZE));

	vec_for(&r->v, x) {
		if (x->aux)
			read_spe(r, x, copy, cb, ctx);
		else
			read_ring(r, x, copy, cb, ctx);
	}
	free(copy);
}

void mem_rings_done(struct mem_rings *r)
{
	vec_for(&r->v, x)
		close_ring(x);
	vec_done(&r->v);
}

static const char *add_reason(struct strbuf *b, const char *reason)
{
	strbuf_addf(b, "%s%s", b->n ? "; " : "", reason);
	return "reduced";
}

const char *mem_rings_state(const struct mem_rings *r, uint64_t named, uint64_t timed, struct strbuf *b)
{
	const char *ret = "ok";

	if (r->spe.no_context) {
		ret = add_reason(b, "samples carry no pid: the kernel does not tell the CPU who runs, which needs "
				    "CONFIG_PID_IN_CONTEXTIDR=y and CAP_PERFMON");
		ret = named ? ret : "off";
	}
	if (r->spe.counts.records && !r->spe.last_level && r->v.n && r->v.v[0].codes == SPE_CODES_UNKNOWN)
		ret = add_reason(b, "the CPUs' events do not tell of the last level of cache, and their data sources are "
				    "not known");
	if (named && !timed)
		ret = add_reason(b, "samples carry no latency");
	return ret;
}
