/* PMUs of other machines, encoding of events, arithmetic of counters, rates, and counting of known events. */
#include "unit.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf_count.h"
#include "perf_pmu.h"
#include "uncore.h"

static char root[] = "/tmp/test_counters.XXXXXX";

/* "pmu/file" and its text. */
static void put(const char *name, const char *text)
{
	char path[400], *s;
	FILE *f;

	snprintf(path, sizeof(path), "%s/sys/bus/event_source/devices/%s", root, name);
	for (s = path + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		mkdir(path, 0755);
	}
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static int make_root(void **state)
{
	return !mkdtemp(root);
}

static int remove_root(void **state)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void clear(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'/sys", root);
	assert_int_equal(system(command), 0);
}

static void read_all(struct pmus *p)
{
	struct sysroot r;
	struct err e;

	assert_int_equal(sysroot_open(root, &r, &e), 0);
	assert_true(pmus_read(&r, p) >= 0);
	sysroot_close(&r);
}

static const struct pmu *find(const struct pmus *p, const char *name)
{
	for (size_t i = 0; i < p->v.n; i++)
		if (!strcmp(p->v.v[i].name, name))
			return &p->v.v[i];
	fail_msg("no PMU '%s'", name);
	return NULL;
}

static void assert_event(const struct pmu *p, enum core_event e, uint32_t type, uint64_t config)
{
	uint64_t have[3];
	uint32_t have_type;

	assert_int_equal(core_event_of(p, e, &have_type, have), 0);
	assert_int_equal(have_type, type);
	assert_int_equal(have[0], config);
	assert_int_equal(have[1], 0);
}

static void put_intel(const char *pmu, const char *type)
{
	static const char *const files[][2] = {
		{"format/event", "config:0-7"},	 {"format/umask", "config:8-15"},
		{"format/inv", "config:23"},	 {"format/cmask", "config:24-31"},
		{"format/ldlat", "config1:0-15"}, {"events/cpu-cycles", "event=0x3c"},
		{"events/instructions", "event=0xc0"}, {"events/cache-references", "event=0x2e,umask=0x4f"},
		{"events/cache-misses", "event=0x2e,umask=0x41"},
	};
	char name[100];

	snprintf(name, sizeof(name), "%s/type", pmu);
	put(name, type);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", pmu, files[i][0]);
		put(name, files[i][1]);
	}
}

TEST(an_x86_machine_has_one_pmu_of_cpus)
{
	struct pmus p;
	uint64_t config[3];
	struct err e;

	clear();
	put_intel("cpu", "4");
	put("software/type", "1");
	put("not_a_pmu/name", "x");
	read_all(&p);
	assert_int_equal(p.v.n, 2);
	assert_true(find(&p, "cpu")->is_core);
	assert_false(find(&p, "software")->is_core);
	assert_event(find(&p, "cpu"), CORE_CYCLES, 4, 0x3c);
	assert_event(find(&p, "cpu"), CORE_LLC_REFERENCES, 4, 0x4f2e);
	assert_event(find(&p, "cpu"), CORE_LLC_MISSES, 4, 0x412e);
	/* No name for it: the kernel's own. */
	assert_event(find(&p, "cpu"), CORE_L1I_MISSES, PERF_TYPE_HW_CACHE,
		     PERF_COUNT_HW_CACHE_L1I | PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
	assert_int_equal(pmu_encode(find(&p, "cpu"), "event=0xd0,umask=0x81,inv,cmask=0x10,ldlat=0x3", config, &e), 0);
	assert_int_equal(config[0], 0x108081d0);
	assert_int_equal(config[1], 3);
	assert_int_equal(pmu_encode(find(&p, "cpu"), "event=0x3c,edge", config, &e), -EINVAL);
	assert_int_equal(pmu_encode(find(&p, "cpu"), "event=0x1ff", config, &e), -ERANGE);
	assert_int_equal(config[0], 0x108081d0);
	pmus_done(&p);
}

TEST(a_hybrid_machine_has_two)
{
	struct pmus p;

	clear();
	put_intel("cpu_core", "4");
	put("cpu_core/cpus", "0-11");
	put("cpu_atom/type", "10");
	put("cpu_atom/cpus", "12-19");
	read_all(&p);
	assert_true(find(&p, "cpu_core")->is_core);
	assert_int_equal(idrange_count(&find(&p, "cpu_core")->cpus), 12);
	assert_int_equal(idrange_next(&find(&p, "cpu_atom")->cpus, 0), 12);
	assert_event(find(&p, "cpu_core"), CORE_INSTRUCTIONS, 4, 0xc0);
	/* A generic event says which of the two it is of. */
	assert_event(find(&p, "cpu_atom"), CORE_CYCLES, PERF_TYPE_HARDWARE, 10ull << 32 | PERF_COUNT_HW_CPU_CYCLES);
	pmus_done(&p);
}

static void put_hisi(const char *pmu, const char *type, const char *cpu, const char *const events[][2], size_t n)
{
	char name[120];

	snprintf(name, sizeof(name), "%s/type", pmu);
	put(name, type);
	snprintf(name, sizeof(name), "%s/cpumask", pmu);
	put(name, cpu);
	snprintf(name, sizeof(name), "%s/format/event", pmu);
	put(name, "config:0-7");
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/events/%s", pmu, events[i][0]);
		put(name, events[i][1]);
	}
}

