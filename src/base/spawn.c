/* Programs with a deadline: see spawn.h. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"

/* A pipe that a grandchild keeps open does not tell that the program ended: look this often. */
#define POLL_MS 20

/* A killed process that sleeps in a driver ends when the driver lets it: do not wait for that. */
#define REAP_MS 1000

struct child {
	pid_t pid;
	int fd; /* its standard output, -1 at the end of it */
};

/* In the child, where only async-signal-safe calls are allowed. */
__attribute__((noreturn)) static void exec_child(const char *const argv[], int out, int failed)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), rc;
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0)
		execvp(argv[0], (char *const *)argv);
	rc = errno;
	if (write(failed, &rc, sizeof(rc)) < 0)
		_exit(126);
	_exit(127);
}

/* @return 0 once the program runs, or -errno of its exec */
static int start(const char *const argv[], struct child *c)
{
	CLEANUP_CLOSE int failed_read = -1, failed_write = -1, out_read = -1, out_write = -1;
	int pipe_fd[2], rc = 0;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -errno;
	failed_read = pipe_fd[0];
	failed_write = pipe_fd[1];
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -errno;
	out_read = pipe_fd[0];
	out_write = pipe_fd[1];
	c->pid = fork();
	if (c->pid < 0)
		return -errno;
	if (!c->pid)
		exec_child(argv, out_write, failed_write);
	/* Also here: whoever comes first, it is done before the group is killed. */
	setpgid(c->pid, c->pid);
	close(TAKE_FD(failed_write));
	/* Closed by a successful exec. */
	while (read(failed_read, &rc, sizeof(rc)) < 0 && errno == EINTR)
		;
	if (rc) {
		waitpid(c->pid, NULL, 0);
		return -rc;
	}
	c->fd = TAKE_FD(out_read);
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	return 0;
}

/* Take what the pipe holds. */
static void drain(struct child *c, size_t max_bytes, struct strbuf *out, struct spawn_result *ret)
{
	char block[4096];
	ssize_t n;

	while (c->fd >= 0) {
		size_t room = max_bytes > out->n ? max_bytes - out->n : 0;

		n = read(c->fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close(TAKE_FD(c->fd));
			return;
		}
		ret->truncated |= (size_t)n > room;
		strbuf_addn(out, block, (size_t)n < room ? (size_t)n : room);
		/* One that never stops writing would keep us here beyond the deadline. */
		if (ret->truncated)
			return;
	}
}

/* It stays a zombie for now, so that its id and its group's cannot become another's. */
static bool has_ended(const struct child *c)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* @return its wait status; as killed when it cannot be had in time */
static int reap(const struct child *c)
{
	uint64_t until_ns = clock_mono_ns() + REAP_MS * NS_PER_MS;
	int status = SIGKILL;

	while (waitpid(c->pid, &status, WNOHANG) == 0 && clock_mono_ns() < until_ns)
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	return status;
}

/* Until the program ends or the deadline comes. */
static void follow(struct child *c, uint64_t until_ns, size_t max_bytes, struct strbuf *out,
		   struct spawn_result *ret)
{
	size_t limit = out->n + max_bytes;

	while (!has_ended(c)) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};

		if (clock_mono_ns() >= until_ns) {
			ret->timed_out = true;
			return;
		}
		poll(&p, 1, POLL_MS);
		drain(c, limit, out, ret);
	}
	drain(c, limit, out, ret);
}

int spawn_run(const char *const argv[], uint32_t timeout_ms, size_t max_bytes, struct strbuf *out,
	      struct spawn_result *ret, struct err *e)
{
	uint64_t until_ns = clock_mono_ns() + timeout_ms * NS_PER_MS;
	struct child c = {.fd = -1};
	int rc = start(argv, &c), status;

	memset(ret, 0, sizeof(*ret));
	if (rc < 0)
		return err_set(e, rc, "run '%s'", argv[0]);
	follow(&c, until_ns, max_bytes, out, ret);
	kill(-c.pid, SIGKILL);
	status = reap(&c);
	if (c.fd >= 0)
		close(c.fd);
	ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	ret->exit_code = ret->signal ? -1 : WEXITSTATUS(status);
	return 0;
}
