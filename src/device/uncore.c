/* Events outside of the cores, and the rates that they make: see uncore.h. */
#include "uncore.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CACHE_LINE 64

/*
 * Which events make which value. `terms` stands for drivers that name no events. Factors:
 * DDRC of HiSilicon counts bursts of 32 bytes; HHA says the size in the event's name; Intel's CAS and
 * AMD's count cache lines, though drivers give Intel's a scale in MiB; a UPI flit of data carries 64
 * bytes in 9 (Intel, uncore manual: 64 B / 9 flits). Intel's CHA counts requests to the home agent, of which
 * those from remote sockets have masks of their own (REQUESTS, the same from Skylake on). AMD's data fabric
 * has an event for each channel and link: requests of 64 bytes and packets of 32 until Zen 3, which tell
 * reads and writes not apart; beats of 64 bytes since Zen 4, here those of local and of remote sockets
 * together (the vendor's tables for perf: amdzen3, amdzen4 data-fabric).
 */
static const struct uncore_rule {
	const char *pmu, *event, *terms;
	enum uncore_value value;
	double factor;
	unsigned link;
	unsigned series;  /* as many such events, 0: one; term `event` goes up by 0x40 */
	unsigned top_bit; /* the PMU's term `event` has to reach up to it; 0: as it is */
} rules[] = {
	{"hisi_sccl*_ddrc*", "flux_rd", NULL, DDR_READ_BYTES, 32, 0},
	{"hisi_sccl*_ddrc*", "flux_wr", NULL, DDR_WRITE_BYTES, 32, 0},
	{"hisi_sccl*_hha*", "rx_operations", NULL, HHA_TOTAL, 1, 0},
	{"hisi_sccl*_hha*", "rx_ops_num", NULL, HHA_TOTAL, 1, 0},
	{"hisi_sccl*_hha*", "rx_outer", NULL, HHA_CROSS_SOCKET, 1, 0},
	{"hisi_sccl*_hha*", "rx_sccl", NULL, HHA_CROSS_DIE, 1, 0},
	{"hisi_sccl*_hha*", "rd_ddr_64b", NULL, HHA_DDR_READ_BYTES, 64, 0},
	{"hisi_sccl*_hha*", "rd_ddr_128b", NULL, HHA_DDR_READ_BYTES, 128, 0},
	{"hisi_sccl*_hha*", "wr_ddr_64b", NULL, HHA_DDR_WRITE_BYTES, 64, 0},
	{"hisi_sccl*_hha*", "wr_ddr_128b", NULL, HHA_DDR_WRITE_BYTES, 128, 0},
	{"hisi_sccl*_l3c*", "rd_cpipe", NULL, L3C_READ_CPIPE, 1, 0},
	{"hisi_sccl*_l3c*", "wr_cpipe", NULL, L3C_WRITE_CPIPE, 1, 0},
	{"hisi_sccl*_l3c*", "rd_hit_cpipe", NULL, L3C_READ_CPIPE_HIT, 1, 0},
	{"hisi_sccl*_l3c*", "wr_hit_cpipe", NULL, L3C_WRITE_CPIPE_HIT, 1, 0},
	{"hisi_sccl*_l3c*", "rd_spipe", NULL, L3C_READ_SPIPE, 1, 0},
	{"hisi_sccl*_l3c*", "wr_spipe", NULL, L3C_WRITE_SPIPE, 1, 0},
	{"hisi_sccl*_l3c*", "rd_hit_spipe", NULL, L3C_READ_SPIPE_HIT, 1, 0},
	{"hisi_sccl*_l3c*", "wr_hit_spipe", NULL, L3C_WRITE_SPIPE_HIT, 1, 0},
	{"hisi_sccl*_l3c*", "back_invalid", NULL, L3C_BACK_INVALID, 1, 0},
	{"hisi_sccl*_l3c*", "victim_num", NULL, L3C_BACK_INVALID, 1, 0},
	{"hisi_sccl*_l3c*", "retry_cpu", NULL, L3C_RETRY, 1, 0},
	{"hisi_sicl*_pa*", "rx_flit0", NULL, PA_RX_FLITS, 1, 0},
	{"hisi_sicl*_pa*", "rx_flit1", NULL, PA_RX_FLITS, 1, 1},
	{"hisi_sicl*_pa*", "rx_flit2", NULL, PA_RX_FLITS, 1, 2},
	{"hisi_sicl*_pa*", "rx_flit3", NULL, PA_RX_FLITS, 1, 3},
	{"hisi_sicl*_pa*", "tx_flit0", NULL, PA_TX_FLITS, 1, 0},
	{"hisi_sicl*_pa*", "tx_flit1", NULL, PA_TX_FLITS, 1, 1},
	{"hisi_sicl*_pa*", "tx_flit2", NULL, PA_TX_FLITS, 1, 2},
	{"hisi_sicl*_pa*", "tx_flit3", NULL, PA_TX_FLITS, 1, 3},
	{"hisi_sicl*_pa*", "cycles", NULL, PA_CYCLES, 1, 0},
	{"uncore_imc_[0-9]*", "cas_count_read", NULL, DDR_READ_BYTES, CACHE_LINE, 0},
	{"uncore_imc_[0-9]*", "cas_count_write", NULL, DDR_WRITE_BYTES, CACHE_LINE, 0},
	{"uncore_imc_[0-9]*", "cas_count_read_sch0", NULL, DDR_READ_BYTES, CACHE_LINE, 0},
	{"uncore_imc_[0-9]*", "cas_count_read_sch1", NULL, DDR_READ_BYTES, CACHE_LINE, 0},
	{"uncore_imc_[0-9]*", "cas_count_write_sch0", NULL, DDR_WRITE_BYTES, CACHE_LINE, 0},
	{"uncore_imc_[0-9]*", "cas_count_write_sch1", NULL, DDR_WRITE_BYTES, CACHE_LINE, 0},
	{"uncore_imc", "data_reads", NULL, DDR_READ_BYTES, CACHE_LINE, 0},
	{"uncore_imc", "data_writes", NULL, DDR_WRITE_BYTES, CACHE_LINE, 0},
	{"uncore_imc_free_running*", "data_read", NULL, DDR_READ_BYTES, CACHE_LINE, 0},
	{"uncore_imc_free_running*", "data_write", NULL, DDR_WRITE_BYTES, CACHE_LINE, 0},
	{"uncore_upi_[0-9]*", NULL, "event=0x2,umask=0xf", LINK_TX_BYTES, 64.0 / 9, 0},
	{"amd_umc_[0-9]*", NULL, "event=0xa,rdwrmask=0x1", DDR_READ_BYTES, CACHE_LINE, 0},
	{"amd_umc_[0-9]*", NULL, "event=0xa,rdwrmask=0x2", DDR_WRITE_BYTES, CACHE_LINE, 0},
	{"uncore_cha_[0-9]*", NULL, "event=0x50,umask=0xf", HHA_TOTAL, 1, 0},
	{"uncore_cha_[0-9]*", NULL, "event=0x50,umask=0xa", HHA_CROSS_SOCKET, 1, 0},
	{"amd_df", NULL, "event=0x7,umask=0x38", DDR_BYTES, CACHE_LINE, 0, 8, 60},
	{"amd_df", NULL, "event=0x7c7,umask=0x2", LINK_TX_BYTES, 32, 0, 4, 60},
	{"amd_df", NULL, "event=0x1f,umask=0xffe", DDR_READ_BYTES, CACHE_LINE, 0, 12, 37},
	{"amd_df", NULL, "event=0x1f,umask=0xfff", DDR_WRITE_BYTES, CACHE_LINE, 0, 12, 37},
};

