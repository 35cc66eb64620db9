/* witty-profiler record: observe this host and write a recording. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "hosts.h"
#include "mem.h"
#include "record.h"
#include "strbuf.h"
#include "vec.h"
#include "verb.h"

struct record_args {
	struct record_options o;
	VEC(uint32_t) pids;
	VEC(const char *) refuse;
	struct strbuf text;
	char default_name[64];
};

enum { OPT_FORCE = 256, OPT_NO_EBPF, OPT_REQUIRE, OPT_REFUSE, OPT_NO_REDACT, OPT_NUMA_EXACT, OPT_SAMPLE_MEMORY, OPT_HOST_ID, OPT_NETNS, OPT_MAX_OVERHEAD };

static const struct option options[] = {{"duration", required_argument, NULL, 'd'},
					{"output", required_argument, NULL, 'o'},
					{"pid", required_argument, NULL, 'p'},
					{"interval", required_argument, NULL, 'i'},
					{"force", no_argument, NULL, OPT_FORCE},
					{"no-ebpf", no_argument, NULL, OPT_NO_EBPF},
					{"require", required_argument, NULL, OPT_REQUIRE},
					{"refuse", required_argument, NULL, OPT_REFUSE},
					{"no-redact", no_argument, NULL, OPT_NO_REDACT},
					{"numa-exact", no_argument, NULL, OPT_NUMA_EXACT},
					{"sample-memory", no_argument, NULL, OPT_SAMPLE_MEMORY},
					{"host-id", required_argument, NULL, OPT_HOST_ID},
					{"netns", required_argument, NULL, OPT_NETNS},
					{"max-overhead", required_argument, NULL, OPT_MAX_OVERHEAD},
					{0}};

/* Percent of a CPU, or "off". */
static int parse_max_overhead(struct record_args *a, const char *text)
{
	char *end;
	double pct = strtod(text, &end);

	if (!strcmp(text, "off")) {
		a->o.collect.max_overhead_pct = -1;
		return 0;
	}
	if (end == text || *end || !(pct >= 0.01 && pct <= 100))
		return usage_error(&verb_record, "'%s' is no share of a CPU: a percentage from 0.01 to 100, or 'off'", text);
	a->o.collect.max_overhead_pct = pct;
	return 0;
}

static int parse_option(struct record_args *a, int opt)
{
	uint64_t v;

	switch (opt) {
	case 'd':
		if (parse_duration(optarg, &a->o.duration_ns))
			return usage_error(&verb_record, "'%s' is no duration (10s, 500ms, 2m)", optarg);
		return 0;
	case 'i':
		if (parse_duration(optarg, &a->o.interval_ns) || a->o.interval_ns < 50000000)
			return usage_error(&verb_record, "'%s' is no interval of at least 50ms", optarg);
		return 0;
	case 'o':
		a->o.output = optarg;
		return 0;
	case 'p':
		if (parse_number(optarg, &v) || !v || v > UINT32_MAX)
			return usage_error(&verb_record, "'%s' is no process id", optarg);
		vec_push(&a->pids, (uint32_t)v);
		return 0;
	case OPT_FORCE:
		a->o.force = true;
		return 0;
	case OPT_NO_EBPF:
		a->o.collect.no_ebpf = true;
		return 0;
	case OPT_REQUIRE:
		if (strcmp(optarg, "ebpf"))
			return usage_error(&verb_record, "--require knows 'ebpf', not '%s'", optarg);
		a->o.collect.require_ebpf = true;
		return 0;
	case OPT_REFUSE:
		vec_push(&a->refuse, optarg);
		return 0;
	case OPT_HOST_ID:
		if (!is_host_name(optarg))
			return usage_error(&verb_record, "'%s' is no name of a host: letters, digits, . _ - : only, at most 64", optarg);
		a->o.collect.host_id = optarg;
		return 0;
	case OPT_NETNS:
		if (parse_number(optarg, &v) || !v || v > UINT32_MAX)
			return usage_error(&verb_record, "'%s' is no process id", optarg);
		a->o.collect.netns_pid = (uint32_t)v;
		return 0;
	case OPT_MAX_OVERHEAD:
		return parse_max_overhead(a, optarg);
	case OPT_NUMA_EXACT:
		a->o.collect.numa_exact = true;
		return 0;
	case OPT_SAMPLE_MEMORY:
		a->o.collect.sample_memory = true;
		return 0;
	case OPT_NO_REDACT:
		a->o.collect.no_redact = true;
		return 0;
	}
	return usage_error(&verb_record, "wrong option");
}

