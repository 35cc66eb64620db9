/* What a thread may no longer do: capabilities and system calls that it gives up. */
#include "privilege.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

int privilege_keep(uint64_t keep, struct err *e)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return err_set(e, -errno, "read capabilities");
	/* Needs one of those that are given up, so it comes first; who may not has nothing to lose by exec. */
	for (int cap = 0; cap <= CAP_LAST_CAP || cap <= CAP_CHECKPOINT_RESTORE; cap++)
		if (!(keep & CAP_BIT(cap)))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		uint32_t part = (uint32_t)(keep >> (32 * i));

		data[i].effective = data[i].permitted & part;
		data[i].permitted &= part;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return err_set(e, -errno, "give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "give up privileges of programs");
	return 0;
}

/* Of no use to any thread. */
static const unsigned refused[] = {
	SYS_acct, SYS_add_key, SYS_adjtimex, SYS_chroot, SYS_clock_adjtime, SYS_clock_settime, SYS_delete_module,
	SYS_finit_module, SYS_init_module, SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup,
	SYS_kexec_load, SYS_keyctl, SYS_mount, SYS_nfsservctl, SYS_open_by_handle_at, SYS_pivot_root,
	SYS_process_vm_writev, SYS_ptrace, SYS_quotactl, SYS_reboot, SYS_request_key, SYS_setdomainname, SYS_sethostname,
	SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS_umount2, SYS_unshare, SYS_userfaultfd, SYS_vhangup,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
	SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
#ifdef SYS_fsopen
	SYS_fsopen, SYS_fsmount, SYS_fsconfig, SYS_fspick, SYS_move_mount, SYS_open_tree,
#endif
#ifdef SYS_mount_setattr
	SYS_mount_setattr,
#endif
};

/* Of no use to those who answer. */
static const unsigned refused_answering[] = {
	SYS_bpf, SYS_capset, SYS_execve, SYS_execveat, SYS_mbind, SYS_migrate_pages, SYS_mknodat, SYS_move_pages,
	SYS_perf_event_open, SYS_personality, SYS_process_vm_readv, SYS_kcmp, SYS_setgid, SYS_setgroups, SYS_setregid,
	SYS_setresgid, SYS_setresuid, SYS_setreuid, SYS_setuid, SYS_syslog,
#ifdef SYS_fork
	SYS_fork, SYS_vfork, SYS_mknod,
#endif
#ifdef SYS_pidfd_getfd
	SYS_pidfd_getfd,
#endif
};

#define FILTER_MAX 256

struct filter {
	struct sock_filter v[FILTER_MAX];
	unsigned short n;
};

static void add(struct filter *f, struct sock_filter op)
{
	f->v[f->n++] = op;
}

static void refuse(struct filter *f, const unsigned *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1));
		add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	}
}

/* Threads are made by clone with flags in a register; of clone3 they lie in memory: the C library then takes
 * clone. */
static void refuse_processes(struct filter *f)
{
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

int privilege_refuse_calls(enum privilege_calls may, struct err *e)
{
#ifdef OWN_ARCH
	struct filter f = {0};
	struct sock_fprog prog;

	add(&f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	add(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0));
	add(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	add(&f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	/* x32 has numbers of its own for the same calls. */
	add(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
	add(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	refuse(&f, refused, sizeof(refused) / sizeof(refused[0]));
	if (may == PRIVILEGE_ANSWER) {
		refuse(&f, refused_answering, sizeof(refused_answering) / sizeof(refused_answering[0]));
		refuse_processes(&f);
	}
	add(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	prog = (struct sock_fprog){.len = f.n, .filter = f.v};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_set(e, -errno, "refuse system calls");
	return 0;
#else
	(void)may;
	return err_msg(e, -ENOTSUP, "refuse system calls: not known how on this machine");
#endif
}
