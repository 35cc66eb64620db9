/* The program: finds the subcommand, and what all of them share. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verb.h"

/* In the order of the help, one a line. */
/* clang-format off */
static const struct verb *const verbs[] = {
	&verb_record,
	&verb_top,
	&verb_report,
	&verb_topology,
	&verb_hotspots,
	&verb_bottlenecks,
	&verb_diff,
	&verb_show,
	&verb_convert,
	&verb_doctor,
	&verb_capture,
	&verb_schema,
	&verb_serve, &verb_fleet,
	&verb_mcp,
	&verb_merge,
};
/* clang-format on */
#define NVERBS (sizeof(verbs) / sizeof(verbs[0]))

int fail(const struct err *e)
{
	fprintf(stderr, "error: %s\n", e->msg);
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", e->hint);
	return EXIT_FAILED;
}

int usage_error(const struct verb *v, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "error: %s: ", v->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nhint: witty-profiler %s --help\n", v->name);
	return EXIT_USAGE;
}

int parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
	char *end;
	double v;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	v = strtod(s, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name))
			continue;
		v *= units[i].ns;
		if (!isfinite(v) || v < 1 || v > 366.0 * 86400e9)
			return -EINVAL;
		*ret_ns = (uint64_t)v;
		return 0;
	}
	return -EINVAL;
}

int parse_number(const char *s, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || v > INT64_MAX)
		return -ERANGE;
	*ret = v;
	return 0;
}

static int write_all(int fd, const struct strbuf *b)
{
	for (size_t at = 0; at < b->n;) {
		ssize_t n = write(fd, b->s + at, b->n - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int write_output(const char *path, bool force, const struct strbuf *b, struct err *e)
{
	int fd = STDOUT_FILENO, rc;

	if (path && strcmp(path, "-")) {
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0644);
		if (fd < 0) {
			rc = err_set(e, -errno, "create '%s'", path);
			return errno == EEXIST ? err_hint(e, "use --force to replace it") : rc;
		}
	}
	rc = write_all(fd, b);
	if (fd != STDOUT_FILENO && close(fd) < 0 && !rc)
		rc = -errno;
	/* Whoever closed the pipe has read enough. */
	if (rc == -EPIPE && fd == STDOUT_FILENO)
		return 0;
	return rc ? err_set(e, rc, "write '%s'", path ? path : "-") : 0;
}

static void print_help(FILE *f)
{
	fprintf(f, "usage: witty-profiler COMMAND [OPTION]... [ARGUMENT]...\n\n"
		   "Records what a Linux host does and shows who talks to whom.\n\ncommands:\n");
	for (size_t i = 0; i < NVERBS; i++)
		fprintf(f, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
	fprintf(f, "\n'witty-profiler COMMAND --help' tells more; 'witty-profiler --version' the version.\n");
}

int main(int argc, char **argv)
{
	/* Numbers and sorting must not depend on the user's language. */
	setlocale(LC_ALL, "C");
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("witty-profiler %s\n", WITTY_VERSION);
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < NVERBS; i++) {
		if (strcmp(argv[1], verbs[i]->name))
			continue;
		for (int k = 2; k < argc && strcmp(argv[k], "--"); k++)
			if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) {
				printf("usage: witty-profiler %s %s\n\n%s.\n\n%s", verbs[i]->name,
				       verbs[i]->usage, verbs[i]->summary, verbs[i]->help);
				if (verbs[i]->more_help)
					verbs[i]->more_help();
				return EXIT_DONE;
			}
		return verbs[i]->run(argc - 1, argv + 1);
	}
	fprintf(stderr, "error: no command '%s'\nhint: witty-profiler --help\n", argv[1]);
	return EXIT_USAGE;
}
