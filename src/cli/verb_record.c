/* witty-profiler record: observe this host and write a recording. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "mem.h"
#include "options.h"
#include "record.h"
#include "strbuf.h"
#include "vec.h"

struct record_args {
	struct record_options o;
	struct option_pids pids;
	struct option_texts refuse;
	struct strbuf text;
};

/* Percent of a CPU, or "off". */
static int set_max_overhead(void *value, const char *text)
{
	double *ret = value, pct;
	char *end;

	if (!strcmp(text, "off")) {
		*ret = -1;
		return 0;
	}
	pct = strtod(text, &end);
	if (end == text || *end || !(pct >= 0.01 && pct <= 100))
		return usage_error(&verb_record, "'%s' is no share of a CPU: a percentage from 0.01 to 100, or 'off'", text);
	*ret = pct;
	return 0;
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
	const char *require = NULL;
	const struct verb_option options[] = {
		{"duration", 'd', OPTION_TIME, &a.o.duration_ns},
		{"output", 'o', OPTION_TEXT, &a.o.output},
		{"pid", 'p', OPTION_PIDS, &a.pids},
		{"interval", 'i', OPTION_TIME, &a.o.interval_ns, .least = 50000000},
		{"force", 0, OPTION_FLAG, &a.o.force},
		{"no-ebpf", 0, OPTION_FLAG, &a.o.collect.no_ebpf},
		{"require", 0, OPTION_CHOICE, &require, "ebpf"},
		{"refuse", 0, OPTION_TEXTS, &a.refuse},
		{"no-redact", 0, OPTION_FLAG, &a.o.collect.no_redact},
		{"numa-exact", 0, OPTION_FLAG, &a.o.collect.numa_exact},
		{"sample-memory", 0, OPTION_FLAG, &a.o.collect.sample_memory},
		{"host-id", 0, OPTION_HOST_NAME, &a.o.collect.host_id},
		{"netns", 0, OPTION_PID, &a.o.collect.netns_pid},
		{"max-overhead", 0, OPTION_SET, &a.o.collect.max_overhead_pct, .set = set_max_overhead},
		{0}};
	struct err e;
	int first, status = -1, rc = parse_options(&verb_record, options, argc, argv, &first);

	if (!rc && first < argc && strcmp(argv[first - 1], "--"))
		rc = usage_error(&verb_record, "'%s': a command to run stands behind --", argv[first]);
	if (!rc) {
		a.o.collect.require_ebpf = require != NULL;
		if (first < argc)
			a.o.command = argv + first;
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
		"                        when hooks take more of a CPU than that for longer than a burst, or a tenth of\n"
		"                        that for calls of no interest, watch system calls in turns and estimate the rest;\n"
		"                        messages of TCP likewise from three hundredths of it on, their bytes stay exact\n"
		"                        (default 10; off: never)\n"
		"      --numa-exact      look at every page of memory, by numa_maps, whatever it costs\n"
		"A command still running after TIME is ended (SIGTERM). SIGINT ends the recording and keeps it.\n",
	.run = run,
	.has_command = true,
};