static void put_kunpeng(void)
{
	static const char *const ddrc[][2] = {{"flux_wr", "config=0x83"}, {"flux_rd", "config=0x84"}};
	static const char *const hha[][2] = {{"rx_ops_num", "config=0x00"}, {"rx_outer", "config=0x01"},
					     {"rx_sccl", "config=0x02"}, {"rd_ddr_64b", "config=0x1c"},
					     {"wr_ddr_64b", "config=0x1d"}, {"rd_ddr_128b", "config=0x1e"},
					     {"wr_ddr_128b", "config=0x1f"}};
	static const char *const pa[][2] = {{"rx_flit0", "event=0x40"}, {"tx_flit3", "event=0x5c"},
					    {"cycles", "event=0x78"}};

	clear();
	put("armv8_pmuv3_0/type", "8");
	put("armv8_pmuv3_0/cpus", "0-95");
	put("armv8_pmuv3_0/format/event", "config:0-15");
	put("armv8_pmuv3_0/events/cpu_cycles", "event=0x0011");
	put("armv8_pmuv3_0/events/inst_retired", "event=0x0008");
	put("armv8_pmuv3_0/events/l1i_cache_refill", "event=0x0001");
	put("armv8_pmuv3_0/events/ll_cache_rd", "event=0x0036");
	put("armv8_pmuv3_0/events/ll_cache_miss_rd", "event=0x0037");
	put_hisi("hisi_sccl1_ddrc0", "20", "0", ddrc, 2);
	put_hisi("hisi_sccl3_ddrc0", "21", "24", ddrc, 2);
	put_hisi("hisi_sccl3_ddrc1", "22", "24", ddrc, 2);
	put_hisi("hisi_sccl3_hha2", "23", "24", hha, 7);
	put_hisi("hisi_sicl2_pa0", "24", "24", pa, 3);
}

