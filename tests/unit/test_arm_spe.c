/* Packets of Arm's SPE, who answered in each implementation's codes, and the buffer that a CPU
 * writes. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arm_spe.h"
#include "arm_spe_ring.h"
#include "mem.h"

/* A stream that is being made. */
struct stream {
	uint8_t b[8192];
	size_t n;
};

static void put(struct stream *s, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		s->b[s->n++] = (uint8_t)(v >> 8 * i);
}

static void packet(struct stream *s, uint8_t header, uint64_t payload)
{
	put(s, header, 1);
	put(s, payload, (size_t)1 << (header >> 4 & 3));
}

#define H_PC       0xb0
#define H_TARGET   0xb1
#define H_VIRTUAL  0xb2
#define H_PHYSICAL 0xb3
#define H_TOTAL    0x98
#define H_ISSUE    0x99
#define H_CONTEXT  0x64
#define H_OP       0x49
#define H_EVENTS   0x52 /* two bytes */
#define H_SOURCE   0x43 /* one byte */
#define H_TIME     0x71
#define H_END      0x01

#define NEAR_MISS (SPE_L1D_ACCESS | SPE_L1D_REFILL | SPE_LLC_ACCESS | SPE_LLC_REFILL)
#define FAR_MISS  (NEAR_MISS | SPE_REMOTE_ACCESS)

/* A load as a CPU tells of it. */
static void load(struct stream *s, uint32_t tid, uint64_t events)
{
	packet(s, H_PC, 0x00400123);
	packet(s, H_CONTEXT, tid);
	packet(s, H_EVENTS, events);
	packet(s, H_OP, 0);
	packet(s, H_TOTAL, 310);
	packet(s, H_ISSUE, 9);
	packet(s, H_VIRTUAL, 0x7f0011223344);
	put(s, H_END, 1);
}

struct seen {
	size_t n;
	struct spe_record r[64];
};

static void on_record(void *ctx, const struct spe_record *r)
{
	struct seen *s = ctx;

	if (s->n < 64)
		s->r[s->n] = *r;
	s->n++;
}

static struct spe_counts decode(const uint8_t *b, size_t n, size_t offset, struct seen *s)
{
	struct spe_counts c = {0};
	uint8_t *exact = mem_alloc(n + 1); /* so that a sanitizer sees what is read beyond */

	memcpy(exact, b, n);
	exact = realloc(exact, n ? n : 1);
	memset(s, 0, sizeof(*s));
	spe_decode(exact, n, offset, on_record, s, &c);
	free(exact);
	assert_int_equal(c.records, s->n);
	return c;
}

TEST(a_record_is_made_of_its_packets)
{
	struct stream s = {0};
	struct spe_counts c;
	struct seen x;

	packet(&s, H_PC,
	       0xc0ffffff80001234ULL); /* exception level 2, in the byte above the address */
	put(&s, 0, 3);
	packet(&s, 0x65, 4711); /* context of EL2 */
	packet(&s, H_OP, 0x1);
	packet(&s, 0x62, FAR_MISS); /* events in four bytes */
	packet(&s, H_TOTAL, 812);
	packet(&s, H_ISSUE, 7);
	packet(&s, H_VIRTUAL, 0x3cffff0011223344ULL); /* tagged */
	packet(&s, H_PHYSICAL, 0x8000202011223344ULL);
	packet(&s, 0x53, 0x109); /* data source in two bytes */
	packet(&s, H_TIME, 0x1122334455667788ULL);
	/* Index 2 by a long header: 0x20, then that of an address. */
	put(&s, 0x20, 1);
	packet(&s, H_VIRTUAL, 0x1000);
	put(&s, 0x21, 1);
	packet(&s, H_VIRTUAL, 0x2000); /* index 10: not one that is known */
	packet(&s, 0x4a, 0x1);         /* a branch */
	packet(&s, H_TARGET, 0x3000);
	put(&s, H_END, 1);
	c = decode(s.b, s.n, 0, &x);
	assert_int_equal(c.records, 2);
	assert_int_equal(c.bad_packets, 0);
	assert_int_equal(c.cut, 0);
	assert_int_equal(x.r[0].has & SPE_HAS_CONTEXT, SPE_HAS_CONTEXT);
	assert_int_equal(x.r[0].context, 4711);
	assert_int_equal(x.r[0].op, SPE_STORE);
	assert_int_equal(x.r[0].events, FAR_MISS);
	assert_int_equal(x.r[0].latency, 812);
	assert_int_equal(spe_cycles_of(&x.r[0]), 805);
	assert_int_equal(x.r[0].source, 0x109);
	assert_true(x.r[0].pc == 0xffffffff80001234ULL);
	assert_true(x.r[0].data_virtual == 0xffffff0011223344ULL);
	assert_true(x.r[0].data_physical == 0x202011223344ULL);
	assert_true(x.r[1].data_virtual == 0x1000);
	assert_int_equal(x.r[1].op, SPE_BRANCH);
	assert_int_equal(spe_cycles_of(&x.r[1]), 0);
	assert_int_equal(x.r[1].has & (SPE_HAS_EVENTS | SPE_HAS_CONTEXT | SPE_HAS_SOURCE), 0);
}

