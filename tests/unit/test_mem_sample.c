/* Sampled accesses to memory: which machines can, what a sample says, and a ring buffer on an event of the kernel. */
#include "unit.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mem_sample.h"

/* Level by number, and the bit for another node. */
static uint64_t by_number(unsigned number, unsigned remote, unsigned hops)
{
	union perf_mem_data_src d = {.mem_op = PERF_MEM_OP_LOAD, .mem_lvl = PERF_MEM_LVL_NA, .mem_lvl_num = number,
				     .mem_remote = remote, .mem_hops = hops};

	return d.val;
}

static uint64_t by_bits(unsigned bits)
{
	union perf_mem_data_src d = {.mem_op = PERF_MEM_OP_LOAD, .mem_lvl = bits, .mem_lvl_num = PERF_MEM_LVLNUM_NA};

	return d.val;
}

TEST(a_sample_says_who_answered)
{
	assert_int_equal(mem_answer_of(by_bits(PERF_MEM_LVL_HIT | PERF_MEM_LVL_L1)), MEM_OWN);
	assert_int_equal(mem_answer_of(by_bits(PERF_MEM_LVL_HIT | PERF_MEM_LVL_L3)), MEM_OWN);
	assert_int_equal(mem_answer_of(by_bits(PERF_MEM_LVL_HIT | PERF_MEM_LVL_LOC_RAM)), MEM_LOCAL);
	assert_int_equal(mem_answer_of(by_bits(PERF_MEM_LVL_MISS | PERF_MEM_LVL_L3 | PERF_MEM_LVL_REM_RAM1)), MEM_REMOTE);
	assert_int_equal(mem_answer_of(by_bits(PERF_MEM_LVL_HIT | PERF_MEM_LVL_REM_CCE1)), MEM_REMOTE);
	assert_int_equal(mem_answer_of(by_bits(PERF_MEM_LVL_HIT | PERF_MEM_LVL_IO)), MEM_UNKNOWN);
	assert_int_equal(mem_answer_of(by_number(PERF_MEM_LVLNUM_L2, 0, 0)), MEM_OWN);
	assert_int_equal(mem_answer_of(by_number(PERF_MEM_LVLNUM_RAM, 0, 0)), MEM_LOCAL);
	assert_int_equal(mem_answer_of(by_number(PERF_MEM_LVLNUM_RAM, 1, 2)), MEM_REMOTE);
	assert_int_equal(mem_answer_of(by_number(PERF_MEM_LVLNUM_ANY_CACHE, 1, 2)), MEM_REMOTE);
	assert_int_equal(mem_answer_of(by_number(PERF_MEM_LVLNUM_ANY_CACHE, 0, 0)), MEM_OWN);
	assert_int_equal(mem_answer_of(by_number(PERF_MEM_LVLNUM_NA, 0, 0)), MEM_UNKNOWN);
	assert_int_equal(mem_answer_of(0), MEM_UNKNOWN);
}

struct seen {
	uint32_t tid;
	unsigned n[MEM_REMOTE + 1];
	uint64_t cycles;
};

static void on_sample(void *ctx, const struct mem_access *a)
{
	struct seen *s = ctx;

	s->n[a->answer] += a->tid == s->tid;
	s->cycles += a->tid == s->tid ? a->cycles : 0;
}

static size_t put_record(uint8_t *buf, size_t at, uint32_t type, uint64_t first, uint64_t second, uint16_t extra)
{
	struct perf_event_header h = {.type = type, .size = (uint16_t)(sizeof(h) + 16 + extra)};

	memcpy(buf + at, &h, sizeof(h));
	memcpy(buf + at + sizeof(h), &first, 8);
	memcpy(buf + at + sizeof(h) + 8, &second, 8);
	memset(buf + at + sizeof(h) + 16, 0xee, extra);
	return at + h.size;
}

/* Who, latency, who answered. */
static size_t put_sample(uint8_t *buf, size_t at, uint64_t who, uint64_t cycles, uint64_t data_src)
{
	size_t end = put_record(buf, at, PERF_RECORD_SAMPLE, who, cycles, 8);

	memcpy(buf + end - 8, &data_src, 8);
	return end;
}