static void show_progress(void *ctx, uint64_t elapsed_ns, size_t processes)
{
	(void)ctx;
	fprintf(stderr, "\rrecording  %.0f s  %zu processes ", (double)elapsed_ns / 1e9, processes);
	fflush(stderr);
}

static void finish_args(struct record_args *a, int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		strbuf_addf(&a->text, "%s%s", i == 1 ? "" : " ", argv[i]);
	a->o.options = strbuf_str(&a->text);
	a->o.collect.pids = a->pids.v;
	a->o.collect.npids = a->pids.n;
	a->o.collect.probe.refuse = a->refuse.v;
	a->o.collect.probe.nrefuse = a->refuse.n;
	if (!a->o.command && !a->o.duration_ns)
		a->o.duration_ns = 10000000000ull;
	if (isatty(STDERR_FILENO))
		a->o.progress = show_progress;
}

static void say_where(const char *path)
{
	CLEANUP(strbuf_done) struct strbuf journal = {0};

	fprintf(stderr, "recorded to %s\n", path);
	strbuf_addf(&journal, "%s-wal", path);
	if (!access(journal.s, F_OK))
		fprintf(stderr, "warning: '%s' is part of it: others read the file\n", journal.s);
}

static int run(int argc, char **argv)
{
	struct record_args a = {.o = {.output = "recording.wpdb", .interval_ns = 1000000000}};
	struct err e;
	int opt, rc = 0, status = -1;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "+d:o:p:i:", options, NULL)) != -1)
		rc = opt == '?' || opt == ':' ? usage_error(&verb_record, "wrong option '%s'", argv[optind - 1])
					      : parse_option(&a, opt);
	if (!rc && optind < argc && strcmp(argv[optind - 1], "--"))
		rc = usage_error(&verb_record, "'%s': a command to run stands behind --", argv[optind]);
	if (!rc) {
		if (optind < argc)
			a.o.command = argv + optind;
		finish_args(&a, argc, argv);
		mem_give_back();
		rc = record(&a.o, &status, &e) < 0 ? EXIT_FAILED : EXIT_DONE;
		if (a.o.progress)
			fprintf(stderr, "\r%40s\r", "");
		if (rc)
			fail(&e);
		else
			say_where(a.o.output);
		if (!rc && status > 0) {
			fprintf(stderr, "warning: '%s' ended with status %d\n", a.o.command[0], status);
			rc = EXIT_FAILED;
		}
	}
	vec_done(&a.pids);
	vec_done(&a.refuse);
	strbuf_done(&a.text);
	return rc;
}

const struct verb verb_record = {
	.name = "record",
	.usage = "[-d TIME] [-o FILE] [-p PID]... [-i TIME] [OPTION]... [-- COMMAND ARG...]",
	.summary = "Observe this host and write a recording",
	.help = "  -d, --duration TIME   observe for TIME (default 10s; with a command: until it ends)\n"
		"  -o, --output FILE     recording to write (default recording.wpdb)\n"
		"  -p, --pid PID         only this process, its descendants and the other ends of their\n"
		"                        flows; may be given several times\n"
		"  -i, --interval TIME   length of an interval (default 1s, at least 50ms)\n"
		"      --force           replace FILE if it exists\n"
		"      --no-ebpf         read /proc only\n"
		"      --require ebpf    fail when a BPF probe cannot be loaded\n"
		"      --refuse NAME     do not use this probe, hook or rung (sched, sock.tp_btf, iter, ...)\n"
		"      --no-redact       keep secrets in command lines\n"
		"      --host-id NAME    what this host is called among others (for containers and copies of hosts)\n"
		"      --netns PID       only sockets of that process's network namespace: others are other hosts\n"
		"      --sample-memory   sample which accesses to memory another node answers (PEBS, IBS, SPE; some cost)\n"
		"      --max-overhead PERCENT\n"
		"                        when hooks take more of a CPU than that for more than a second, or a tenth of\n"
		"                        that for calls of no interest, watch system calls in turns and estimate the rest\n"
		"                        (default 10; off: never)\n"
		"      --numa-exact      look at every page of memory, by numa_maps, whatever it costs\n"
		"A command still running after TIME is ended (SIGTERM). SIGINT ends the recording and keeps it.\n",
	.run = run,
};
