/* Placement of memory: classes of mappings, estimates and their error, and a reader that hangs. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "maps_regions.h"
#include "placement.h"
#include "placement_worker.h"

#define MIB (1ull << 20)

static char root[] = "/tmp/test_placement.XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/7", root);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/7/%s", root, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
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

/* Which node an address is on; < 0: no page, by -errno. */
typedef int (*node_fn)(uint64_t address);

static uint64_t asked;

static int fake_query(void *ctx, uint32_t pid, size_t n, void **pages, int *status)
{
	node_fn node = *(node_fn *)ctx;

	assert_int_equal(pid, 7);
	for (size_t i = 0; i < n; i++)
		status[i] = node((uint64_t)(uintptr_t)pages[i]);
	asked += n;
	return 0;
}

static void look(node_fn node, uint32_t pages, uint64_t tag, struct placement *p)
{
	struct placement_options o = {.proc = root, .pages = pages, .query = fake_query, .ctx = &node};

	asked = 0;
	assert_int_equal(placement_sample(&o, 7, tag, p), 0);
}

static double share(const struct placement *p, uint32_t node, enum page_class c)
{
	uint64_t all = 0, here = 0;

	for (uint32_t i = 0; i < p->nnodes; i++) {
		all += p->nodes[i].bytes[c];
		if (p->nodes[i].node == node)
			here = p->nodes[i].bytes[c];
	}
	return all ? (double)here / (double)all : -1;
}

TEST(paths_tell_the_class)
{
	assert_int_equal(region_class("", false, true), PAGES_ANON);
	assert_int_equal(region_class("[heap]", false, true), PAGES_ANON);
	assert_int_equal(region_class("[anon:glibc]", false, true), PAGES_ANON);
	assert_int_equal(region_class("/lib/libc.so.6", false, false), PAGES_FILE);
	assert_int_equal(region_class("/lib/libc.so.6", false, true), PAGES_ANON);
	assert_int_equal(region_class("/data/weights", true, true), PAGES_FILE);
	assert_int_equal(region_class("/dev/shm/x", true, true), PAGES_SHARED);
	assert_int_equal(region_class("/memfd:x (deleted)", true, true), PAGES_SHARED);
	assert_int_equal(region_class("/SYSV00000000 (deleted)", true, true), PAGES_SHARED);
	assert_int_equal(region_class("/dev/zero (deleted)", true, true), PAGES_SHARED);
	assert_int_equal(region_class("", true, true), PAGES_SHARED);
	assert_int_equal(region_class("/anon_hugepage (deleted)", false, true), PAGES_HUGE);
}

TEST(regions_leave_out_what_has_no_pages)
{
	struct regions r;

	put("maps", "400000-500000 r-xp 00000000 08:01 9 /bin/x\n"
		    "500000-600000 r--p 00100000 08:01 9 /bin/x\n"
		    "600000-700000 rw-p 00200000 08:01 9 /bin/x\n"
		    "800000-900000 ---p 00000000 00:00 0 \n"
		    "7f0000000000-7f0000100000 rw-s 00000000 00:05 3 /dev/nvidia0\n"
		    "7f1000000000-7f1000100000 rw-s 00000000 00:1a 3 /dev/shm/a b\n"
		    "7ffd00000000-7ffd00004000 r--p 00000000 00:00 0 [vvar]\n"
		    "not a line\n");
	assert_int_equal(regions_read(root, 7, &r), 0);
	assert_int_equal(r.v.n, 3);
	assert_int_equal(r.bytes[PAGES_FILE], 2 * MIB);
	assert_int_equal(r.bytes[PAGES_ANON], MIB);
	assert_int_equal(r.bytes[PAGES_SHARED], MIB);
	assert_int_equal(r.v.v[0].end, 0x600000);
	regions_done(&r);
	assert_int_equal(regions_read(root, 8, &r), -ENOENT);
}

static int on_three(uint64_t address)
{
	return 3;
}

