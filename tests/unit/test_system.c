/* Files below a root that must not be left, and programs with a deadline. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spawn.h"
#include "sysroot.h"

static char root_path[] = "/tmp/witty-unit-XXXXXX";

static void put(int dir, const char *path, const char *text, size_t n)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	close(fd);
}

/* A tree with links of every kind; "outside" is beside the root, not in it. */
static int make_tree(void **state)
{
	static char big[SYSROOT_FILE_BYTES + 1];
	int dir;

	if (!mkdtemp(root_path))
		return -1;
	dir = open(root_path, O_PATH | O_DIRECTORY);
	mkdirat(dir, "root", 0755);
	mkdirat(dir, "root/proc", 0755);
	mkdirat(dir, "root/proc/7", 0755);
	put(dir, "outside", "secret", 6);
	put(dir, "root/proc/7/stat", "7 (x) R\n", 8);
	put(dir, "root/etc", "in root", 7);
	put(dir, "root/empty", "", 0);
	put(dir, "root/limit", big, sizeof(big) - 1);
	put(dir, "root/big", big, sizeof(big));
	symlinkat("stat", dir, "root/proc/7/relative");
	symlinkat("/proc/7/stat", dir, "root/absolute");
	symlinkat("/proc/7", dir, "root/folder");
	symlinkat("../../../../../outside", dir, "root/proc/up");
	symlinkat("/../etc", dir, "root/proc/top");
	symlinkat("/etc/passwd", dir, "root/host_file");
	symlinkat("loop", dir, "root/loop");
	symlinkat("absolute", dir, "root/chain");
	mkfifoat(dir, "root/fifo", 0644);
	close(dir);
	return 0;
}

static int remove_tree(void **state)
{
	const char *const argv[] = {"rm", "-rf", root_path, NULL};
	struct spawn_result how;
	struct strbuf out = {0};
	struct err e;

	return spawn_run(argv, 90000, 0, &out, &how, &e) || how.exit_code;
}

static struct sysroot open_tree(void)
{
	struct sysroot r;
	char path[64];
	struct err e;

	strcpy(path, root_path);
	strcat(path, "/root");
	assert_int_equal(sysroot_open(path, &r, &e), 0);
	assert_false(r.live);
	return r;
}

/* @return 0 when all is as it should be, else the number of the step that is not */
static int walk_tree(const struct sysroot *r)
{
	static const struct {
		const char *path;
		ssize_t rc;
		const char *text;
	} cases[] = {
		{"proc/7/stat", 8, "7 (x) R\n"},
		{"/proc/7/stat", 8, "7 (x) R\n"},
		{"//proc/./7/../7/stat", 8, "7 (x) R\n"},
		{"proc/7/relative", 8, "7 (x) R\n"},
		{"absolute", 8, "7 (x) R\n"},
		{"chain", 8, "7 (x) R\n"},
		{"folder/stat", 8, "7 (x) R\n"},
		{"empty", 0, ""},
		{"proc/top", 7, "in root"},
		{"../../etc", 7, "in root"},
		{"limit", SYSROOT_FILE_BYTES, NULL},
		{"big", -EFBIG, ""},
		{"fifo", 0, ""},
		{"proc/up", -ENOENT, ""},
		{"../outside", -ENOENT, ""},
		{"host_file", -ENOTDIR, ""},
		{"loop", -ELOOP, ""},
		{"nothing", -ENOENT, ""},
		{"nothing/at/all", -ENOENT, ""},
		{"etc/x", -ENOTDIR, ""},
		{"proc", -EISDIR, ""},
		{"", -EISDIR, ""},
	};
	int step = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && !step; i++) {
		struct strbuf out = {0};

		if (sysroot_read(r, &out, "%s", cases[i].path) != cases[i].rc ||
		    (cases[i].text && strcmp(strbuf_str(&out), cases[i].text)))
			step = (int)i + 1;
		strbuf_done(&out);
	}
	return step;
}

static int walk_links(const struct sysroot *r)
{
	struct strbuf out = {0};
	int bad = 0;

	bad |= sysroot_readlink(r, &out, "%s", "absolute") != 12;
	bad |= !!strcmp(strbuf_str(&out), "/proc/7/stat");
	bad |= sysroot_readlink(r, &out, "folder/relative") != 4;
	bad |= sysroot_readlink(r, &out, "empty") != -EINVAL;
	bad |= sysroot_readlink(r, &out, "nothing") != -ENOENT;
	bad |= !!strcmp(strbuf_str(&out), "/proc/7/statstat");
	bad |= !sysroot_has(r, "chain") || !sysroot_has(r, "proc/%d", 7);
	bad |= sysroot_has(r, "proc/up") || sysroot_has(r, "proc/%d", 8);
	strbuf_done(&out);
	return bad;
}

TEST(no_name_leads_out_of_a_captured_root)
{
	struct sysroot r = open_tree();

	assert_int_equal(walk_tree(&r), 0);
	assert_int_equal(walk_links(&r), 0);
	sysroot_close(&r);
}

/* openat2() answers as on a kernel that lacks it. */
static int forbid_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

TEST(without_openat2_the_root_is_as_tight)
{
	struct sysroot r = open_tree();
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (forbid_openat2())
			_exit(200);
		if (syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != ENOSYS)
			_exit(201);
		status = walk_tree(&r);
		_exit(status ? status : walk_links(&r) * 100);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 200)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	sysroot_close(&r);
}

