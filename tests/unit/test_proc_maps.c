/* Lines of /proc/PID/maps, kinds of shared memory, and what is resident of a mapping. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc_maps.h"
#include "shm_kind.h"

static bool parse(const char *text, struct maps_line *l)
{
	static char line[512];

	snprintf(line, sizeof(line), "%s", text);
	return maps_line_parse(line, l);
}

TEST(a_line_is_taken_apart)
{
	struct maps_line l;

	assert_true(parse("7f8466162000-7f8466169000 rw-s 0001f000 fe:12 332280                     "
			  "/dev/shm/with blanks  \n", &l));
	assert_int_equal(l.start, 0x7f8466162000);
	assert_int_equal(l.end, 0x7f8466169000);
	assert_int_equal(l.offset, 0x1f000);
	assert_int_equal(l.dev, 0xfeu << 20 | 0x12);
	assert_int_equal(l.ino, 332280);
	assert_true(l.read && l.write && l.shared);
	assert_string_equal(l.path, "/dev/shm/with blanks  ");
	assert_true(parse("1000-2000 ---p 00000000 00:00 0\n", &l));
	assert_false(l.read || l.write || l.shared);
	assert_string_equal(l.path, "");
	/* The first System V segment has the number 0. */
	assert_true(parse("1000-2000 r--s 00000000 00:01 0                          /SYSV00000000 (deleted)", &l));
	assert_int_equal(l.ino, 0);
	assert_string_equal(l.path, "/SYSV00000000 (deleted)");
}

TEST(only_newlines_are_escaped)
{
	struct maps_line l;

	assert_true(parse("1000-2000 rw-s 00000000 00:01 5 /memfd:a\\012b\\040\\\\c", &l));
	assert_string_equal(l.path, "/memfd:a\nb\\040\\\\c");
	assert_int_equal(l.path_bytes, strlen(l.path));
}

TEST(what_is_no_line_is_refused)
{
	static const char *const wrong[] = {
		"", "\n", "-", "1000", "1000-", "1000-2000", "1000-2000 rw-s", "1000-2000 rw-s 0 00:01",
		"2000-1000 rw-s 0 00:01 5 /x", "1000-1000 rw-s 0 00:01 5 /x", " 1000-2000 rw-s 0 00:01 5 /x",
		"+1000-2000 rw-s 0 00:01 5 /x", "1000-2000 rws 0 00:01 5 /x", "1000-2000 rw-s 0 00-01 5 /x",
		"1000-2000 rw-s 0 1000:01 5 /x", "1000-2000 rw-s 0 00:100000 5 /x",
		"1000-2000 rw-s 0 00:01 99999999999999999999 /x",
		"11112222333344445-2000 rw-s 0 00:01 5 /x", "1000-2000 rw-s 0 00:01 5x /x",
	};
	struct maps_line l;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (parse(wrong[i], &l))
			fail_msg("taken: '%s'", wrong[i]);
}

struct found {
	const void *at;
	struct proc_map m;
	int n;
};

static int on_map(void *ctx, const struct proc_map *m)
{
	struct found *f = ctx;

	if (m->start != (uintptr_t)f->at)
		return 0;
	f->m = *m;
	f->n++;
	return 0;
}

TEST(a_mapping_of_ones_own_is_found)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("of one's own", MFD_CLOEXEC);
	struct shm_mounts mounts;
	struct found f = {0};
	uint64_t bytes = 0;
	struct stat st;
	char path[256], *p;

	assert_int_equal(ftruncate(fd, (off_t)(9 * page)), 0);
	f.at = p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	for (int i = 0; i < 3; i++)
		p[i * (int)page * 2] = 1;
	assert_int_equal(proc_maps_list((uint32_t)getpid(), 1, on_map, &f), 0);
	assert_int_equal(f.n, 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(f.m.ino, st.st_ino);
	assert_int_equal(f.m.end - f.m.start, 9 * page);
	assert_int_equal(f.m.access, PROC_MAP_READ | PROC_MAP_WRITE);
	assert_memory_equal(f.m.name, "memfd:of one's own", f.m.name_bytes);
	shm_mounts_find(&mounts);
	assert_true(shm_is_internal(&mounts, f.m.dev));
	assert_string_equal(shm_kind_name(shm_kind_of(&mounts, &f.m, NULL)), "memfd");
	/* Following the link to the file takes rights that a test may lack. */
	if (f.m.size_bytes != MAP_UNKNOWN)
		assert_int_equal(f.m.size_bytes, 9 * page);
	if (proc_maps_path(&f.m, true, path, sizeof(path)) > 0)
		assert_string_equal(path, "/memfd:of one's own");
	assert_int_equal(proc_maps_resident((uint32_t)getpid(), f.m.start, f.m.end, &bytes), 0);
	assert_int_equal(bytes, 3 * page);
	munmap(p, 9 * page);
	close(fd);
}