TEST(records_are_read_to_the_last_whole_one)
{
	uint64_t who = (uint64_t)4711 << 32 | 4700, lost = 1;
	struct seen s = {.tid = 4711};
	uint8_t buf[512];
	size_t n = 0, whole;

	n = put_sample(buf, n, who, 500, by_number(PERF_MEM_LVLNUM_RAM, 1, 1));
	n = put_record(buf, n, PERF_RECORD_LOST, 9, 12, 0);
	n = put_record(buf, n, PERF_RECORD_THROTTLE, 0, 0, 8);
	n = put_sample(buf, n, who, 200, by_number(PERF_MEM_LVLNUM_RAM, 0, 0));
	n = put_sample(buf, n, (uint64_t)1 << 32, 900, by_number(PERF_MEM_LVLNUM_RAM, 0, 0));
	/* Too short for what was asked for. */
	n = put_record(buf, n, PERF_RECORD_SAMPLE, who, 300, 0);
	whole = n;
	n = put_sample(buf, n, who, 400, by_number(PERF_MEM_LVLNUM_RAM, 0, 0));
	assert_int_equal(mem_records(buf, n - 1, on_sample, &s, &lost), whole);
	assert_int_equal(s.n[MEM_REMOTE], 1);
	assert_int_equal(s.n[MEM_LOCAL], 1);
	assert_int_equal(s.cycles, 700);
	assert_int_equal(lost, 13);
	/* A size that leads nowhere ends it. */
	memset(buf, 0, sizeof(buf));
	assert_int_equal(mem_records(buf, sizeof(buf), on_sample, &s, &lost), 0);
	assert_int_equal(mem_records(buf, 0, on_sample, &s, &lost), 0);
}

static struct pmu *add_pmu(struct pmus *p, const char *name, uint32_t type)
{
	struct pmu *x = vec_add(&p->v);

	x->name = mem_strdup(name);
	x->type = type;
	return x;
}

static void add_event(struct pmu *p, const char *name, const char *terms)
{
	struct pmu_event *x = vec_add(&p->events);

	x->name = mem_strdup(name);
	x->terms = mem_strdup(terms);
}

TEST(machines_sample_in_their_own_ways)
{
	struct mem_sampler s;
	struct pmus p = {0};
	struct pmu *cpu;
	struct err e;

	err_clear(&e);
	assert_int_equal(mem_sampler_find(&p, &s, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "not available"));
	assert_non_null(strstr(e.msg, "mem-loads of Intel, ibs_op of AMD, arm_spe_0 of Arm"));
	add_pmu(&p, "ibs_op", 11);
	assert_int_equal(mem_sampler_find(&p, &s, &e), 0);
	assert_string_equal(s.name, "ibs_op");
	assert_int_equal(s.type, 11);
	assert_int_equal(s.precise, 0);
	cpu = add_pmu(&p, "cpu", 4);
	add_event(cpu, "mem-loads", "config=0x1cd,config1=0x3");
	assert_int_equal(mem_sampler_find(&p, &s, &e), 0);
	assert_string_equal(s.name, "mem-loads");
	assert_int_equal(s.config[0], 0x1cd);
	assert_int_equal(s.config[1], 3);
	assert_false(s.has_leader);
	add_event(&p.v.v[p.v.n - 1], "mem-loads-aux", "config=0x8203");
	assert_int_equal(mem_sampler_find(&p, &s, &e), 0);
	assert_true(s.has_leader);
	assert_int_equal(s.leader_config[0], 0x8203);
	pmus_done(&p);
}

static void add_format(struct pmu *p, const char *name, unsigned word, uint32_t first, uint32_t last)
{
	struct pmu_format *x = vec_add(&p->formats);

	x->name = mem_strdup(name);
	x->word = word;
	for (uint32_t bit = first; bit <= last; bit++)
		idrange_add(&x->bits, bit);
}