TEST(alignment_is_relative_to_the_buffer)
{
	struct stream s = {0};
	struct spe_counts c;
	struct seen x;

	load(&s, 1, NEAR_MISS);
	put(&s, 0x25, 1); /* to a multiple of 64 */
	put(&s, 0, 1);
	while ((s.n + 24) % 64)
		put(&s, 0xff, 1);
	load(&s, 2, NEAR_MISS);
	c = decode(s.b, s.n, 24, &x);
	assert_int_equal(c.records, 2);
	assert_int_equal(c.bad_packets, 0);
	assert_int_equal(x.r[1].context, 2);
}

TEST(data_may_end_anywhere)
{
	struct stream s = {0};
	struct spe_counts c;
	struct seen x;
	size_t one;

	load(&s, 11, NEAR_MISS);
	one = s.n;
	load(&s, 12, FAR_MISS);
	for (size_t n = 0; n <= s.n; n++) {
		c = decode(s.b, n, 0, &x);
		assert_int_equal(c.records, (n >= one) + (n >= s.n));
		assert_int_equal(c.cut, n && n != one && n != s.n);
		assert_int_equal(c.bad_packets, 0);
	}
}

TEST(after_garbage_it_goes_on_with_the_next_record)
{
	struct stream s = {0};
	struct spe_counts c;
	struct seen x;

	load(&s, 1, NEAR_MISS);
	/* Headers that nothing has, in the middle of a record. */
	packet(&s, H_PC, 0x1000);
	put(&s, 0xffffff, 3);
	packet(&s, H_CONTEXT, 0x142); /* which has the byte of an end */
	packet(&s, H_EVENTS, NEAR_MISS);
	packet(&s, H_OP, 0);
	put(&s, H_END, 1);
	load(&s, 2, FAR_MISS);
	/* The end of one and the start of the next are missing: no record has two sorts of events.
	 */
	packet(&s, H_CONTEXT, 77);
	packet(&s, H_EVENTS, NEAR_MISS);
	load(&s, 78, FAR_MISS);
	load(&s, 3, NEAR_MISS);
	/* A long header that is none. */
	put(&s, 0x99205020, 4);
	put(&s, 0xff, 1);
	c = decode(s.b, s.n, 0, &x);
	assert_int_equal(c.records, 3);
	assert_int_equal(c.bad_packets, 3);
	assert_int_equal(c.cut, 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(x.r[i].context, i + 1);
}

/* The same numbers each time. */
static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

TEST(any_bytes_can_be_read)
{
	uint32_t seed = 7;
	uint8_t b[600];

	for (unsigned round = 0; round < 3000; round++) {
		size_t n = next(&seed) % sizeof(b);
		struct spe_counts c;
		struct seen x;

		for (size_t i = 0; i < n; i++)
			b[i] = (uint8_t)next(&seed);
		c = decode(b, n, next(&seed) % 4096, &x);
		assert_true(c.records <= n && c.bad_packets <= n && c.cut <= 1);
	}
}

static struct spe_record access_of(enum spe_op op, uint64_t events)
{
	return (struct spe_record){.has = SPE_HAS_EVENTS | SPE_HAS_OP, .op = op, .events = events};
}

TEST(events_say_who_answered_where_sources_are_not_known)
{
	struct spe_record r = access_of(SPE_LOAD, NEAR_MISS);

	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, true), MEM_LOCAL);
	r = access_of(SPE_STORE, FAR_MISS);
	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, true), MEM_REMOTE);
	/* Without the others that missed, those that went far are a share of nothing. */
	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, false), MEM_UNKNOWN);
	r = access_of(SPE_LOAD, SPE_L1D_ACCESS);
	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, true), MEM_OWN);
	r = access_of(SPE_LOAD, SPE_L1D_ACCESS | SPE_L1D_REFILL | SPE_LLC_ACCESS);
	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, true), MEM_OWN);
	r = access_of(SPE_LOAD, SPE_L1D_ACCESS | SPE_L1D_REFILL);
	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, true), MEM_UNKNOWN);
	r = access_of(SPE_BRANCH, FAR_MISS);
	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, true), MEM_UNKNOWN);
	/* A source whose code is not known is not looked at. */
	r = access_of(SPE_LOAD, NEAR_MISS);
	r.has |= SPE_HAS_SOURCE;
	r.source = 0xd;
	assert_int_equal(spe_answer_of(&r, SPE_CODES_UNKNOWN, true), MEM_LOCAL);
}

