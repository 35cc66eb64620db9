#pragma once

/* What io_uring has done, where it completes: in the context of the ring's owner or its helpers. */

#include "ipc_count.bpf.h"

/* linux/io_uring.h */
#define IORING_OP_READV	       1
#define IORING_OP_WRITEV       2
#define IORING_OP_READ_FIXED   4
#define IORING_OP_WRITE_FIXED  5
#define IORING_OP_READ	       22
#define IORING_OP_WRITE	       23
#define IORING_OP_SPLICE       30
#define IORING_OP_TEE	       33
#define IORING_OP_READV_FIXED  60
#define IORING_OP_WRITEV_FIXED 61

#define SPLICE_F_FD_IN_FIXED (1u << 31)

/* Where the result is; user space sets it by the tracepoint's type. */
const volatile __u32 uring_form = URING_UNKNOWN;

__u64 fixed_splices = 0; /* input by a number of the ring's own table */

static __always_inline void on_uring_splice(struct io_kiocb *req, struct file *file, u32 op,
					    u64 bytes)
{
	struct io_splice *sp = (void *)req;

	through_file(file, -1, IPC_WRITE, bytes, ACCEPT_DATA, false);
	if (op == IORING_OP_TEE)
		return;
	if (BPF_CORE_READ(sp, flags) & SPLICE_F_FD_IN_FIXED)
		__sync_fetch_and_add(&fixed_splices, 1);
	else
		through_fd_slow(BPF_CORE_READ(sp, splice_fd_in), IPC_READ, bytes, ACCEPT_SPLICED);
}

static __always_inline int on_uring(struct io_kiocb *req, s32 res)
{
	struct file *file;
	u32 op;

	/* Without a request: one of several completions of a request. */
	if (res <= 0 || !req)
		return 0;
	op = BPF_CORE_READ(req, opcode);
	file = BPF_CORE_READ(req, file);
	if (!file)
		return 0;
	switch (op) {
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READ:
	case IORING_OP_READV_FIXED:
		through_file(file, -1, IPC_READ, res, ACCEPT_DATA, false);
		break;
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV_FIXED:
		through_file(file, -1, IPC_WRITE, res, ACCEPT_DATA, false);
		break;
	case IORING_OP_SPLICE:
	case IORING_OP_TEE:
		on_uring_splice(req, file, op, res);
		break;
	}
	return 0;
}

SEC("tp_btf/io_uring_complete")
int uring_btf(u64 *ctx)
{
	if (uring_form == URING_CQE)
		return on_uring((void *)ctx[1], BPF_CORE_READ((struct io_uring_cqe *)ctx[2], res));
	if (uring_form == URING_RES)
		return on_uring((void *)ctx[1], ctx[3]);
	return 0;
}

SEC("raw_tp/io_uring_complete")
int uring_raw(struct bpf_raw_tracepoint_args *ctx)
{
	if (uring_form == URING_CQE)
		return on_uring((void *)ctx->args[1],
				BPF_CORE_READ((struct io_uring_cqe *)ctx->args[2], res));
	if (uring_form == URING_RES)
		return on_uring((void *)ctx->args[1], ctx->args[3]);
	return 0;
}