TEST(an_arm64_machine_goes_by_the_names_of_its_driver)
{
	struct pmus p;
	struct pmu none = {.name = (char *)"armv8_cortex_a72", .is_core = true, .type = 7};
	uint64_t config[3];
	uint32_t type;

	put_kunpeng();
	read_all(&p);
	assert_event(find(&p, "armv8_pmuv3_0"), CORE_CYCLES, 8, 0x11);
	assert_event(find(&p, "armv8_pmuv3_0"), CORE_LLC_REFERENCES, 8, 0x36);
	assert_event(find(&p, "armv8_pmuv3_0"), CORE_LLC_MISSES, 8, 0x37);
	assert_event(find(&p, "armv8_pmuv3_0"), CORE_L1I_MISSES, 8, 0x01);
	/* The generic cache events would be those of the first level there. */
	assert_int_equal(core_event_of(&none, CORE_LLC_MISSES, &type, config), -ENOENT);
	assert_int_equal(core_event_of(find(&p, "hisi_sicl2_pa0"), CORE_CYCLES, &type, config), -ENOENT);
	pmus_done(&p);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

TEST(uncore_events_go_to_the_node_of_their_cpu)
{
	struct uncore_events found = {0};
	struct uncore_sums sums;
	struct strbuf b = {0};
	struct pmus p;
	size_t of_24 = 0;

	put_kunpeng();
	read_all(&p);
	uncore_find(&p, &found);
	assert_int_equal(found.v.n, 6 + 7 + 3);
	uncore_sums_init(&sums);
	for (size_t i = 0; i < found.v.n; i++) {
		const struct uncore_event *x = &found.v.v[i];

		if (x->cpu != 24)
			continue;
		of_24++;
		uncore_sums_add(&sums, x, x->value == PA_CYCLES ? 4000000000ull : 1000000000ull);
	}
	assert_int_equal(of_24, 4 + 7 + 3);
	/* Two controllers with 10^9 bursts of 32 bytes each, in two seconds. */
	assert_true(uncore_rates(&sums, UNCORE_DDR, 2, 5, &b));
	assert_string_equal(b.s, "{\"read_bw\":32.0,\"write_bw\":32.0,\"total_bw\":64.0,\"timestamp\":5.0}");
	strbuf_clear(&b);
	assert_true(uncore_rates(&sums, UNCORE_HHA, 1, 5, &b));
	assert_string_equal(b.s, "{\"total_ops\":1.0,\"cross_socket_ops\":1.0,\"cross_die_ops\":1.0,\"inner_die_ops\":0.0,"
				 "\"read_ddr_bw\":192.0,\"write_ddr_bw\":192.0,\"total_ddr_bw\":384.0,\"timestamp\":5.0}");
	strbuf_clear(&b);
	/* A quarter of a flit in each cycle: a quarter of 30 GB/s, however long it took. */
	assert_true(uncore_rates(&sums, UNCORE_PA, 3, 5, &b));
	assert_string_equal(b.s, "{\"ring2pa_total\":7.5,\"pa2ring_total\":7.5,\"ring2pa_link0\":7.5,\"pa2ring_link3\":7.5,"
				 "\"timestamp\":5.0}");
	strbuf_clear(&b);
	assert_false(uncore_rates(&sums, UNCORE_L3C, 1, 5, &b));
	assert_int_equal(b.n, 0);
	strbuf_done(&b);
	vec_done(&found.v);
	pmus_done(&p);
}

TEST(intel_and_amd_memory_controllers)
{
	struct uncore_events found = {0};
	struct pmus p;

	clear();
	put("uncore_imc_0/type", "30");
	put("uncore_imc_0/cpumask", "0,18");
	put("uncore_imc_0/format/event", "config:0-7");
	put("uncore_imc_0/format/umask", "config:8-15");
	put("uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03");
	put("uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5");
	put("uncore_imc_0/events/cas_count_read.unit", "MiB");
	put("uncore_imc_0/events/cas_count_write", "event=0x04,umask=0x0c");
	put("uncore_upi_1/type", "31");
	put("uncore_upi_1/cpumask", "0");
	put("uncore_upi_1/format/event", "config:0-7");
	put("uncore_upi_1/format/umask", "config:8-15");
	put("amd_umc_0/type", "32");
	put("amd_umc_0/cpumask", "0");
	put("amd_umc_0/format/event", "config:0-7");
	put("amd_umc_0/format/rdwrmask", "config:8-9");
	read_all(&p);
	uncore_find(&p, &found);
	assert_int_equal(found.v.n, 2 + 2 * 2 + 1);
	for (size_t i = 0; i < found.v.n; i++) {
		const struct uncore_event *x = &found.v.v[i];
		const char *name = p.v.v[x->pmu].name;

		if (!strcmp(name, "uncore_imc_0")) {
			assert_true(near(x->factor, 64));
			assert_int_equal(x->config[0], x->value == DDR_READ_BYTES ? 0x304 : 0xc04);
		} else if (!strcmp(name, "uncore_upi_1")) {
			assert_int_equal(x->config[0], 0xf02);
			assert_true(near(x->factor, 64.0 / 9));
		} else {
			assert_int_equal(x->config[0], x->value == DDR_READ_BYTES ? 0x10a : 0x20a);
		}
	}
	vec_done(&found.v);
	pmus_done(&p);
}

/* A data fabric until Zen 3, or since Zen 4. */
static void put_df(const char *event, const char *umask)
{
	clear();
	put("amd_df/type", "40");
	put("amd_df/cpumask", "0,64");
	put("amd_df/format/event", event);
	put("amd_df/format/umask", umask);
}

static size_t count_value(const struct uncore_events *found, enum uncore_value v, uint64_t config)
{
	size_t n = 0;

	for (size_t i = 0; i < found->v.n; i++)
		n += found->v.v[i].value == v && found->v.v[i].config[0] == config;
	return n;
}

TEST(amd_data_fabric_by_its_generation)
{
	struct uncore_events found = {0};
	struct uncore_sums sums;
	struct strbuf b = {0};
	struct pmus p;

	put_df("config:0-7,32-35,59-60", "config:8-15");
	read_all(&p);
	uncore_find(&p, &found);
	/* Eight channels and four links of two sockets. */
	assert_int_equal(found.v.n, 2 * (8 + 4));
	assert_int_equal(count_value(&found, DDR_BYTES, 0x3807), 2);
	assert_int_equal(count_value(&found, DDR_BYTES, 0x1000038c7), 2);	 /* event 0x1c7 */
	assert_int_equal(count_value(&found, LINK_TX_BYTES, 0x7000002c7), 2); /* event 0x7c7 */
	assert_int_equal(count_value(&found, LINK_TX_BYTES, 0x800000287), 2); /* event 0x887 */
	uncore_sums_init(&sums);
	for (size_t i = 0; i < found.v.n; i++)
		if (!found.v.v[i].cpu)
			uncore_sums_add(&sums, &found.v.v[i], 1000000000);
	assert_true(uncore_rates(&sums, UNCORE_DDR, 1, 5, &b));
	/* Reads and writes are not told apart: only their sum is known. */
	assert_string_equal(b.s, "{\"total_bw\":512.0,\"timestamp\":5.0}");
	assert_true(near(uncore_ddr_bytes(&sums), 512e9));
	strbuf_clear(&b);
	assert_true(uncore_rates(&sums, UNCORE_PA, 1, 5, &b));
	assert_string_equal(b.s, "{\"link_tx_bw\":128.0,\"timestamp\":5.0}");
	pmus_done(&p);
	found.v.n = 0;
	put_df("config:0-7,32-37", "config:8-15,24-27");
	read_all(&p);
	uncore_find(&p, &found);
	assert_int_equal(found.v.n, 2 * (12 + 12));
	assert_int_equal(count_value(&found, DDR_READ_BYTES, 0xf00fe1f), 2);
	assert_int_equal(count_value(&found, DDR_WRITE_BYTES, 0x20f00ffdf), 2); /* event 0x2df */
	pmus_done(&p);
	/* With memory controllers of their own, these count. */
	found.v.n = 0;
	put("amd_umc_0/type", "41");
	put("amd_umc_0/cpumask", "0");
	put("amd_umc_0/format/event", "config:0-7");
	put("amd_umc_0/format/rdwrmask", "config:8-9");
	read_all(&p);
	uncore_find(&p, &found);
	assert_int_equal(found.v.n, 2);
	pmus_done(&p);
	strbuf_done(&b);
	vec_done(&found.v);
}

TEST(intel_home_agents_tell_what_comes_from_other_sockets)
{
	struct uncore_events found = {0};
	struct uncore_sums sums;
	struct strbuf b = {0};
	struct pmus p;

	clear();
	for (unsigned i = 0; i < 12; i++) {
		char name[80];

		snprintf(name, sizeof(name), "uncore_cha_%u/type", i);
		put(name, "50");
		snprintf(name, sizeof(name), "uncore_cha_%u/cpumask", i);
		put(name, "0,28");
		snprintf(name, sizeof(name), "uncore_cha_%u/format/event", i);
		put(name, "config:0-7");
		snprintf(name, sizeof(name), "uncore_cha_%u/format/umask", i);
		put(name, i % 2 ? "config:8-15,32-57" : "config:8-15");
	}
	read_all(&p);
	uncore_find(&p, &found);
	assert_int_equal(found.v.n, 12 * 2 * 2);
	uncore_sums_init(&sums);
	for (size_t i = 0; i < found.v.n; i++) {
		const struct uncore_event *x = &found.v.v[i];

		assert_int_equal(x->config[0], x->value == HHA_TOTAL ? 0xf50 : 0xa50);
		if (x->cpu == 28)
			uncore_sums_add(&sums, x, x->value == HHA_TOTAL ? 500000000 : 125000000);
	}
	assert_true(uncore_rates(&sums, UNCORE_HHA, 1, 5, &b));
	assert_string_equal(b.s, "{\"total_ops\":6.0,\"cross_socket_ops\":1.5,\"timestamp\":5.0}");
	strbuf_done(&b);
	vec_done(&found.v);
	pmus_done(&p);
}

/* Two packages of 64 CPUs, each of @p nodes nodes, and a node of memory only. */
static void make_topo(struct topo *t, uint32_t nodes)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i <= 2 * nodes; i++)
		vec_push(&t->nodes, ((struct topo_node){.id = i, .package = i / nodes, .memory_bytes = 1 << 30}));
	for (uint32_t i = 0; i < 128; i++)
		vec_push(&t->cpus, ((struct topo_cpu){.id = i, .online = true, .node = i * nodes / 64, .package = i / 64}));
	t->packages = 2;
}