TEST(the_host_is_a_live_root)
{
	struct strbuf out = {0};
	struct sysroot r;
	struct err e;
	DIR *d;

	assert_int_equal(sysroot_open("/", &r, &e), 0);
	assert_true(r.live);
	assert_true(sysroot_read(&r, &out, "/proc/%d/stat", (int)getpid()) > 10);
	assert_int_equal(strtol(strbuf_str(&out), NULL, 10), getpid());
	strbuf_clear(&out);
	assert_true(sysroot_readlink(&r, &out, "proc/self/exe") > 0);
	assert_int_equal(sysroot_opendir(&r, &d, "/proc/%s/fd", "self"), 0);
	assert_non_null(readdir(d));
	closedir(d);
	assert_int_equal(sysroot_opendir(&r, &d, "/proc/self/stat"), -ENOTDIR);
	strbuf_done(&out);
	sysroot_close(&r);
	assert_int_equal(sysroot_open("/nowhere/at/all", &r, &e), -ENOENT);
	assert_string_equal(e.msg, "open root '/nowhere/at/all': No such file or directory");
}

static void run(const char *script, uint32_t timeout_ms, size_t max, struct strbuf *out,
		struct spawn_result *how)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct err e = {0};

	strbuf_clear(out);
	if (spawn_run(argv, timeout_ms, max, out, how, &e))
		fail_msg("%s", e.msg);
}

TEST(output_and_exit_code_come_back)
{
	struct spawn_result how;
	struct strbuf out = {0};

	run("echo out; echo err >&2; cat; exit 3", 60000, 100, &out, &how);
	assert_string_equal(strbuf_str(&out), "out\n");
	assert_int_equal(how.exit_code, 3);
	assert_int_equal(how.signal, 0);
	assert_false(how.timed_out);
	assert_false(how.truncated);
	run("kill -TERM $$", 60000, 100, &out, &how);
	assert_int_equal(how.signal, SIGTERM);
	assert_int_equal(how.exit_code, -1);
	strbuf_done(&out);
}

TEST(output_is_limited_and_exact)
{
	struct spawn_result how;
	struct strbuf out = {0};

	run("head -c 300000 /dev/zero", 60000, 300000, &out, &how);
	assert_int_equal(out.n, 300000);
	assert_false(how.truncated);
	run("head -c 300000 /dev/zero; exit 5", 60000, 299999, &out, &how);
	assert_int_equal(out.n, 299999);
	assert_true(how.truncated);
	assert_int_equal(how.exit_code, 5);
	strbuf_done(&out);
}

#define LATE_MS 90000

/* Past its deadline, of which it has to reach some output before: on a busy host that takes longer. */
static void run_too_long(const char *script, struct strbuf *out, struct spawn_result *how)
{
	for (uint32_t ms = 500; ms < 100000; ms *= 4) {
		run(script, ms, 100, out, how);
		if (out->n)
			break;
	}
	assert_true(how->timed_out);
}

TEST(the_deadline_ends_the_whole_group)
{
	struct spawn_result how;
	struct strbuf out = {0};
	pid_t child;

	run_too_long("trap '' TERM; sleep 1000 & echo $!; wait", &out, &how);
	assert_int_equal(how.signal, SIGKILL);
	child = (pid_t)strtol(strbuf_str(&out), NULL, 10);
	assert_true(child > 0);
	/* It may still be a zombie of whoever takes orphans; give that one time to reap it. */
	for (int i = 0; i < LATE_MS && !kill(child, 0); i++) {
		char path[64], stat[256] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, stat, sizeof(stat) - 1) <= 0 || strstr(stat, ") Z"))
			i = LATE_MS;
		close(fd);
		usleep(1000);
		assert_int_not_equal(i, LATE_MS - 1);
	}
	run_too_long("yes", &out, &how);
	assert_true(how.truncated);
	assert_int_equal(out.n, 100);
	strbuf_done(&out);
}

TEST(a_child_left_behind_does_not_keep_us)
{
	struct spawn_result how;
	struct strbuf out = {0};

	run("sleep 1000 & echo done", 60000, 100, &out, &how);
	assert_false(how.timed_out);
	assert_int_equal(how.exit_code, 0);
	assert_string_equal(strbuf_str(&out), "done\n");
	strbuf_done(&out);
}

TEST(a_missing_program_is_an_error)
{
	const char *const argv[] = {"no-such-program-here", NULL};
	struct spawn_result how;
	struct strbuf out = {0};
	struct err e;

	assert_int_equal(spawn_run(argv, 90000, 100, &out, &how, &e), -ENOENT);
	assert_string_equal(e.msg, "run 'no-such-program-here': No such file or directory");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_name_leads_out_of_a_captured_root),
		cmocka_unit_test(without_openat2_the_root_is_as_tight),
		cmocka_unit_test(the_host_is_a_live_root),
		cmocka_unit_test(output_and_exit_code_come_back),
		cmocka_unit_test(output_is_limited_and_exact),
		cmocka_unit_test(the_deadline_ends_the_whole_group),
		cmocka_unit_test(a_child_left_behind_does_not_keep_us),
		cmocka_unit_test(a_missing_program_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