/* A driver's scale is the truth where it is in bytes or MiB. */
static double factor_of(const struct uncore_rule *rule, const struct pmu_event *x)
{
	if (x && x->scale > 0 && x->unit && !strcmp(x->unit, "MiB"))
		return x->scale * (1 << 20);
	if (x && x->scale > 0 && x->unit && !strcmp(x->unit, "Bytes"))
		return x->scale;
	return rule->factor;
}

/* Highest bit of the term `event`: which generation of a PMU it is. */
static unsigned top_bit_of(const struct pmu *p)
{
	unsigned top = 0;

	vec_for(&p->formats, f)
		if (!strcmp(f->name, "event"))
			for (int64_t bit = -1; (bit = idrange_next(&f->bits, bit + 1)) >= 0;)
				top = (unsigned)bit;
	return top;
}

/* Event @p k of the series of a rule, on one CPU of each socket: there are as many devices. */
static void add_one(const struct pmus *pmus, size_t i, const struct uncore_rule *rule, const struct pmu_event *x,
		    unsigned k, struct uncore_events *ret)
{
	const struct pmu *p = &pmus->v.v[i];
	struct uncore_event e = {.pmu = (uint32_t)i, .value = rule->value, .link = rule->link};
	char terms[64];
	struct err ignored;
	unsigned event;
	int rest;

	if (k && sscanf(rule->terms, "event=%x%n", &event, &rest) == 1) {
		snprintf(terms, sizeof(terms), "event=0x%x%s", event + k * 0x40, rule->terms + rest);
		if (pmu_encode(p, terms, e.config, &ignored) < 0)
			return;
	} else if (pmu_encode(p, x ? x->terms : rule->terms, e.config, &ignored) < 0) {
		return;
	}
	e.factor = factor_of(rule, x);
	for (int64_t cpu = -1; (cpu = idrange_next(&p->cpus, cpu + 1)) >= 0;) {
		e.cpu = (uint32_t)cpu;
		vec_push(&ret->v, e);
	}
}