static enum shm_kind kind(const struct shm_mounts *m, uint32_t dev, uint32_t magic, const char *name,
			  const char *path)
{
	struct proc_map r = {.dev = dev, .magic = magic, .mode = S_IFREG | 0600};

	r.name_bytes = (uint8_t)snprintf(r.name, sizeof(r.name), "%s", name);
	return shm_kind_of(m, &r, path);
}

TEST(names_are_trusted_on_the_kernels_own_mounts_only)
{
	struct shm_mounts m = {.shmem = 1, .huge = {2, 3}, .nhuge = 2, .dev_shm = 27};

	assert_int_equal(kind(&m, 1, 0x01021994, "SYSV00001234", NULL), SHM_SYSV);
	assert_int_equal(kind(&m, 1, 0x01021994, "memfd:SYSV0", NULL), SHM_MEMFD);
	assert_int_equal(kind(&m, 1, 0x01021994, "dev/zero", NULL), SHM_ANONYMOUS);
	assert_int_equal(kind(&m, 1, 0x01021994, "drm mm object", NULL), SHM_OTHER);
	assert_int_equal(kind(&m, 3, 0x958458f6, "anon_hugepage", NULL), SHM_HUGETLB);
	assert_int_equal(kind(&m, 2, 0x958458f6, "SYSV00001234", NULL), SHM_SYSV);
	assert_int_equal(kind(&m, 9, 0x958458f6, "SYSV00001234", "/huge/SYSV00001234"), SHM_HUGETLB);
	assert_int_equal(kind(&m, 9, 0x01021994, "SYSV00001234", "/tmp/SYSV00001234"), SHM_TMPFS);
	assert_int_equal(kind(&m, 9, 0xef53, "memfd:x", "/memfd:x"), SHM_FILE);
}

TEST(dev_shm_is_told_by_path_or_by_device)
{
	struct shm_mounts m = {.shmem = 1, .dev_shm = 27};
	struct proc_map device = {.mode = S_IFCHR | 0600, .magic = 0x01021994};

	assert_int_equal(kind(&m, 27, 0x01021994, "x", NULL), SHM_POSIX);
	assert_int_equal(kind(&m, 28, 0x01021994, "x", NULL), SHM_TMPFS);
	assert_int_equal(kind(&m, 28, 0x01021994, "x", "/dev/shm/x"), SHM_POSIX);
	assert_int_equal(kind(&m, 28, 0x01021994, "x", "/container/dev/shm/x"), SHM_POSIX);
	/* On a disk it is a file, whatever the folder is called. */
	assert_int_equal(kind(&m, 28, 0xef53, "x", "/dev/shm/x"), SHM_FILE);
	assert_int_equal(shm_kind_of(&m, &device, "/dev/nvidia0"), SHM_DEVICE);
	/* Without a look at the file there is only the path. */
	assert_int_equal(kind(&m, 28, 0, "x", "anon_inode:[io_uring]"), SHM_NONE);
	assert_int_equal(kind(&m, 28, 0, "x", "/dmabuf:"), SHM_DMABUF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_taken_apart),
		cmocka_unit_test(only_newlines_are_escaped),
		cmocka_unit_test(what_is_no_line_is_refused),
		cmocka_unit_test(a_mapping_of_ones_own_is_found),
		cmocka_unit_test(names_are_trusted_on_the_kernels_own_mounts_only),
		cmocka_unit_test(dev_shm_is_told_by_path_or_by_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