/* Nodes of what is counted on a CPU: UINT32_MAX - 1: nothing is. */
static uint32_t node_of(const char *pmu, uint32_t cpu, uint32_t nodes_of_a_package)
{
	uint32_t ret = UINT32_MAX - 1;
	struct uncore_events found = {0};
	struct pmus p;
	struct topo t;

	make_topo(&t, nodes_of_a_package);
	read_all(&p);
	uncore_find(&p, &found);
	for (size_t i = 0; i < found.v.n; i++)
		if (!strcmp(p.v.v[found.v.v[i].pmu].name, pmu) && found.v.v[i].cpu == cpu)
			ret = uncore_node(&p, &found.v.v[i], &t);
	vec_done(&found.v);
	pmus_done(&p);
	topo_done(&t);
	return ret;
}

TEST(what_serves_several_nodes_is_put_on_none)
{
	/* AMD since Zen 2: one data fabric a socket; its memory controllers have a PMU each. */
	put_df("config:0-7,32-37", "config:8-15,24-27");
	put("amd_umc_0/type", "41");
	put("amd_umc_0/cpumask", "0");
	put("amd_umc_0/format/event", "config:0-7");
	put("amd_umc_0/format/rdwrmask", "config:8-9");
	put("amd_umc_12/type", "42");
	put("amd_umc_12/cpumask", "64");
	put("amd_umc_12/format/event", "config:0-7");
	put("amd_umc_12/format/rdwrmask", "config:8-9");
	assert_int_equal(node_of("amd_umc_0", 0, 1), 0); /* NPS1 */
	assert_int_equal(node_of("amd_umc_12", 64, 1), 1);
	assert_int_equal(node_of("amd_umc_0", 0, 4), TOPO_UNKNOWN); /* NPS4 */
	assert_int_equal(node_of("amd_umc_12", 64, 4), TOPO_UNKNOWN);
	put_df("config:0-7,32-35,59-60", "config:8-15");
	assert_int_equal(node_of("amd_df", 64, 1), 1);
	assert_int_equal(node_of("amd_df", 0, 2), TOPO_UNKNOWN);
	assert_int_equal(node_of("amd_df", 64, 4), TOPO_UNKNOWN);
	/* Zen 1: each die of a package has a node and a fabric of its own. */
	put("amd_df/cpumask", "0,16,32,48,64,80,96,112");
	assert_int_equal(node_of("amd_df", 48, 4), 3);
	assert_int_equal(node_of("amd_df", 112, 4), 7);
}