/* As the driver arm_spe_pmu has it. */
TEST(spe_is_asked_by_the_formats_of_its_driver)
{
	struct mem_sampler s;
	struct pmus p = {0};
	struct pmu *spe = add_pmu(&p, "arm_spe_0", 9);
	struct err e;

	err_clear(&e);
	assert_int_equal(mem_sampler_find(&p, &s, &e), -ENODATA);
	assert_non_null(strstr(e.msg, "not available: 'arm_spe_0' has no format 'load_filter'"));
	add_format(spe, "ts_enable", 0, 0, 0);
	add_format(spe, "jitter", 0, 16, 16);
	add_format(spe, "branch_filter", 0, 32, 32);
	add_format(spe, "load_filter", 0, 33, 33);
	add_format(spe, "store_filter", 0, 34, 34);
	add_format(spe, "event_filter", 1, 0, 63);
	add_format(spe, "min_latency", 2, 0, 11);
	assert_int_equal(mem_sampler_find(&p, &s, &e), 0);
	assert_string_equal(s.name, "arm_spe");
	assert_true(s.is_spe);
	assert_int_equal(s.type, 9);
	assert_true(s.config[0] == (1ULL << 16 | 3ULL << 33));
	assert_true(!s.config[1] && !s.config[2]);
	assert_null(s.cpus);
	/* Of a machine with several sorts of CPUs only some. */
	idrange_add(&spe->cpus, 4);
	assert_int_equal(mem_sampler_find(&p, &s, &e), 0);
	assert_true(idrange_has(s.cpus, 4) && !idrange_has(s.cpus, 0));
	pmus_done(&p);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The kernel's clock samples as well; what was accessed it does not say. */
TEST(a_ring_hands_over_what_came)
{
	const struct mem_sampler clock = {.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
					  .config = {PERF_COUNT_SW_CPU_CLOCK, 0, 0}, .period = 200000};
	struct seen s = {.tid = (uint32_t)syscall(SYS_gettid)};
	struct mem_rings r = {0};
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct err e;
	unsigned now;

	for (long cpu = 0; cpu < cpus; cpu++)
		if (mem_rings_add(&r, &clock, (uint32_t)cpu, SPE_CODES_UNKNOWN, &e) < 0 && (e.code == -EACCES || e.code == -EPERM)) {
			mem_rings_done(&r);
			skip();
		}
	/* Far more than fits, so that the ring goes round. */
	for (unsigned i = 0; i < 20; i++) {
		uint64_t until = cpu_ns() + 10000000;

		while (cpu_ns() < until)
			;
		mem_rings_read(&r, on_sample, &s);
	}
	assert_true(s.n[MEM_UNKNOWN] + r.lost >= 100);
	assert_int_equal(s.n[MEM_LOCAL] + s.n[MEM_REMOTE] + s.n[MEM_OWN], 0);
	now = s.n[MEM_UNKNOWN];
	mem_rings_read(&r, on_sample, &s);
	assert_true(s.n[MEM_UNKNOWN] - now < 100);
	mem_rings_done(&r);
}

/* An event whose records go elsewhere needs a PMU that writes: others are refused, and nothing stays open. */
TEST(a_pmu_without_a_buffer_of_its_own_is_refused)
{
	const struct mem_sampler clock = {.name = "arm_spe", .type = PERF_TYPE_SOFTWARE, .is_spe = true,
					  .config = {PERF_COUNT_SW_CPU_CLOCK, 0, 0}, .period = 200000};
	struct mem_rings r = {0};
	int before = dup(0), after;
	struct err e;

	close(before);
	assert_true(mem_rings_add(&r, &clock, 0, SPE_CODES_UNKNOWN, &e) < 0);
	assert_non_null(strstr(e.msg, "sample memory accesses by 'arm_spe' on CPU 0"));
	assert_int_equal(r.v.n, 0);
	after = dup(0);
	close(after);
	assert_int_equal(after, before);
	mem_rings_done(&r);
}

TEST(samples_without_a_pid_are_told)
{
	struct mem_rings r = {0};
	struct strbuf b = {0};

	assert_string_equal(mem_rings_state(&r, 10, 10, &b), "ok");
	assert_int_equal(b.n, 0);
	r.spe.no_context = 500;
	assert_string_equal(mem_rings_state(&r, 0, 0, &b), "off");
	assert_non_null(strstr(b.s, "samples carry no pid"));
	assert_non_null(strstr(b.s, "CONFIG_PID_IN_CONTEXTIDR=y"));
	strbuf_clear(&b);
	assert_string_equal(mem_rings_state(&r, 10, 10, &b), "reduced");
	r.spe.no_context = 0;
	strbuf_clear(&b);
	assert_string_equal(mem_rings_state(&r, 10, 0, &b), "reduced");
	assert_string_equal(b.s, "samples carry no latency");
	strbuf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_says_who_answered),
		cmocka_unit_test(records_are_read_to_the_last_whole_one),
		cmocka_unit_test(machines_sample_in_their_own_ways),
		cmocka_unit_test(spe_is_asked_by_the_formats_of_its_driver),
		cmocka_unit_test(samples_without_a_pid_are_told),
		cmocka_unit_test(a_ring_hands_over_what_came),
		cmocka_unit_test(a_pmu_without_a_buffer_of_its_own_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
