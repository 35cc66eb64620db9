/* Which system calls probe "ipc" looks at, by this architecture's numbers. */
#include "ipc_calls.h"

#include <string.h>

#include <sys/syscall.h>

struct call {
	unsigned nr;
	enum ipc_call call;
};

static const struct call calls[] = {
	{SYS_read, IPC_CALL_READ},
	{SYS_readv, IPC_CALL_READ},
	{SYS_pread64, IPC_CALL_READ},
	{SYS_preadv, IPC_CALL_READ},
	{SYS_preadv2, IPC_CALL_READ},
	{SYS_write, IPC_CALL_WRITE},
	{SYS_writev, IPC_CALL_WRITE},
	{SYS_pwrite64, IPC_CALL_WRITE},
	{SYS_pwritev, IPC_CALL_WRITE},
	{SYS_pwritev2, IPC_CALL_WRITE},
	{SYS_vmsplice, IPC_CALL_VMSPLICE},
	{SYS_splice, IPC_CALL_SPLICE},
	{SYS_tee, IPC_CALL_TEE},
	{SYS_sendfile, IPC_CALL_SENDFILE},
	{SYS_copy_file_range, IPC_CALL_COPY_RANGE},
	{SYS_mq_timedsend, IPC_CALL_MQ_SEND},
	{SYS_mq_timedreceive, IPC_CALL_MQ_RECEIVE},
	{SYS_msgsnd, IPC_CALL_MSGSND},
	{SYS_msgrcv, IPC_CALL_MSGRCV},
	{SYS_semop, IPC_CALL_SEMOP},
	{SYS_semtimedop, IPC_CALL_SEMOP},
	{SYS_process_vm_readv, IPC_CALL_VM_READ},
	{SYS_process_vm_writev, IPC_CALL_VM_WRITE},
	{SYS_eventfd2, IPC_CALL_EVENTFD},
#ifdef SYS_eventfd /* not on arm64 */
	{SYS_eventfd, IPC_CALL_EVENTFD},
#endif
	{SYS_io_submit, IPC_CALL_AIO},
	{SYS_sendmsg, IPC_CALL_SENDMSG},
	{SYS_recvmsg, IPC_CALL_RECVMSG},
	{SYS_sendmmsg, IPC_CALL_SENDMMSG},
	{SYS_recvmmsg, IPC_CALL_RECVMMSG},
#ifdef SYS_pidfd_getfd
	{SYS_pidfd_getfd, IPC_CALL_PIDFD_GETFD},
#else
	{438, IPC_CALL_PIDFD_GETFD}, /* since v5.6, the same number everywhere */
#endif
	{SYS_ioctl, IPC_CALL_IOCTL},
};

/*
 * Of 32-bit programs. Sources: arch/x86/entry/syscalls/syscall_32.tbl,
 * arch/arm64/tools/syscall_32.tbl
 */
#if defined(__x86_64__)
#define COMPAT(x86, arm) x86
#else
#define COMPAT(x86, arm) arm
#endif

static const struct call compat_calls[] = {
	{3, IPC_CALL_READ},
	{145, IPC_CALL_READ}, /* readv */
	{180, IPC_CALL_READ}, /* pread64 */
	{COMPAT(333, 361), IPC_CALL_READ}, /* preadv */
	{COMPAT(378, 392), IPC_CALL_READ}, /* preadv2 */
	{4, IPC_CALL_WRITE},
	{146, IPC_CALL_WRITE}, /* writev */
	{181, IPC_CALL_WRITE}, /* pwrite64 */
	{COMPAT(334, 362), IPC_CALL_WRITE}, /* pwritev */
	{COMPAT(379, 393), IPC_CALL_WRITE}, /* pwritev2 */
	{COMPAT(316, 343), IPC_CALL_VMSPLICE},
	{COMPAT(313, 340), IPC_CALL_SPLICE},
	{COMPAT(315, 342), IPC_CALL_TEE},
	{187, IPC_CALL_SENDFILE},
	{239, IPC_CALL_SENDFILE}, /* sendfile64 */
	{COMPAT(377, 391), IPC_CALL_COPY_RANGE},
	{COMPAT(279, 276), IPC_CALL_MQ_SEND},
	{418, IPC_CALL_MQ_SEND}, /* mq_timedsend_time64 */
	{COMPAT(280, 277), IPC_CALL_MQ_RECEIVE},
	{419, IPC_CALL_MQ_RECEIVE}, /* mq_timedreceive_time64 */
	{COMPAT(400, 301), IPC_CALL_MSGSND},
	{COMPAT(401, 302), IPC_CALL_MSGRCV},
	{COMPAT(117, 298), COMPAT(IPC_CALL_IPC, IPC_CALL_SEMOP)},
	{420, IPC_CALL_SEMOP}, /* semtimedop_time64 */
	{COMPAT(347, 376), IPC_CALL_VM_READ},
	{COMPAT(348, 377), IPC_CALL_VM_WRITE},
	{COMPAT(323, 351), IPC_CALL_EVENTFD},
	{COMPAT(328, 356), IPC_CALL_EVENTFD}, /* eventfd2 */
	{438, IPC_CALL_PIDFD_GETFD},
	{54, IPC_CALL_IOCTL},
};

void ipc_calls_fill(uint16_t table[IPC_CALLS])
{
	memset(table, 0, IPC_CALLS * sizeof(*table));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr < IPC_CALLS)
			table[calls[i].nr] = (uint16_t)calls[i].call;
	for (size_t i = 0; i < sizeof(compat_calls) / sizeof(compat_calls[0]); i++)
		table[compat_calls[i].nr] |= (uint16_t)(compat_calls[i].call << 8);
}