TEST(sub_numa_clusters_and_dies)
{
	clear();
	put("uncore_imc_0/type", "30");
	put("uncore_imc_0/cpumask", "0,64");
	put("uncore_imc_0/format/event", "config:0-7");
	put("uncore_imc_0/format/umask", "config:8-15");
	put("uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03");
	assert_int_equal(node_of("uncore_imc_0", 64, 1), 1);
	assert_int_equal(node_of("uncore_imc_0", 64, 2), TOPO_UNKNOWN);
	/* HiSilicon's are of one die each. */
	put_kunpeng();
	assert_int_equal(node_of("hisi_sccl1_ddrc0", 0, 2), 0);
	assert_int_equal(node_of("hisi_sccl3_ddrc0", 24, 4), 1);
	assert_int_equal(node_of("hisi_sccl3_ddrc0", 25, 4), UINT32_MAX - 1);
}

TEST(counters_are_scaled_and_wrap_around)
{
	uint64_t v = 7;

	assert_true(count_between(&(struct count){100, 10, 10}, &(struct count){350, 20, 20}, &v));
	assert_int_equal(v, 250);
	/* It counted in a third of the time. */
	assert_true(count_between(&(struct count){100, 1000, 1000}, &(struct count){200, 4000, 2000}, &v));
	assert_int_equal(v, 300);
	/* Rounded, not cut off. */
	assert_true(count_between(&(struct count){0, 0, 0}, &(struct count){2, 2, 3 - 1}, &v));
	assert_int_equal(v, 2);
	assert_true(count_between(&(struct count){0, 0, 0}, &(struct count){5, 3, 2}, &v));
	assert_int_equal(v, 8);
	/* Past 2^64. */
	assert_true(count_between(&(struct count){UINT64_MAX - 9, 0, 0}, &(struct count){20, 5, 5}, &v));
	assert_int_equal(v, 30);
	/* Products beyond 64 bits. */
	assert_true(count_between(&(struct count){0, 0, 0},
				  &(struct count){4000000000000000000ull, 3000000000000000000ull, 2999999999999999999ull}, &v));
	assert_true(v >= 4000000000000000000ull && v - 4000000000000000000ull < 10);
	assert_true(count_between(&(struct count){5, 9, 9}, &(struct count){5, 9, 9}, &v));
	assert_int_equal(v, 0);
	/* By itself: what it counted in a seventh of the time, and beyond what can be told. */
	assert_true(count_scaled(10, 7000, 1000, &v));
	assert_int_equal(v, 70);
	assert_true(count_scaled(0, 0, 0, &v));
	assert_int_equal(v, 0);
	v = 7;
	assert_false(count_scaled(UINT64_MAX, 2, 1, &v));
	assert_false(count_scaled(UINT64_MAX, UINT64_MAX, 1, &v));
	assert_false(count_scaled(1, 5, 0, &v));
	assert_false(count_between(&(struct count){0, 0, 0}, &(struct count){0, 1000, 0}, &v));
	assert_false(count_between(&(struct count){0, 10, 10}, &(struct count){50, 5, 5}, &v));
	assert_false(count_between(&(struct count){0, 0, 0}, &(struct count){5, 10, 11}, &v));
	assert_int_equal(v, 7);
}