static enum mem_answer source(enum spe_codes codes, enum spe_op op, uint16_t code, uint64_t events)
{
	struct spe_record r = access_of(op, events);

	r.has |= SPE_HAS_SOURCE;
	r.source = code;
	return spe_answer_of(&r, codes, false);
}

TEST(each_implementation_has_its_codes)
{
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_LOAD, 0x0, 0), MEM_OWN);
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_LOAD, 0xc, 0), MEM_OWN);
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_LOAD, 0xd, 0), MEM_REMOTE);
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_LOAD, 0xe, 0), MEM_LOCAL);
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_LOAD, 0xe, SPE_REMOTE_ACCESS), MEM_REMOTE);
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_LOAD, 0x77, 0), MEM_UNKNOWN);
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_LOAD, 0x77, NEAR_MISS), MEM_LOCAL);
	/* 0 would be the first level, but of stores there is no source. */
	assert_int_equal(source(SPE_CODES_NEOVERSE, SPE_STORE, 0x0, NEAR_MISS), MEM_LOCAL);
	assert_int_equal(source(SPE_CODES_HIP12, SPE_LOAD, 8, 0), MEM_LOCAL);
	assert_int_equal(source(SPE_CODES_HIP12, SPE_LOAD, 9, 0), MEM_REMOTE);
	assert_int_equal(source(SPE_CODES_HIP12, SPE_STORE, 7, 0), MEM_REMOTE);
	assert_int_equal(source(SPE_CODES_HIP12, SPE_LOAD, 18, 0), MEM_OWN);
	assert_int_equal(source(SPE_CODES_HIP12, SPE_LOAD, 13, 0), MEM_UNKNOWN);
	assert_int_equal(source(SPE_CODES_AMPEREONE, SPE_LOAD, 0x5, 0), MEM_REMOTE);
	assert_int_equal(source(SPE_CODES_AMPEREONE, SPE_LOAD, 0x7, 0), MEM_LOCAL);
	assert_int_equal(source(SPE_CODES_AMPEREONE, SPE_LOAD, 0x3, 0), MEM_OWN);
}

TEST(cpus_are_known_by_their_id)
{
	char root[] = "/tmp/test_arm_spe.XXXXXX", path[200], command[100];
	struct sysroot r;
	struct err e;
	FILE *f;

	assert_int_equal(spe_codes_of(0x410fd0c1), SPE_CODES_NEOVERSE); /* N1 */
	assert_int_equal(spe_codes_of(0x410fd4f1), SPE_CODES_NEOVERSE); /* V2 */
	assert_int_equal(spe_codes_of(0x480fd061), SPE_CODES_HIP12);
	assert_int_equal(spe_codes_of(0xc00fac41), SPE_CODES_AMPEREONE);
	assert_int_equal(spe_codes_of(0x481fd010), SPE_CODES_UNKNOWN); /* Kunpeng 920: TSV110 */
	assert_int_equal(spe_codes_of(0), SPE_CODES_UNKNOWN);

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "mkdir -p %s/sys/devices/system/cpu/cpu3/regs/identification",
		 root);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu3/regs/identification/midr_el1",
		 root);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "0x00000000410fd401\n");
	fclose(f);
	assert_int_equal(sysroot_open(root, &r, &e), 0);
	assert_true(spe_midr(&r, 3) == 0x410fd401);
	assert_true(spe_midr(&r, 4) == 0);
	sysroot_close(&r);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	assert_int_equal(system(command), 0);
}

