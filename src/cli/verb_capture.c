/* witty-profiler capture: a redacted copy of the parts of /proc and /sys that the collectors read. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "mem.h"
#include "options.h"
#include "redact.h"

#define FILE_MAX_BYTES (1u << 20)

struct capture {
	const char *to;
	uint64_t files;
	struct err *e;
};

static int make_parents(char *path)
{
	for (char *s = path + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*s = '/';
	}
	return 0;
}

/* Files that vanished or refuse are left out: the copy shows what could be read. */
static int copy_file(struct capture *c, const char *from, bool cmdline)
{
	CLEANUP_FREE char *text = mem_alloc(FILE_MAX_BYTES);
	struct strbuf out = {0}, path = {0};
	size_t n = 0;
	ssize_t got = 0;
	int rc;

	CLEANUP_CLOSE int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	while (n < FILE_MAX_BYTES && (got = read(fd, text + n, FILE_MAX_BYTES - n)) > 0)
		n += (size_t)got;
	if (got < 0)
		return 0;
	if (cmdline)
		redact_cmdline(&out, text, n && !text[n - 1] ? n - 1 : n, true);
	else
		strbuf_addn(&out, text, n);
	strbuf_addf(&path, "%s%s", c->to, from);
	rc = make_parents(path.s);
	if (rc < 0)
		err_set(c->e, rc, "create folder for '%s'", path.s);
	else
		rc = write_output(path.s, false, &out, c->e);
	c->files += !rc;
	strbuf_done(&out);
	strbuf_done(&path);
	return rc;
}

static int copy_tree(struct capture *c, const char *from, unsigned depth)
{
	CLEANUP_CLOSEDIR DIR *d = opendir(from);
	struct dirent *de;
	char path[512];
	int rc = 0;

	while (!rc && d && (de = readdir(d))) {
		if (de->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", from, de->d_name) >= (int)sizeof(path))
			continue;
		if (de->d_type == DT_DIR && depth)
			rc = copy_tree(c, path, depth - 1);
		else if (de->d_type == DT_REG)
			rc = copy_file(c, path, false);
	}
	return rc;
}

static int copy_process(struct capture *c, const char *pid)
{
	static const char *const files[] = {"stat", "status", "comm", "cgroup", "schedstat", "cmdline"};
	char path[64];
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%.16s/%s", pid, files[i]);
		rc = copy_file(c, path, !strcmp(files[i], "cmdline"));
	}
	return rc;
}

static int capture_all(struct capture *c)
{
	static const char *const files[] = {
		"/proc/stat",	   "/proc/meminfo", "/proc/loadavg",	  "/proc/cpuinfo",
		"/proc/version",   "/proc/cgroups", "/proc/filesystems",  "/proc/pressure/cpu",
		"/proc/pressure/io", "/proc/pressure/memory", "/etc/os-release", "/proc/sys/kernel/osrelease"};
	CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
	struct dirent *de;
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(files) / sizeof(files[0]); i++)
		rc = copy_file(c, files[i], false);
	rc = rc ?: copy_tree(c, "/sys/devices/system/node", 2);
	rc = rc ?: copy_tree(c, "/sys/devices/system/cpu", 4);
	while (!rc && d && (de = readdir(d)))
		if (isdigit((unsigned char)de->d_name[0]))
			rc = copy_process(c, de->d_name);
	return rc;
}

static int run(int argc, char **argv)
{
	struct err e;
	struct capture c = {.to = "capture", .e = &e};
	const struct verb_option options[] = {{"output", 'o', OPTION_TEXT, &c.to}, {0}};
	int first;

	if (parse_options(&verb_capture, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first < argc)
		return usage_error(&verb_capture, "too much: '%s'", argv[first]);
	if (mkdir(c.to, 0755) < 0) {
		err_set(&e, -errno, "create folder '%s'", c.to);
		return fail(&e);
	}
	if (capture_all(&c) < 0)
		return fail(&e);
	printf("%llu files in %s\n", (unsigned long long)c.files, c.to);
	return EXIT_DONE;
}

const struct verb verb_capture = {
	.name = "capture",
	.usage = "[-o FOLDER]",
	.summary = "Copy the parts of /proc and /sys that matter, secrets masked, for tests and bug reports",
	.help = "  -o, --output FOLDER   new folder to write (default capture)\n",
	.run = run,
};