/* Counts a software event of this task around @p work. @return false: not allowed here */
static bool count_around(uint64_t id, void (*work)(void), uint64_t *ret)
{
	const uint64_t config[3] = {id, 0, 0};
	struct count before, after;
	struct err e;
	int fd = count_open(PERF_TYPE_SOFTWARE, config, 0, -1, true, &e);

	if (fd < 0)
		return false;
	assert_int_equal(count_read(fd, &before), 0);
	work();
	assert_int_equal(count_read(fd, &after), 0);
	close(fd);
	assert_true(count_between(&before, &after, ret));
	return true;
}

#define PAGES 777

static size_t pages;

/* Instrumented, it would touch the pages of the sanitizer's notes, too. */
__attribute__((no_sanitize("address"))) static void touch_pages(void)
{
	size_t bytes = pages * (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	madvise(p, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += (size_t)sysconf(_SC_PAGESIZE))
		((volatile char *)p)[i] = 1;
	munmap(p, bytes);
}

#define TURNS 300

/* Each turn this task waits for the child's byte, and the child for ours. */
static void take_turns(void)
{
	int there[2], back[2];
	char c = 0;
	pid_t child;

	assert_int_equal(pipe(there), 0);
	assert_int_equal(pipe(back), 0);
	child = fork();
	if (!child) {
		for (int i = 0; i < TURNS; i++)
			if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < TURNS; i++) {
		assert_int_equal(write(there[1], &c, 1), 1);
		assert_int_equal(read(back[0], &c, 1), 1);
	}
	waitpid(child, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

static uint64_t own_switches(void)
{
	uint64_t n = 0;

	for (int i = 0; i < 2; i++) {
		struct rusage u;

		getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &u);
		n += (uint64_t)(u.ru_nvcsw + u.ru_nivcsw);
	}
	return n;
}

static uint64_t own_faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_minflt + u.ru_majflt);
}