static void add_event(const struct pmus *pmus, size_t i, const struct uncore_rule *rule, struct uncore_events *ret)
{
	const struct pmu *p = &pmus->v.v[i];
	const struct pmu_event *x = rule->event ? pmu_event(p, rule->event) : NULL;

	if ((rule->event && !x) || (rule->top_bit && top_bit_of(p) != rule->top_bit))
		return;
	for (unsigned k = 0; k < (rule->series ?: 1); k++)
		add_one(pmus, i, rule, x, k, ret);
}

static bool counts_memory(enum uncore_value v)
{
	return v == DDR_READ_BYTES || v == DDR_WRITE_BYTES || v == DDR_BYTES;
}

/* The data fabric counts what the memory controllers count, too: these know it better. */
static void drop_twice(const struct pmus *p, struct uncore_events *ret)
{
	bool umc = false;
	size_t kept = 0;

	for (size_t i = 0; i < p->v.n; i++)
		umc |= !strncmp(p->v.v[i].name, "amd_umc_", 8);
	for (size_t i = 0; umc && i < ret->v.n; i++)
		if (strcmp(p->v.v[ret->v.v[i].pmu].name, "amd_df") || !counts_memory(ret->v.v[i].value))
			ret->v.v[kept++] = ret->v.v[i];
	ret->v.n = umc ? kept : ret->v.n;
}

void uncore_find(const struct pmus *p, struct uncore_events *ret)
{
	for (size_t i = 0; i < p->v.n; i++)
		for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++)
			if (!p->v.v[i].is_core && !fnmatch(rules[k].pmu, p->v.v[i].name, 0))
				add_event(p, i, &rules[k], ret);
	drop_twice(p, ret);
}

/* How many NUMA nodes the CPUs of a package are of, and how many of @p readers are in it. */
static void count_of_package(const struct topo *t, uint32_t package, const struct idrange *readers, size_t *ret_nodes,
			     size_t *ret_readers)
{
	struct idrange nodes = {0};

	*ret_readers = 0;
	vec_for(&t->cpus, c) {
		if (c->package != package || c->node == TOPO_UNKNOWN)
			continue;
		idrange_add(&nodes, c->node);
		*ret_readers += idrange_has(readers, c->id);
	}
	*ret_nodes = idrange_count(&nodes);
	idrange_done(&nodes);
}

uint32_t uncore_node(const struct pmus *p, const struct uncore_event *x, const struct topo *t)
{
	const struct pmu *pmu = &p->v.v[x->pmu];
	uint32_t node = topo_cpu_node(t, x->cpu), package = TOPO_UNKNOWN;
	size_t nodes, readers;

	if (node == TOPO_UNKNOWN || !strncmp(pmu->name, "hisi_", 5))
		return node;
	vec_for(&t->cpus, c)
		if (c->id == x->cpu)
			package = c->package;
	count_of_package(t, package, &pmu->cpus, &nodes, &readers);
	return readers < nodes ? TOPO_UNKNOWN : node;
}

void uncore_sums_init(struct uncore_sums *s)
{
	for (unsigned i = 0; i < UNCORE_VALUES; i++)
		s->v[i] = NAN;
	for (unsigned i = 0; i < UNCORE_LINKS; i++)
		s->rx[i] = s->tx[i] = NAN;
}

static void add(double *sum, double v)
{
	*sum = isnan(*sum) ? v : *sum + v;
}

void uncore_sums_add(struct uncore_sums *s, const struct uncore_event *x, uint64_t count)
{
	double v = (double)count * x->factor;

	add(&s->v[x->value], v);
	if (x->value == PA_RX_FLITS)
		add(&s->rx[x->link], v);
	if (x->value == PA_TX_FLITS)
		add(&s->tx[x->link], v);
}

double uncore_ddr_bytes(const struct uncore_sums *s)
{
	double both = s->v[DDR_READ_BYTES] + s->v[DDR_WRITE_BYTES];

	if (isnan(both))
		both = s->v[DDR_BYTES];
	/* HiSilicon's home agents see what goes to memory, where its controllers are not counted. */
	return isnan(both) ? s->v[HHA_DDR_READ_BYTES] + s->v[HHA_DDR_WRITE_BYTES] : both;
}

struct writer {
	struct strbuf *out;
	double seconds;
	bool any;
};