TEST(a_small_process_is_looked_at_in_full)
{
	struct placement p;

	put("maps", "10000000-10400000 rw-p 00000000 00:00 0 \n");
	put("status", "RssAnon:\t    4096 kB\nRssFile:\t 0 kB\n");
	look(on_three, 4096, 1, &p);
	assert_int_equal(asked, 1024);
	assert_int_equal(p.nnodes, 1);
	assert_int_equal(p.nodes[0].node, 3);
	assert_int_equal(p.nodes[0].bytes[PAGES_ANON], 4 * MIB);
	assert_true(p.share_error == 0);
}

/* 64 GiB; a quarter of it on node 1. */
static int quarter(uint64_t address)
{
	return (address >> 12) * 0x9e3779b97f4a7c15ull >> 62 ? 0 : 1;
}

TEST(a_large_process_is_estimated_within_the_error)
{
	struct placement p;
	unsigned outside = 0;

	put("maps", "100000000000-101000000000 rw-p 00000000 00:00 0 \n");
	put("status", "RssAnon:\t 67108864 kB\n");
	for (uint64_t tag = 1; tag <= 200; tag++) {
		look(quarter, 4096, tag, &p);
		assert_in_range(asked, 4096, 4096 * 4);
		assert_true(p.share_error > 0.005 && p.share_error < 0.016);
		outside += share(&p, 1, PAGES_ANON) < 0.25 - p.share_error ||
			   share(&p, 1, PAGES_ANON) > 0.25 + p.share_error;
	}
	/* 5 % of them by chance; 25 of 200 would be so in one of a million. */
	assert_in_range(outside, 0, 25);
}

/* 2 MiB pages, turn by turn on nodes 0 and 2; only the first GiB of 256 GiB is there. */
static int sparse_huge(uint64_t address)
{
	uint64_t at = address - 0x100000000000ull;

	return at >= 1ull << 30 ? -ENOENT : at >> 21 & 1 ? 2 : 0;
}

TEST(a_sparse_address_space_is_looked_at_where_it_has_pages)
{
	struct placement p;
	unsigned outside = 0;

	put("maps", "100000000000-104000000000 rw-p 00000000 00:00 0 \n");
	put("status", "RssAnon:\t 1048576 kB\n");
	for (uint64_t tag = 1; tag <= 100; tag++) {
		double s;

		look(sparse_huge, 4096, tag, &p);
		assert_true(p.sampled > 1000);
		s = share(&p, 2, PAGES_ANON);
		outside += s < 0.5 - p.share_error || s > 0.5 + p.share_error;
		assert_true(p.share_error < 0.05);
	}
	assert_in_range(outside, 0, 18);
}

/* The kernel's counters say how much of each class there is; the sample only where. */
static int by_region(uint64_t address)
{
	return address < 0x200000000000 ? 0 : 5;
}

TEST(classes_are_kept_apart)
{
	struct placement p;

	put("maps", "100000000000-100100000000 rw-p 00000000 00:00 0 \n"
		    "200000000000-200100000000 rw-s 00000000 00:1a 4 /dev/shm/x\n"
		    "300000000000-300000200000 r-xp 00000000 08:01 4 /lib/x\n");
	put("status", "RssAnon:\t 1024 kB\nRssFile:\t 512 kB\nRssShmem:\t 2048 kB\nHugetlbPages:\t 0 kB\n");
	look(by_region, 4096, 1, &p);
	assert_int_equal(p.nnodes, 2);
	assert_int_equal(p.nodes[0].bytes[PAGES_ANON], MIB);
	assert_int_equal(p.nodes[1].bytes[PAGES_ANON], 0);
	assert_int_equal(p.nodes[1].bytes[PAGES_SHARED], 2 * MIB);
	assert_int_equal(p.nodes[1].bytes[PAGES_FILE], MIB / 2);
}

/* Every other MiB of the first segment is on node 2; the second one is on node 3. */
static int by_segment(uint64_t address)
{
	if (address >> 40 == 0x30)
		return 3;
	return address >> 40 != 0x20 ? 0 : address & MIB ? 2 : 1;
}