#define DATA_SIZE 256
#define AUX_SIZE  512

/* What the kernel and a CPU would have left. */
struct machine {
	struct perf_event_mmap_page page;
	uint8_t data[DATA_SIZE], aux[AUX_SIZE], copy[DATA_SIZE];
	struct spe_ring ring;
	struct spe_stats stats;
};

static void machine_at(struct machine *m, uint64_t data_at, uint64_t aux_at)
{
	memset(m, 0, sizeof(*m));
	m->page.data_head = m->page.data_tail = data_at;
	m->page.aux_head = m->page.aux_tail = aux_at;
	m->ring = (struct spe_ring){.m = &m->page,
				    .data = m->data,
				    .data_size = DATA_SIZE,
				    .aux = m->aux,
				    .aux_size = AUX_SIZE};
}

static void tell(struct machine *m, uint32_t type, uint64_t a, uint64_t b, uint64_t c)
{
	struct {
		struct perf_event_header h;
		uint64_t v[3];
	} x = {.h = {.type = type, .size = sizeof(x)}, .v = {a, b, c}};

	for (size_t i = 0; i < sizeof(x); i++)
		m->data[m->page.data_head++ % DATA_SIZE] = ((const uint8_t *)&x)[i];
}

static void write_aux(struct machine *m, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m->aux[m->page.aux_head++ % AUX_SIZE] = b[i];
}

static void part(struct machine *m, const struct stream *s, uint64_t flags)
{
	uint64_t at = m->page.aux_head;

	write_aux(m, s->b, s->n);
	tell(m, PERF_RECORD_AUX, at, s->n, flags);
}

struct tally {
	unsigned local, remote, own;
	uint64_t tids, cycles;
};

static void on_access(void *ctx, const struct mem_access *a)
{
	struct tally *t = ctx;

	t->local += a->answer == MEM_LOCAL;
	t->remote += a->answer == MEM_REMOTE;
	t->own += a->answer == MEM_OWN;
	t->tids += a->tid;
	t->cycles += a->cycles;
}

static struct tally read_all(struct machine *m)
{
	struct tally t = {0};

	spe_ring_read(&m->ring, m->copy, on_access, &t, &m->stats);
	return t;
}

TEST(the_buffer_goes_round)
{
	struct stream s = {0};
	struct machine m;
	uint64_t records = 0;

	/* Both positions near the end of their rings, and near the end of what 32 bits hold. */
	machine_at(&m, (1ULL << 32) - 8, (1ULL << 32) - 20);
	load(&s, 5, NEAR_MISS);
	load(&s, 6, FAR_MISS);
	for (unsigned round = 0; round < 100; round++) {
		struct tally t;

		part(&m, &s, 0);
		part(&m, &s, 0);
		t = read_all(&m);
		records += 4;
		assert_int_equal(t.local, 2);
		assert_int_equal(t.remote, 2);
		assert_int_equal(t.tids, 22);
		assert_int_equal(t.cycles, 4 * 301);
		assert_true(m.page.data_tail == m.page.data_head);
		assert_true(m.page.aux_tail == m.page.aux_head);
	}
	assert_int_equal(m.stats.counts.records, records);
	assert_int_equal(m.stats.counts.bad_packets + m.stats.counts.cut + m.stats.skipped, 0);
	assert_int_equal(read_all(&m).local, 0);
}

