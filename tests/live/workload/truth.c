/* The ground-truth workload: known traffic of every kind, and a file that says what it was. */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIR(name, over, body) {name, pair_run, over, body##_client, body##_server, false}

const struct case_def cases[] = {
	PAIR("tcp4", OVER_TCP4, plain),
	PAIR("tcp6", OVER_TCP6, plain),
	PAIR("tcpmap", OVER_TCP_MAPPED, plain),
	PAIR("tcpany", OVER_TCP_ANY, plain),
	PAIR("unix", OVER_UNIX, plain),
	PAIR("unixabs", OVER_UNIX_ABS, plain),
	PAIR("unixseq", OVER_SEQPACKET, dgram),
	PAIR("tcp4part", OVER_TCP4, partial),
	PAIR("unixpart", OVER_UNIX, partial),
	PAIR("tcp4iov", OVER_TCP4, iov),
	PAIR("tcp6iov", OVER_TCP6, iov),
	PAIR("unixiov", OVER_UNIX, iov),
	PAIR("tcp4peek", OVER_TCP4, peek),
	PAIR("unixpeek", OVER_UNIX, peek),
	PAIR("tcp4half", OVER_TCP4, half),
	PAIR("unixhalf", OVER_UNIX, half),
	PAIR("tcp4rst", OVER_TCP4, reset),
	PAIR("unixrst", OVER_UNIX, reset),
	PAIR("tcp4fin", OVER_TCP4, closed),
	PAIR("unixfin", OVER_UNIX, closed),
	PAIR("tcp4thr", OVER_TCP4, threads),
	PAIR("unixthr", OVER_UNIX, threads),
	PAIR("tcp4file", OVER_TCP4, sendfile),
	PAIR("tcp6file", OVER_TCP6, sendfile),
	PAIR("unixfile", OVER_UNIX, sendfile),
	PAIR("tcp4spl", OVER_TCP4, splice),
	PAIR("unixspl", OVER_UNIX, splice),
	{"tcp4blind", pair_run, OVER_TCP4, blind_client, blind_server, true},
	{"unixblind", pair_run, OVER_UNIX, blind_client, blind_server, true},
	{"tcp4ring", uring_run, OVER_TCP4, uring_client, uring_server, false},
	{"unixring", uring_run, OVER_UNIX, uring_client, uring_server, false},
	{"tcp4sqp", sqpoll_run, OVER_TCP4, sqpoll_client, sqpoll_server, false},
	{"unixsqp", sqpoll_run, OVER_UNIX, sqpoll_client, sqpoll_server, false},
	PAIR("udp4", OVER_UDP4, dgram),
	PAIR("udp6", OVER_UDP6, dgram),
	PAIR("unixdg", OVER_UNIX_DGRAM, dgram),
	PAIR("udp4mm", OVER_UDP4, mmsg),
	PAIR("udp6mm", OVER_UDP6, mmsg),
	PAIR("unixmm", OVER_UNIX_DGRAM, mmsg),
	PAIR("udp4trunc", OVER_UDP4, trunc),
	PAIR("unixtrunc", OVER_UNIX_DGRAM, trunc),
	{.name = "udp4to", .run = sendto_udp4_run},
	{.name = "udp6to", .run = sendto_udp6_run},
	{.name = "udpmapto", .run = sendto_mapped_run},
	{.name = "unixtopath", .run = sendto_path_run},
	{.name = "unixtoabs", .run = sendto_abstract_run},
	{.name = "udpnobody", .run = nobody_run},
	{.name = "sockpair", .run = sockpair_run},
	{.name = "sockpairdg", .run = sockpair_dgram_run},
	{.name = "passtx", .run = pass_sender_run},
	{.name = "passrx", .run = pass_receiver_run},
	{.name = "forkshare", .run = fork_share_run},
	{.name = "prefork", .run = prefork_run},
	{.name = "reuseport", .run = reuseport_run},
	{.name = "exec", .run = exec_run},
	{.name = "shorttcp", .run = short_tcp_run},
	{.name = "shortudp", .run = short_udp_run},
	{.name = "self", .run = self_run},
	{.name = "sameports", .run = same_ports_run},
	{.name = "veth", .run = veth_run},
	{.name = "manyconn", .run = many_run},
	{.name = "refused", .run = refused_run},
	{"nodata", pair_run, OVER_TCP4, nodata, nodata, false},
};

const int ncases = sizeof(cases) / sizeof(cases[0]);
_Static_assert(sizeof(cases) / sizeof(cases[0]) <= MAX_CASES, "room for each case");

static const char usage[] =
	"usage: truth [--case NAME]... [--scale N] [--out FILE] [--wait-start] [--recording FILE] [--list]\n"
	"Make known traffic, and write what it was as JSON to FILE (default: standard output).\n"
	"--wait-start: open the connections, print \"ready\", go on after SIGUSR1\n"
	"--recording: what is being made of this; wait for its looks\n";

static const char *kind_name(enum kind k)
{
	static const char *const names[] = {"tcp", "udp", "unix"};

	return names[k];
}

static void print_flow(FILE *out, const struct tcase *c, const struct flow *f, const char **sep)
{
	const struct role *src = &c->roles[f->src], *dst = f->dst < 0 ? NULL : &c->roles[f->dst];

	if (!f->messages_sent && !f->messages_received)
		return;
	fprintf(out, "%s\n    {\"case\": \"%s\", \"source_pid\": %d, ", *sep, cases[c->index].name,
		(int)src->pid);
	if (dst)
		fprintf(out, "\"target_pid\": %d, ", (int)dst->pid);
	else
		fprintf(out, "\"target_pid\": null, \"external\": \"%s\", ", f->external);
	fprintf(out,
		"\"kind\": \"%s\", \"bytes_sent\": %ju, \"messages_sent\": %ju, \"bytes_received\": %ju, "
		"\"messages_received\": %ju, \"source_name\": \"%s\", \"target_name\": \"%s\"%s}",
		kind_name(f->kind), (uintmax_t)f->bytes_sent, (uintmax_t)f->messages_sent,
		(uintmax_t)f->bytes_received, (uintmax_t)f->messages_received, src->name,
		dst ? dst->name : "", f->blind_receive ? ", \"blind\": [\"receive\"]" : "");
	*sep = ",";
}

static void print_processes(FILE *out)
{
	fprintf(out, "{\n  \"scale\": %u,\n  \"processes\": [\n    ", shared->scale);
	fprintf(out, "{\"pid\": %d, \"name\": \"truth\", \"role\": \"main\"}", (int)shared->main_pid);
	for (int i = 0; i < ncases; i++) {
		const struct tcase *c = &shared->cases[i];

		if (c->runner)
			fprintf(out, ",\n    {\"pid\": %d, \"name\": \"%.11s.run\", \"role\": \"runner\"}",
				(int)c->runner, cases[i].name);
		for (int k = 0; k < c->nroles; k++)
			fprintf(out, ",\n    {\"pid\": %d, \"name\": \"%s\", \"role\": \"%s\"}",
				(int)c->roles[k].pid, c->roles[k].name,
				strchr(c->roles[k].name, '.') + 1);
	}
	fprintf(out, "\n  ],\n");
}

static void print_truth(FILE *out)
{
	const char *sep = "";

	print_processes(out);
	fprintf(out, "  \"cases\": [");
	for (int i = 0; i < ncases; i++) {
		if (!shared->cases[i].selected || shared->cases[i].skipped[0])
			continue;
		fprintf(out, "%s\"%s\"", sep, cases[i].name);
		sep = ", ";
	}
	fprintf(out, "],\n  \"flows\": [");
	sep = "";
	for (int i = 0; i < ncases; i++)
		for (int k = 0; k < shared->cases[i].nflows; k++)
			print_flow(out, &shared->cases[i], &shared->cases[i].flows[k], &sep);
	fprintf(out, "\n  ],\n  \"skipped\": [");
	sep = "";
	for (int i = 0; i < ncases; i++) {
		if (!shared->cases[i].skipped[0])
			continue;
		fprintf(out, "%s\n    {\"case\": \"%s\", \"reason\": \"%s\"}", sep, cases[i].name,
			shared->cases[i].skipped);
		sep = ",";
	}
	fprintf(out, "\n  ]\n}\n");
}

/* exec case: argv is truth --after-exec CASE SOCKET MAP. */
int main(int argc, char **argv)
{
	static const struct workload w = {.usage = usage, .print = print_truth, .scales = true};

	if (argc == 5 && !strcmp(argv[1], "--after-exec"))
		exec_continue(case_after_exec(argv[2], atoi(argv[4])), CLI, atoi(argv[3]));
	return workload_main(&w, argc, argv);
}