static uint32_t pages_on(const struct placement_segment *s, uint32_t node)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->on[i].node == node)
			return s->on[i].pages;
	return 0;
}

TEST(shared_segments_are_told_apart)
{
	struct placement p;
	double part;

	/* Twice the same one, and what is private beside it. */
	put("maps", "100000000000-100040000000 rw-p 00000000 00:00 0 \n"
		    "200000000000-200020000000 rw-s 00000000 00:1a 4 /dev/shm/x\n"
		    "200020000000-200040000000 rw-s 20000000 00:1a 4 /dev/shm/x\n"
		    "300000000000-300020000000 rw-s 00000000 00:01 77 /SYSV00000000 (deleted)\n"
		    "300020000000-300020100000 rw-s 00000000 00:00 0 \n");
	put("status", "RssAnon:\t 1048576 kB\nRssFile:\t 0 kB\nRssShmem:\t 1573888 kB\n");
	look(by_segment, 4096, 1, &p);
	assert_int_equal(p.nsegments, 2);
	assert_int_equal(p.segments[0].ino, 4);
	assert_int_equal(p.segments[0].dev, 0x1a);
	part = (double)pages_on(&p.segments[0], 2) / (pages_on(&p.segments[0], 2) + pages_on(&p.segments[0], 1));
	assert_true(fabs(part - .5) < .06);
	assert_int_equal(p.segments[1].ino, 77);
	assert_int_equal(p.segments[1].dev, 1);
	assert_int_equal(p.segments[1].nnodes, 1);
	assert_true(pages_on(&p.segments[1], 3) > 500);
}

/* The first half is on node 1, the second one on node 2. */
static int by_half(uint64_t address)
{
	return address < 0x100020000000 ? 1 : 2;
}

TEST(what_is_cut_short_has_looked_everywhere)
{
	node_fn node = by_half;
	struct placement_options o = {.proc = root, .pages = 4096, .limit_ns = 1, .query = fake_query, .ctx = &node};
	struct placement p;

	put("maps", "100000000000-100040000000 rw-p 00000000 00:00 0 \n");
	put("status", "RssAnon:\t 1048576 kB\nRssFile:\t 0 kB\n");
	asked = 0;
	assert_int_equal(placement_sample(&o, 7, 1, &p), 0);
	assert_true(asked < 4096);
	assert_true(fabs(share(&p, 1, PAGES_ANON) - .5) < p.share_error + .01);
	assert_false(p.exact);
}

/* By their first digit: private, shared and huge pages; of the shared ones there is none to be found. */
static int by_digit(uint64_t address)
{
	return (int)(address >> 44) == 2 ? -ENOENT : (int)(address >> 44);
}

static int by_digit_all(uint64_t address)
{
	return (int)(address >> 44);
}

static void put_three_classes(void)
{
	put("maps", "100000000000-100040000000 rw-p 00000000 00:00 0 \n"
		    "200000000000-200010000000 rw-s 00000000 00:1a 4 /dev/shm/x\n"
		    "300000000000-300040000000 rw-p 00000000 00:0f 5 /anon_hugepage (deleted)\n");
	put("status", "RssAnon:\t 1048576 kB\nRssFile:\t 0 kB\nRssShmem:\t 262144 kB\nHugetlbPages:\t 1048576 kB\n");
}

TEST(each_class_is_looked_at_however_late_it_is)
{
	node_fn node = by_digit_all;
	struct placement_options o = {.proc = root, .pages = 4096, .limit_ns = 1, .query = fake_query, .ctx = &node};
	struct placement p;

	put_three_classes();
	asked = 0;
	assert_int_equal(placement_sample(&o, 7, 1, &p), 0);
	assert_true(asked < 4096);
	assert_true(share(&p, 1, PAGES_ANON) == 1);
	assert_true(share(&p, 2, PAGES_SHARED) == 1);
	assert_true(share(&p, 3, PAGES_HUGE) == 1);
}

