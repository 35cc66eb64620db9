/* Recordings that an agent asked for: our own program, as a child. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "mcp_server.h"
#include "mcp_tools.h"

#define SAID_MAX 4096

static char *new_path(struct mcp *s)
{
	struct strbuf b = {0};

	/* The time is for people; the number makes it unique, and an existing file is never
	 * replaced. */
	strbuf_addf(&b, "%s/recording-%llu-%u.wpdb", s->o->record_folder,
		    clock_real_ns() / NS_PER_SEC, ++s->recordings);
	return b.s;
}

struct command {
	VEC(char *) words;
};

static void add_word(struct command *c, const char *s)
{
	vec_push(&c->words, mem_strdup(s));
}

static void make_command(struct command *c, const struct mcp_call *call, const char *path,
			 uint64_t seconds)
{
	const struct mcp_arg *pids = mcp_arg(call, "pids");
	char number[32];

	add_word(c, "witty-profiler");
	add_word(c, "record");
	add_word(c, "-d");
	snprintf(number, sizeof(number), "%" PRIu64 "s", seconds);
	add_word(c, number);
	add_word(c, "-o");
	add_word(c, path);
	for (size_t i = 0; i < pids->wholes.n; i++) {
		snprintf(number, sizeof(number), "%" PRIu64, pids->wholes.v[i]);
		add_word(c, "-p");
		add_word(c, number);
	}
	vec_push(&c->words, NULL);
}

static void run_child(char *const *words, int out)
{
	int null = open("/dev/null", O_RDWR);

	/* Should we be killed, it ends in order. */
	prctl(PR_SET_PDEATHSIG, SIGINT);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	execv("/proc/self/exe", words);
	_exit(127);
}

static int start(struct mcp_recording *r, char *const *words, struct err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(e, -errno, "pipe");
	r->pid = fork();
	if (!r->pid)
		run_child(words, fds[1]);
	close(fds[1]);
	if (r->pid < 0) {
		r->pid = 0;
		close(fds[0]);
		return err_set(e, -errno, "start a recording");
	}
	r->messages = fds[0];
	return 0;
}

int mcp_record_start(struct mcp *s, const struct mcp_call *c, const struct mcp_message *m,
		     bool modern, struct err *e)
{
	static const char *const token[] = {"_meta", "progressToken", NULL};
	struct mcp_recording *r = &s->recording;
	uint64_t seconds = mcp_arg_whole(c, "duration_s", 10);
	struct command command = {0};
	struct strbuf raw = {0};
	int rc, type;

	if (r->pid)
		return err_msg(e, -EBUSY, "a recording is being made: wait for it, or cancel it");
	*r = (struct mcp_recording){
	    .path = new_path(s), .modern = modern, .carry = c->answer->carry};
	make_command(&command, c, r->path, seconds);
	rc = start(r, command.words.v, e);
	vec_for(&command.words, x)
		free(*x);
	vec_done(&command.words);
	if (rc < 0) {
		free(r->path);
		return rc;
	}
	type = mcp_find(&m->params, token, &raw);
	if (type == JSON_STRING || type == JSON_NUMBER)
		r->token = mem_strdup(raw.s);
	strbuf_done(&raw);
	r->id = mem_strdup(m->id);
	r->start_ns = clock_mono_ns();
	r->duration_ns = seconds * NS_PER_SEC;
	return 0;
}

static void recording_done(struct mcp_recording *r)
{
	close(r->messages);
	strbuf_done(&r->said);
	free(r->path);
	free(r->id);
	free(r->token);
	*r = (struct mcp_recording){0};
}

void mcp_record_cancel(struct mcp *s)
{
	struct mcp_recording *r = &s->recording;
	struct strbuf other = {0};
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};

	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	for (size_t i = 0; i < 4; i++) {
		strbuf_clear(&other);
		strbuf_addf(&other, "%s%s", r->path, ends[i]);
		unlink(other.s);
	}
	strbuf_done(&other);
	recording_done(r);
}

static void tell_progress(struct mcp *s)
{
	struct mcp_recording *r = &s->recording;
	uint64_t done = (clock_mono_ns() - r->start_ns) / NS_PER_SEC,
		 all = r->duration_ns / NS_PER_SEC;
	struct strbuf params = {0};

	if (!r->token || done <= r->told_s || done > all)
		return;
	r->told_s = done;
	strbuf_addf(&params,
		    "{\"progressToken\":%s,\"progress\":%" PRIu64 ",\"total\":%" PRIu64 "}",
		    r->token, done, all);
	mcp_notify(s, "notifications/progress", params.s);
	strbuf_done(&params);
}

static void answer(struct mcp *s, int status)
{
	struct mcp_recording *r = &s->recording;
	struct mcp_file *f;
	struct mcp_answer a;
	struct err e;
	int rc = 0;

	mcp_answer_init(&a, r->carry, MCP_BUDGET_MIN);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		rc = err_msg(&e, -EIO, "the recording failed: %.400s", strbuf_str(&r->said));
	rc = rc ?: mcp_files_add(&s->files, r->path, &e);
	rc = rc ?: mcp_files_get(&s->files, NULL, &f, &e);
	if (rc < 0) {
		mcp_answer_fail(&a, &e);
	} else {
		mcp_answer_text(&a, "file", f->name);
		mcp_answer_u64(&a, "window_ns", f->g->meta.window_ns);
		mcp_answer_u64(&a, "entities", f->g->nodes.n);
		mcp_answer_u64(&a, "relations", f->g->edges.n);
		strbuf_addf(&a.text, "Recorded to %s, which is now the newest file.", f->name);
	}
	mcp_answer_finish(&a);
	mcp_reply_answer(s, r->id, r->modern, &a);
	mcp_answer_done(&a);
}

void mcp_record_poll(struct mcp *s)
{
	struct mcp_recording *r = &s->recording;
	char text[1024];
	ssize_t n;
	int status;

	tell_progress(s);
	while ((n = read(r->messages, text, sizeof(text))) > 0)
		if (r->said.n < SAID_MAX)
			strbuf_addn(&r->said, text, (size_t)n);
	/* It closes its end when it ends. */
	if (n < 0)
		return;
	waitpid(r->pid, &status, 0);
	answer(s, status);
	recording_done(r);
}
