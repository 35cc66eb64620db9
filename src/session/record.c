/* Recording: wires the sources to a file, once an interval. */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "recording.h"
#include "segments.h"
#include "wait_rows.h"

#define GRACE_NS 2000000000ull /* between SIGTERM and SIGKILL for our own command */

struct running {
	const struct record_options *o;
	struct collect collect;
	struct recording *file;
	pid_t child;
	int child_status; /* -1: runs, or there is none */
	int signals;
	bool stop;
	uint64_t start_ns, last_ns; /* CLOCK_MONOTONIC */
	uint64_t start_realtime_ns;
};

static uint64_t clock_ns(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void run_command(char *const *command, int report)
{
	sigset_t none;
	int failed;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(command[0], command);
	failed = errno;
	if (write(report, &failed, sizeof(failed)) < 0)
		_exit(126);
	_exit(127);
}

/* exec closes the pipe; when it fails the pipe tells why. */
static int start_command(struct running *r, struct err *e)
{
	int fds[2], failed = 0;
	ssize_t n;

	if (!r->o->command)
		return 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, "pipe");
	r->child = fork();
	if (r->child < 0) {
		close(fds[0]);
		close(fds[1]);
		return err_set(e, -errno, "start '%s'", r->o->command[0]);
	}
	if (!r->child)
		run_command(r->o->command, fds[1]);
	close(fds[1]);
	n = read(fds[0], &failed, sizeof(failed));
	close(fds[0]);
	if (n != sizeof(failed))
		return 0;
	waitpid(r->child, NULL, 0);
	r->child = 0;
	return err_set(e, -failed, "run '%s'", r->o->command[0]);
}

static void reap(struct running *r)
{
	int status;

	if (r->child > 0 && waitpid(r->child, &status, WNOHANG) == r->child) {
		r->child = 0;
		r->child_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		r->stop = true;
	}
}

static void read_signals(struct running *r)
{
	struct signalfd_siginfo info;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(r);
		else
			r->stop = true;
	}
}

static void wait_until(struct running *r, uint64_t until_ns)
{
	struct pollfd p = {.fd = r->signals, .events = POLLIN};

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC), due;
		struct timespec left;

		if (r->stop || now >= until_ns)
			return;
		collect_due(&r->collect);
		due = collect_due_ns(&r->collect);
		due = due < until_ns ? due : until_ns;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= due)
			continue;
		left.tv_sec = (time_t)((due - now) / 1000000000ull);
		left.tv_nsec = (long)((due - now) % 1000000000ull);
		if (ppoll(&p, 1, &left, NULL) > 0)
			read_signals(r);
	}
}

static int describe(struct running *r, bool complete, struct err *e)
{
	struct graph about;
	int rc;

	graph_init(&about);
	about.meta.start_ns = r->start_realtime_ns;
	about.meta.window_ns = r->last_ns - r->start_ns;
	about.meta.tool = "witty-profiler " WITTY_VERSION;
	about.meta.options = r->o->options;
	about.meta.complete = complete;
	collect_describe(&r->collect, &about);
	rc = recording_describe(r->file, &about, e);
	graph_done(&about);
	return rc;
}

static int sample(struct running *r, bool last, struct err *e)
{
	struct graph part;
	uint64_t now, offset = r->start_realtime_ns - r->start_ns;
	int rc;

	graph_init(&part);
	collect_sample(&r->collect, &part, last);
	/* Not the end of all the reading, of which there is much on a busy host: rates are of the time that was counted. */
	now = r->collect.read_ns;
	rc = recording_add(r->file, &part, r->last_ns + offset, now + offset, e);
	graph_done(&part);
	r->last_ns = now;
	if (r->o->progress)
		r->o->progress(r->o->progress_ctx, now - r->start_ns, r->collect.procs.made);
	return rc;
}