TEST(what_was_not_found_is_part_of_the_error)
{
	struct placement p;

	put_three_classes();
	look(by_digit, 4096, 1, &p);
	assert_true(share(&p, 2, PAGES_SHARED) < 0);
	/* A ninth of all. */
	assert_true(p.share_error > 1. / 9 && p.share_error < 1. / 9 + .01);
}

TEST(with_one_node_nothing_is_asked)
{
	struct placement_options o = {.proc = root, .pages = 64, .query = fake_query, .one_node = true, .node = 4};
	struct placement p;

	put("status", "RssAnon:\t 1024 kB\nRssFile:\t 512 kB\n");
	asked = 0;
	assert_int_equal(placement_sample(&o, 7, 1, &p), 0);
	assert_int_equal(asked, 0);
	assert_int_equal(p.nnodes, 1);
	assert_int_equal(p.nodes[0].node, 4);
	assert_int_equal(p.nodes[0].bytes[PAGES_ANON], MIB);
	assert_int_equal(p.nodes[0].bytes[PAGES_FILE], MIB / 2);
	assert_true(p.share_error == 0);
}

TEST(numa_maps_are_exact_and_know_page_sizes)
{
	struct placement_options o = {.proc = root, .exact = true};
	struct placement p;

	put("numa_maps", "00400000 default file=/bin/x mapped=4 N0=4 kernelpagesize_kB=4\n"
			 "00600000 bind:3 anon=3 dirty=3 N3=3 kernelpagesize_kB=4\n"
			 "10000000 default file=/lib/y anon=2 dirty=2 mapped=4 N0=1 N3=3 kernelpagesize_kB=4\n"
			 "20000000 default file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048\n"
			 "30000000 default file=/dev/shm/x dirty=5 N2=5 kernelpagesize_kB=4\n"
			 "40000000 default\n");
	assert_int_equal(placement_sample(&o, 7, 0, &p), 0);
	assert_true(p.exact);
	assert_int_equal(p.nnodes, 4);
	assert_int_equal(p.nodes[0].bytes[PAGES_FILE], 4 * 4096 + 2048);
	assert_int_equal(p.nodes[0].bytes[PAGES_ANON], 2048);
	assert_int_equal(p.nodes[1].bytes[PAGES_HUGE], 4 * MIB);
	assert_int_equal(p.nodes[2].bytes[PAGES_SHARED], 5 * 4096);
	assert_int_equal(p.nodes[3].bytes[PAGES_ANON], 3 * 4096 + 6144);
	assert_int_equal(placement_sample(&o, 8, 0, &p), -ENOENT);
	assert_int_equal(p.error, -ENOENT);
}

static void keep(void *ctx, const struct placement *p)
{
	struct placement *answers = ctx;
	unsigned i = 0;

	while (answers[i].pid)
		i++;
	assert_true(i < 4);
	answers[i] = *p;
}

TEST(this_process_is_read_in_another_one)
{
	size_t bytes = 8 * MIB;
	char *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct placement_options o = {.proc = "/proc", .pages = 4096};
	struct placement *answers = calloc(5, sizeof(*answers));
	uint32_t found = 0;
	struct placement_worker *w;
	uint64_t anon = 0;
	struct err e;

	memset(mine, 1, bytes);
	memset(shared, 1, bytes);
	assert_int_equal(placement_worker_open(&w, &o, 20 * NS_PER_SEC, &e), 0);
	assert_int_equal(placement_worker_ask(w, (uint32_t)getpid(), 42, 4096), 0);
	assert_int_equal(placement_worker_waiting(w), 1);
	assert_int_equal(placement_worker_take(w, 30 * NS_PER_SEC, keep, answers), 0);
	assert_int_equal(placement_worker_waiting(w), 0);
	assert_int_equal(answers[0].tag, 42);
	if (answers[0].error != -EPERM && answers[0].error != -ENOSYS) {
		assert_int_equal(answers[0].error, 0);
		for (uint32_t i = 0; i < answers[0].nnodes; i++)
			anon += answers[0].nodes[i].bytes[PAGES_ANON];
		assert_true(anon >= bytes);
		assert_true(answers[0].share_error < 0.1);
		for (uint32_t i = 0; i < answers[0].nsegments; i++)
			found += pages_on(&answers[0].segments[i], answers[0].segments[i].on[0].node);
		assert_true(found >= 64);
	}
	placement_worker_close(w);
	munmap(shared, bytes);
	munmap(mine, bytes);
	free(answers);
}

