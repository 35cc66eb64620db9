/* Which system calls a thread can wait in, and how each is read: numbers of this architecture. */
#include "wait_calls.h"

#include <sys/syscall.h>

/* Numbers that the headers of the build host may lack are the same on all architectures. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#define SENDS(class) ((class) | WAIT_CALL_SENDS)

static const struct {
	unsigned short number;
	unsigned char class;
} calls[] = {
	{SYS_futex, CALL_FUTEX},
	{SYS_futex_wait, CALL_FUTEX2},
	{SYS_futex_waitv, CALL_FUTEX_V},
	{SYS_read, SENDS(CALL_FD)},
	{SYS_readv, SENDS(CALL_FD)},
	{SYS_pread64, CALL_FD},
	{SYS_preadv, CALL_FD},
	{SYS_preadv2, CALL_FD},
	{SYS_write, SENDS(CALL_FD)},
	{SYS_writev, SENDS(CALL_FD)},
	{SYS_pwrite64, CALL_FD},
	{SYS_pwritev, CALL_FD},
	{SYS_pwritev2, SENDS(CALL_FD)},
	{SYS_sendfile, SENDS(CALL_FD)},
	{SYS_splice, SENDS(CALL_FD)},
	{SYS_tee, CALL_FD},
	{SYS_vmsplice, CALL_FD},
	{SYS_copy_file_range, CALL_FD},
	{SYS_sendto, SENDS(CALL_FD)},
	{SYS_sendmsg, SENDS(CALL_FD)},
	{SYS_sendmmsg, SENDS(CALL_FD)},
	{SYS_recvfrom, SENDS(CALL_FD)}, /* acknowledges, which wakes a sender */
	{SYS_recvmsg, SENDS(CALL_FD)},
	{SYS_recvmmsg, SENDS(CALL_FD)},
	{SYS_accept, SENDS(CALL_FD)},
	{SYS_accept4, SENDS(CALL_FD)},
	{SYS_connect, SENDS(CALL_FD)},
	{SYS_shutdown, SENDS(CALL_FD)},
	{SYS_close, SENDS(CALL_FD)},
	{SYS_exit_group, SENDS(CALL_OTHER)}, /* closes what is open */
	{SYS_exit, SENDS(CALL_OTHER)},
	{SYS_ioctl, CALL_FD},
	{SYS_getdents64, CALL_FD},
	{SYS_mq_timedsend, CALL_FD},
	{SYS_mq_timedreceive, CALL_FD},
	{SYS_fsync, CALL_SYNC},
	{SYS_fdatasync, CALL_SYNC},
	{SYS_sync_file_range, CALL_SYNC},
	{SYS_syncfs, CALL_SYNC},
	{SYS_sync, CALL_SYNC_ALL},
	{SYS_msync, CALL_SYNC_ALL},
	{SYS_flock, CALL_LOCK},
	{SYS_fcntl, CALL_FCNTL},
	{SYS_msgsnd, CALL_MSG},
	{SYS_msgrcv, CALL_MSG},
	{SYS_semop, CALL_SEM},
	{SYS_semtimedop, CALL_SEM},
	{SYS_ppoll, CALL_POLL},
	{SYS_pselect6, CALL_SELECT},
	{SYS_epoll_pwait, CALL_EPOLL},
	{SYS_epoll_pwait2, CALL_EPOLL},
	{SYS_io_uring_enter, SENDS(CALL_URING)},
	{SYS_nanosleep, CALL_SLEEP},
	{SYS_clock_nanosleep, CALL_SLEEP},
	{SYS_wait4, CALL_WAIT4},
	{SYS_waitid, CALL_WAITID},
	{SYS_rt_sigsuspend, CALL_SIGNAL},
	{SYS_rt_sigtimedwait, CALL_SIGNAL},
	{SYS_restart_syscall, CALL_RESTART},
#ifdef SYS_poll /* arm64 has only the newer forms of these */
	{SYS_poll, CALL_POLL},
	{SYS_select, CALL_SELECT},
	{SYS_epoll_wait, CALL_EPOLL},
	{SYS_pause, CALL_SIGNAL},
	{SYS_getdents, CALL_FD},
#endif
};

void wait_calls_fill(unsigned char table[WAIT_CALLS_MAX])
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number < WAIT_CALLS_MAX)
			table[calls[i].number] = calls[i].class;
}
