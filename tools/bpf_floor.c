/*
 * What the kernel's statistics say of a BPF program that does nothing: the part of every figure of
 * bench/overhead that is the measurement itself. It differs from place to place, by what is in the caches there.
 *
 *     bpf_floor TRACEPOINT…
 *
 * Runs at these tracepoints until its standard input closes, then prints a line for each: its name, nanoseconds
 * per run (0: it never ran), and the number of runs.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST 16

struct floor {
	const char *tracepoint;
	int prog, link;
};

static int attach(struct floor *f)
{
	/* r0 = 0; exit */
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	f->prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "floor", "GPL", nothing, 2, NULL);
	if (f->prog < 0) {
		fprintf(stderr, "bpf_floor: load: %s\n", strerror(errno));
		return -1;
	}
	f->link = bpf_raw_tracepoint_open(f->tracepoint, f->prog);
	if (f->link < 0)
		fprintf(stderr, "bpf_floor: attach to %s: %s\n", f->tracepoint, strerror(errno));
	return f->link < 0 ? -1 : 0;
}

static int print(const struct floor *f)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(f->prog, &info, &size) < 0) {
		fprintf(stderr, "bpf_floor: statistics: %s\n", strerror(errno));
		return -1;
	}
	printf("%s %.1f %llu\n", f->tracepoint,
	       info.run_cnt ? (double)info.run_time_ns / (double)info.run_cnt : 0,
	       (unsigned long long)info.run_cnt);
	return 0;
}

int main(int argc, char **argv)
{
	struct floor floors[MOST];
	char wait[64];

	if (argc < 2 || argc > MOST + 1) {
		fprintf(stderr, "usage: bpf_floor TRACEPOINT… (%d at most)\n", MOST);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		floors[i - 1].tracepoint = argv[i];
		if (attach(&floors[i - 1]))
			return 1;
	}
	while (read(STDIN_FILENO, wait, sizeof(wait)) > 0)
		;
	for (int i = 1; i < argc; i++)
		if (print(&floors[i - 1]))
			return 1;
	return 0; /* the programs go with their descriptors */
}
