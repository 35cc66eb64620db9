/* Rule memory-latency: by samples, by the firmware, and what is missing where neither tells. */
#include "unit.h"

#include "rules_world.h"

#define RULE "memory-latency"

/* The first finding of the rule, or NULL. */
static const struct finding *found(struct world *w)
{
	analyse(w);
	find(w);
	vec_for(&w->f.v, fi)
		if (!strcmp(fi->rule, RULE))
			return fi;
	return NULL;
}

static void assert_unknown(struct world *w, const char *missing)
{
	assert_null(found(w));
	assert_int_equal(verdict(w, RULE)->verdict, VERDICT_UNKNOWN);
	if (!strstr(verdict(w, RULE)->evidence, missing))
		fail_msg("'%s' is not what is missing: %s", missing, verdict(w, RULE)->evidence);
	assert_non_null(verdict(w, RULE)->how);
	done(w);
}

static void assert_clear(struct world *w, const char *evidence)
{
	assert_null(found(w));
	assert_int_equal(verdict(w, RULE)->verdict, VERDICT_CLEAR);
	if (!strstr(verdict(w, RULE)->evidence, evidence))
		fail_msg("'%s' is not there: %s", evidence, verdict(w, RULE)->evidence);
	done(w);
}

static void firmware(struct world *w, uint64_t ns0, uint64_t ns1)
{
	SET(numa, at(w, w->numa[0]), read_latency_ns, ns0);
	SET(numa, at(w, w->numa[1]), read_latency_ns, ns1);
}

static void forget_firmware(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		at(w, w->numa[i])->measured &= ~(1ull << numa_f_read_latency_ns);
}

/* Accesses of the first rank, which had a CPU for 3 s; 0 cycles: its counters were not read. */
static void samples(struct world *w, uint64_t n, uint64_t cycles_each, uint64_t cycles, uint64_t instructions)
{
	struct node *p = at(w, w->rank[0]);

	SET(process, p, timed_samples, n);
	SET(process, p, latency_cycles, n * cycles_each);
	if (!cycles)
		return;
	SET(process, p, cycles, cycles);
	SET(process, p, instructions, instructions);
}

TEST(samples_tell_by_the_clock_that_the_cpus_ran_at)
{
	const struct finding *fi;
	struct world w;

	begin(&w);
	forget_firmware(&w);
	samples(&w, 100, 320, 6 * SECOND, 12 * SECOND); /* 160 ns at 2 GHz */
	fi = found(&w);
	assert_non_null(fi);
	/* Two instructions a cycle: it hardly waits. */
	assert_int_equal(fi->severity, SEVERITY_NOTICE);
	assert_int_equal(fi->root, w.rank[0]);
	assert_non_null(strstr(fi->title, "after 160 ns"));
	assert_non_null(strstr(fi->why, "100 sampled accesses"));
	assert_non_null(strstr(fi->why, "2.00 GHz"));
	done(&w);
	begin(&w);
	samples(&w, 100, 320, 6 * SECOND, 3 * SECOND);
	fi = found(&w);
	assert_non_null(fi);
	assert_int_equal(fi->severity, SEVERITY_WARNING);
	done(&w);
	/* The same cycles are less time of a faster clock. */
	begin(&w);
	forget_firmware(&w);
	samples(&w, 100, 320, 12 * SECOND, SECOND);
	assert_clear(&w, "1 processes by samples");
}

TEST(what_samples_lack_is_named)
{
	struct world w;

	begin(&w);
	forget_firmware(&w);
	assert_unknown(&w, "latency of accesses to memory");
	begin(&w);
	forget_firmware(&w);
	samples(&w, 99, 320, 6 * SECOND, SECOND);
	assert_unknown(&w, "latency of accesses to memory");
	begin(&w);
	forget_firmware(&w);
	samples(&w, 100, 320, 0, 0);
	assert_unknown(&w, "how fast the CPUs ran");
	/* What is no clock of a CPU. */
	begin(&w);
	forget_firmware(&w);
	samples(&w, 100, 320, 1000, 1000);
	assert_unknown(&w, "how fast the CPUs ran");
}

TEST(memory_that_is_slow_when_idle_is_slow)
{
	const struct finding *fi;
	struct world w;

	begin(&w);
	firmware(&w, 90, 250);
	fi = found(&w);
	assert_non_null(fi);
	/* Nothing counts whether it costs. */
	assert_int_equal(fi->severity, SEVERITY_NOTICE);
	assert_int_equal(fi->root, w.rank[1]);
	assert_int_equal(fi->values.v[0].value, 250);
	assert_non_null(strstr(fi->why, "HMAT"));
	done(&w);
}

TEST(samples_come_before_the_firmware)
{
	struct world w;

	begin(&w);
	firmware(&w, 250, 90);
	samples(&w, 1000, 200, 6 * SECOND, SECOND);
	assert_clear(&w, "1 processes by samples, of 1 by the firmware");
}

TEST(memory_that_is_quick_when_idle_is_so_only_while_little_is_used)
{
	struct world w;

	begin(&w);
	assert_clear(&w, "0 processes by samples, of 2 by the firmware");
	/* Nobody counts traffic: it may be loaded. */
	begin(&w);
	for (unsigned i = 0; i < 2; i++)
		w.traffic[i]->measured &= ~(1ull << ddr_bandwidth_f_total_bytes);
	assert_unknown(&w, "latency of memory under load");
	/* Of one of the two kinds of memory nothing is told. */
	begin(&w);
	forget_firmware(&w);
	SET(numa, at(&w, w.numa[0]), read_latency_ns, 90);
	assert_clear(&w, "of 1 by the firmware");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(samples_tell_by_the_clock_that_the_cpus_ran_at),
	    cmocka_unit_test(what_samples_lack_is_named),
	    cmocka_unit_test(memory_that_is_slow_when_idle_is_slow),
	    cmocka_unit_test(samples_come_before_the_firmware),
	    cmocka_unit_test(memory_that_is_quick_when_idle_is_so_only_while_little_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