static int loop(struct running *r, struct err *e)
{
	uint64_t end = r->o->duration_ns ? r->start_ns + r->o->duration_ns : UINT64_MAX;
	uint64_t next = r->start_ns;
	int rc = sample(r, false, e);

	rc = rc ?: describe(r, false, e);
	/* Loading and the first look at everything are paid once, not at each interval. */
	collect_started(&r->collect);
	rc = rc ?: start_command(r, e);
	while (!rc && !r->stop) {
		next += r->o->interval_ns;
		/* An interval that took too long is not made up for. */
		if (next < clock_ns(CLOCK_MONOTONIC))
			next = clock_ns(CLOCK_MONOTONIC) + r->o->interval_ns;
		wait_until(r, next < end ? next : end);
		if (r->stop || clock_ns(CLOCK_MONOTONIC) >= end)
			break;
		rc = sample(r, false, e);
	}
	return rc ?: sample(r, true, e);
}

/* Only the process that we started, and only if it outlived the recording. */
static void end_command(struct running *r)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + GRACE_NS;

	if (r->child <= 0)
		return;
	kill(r->child, SIGTERM);
	r->stop = false;
	wait_until(r, until);
	reap(r);
	if (r->child > 0) {
		kill(r->child, SIGKILL);
		waitpid(r->child, NULL, 0);
		r->child = 0;
	}
	r->child_status = -1;
}

static int open_signals(sigset_t *old, struct err *e)
{
	sigset_t wanted;
	int fd;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigaddset(&wanted, SIGCHLD);
	sigprocmask(SIG_BLOCK, &wanted, old);
	fd = signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? err_set(e, -errno, "signalfd") : fd;
}

/* The sources first, so that whoever sees the file knows that observation has begun. */
static int open_all(struct running *r, struct err *e)
{
	int rc = collect_open(&r->collect, &r->o->collect, e);

	if (rc < 0)
		return rc;
	r->start_ns = r->last_ns = clock_ns(CLOCK_MONOTONIC);
	r->start_realtime_ns = clock_ns(CLOCK_REALTIME);
	collect_begin(&r->collect);
	rc = recording_create(&r->file, r->o->output, r->o->force, e);
	if (rc < 0)
		collect_close(&r->collect);
	return rc;
}

/* Last of all: the file is complete without it, should this fail. */
static int finish(struct running *r, struct err *e)
{
	struct wait_rows rows = {0};
	struct graph scratch;
	struct err second;
	int rc;

	graph_init(&scratch);
	rc = wait_rows_read(&r->collect, &scratch, &rows, e);
	collect_close(&r->collect);
	if (rc)
		recording_close(r->file, &second);
	else
		rc = recording_close(r->file, e);
	if (!rc && rows.v.n)
		rc = segments_write(r->o->output, rows.v.v, rows.v.n, rows.from_ns ?: r->start_ns,
				    r->start_realtime_ns - r->start_ns, e);
	vec_done(&rows.v);
	graph_done(&scratch);
	return rc;
}

static int run(struct running *r, struct err *e)
{
	struct err second;
	int rc;

	rc = loop(r, e);
	end_command(r);
	if (!rc)
		rc = describe(r, true, e);
	if (!rc)
		return finish(r, e);
	collect_close(&r->collect);
	/* The first failure is the one to tell; what was recorded stays. */
	recording_close(r->file, &second);
	return rc;
}

int record(const struct record_options *o, int *ret_status, struct err *e)
{
	struct running r = {.o = o, .child_status = -1};
	sigset_t old;
	int rc;

	/* From here on, so that a signal while the probes load ends the recording in order, too. */
	r.signals = open_signals(&old, e);
	rc = r.signals < 0 ? r.signals : open_all(&r, e);
	if (!rc)
		rc = run(&r, e);
	if (r.signals >= 0)
		close(r.signals);
	sigprocmask(SIG_SETMASK, &old, NULL);
	*ret_status = r.child_status;
	return rc;
}