/* A named pipe that nobody writes to hangs its reader, as a locked memory map does. */
TEST(a_reader_that_hangs_is_given_up)
{
	struct placement_options o = {.proc = root, .pages = 64, .query = fake_query};
	struct placement *answers = calloc(5, sizeof(*answers));
	struct placement_worker *w;
	node_fn node = on_three;
	char path[300];
	struct err e;

	o.ctx = &node;
	put("status", "RssAnon:\t 1024 kB\n");
	snprintf(path, sizeof(path), "%s/7/maps", root);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(placement_worker_open(&w, &o, 50 * NS_PER_MS, &e), 0);
	assert_int_equal(placement_worker_ask(w, 7, 1, 64), 0);
	assert_int_equal(placement_worker_ask(w, 9, 2, 64), 0);
	assert_int_equal(placement_worker_take(w, 30 * NS_PER_SEC, keep, answers), 0);
	assert_int_equal(answers[0].tag, 1);
	assert_int_equal(answers[0].error, -ETIMEDOUT);
	/* The one behind it is answered by another process. */
	assert_int_equal(answers[1].tag, 2);
	assert_int_equal(answers[1].error, -ENOENT);
	placement_worker_close(w);
	unlink(path);
	free(answers);
}

/* Computes for longer than a stuck one may take, as one does that has no CPU. */
static int busy_query(void *ctx, uint32_t pid, size_t n, void **pages, int *status)
{
	uint64_t until = clock_mono_ns() + 300 * NS_PER_MS;

	while (clock_mono_ns() < until)
		;
	return fake_query(ctx, pid, n, pages, status);
}

TEST(a_reader_without_a_cpu_is_waited_for)
{
	node_fn node = on_three;
	struct placement_options o = {.proc = root, .pages = 64, .query = busy_query, .ctx = &node};
	struct placement *answers = calloc(5, sizeof(*answers));
	struct placement_worker *w;
	struct err e;

	put("maps", "100000000000-100000100000 rw-p 00000000 00:00 0 \n");
	put("status", "RssAnon:\t 1024 kB\n");
	assert_int_equal(placement_worker_open(&w, &o, 50 * NS_PER_MS, &e), 0);
	assert_int_equal(placement_worker_ask(w, 7, 1, 64), 0);
	assert_int_equal(placement_worker_take(w, 60 * NS_PER_SEC, keep, answers), 0);
	assert_int_equal(answers[0].tag, 1);
	assert_int_equal(answers[0].error, 0);
	assert_true(answers[0].nnodes > 0);
	placement_worker_close(w);
	free(answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_tell_the_class),
		cmocka_unit_test(regions_leave_out_what_has_no_pages),
		cmocka_unit_test(a_small_process_is_looked_at_in_full),
		cmocka_unit_test(a_large_process_is_estimated_within_the_error),
		cmocka_unit_test(a_sparse_address_space_is_looked_at_where_it_has_pages),
		cmocka_unit_test(classes_are_kept_apart),
		cmocka_unit_test(shared_segments_are_told_apart),
		cmocka_unit_test(what_is_cut_short_has_looked_everywhere),
		cmocka_unit_test(each_class_is_looked_at_however_late_it_is),
		cmocka_unit_test(what_was_not_found_is_part_of_the_error),
		cmocka_unit_test(with_one_node_nothing_is_asked),
		cmocka_unit_test(numa_maps_are_exact_and_know_page_sizes),
		cmocka_unit_test(this_process_is_read_in_another_one),
		cmocka_unit_test(a_reader_that_hangs_is_given_up),
		cmocka_unit_test(a_reader_without_a_cpu_is_waited_for),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