/* The kernel's other counts of the same begin a little earlier and end later. */
#define A_LITTLE 8

TEST(known_numbers_of_page_faults_and_switches_are_counted)
{
	uint64_t faults, switches, own;

	for (pages = PAGES; pages <= 3 * PAGES; pages += 2 * PAGES) {
		own = own_faults();
		if (!count_around(PERF_COUNT_SW_PAGE_FAULTS, touch_pages, &faults))
			skip();
		own = own_faults() - own;
		/* More where pages of the program itself were taken away meanwhile. */
		assert_true(own >= pages);
		assert_in_range(faults, own - A_LITTLE, own);
	}
	own = own_switches();
	assert_true(count_around(PERF_COUNT_SW_CONTEXT_SWITCHES, take_turns, &switches));
	own = own_switches() - own;
	assert_true(own >= TURNS);
	assert_in_range(switches, own - A_LITTLE, own);
}

TEST(what_the_machine_cannot_count_is_an_error_that_says_so)
{
	const uint64_t config[3] = {0x12345, 0, 0};
	struct err e;

	assert_true(count_open(9999, config, 0, -1, false, &e) < 0);
	assert_non_null(strstr(e.msg, "0x12345"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_x86_machine_has_one_pmu_of_cpus),
		cmocka_unit_test(a_hybrid_machine_has_two),
		cmocka_unit_test(an_arm64_machine_goes_by_the_names_of_its_driver),
		cmocka_unit_test(uncore_events_go_to_the_node_of_their_cpu),
		cmocka_unit_test(intel_and_amd_memory_controllers),
		cmocka_unit_test(amd_data_fabric_by_its_generation),
		cmocka_unit_test(intel_home_agents_tell_what_comes_from_other_sockets),
		cmocka_unit_test(what_serves_several_nodes_is_put_on_none),
		cmocka_unit_test(sub_numa_clusters_and_dies),
		cmocka_unit_test(counters_are_scaled_and_wrap_around),
		cmocka_unit_test(known_numbers_of_page_faults_and_switches_are_counted),
		cmocka_unit_test(what_the_machine_cannot_count_is_an_error_that_says_so),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