TEST(what_did_not_arrive_is_counted)
{
	static const uint8_t zeros[32];
	struct stream s = {0}, unnamed = {0};
	struct machine m;
	struct tally t;

	machine_at(&m, 0, 0);
	load(&s, 5, NEAR_MISS);
	part(&m, &s, PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL);
	part(&m, &s, PERF_AUX_FLAG_COLLISION);
	/* Up to here the kernel filled up. */
	write_aux(&m, zeros, sizeof(zeros));
	part(&m, &s, PERF_AUX_FLAG_COLLISION);
	tell(&m, PERF_RECORD_LOST, 1, 9, 0);
	t = read_all(&m);
	assert_int_equal(t.local, 3);
	assert_int_equal(m.stats.truncated, 1);
	assert_int_equal(m.stats.partial, 1);
	assert_int_equal(m.stats.collisions, 2);
	assert_int_equal(m.stats.lost, 9);
	assert_int_equal(m.stats.skipped, 0);

	/* Of these no record tells, neither before another nor at the end. */
	write_aux(&m, s.b, s.n);
	part(&m, &s, 0);
	write_aux(&m, s.b, s.n);
	t = read_all(&m);
	assert_int_equal(t.local, 1);
	assert_int_equal(m.stats.skipped, 2 * s.n);
	assert_true(m.page.aux_tail == m.page.aux_head);

	/* A part that ends within a record, and garbage in another: the next is whole again. */
	write_aux(&m, s.b, s.n - 3);
	tell(&m, PERF_RECORD_AUX, m.page.aux_head - (s.n - 3), s.n - 3, 0);
	unnamed = s;
	unnamed.b[0] = 0xff;
	part(&m, &unnamed, 0);
	part(&m, &s, 0);
	t = read_all(&m);
	assert_int_equal(t.local, 1);
	assert_int_equal(m.stats.counts.cut, 1);
	assert_int_equal(m.stats.counts.bad_packets, 1);

	/* Accesses of nobody. */
	unnamed = (struct stream){0};
	packet(&unnamed, H_EVENTS, FAR_MISS);
	packet(&unnamed, H_OP, 0);
	put(&unnamed, H_END, 1);
	part(&m, &unnamed, 0);
	t = read_all(&m);
	assert_int_equal(t.remote + t.local + t.own, 0);
	assert_int_equal(m.stats.no_context, 1);
}

TEST(records_that_cannot_be_do_not_lead_astray)
{
	struct stream s = {0};
	struct machine m;

	load(&s, 5, NEAR_MISS);
	machine_at(&m, 0, 1000);
	tell(&m, PERF_RECORD_AUX, 1000, AUX_SIZE + 1, 0); /* more than there is */
	tell(&m, PERF_RECORD_AUX, 3, 40, 0);              /* given back long ago */
	tell(&m, PERF_RECORD_AUX, UINT64_MAX - 4, 40, 0); /* from beyond */
	part(&m, &s, 0);
	assert_int_equal(read_all(&m).local, 1);
	assert_int_equal(m.stats.skipped, AUX_SIZE + 80);
	assert_true(m.page.aux_tail == m.page.aux_head);

	/* Told of before it is there: next time. */
	tell(&m, PERF_RECORD_AUX, m.page.aux_head, s.n, 0);
	assert_int_equal(read_all(&m).local, 0);
	assert_true(m.page.data_tail < m.page.data_head);
	write_aux(&m, s.b, s.n);
	assert_int_equal(read_all(&m).local, 1);
	assert_true(m.page.data_tail == m.page.data_head);

	/* A size that leads nowhere ends what can be read. */
	memset(m.data, 0, sizeof(m.data));
	m.page.data_head += 64;
	assert_int_equal(read_all(&m).local, 0);
	assert_true(m.page.data_tail == m.page.data_head);
}

TEST(shares_need_events_of_the_last_level)
{
	struct stream s = {0};
	struct machine m;

	machine_at(&m, 0, 0);
	load(&s, 5, SPE_L1D_ACCESS | SPE_L1D_REFILL | SPE_REMOTE_ACCESS);
	part(&m, &s, 0);
	assert_int_equal(read_all(&m).remote, 0);
	assert_false(m.stats.last_level);
	load(&s, 5, NEAR_MISS);
	load(&s, 5, SPE_L1D_ACCESS | SPE_L1D_REFILL | SPE_REMOTE_ACCESS);
	part(&m, &s, 0);
	assert_int_equal(read_all(&m).remote, 1);
	assert_true(m.stats.last_level);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_record_is_made_of_its_packets),
	    cmocka_unit_test(alignment_is_relative_to_the_buffer),
	    cmocka_unit_test(data_may_end_anywhere),
	    cmocka_unit_test(after_garbage_it_goes_on_with_the_next_record),
	    cmocka_unit_test(any_bytes_can_be_read),
	    cmocka_unit_test(events_say_who_answered_where_sources_are_not_known),
	    cmocka_unit_test(each_implementation_has_its_codes),
	    cmocka_unit_test(cpus_are_known_by_their_id),
	    cmocka_unit_test(the_buffer_goes_round),
	    cmocka_unit_test(what_did_not_arrive_is_counted),
	    cmocka_unit_test(records_that_cannot_be_do_not_lead_astray),
	    cmocka_unit_test(shares_need_events_of_the_last_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
