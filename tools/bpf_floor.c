/*
 * What the kernel's statistics say of a BPF program that does nothing: the part of every figure of
 * bench/overhead that is the measurement itself. Runs at each end of a system call until its standard
 * input closes, then prints nanoseconds per run and the number of runs.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	/* r0 = 0; exit */
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);
	char wait[64];
	int link, prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "floor", "GPL", nothing, 2, NULL);

	if (prog < 0) {
		fprintf(stderr, "bpf_floor: load: %s\n", strerror(errno));
		return 1;
	}
	link = bpf_raw_tracepoint_open("sys_exit", prog);
	if (link < 0) {
		fprintf(stderr, "bpf_floor: attach: %s\n", strerror(errno));
		return 1;
	}
	while (read(STDIN_FILENO, wait, sizeof(wait)) > 0)
		;
	if (bpf_obj_get_info_by_fd(prog, &info, &size) < 0 || !info.run_cnt) {
		fprintf(stderr, "bpf_floor: no statistics: is kernel.bpf_stats_enabled on?\n");
		return 1;
	}
	printf("%.1f %llu\n", (double)info.run_time_ns / (double)info.run_cnt,
	       (unsigned long long)info.run_cnt);
	close(link);
	close(prog);
	return 0;
}
