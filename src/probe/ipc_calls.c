/* Which system calls probe "ipc" looks at, by this architecture's numbers. */
#include "ipc_calls.h"

#include <string.h>

#include <sys/syscall.h>

static const struct {
	unsigned nr;
	enum ipc_call call;
} calls[] = {
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
	{SYS_sendmsg, IPC_CALL_SENDMSG},
	{SYS_recvmsg, IPC_CALL_RECVMSG},
	{SYS_sendmmsg, IPC_CALL_SENDMMSG},
	{SYS_recvmmsg, IPC_CALL_RECVMMSG},
#ifdef SYS_pidfd_getfd
	{SYS_pidfd_getfd, IPC_CALL_PIDFD_GETFD},
#else
	{438, IPC_CALL_PIDFD_GETFD}, /* since v5.6, the same number everywhere */
#endif
};

void ipc_calls_fill(unsigned char table[IPC_CALLS])
{
	memset(table, IPC_CALL_NONE, IPC_CALLS);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr < IPC_CALLS)
			table[calls[i].nr] = (unsigned char)calls[i].call;
}