static void put(struct writer *w, const char *name, double v)
{
	if (!isfinite(v))
		return;
	strbuf_addf(w->out, "%s\"%s\":", w->any ? "," : "{", name);
	strbuf_add_f64(w->out, v);
	w->any = true;
}

/* Bytes, or operations, as 10^9 a second. */
static double giga(const struct writer *w, double v)
{
	return v / w->seconds / 1e9;
}

static void put_ddr(struct writer *w, const struct uncore_sums *s)
{
	put(w, "read_bw", giga(w, s->v[DDR_READ_BYTES]));
	put(w, "write_bw", giga(w, s->v[DDR_WRITE_BYTES]));
	put(w, "total_bw", giga(w, isnan(s->v[DDR_BYTES]) ? s->v[DDR_READ_BYTES] + s->v[DDR_WRITE_BYTES] : s->v[DDR_BYTES]));
}

static void put_ops(struct writer *w, const struct uncore_sums *s)
{
	double inner = s->v[HHA_TOTAL] - s->v[HHA_CROSS_SOCKET] - s->v[HHA_CROSS_DIE];

	put(w, "total_ops", giga(w, s->v[HHA_TOTAL]));
	put(w, "cross_socket_ops", giga(w, s->v[HHA_CROSS_SOCKET]));
	put(w, "cross_die_ops", giga(w, s->v[HHA_CROSS_DIE]));
	/* Counters are read one after the other: a little below zero is zero. */
	put(w, "inner_die_ops", giga(w, inner < 0 ? 0 : inner));
}

static void put_hha(struct writer *w, const struct uncore_sums *s)
{
	put_ops(w, s);
	put(w, "read_ddr_bw", giga(w, s->v[HHA_DDR_READ_BYTES]));
	put(w, "write_ddr_bw", giga(w, s->v[HHA_DDR_WRITE_BYTES]));
	put(w, "total_ddr_bw", giga(w, s->v[HHA_DDR_READ_BYTES] + s->v[HHA_DDR_WRITE_BYTES]));
}

static void put_l3c(struct writer *w, const struct uncore_sums *s)
{
	static const struct {
		const char *name;
		enum uncore_value value;
	} members[] = {
		{"read_cpipe", L3C_READ_CPIPE},		  {"write_cpipe", L3C_WRITE_CPIPE},
		{"read_cpipe_hit", L3C_READ_CPIPE_HIT},	  {"write_cpipe_hit", L3C_WRITE_CPIPE_HIT},
		{"read_spipe", L3C_READ_SPIPE},		  {"write_spipe", L3C_WRITE_SPIPE},
		{"read_spipe_hit", L3C_READ_SPIPE_HIT},	  {"write_spipe_hit", L3C_WRITE_SPIPE_HIT},
		{"back_inv_ops", L3C_BACK_INVALID},	  {"retry_req_ops", L3C_RETRY},
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		put(w, members[i].name, giga(w, s->v[members[i].value]));
}

/*
 * The older tool's figure for a link: flits for each cycle of the PA, of which one flit in every cycle is
 * 30 GB/s, the speed of a link of Kunpeng 920.
 */
static double link_rate(const struct uncore_sums *s, double flits)
{
	return s->v[PA_CYCLES] > 0 ? flits / s->v[PA_CYCLES] * 30 : NAN;
}

static void put_pa(struct writer *w, const struct uncore_sums *s)
{
	char name[24];

	put(w, "ring2pa_total", link_rate(s, s->v[PA_RX_FLITS]));
	put(w, "pa2ring_total", link_rate(s, s->v[PA_TX_FLITS]));
	for (unsigned i = 0; i < UNCORE_LINKS; i++) {
		snprintf(name, sizeof(name), "ring2pa_link%u", i);
		put(w, name, link_rate(s, s->rx[i]));
	}
	for (unsigned i = 0; i < UNCORE_LINKS; i++) {
		snprintf(name, sizeof(name), "pa2ring_link%u", i);
		put(w, name, link_rate(s, s->tx[i]));
	}
	put(w, "link_tx_bw", giga(w, s->v[LINK_TX_BYTES]));
}

bool uncore_rates(const struct uncore_sums *s, enum uncore_kind kind, double seconds, double timestamp_s,
		  struct strbuf *out)
{
	static void (*const kinds[UNCORE_KINDS])(struct writer *w, const struct uncore_sums *s) = {
		[UNCORE_DDR] = put_ddr, [UNCORE_HHA] = put_hha, [UNCORE_HCCS] = put_ops,
		[UNCORE_L3C] = put_l3c, [UNCORE_PA] = put_pa,
	};
	struct writer w = {.out = out, .seconds = seconds};

	kinds[kind](&w, s);
	if (!w.any)
		return false;
	put(&w, "timestamp", timestamp_s);
	strbuf_addc(out, '}');
	return true;
}
