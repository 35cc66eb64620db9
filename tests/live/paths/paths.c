/* Known traffic over every path that is not a socket, and a file that says what it was. */
#include "paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct ledger *ledgers;
int ledger_fd = -1;

#define CASE(name_, run_, mechanism_, blind_) {.name = name_, .run = run_},
const struct case_def cases[] = {
#include "cases.def"
};
#undef CASE

#define CASE(name_, run_, mechanism_, blind_) {mechanism_, blind_},
const struct path_case path_cases[] = {
#include "cases.def"
};
#undef CASE

const int ncases = sizeof(cases) / sizeof(cases[0]);
_Static_assert(sizeof(cases) / sizeof(cases[0]) <= MAX_CASES, "room for each case");

static const char usage[] =
    "usage: paths [--case NAME]... [--out FILE] [--wait-start] [--recording FILE] [--list]\n"
    "Make known traffic, and write what it was as JSON to FILE (default: standard output).\n"
    "--wait-start: open the objects, print \"ready\", go on after SIGUSR1\n"
    "--recording: what is being made of this; wait for its looks\n";

static void init_ledgers(void)
{
	ledger_fd = shared_memory(sizeof(*ledgers) * ncases);
	ledgers = shared_map(ledger_fd, sizeof(*ledgers) * ncases);
	for (int i = 0; i < ncases; i++)
		sem_init(&ledgers[i].lock, 1, 1);
}

static const char *object_kind_name(enum object_kind k)
{
	static const char *const names[] = {
	    [OBJECT_PIPE] = "pipe",
	    [OBJECT_FIFO] = "fifo",
	    [OBJECT_EVENTFD] = "eventfd",
	    [OBJECT_POSIX_QUEUE] = "posix_queue",
	    [OBJECT_SYSV_QUEUE] = "sysv_queue",
	    [OBJECT_SYSV_SEM] = "sysv_sem",
	    [OBJECT_FILE] = "file",
	    [OBJECT_SOCKET] = "socket",
	};

	return names[k];
}

static void print_objects(FILE *out, const struct ledger *l)
{
	fprintf(out, "     \"objects\": [");
	for (int i = 0; i < l->nobjects; i++) {
		const struct object *o = &l->objects[i];

		fprintf(
		    out,
		    "%s\n      {\"kind\": \"%s\", \"dev\": \"%u:%u\", \"id\": %ju, \"ns\": %ju, "
		    "\"path\": \"%s\"}",
		    i ? "," : "", object_kind_name(o->kind), major(o->dev), minor(o->dev),
		    (uintmax_t)o->id, (uintmax_t)o->ns, o->path);
	}
	fprintf(out, "],\n");
}

static void print_accesses(FILE *out, const struct ledger *l)
{
	static const char *const dirs[] = {"read", "write", "zero"};

	fprintf(out, "     \"accesses\": [");
	for (int i = 0; i < l->naccesses; i++) {
		const struct access *a = &l->accesses[i];

		fprintf(out,
			"%s\n      {\"pid\": %d, \"tid\": %d, \"object\": %d, \"dir\": \"%s\", "
			"\"bytes\": %ju, \"calls\": %ju}",
			i ? "," : "", (int)a->pid, (int)a->tid, a->object, dirs[a->dir],
			(uintmax_t)a->bytes, (uintmax_t)a->calls);
	}
	fprintf(out, "],\n     \"moves\": [");
	for (int i = 0; i < l->nmoves; i++) {
		const struct move *m = &l->moves[i];

		fprintf(out, "%s\n      {\"from\": %d, \"to\": %d, ", i ? "," : "", (int)m->from,
			(int)m->to);
		if (m->object >= 0)
			fprintf(out, "\"object\": %d, ", m->object);
		fprintf(out, "\"bytes\": %ju, \"count\": %ju}", (uintmax_t)m->bytes,
			(uintmax_t)m->count);
	}
	fprintf(out, "],\n");
}

static void print_flows(FILE *out, const struct tcase *c)
{
	static const char *const kinds[] = {"tcp", "udp", "unix"};

	fprintf(out, "     \"flows\": [");
	for (int i = 0; i < c->nflows; i++) {
		const struct flow *f = &c->flows[i];

		fprintf(
		    out,
		    "%s\n      {\"kind\": \"%s\", \"from\": %d, \"to\": %d, \"bytes_sent\": %ju, "
		    "\"messages_sent\": %ju, \"bytes_received\": %ju, \"messages_received\": %ju, "
		    "\"blind_receive\": %s}",
		    i ? "," : "", kinds[f->kind], (int)c->roles[f->src].pid,
		    (int)c->roles[f->dst].pid, (uintmax_t)f->bytes_sent,
		    (uintmax_t)f->messages_sent, (uintmax_t)f->bytes_received,
		    (uintmax_t)f->messages_received, f->blind_receive ? "true" : "false");
	}
	fprintf(out, "]}");
}

static void print_processes(FILE *out, const struct tcase *c)
{
	fprintf(out, "     \"processes\": [\n      {\"pid\": %d, \"name\": \"%.11s.run\"}",
		(int)c->runner, cases[c->index].name);
	for (int k = 0; k < c->nroles; k++)
		fprintf(out, ",\n      {\"pid\": %d, \"name\": \"%s\"}", (int)c->roles[k].pid,
			c->roles[k].name);
	fprintf(out, "],\n");
}

static void print_truth(FILE *out)
{
	const char *sep = "";
	struct stat proc;

	if (stat("/proc/self/stat", &proc) < 0)
		die("look at /proc");
	fprintf(out, "{\"main_pid\": %d, \"proc_dev\": \"%u:%u\",\n  \"cases\": [",
		(int)shared->main_pid, major(proc.st_dev), minor(proc.st_dev));
	for (int i = 0; i < ncases; i++) {
		const struct tcase *c = &shared->cases[i];

		if (!c->selected)
			continue;
		fprintf(out,
			"%s\n    {\"case\": \"%s\", \"mechanism\": \"%s\", \"blind\": \"%s\", "
			"\"skipped\": \"%s\",\n",
			sep, cases[i].name, path_cases[i].mechanism,
			path_cases[i].blind ? path_cases[i].blind : "", c->skipped);
		print_processes(out, c);
		print_objects(out, &ledgers[i]);
		print_accesses(out, &ledgers[i]);
		print_flows(out, c);
		sep = ",";
	}
	fprintf(out, "\n  ]\n}\n");
}

/* exec case: argv is paths --after-exec CASE ROLE OBJECT DESCRIPTOR SHARED LEDGERS. */
static void after_exec(char **argv)
{
	struct tcase *c = case_after_exec(argv[2], atoi(argv[6]));

	ledger_fd = atoi(argv[7]);
	ledgers = shared_map(ledger_fd, sizeof(*ledgers) * ncases);
	pipe_exec_continue(c, atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
}

int main(int argc, char **argv)
{
	static const struct workload w = {
	    .usage = usage, .init = init_ledgers, .print = print_truth};

	if (argc == 8 && !strcmp(argv[1], "--after-exec"))
		after_exec(argv);
	return workload_main(&w, argc, argv);
}
