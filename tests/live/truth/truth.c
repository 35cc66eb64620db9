/* Makes known traffic of every kind, counts it from its own calls' results, and writes it down. */

#include "truth.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "misc.h"

enum { CASE_SECONDS = 30, START_SECONDS = 600, POLL_NS = 20 * 1000 * 1000 };

struct options {
	const char *cases[MAX_CASES];
	unsigned ncases;
	unsigned scale;
	double hold_s;
	const char *out;
	bool wait_start;
	bool list;
};

/* The chosen cases, in order; index: case_no. */
struct run {
	struct board *b;
	int board_fd;
	const struct kase *k[MAX_CASES];
	unsigned n;
	unsigned started[MAX_CASES]; /* roles that were started here */
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "truth: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
	kill(0, SIGKILL);
	_exit(1);
}

static const struct {
	const struct kase *k;
	const unsigned *n;
} tables[] = {
	{cases_stream, &ncases_stream}, {cases_dgram, &ncases_dgram}, {cases_misc, &ncases_misc},
	{cases_proc, &ncases_proc},	{cases_netns, &ncases_netns},
};

static bool is_wanted(const struct options *o, const char *name)
{
	unsigned i;

	for (i = 0; i < o->ncases; i++)
		if (strcmp(o->cases[i], name) == 0)
			return true;
	return o->ncases == 0;
}

static void choose(struct run *r, const struct options *o)
{
	unsigned t, i;

	for (t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (i = 0; i < *tables[t].n; i++)
			if (r->n < MAX_CASES && is_wanted(o, tables[t].k[i].name))
				r->k[r->n++] = &tables[t].k[i];
	if (r->n == 0 || (o->ncases && r->n < o->ncases)) {
		fprintf(stderr, "truth: a case of that name does not exist; --list prints them\n");
		exit(2);
	}
}

static void list(void)
{
	unsigned t, i;

	for (t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (i = 0; i < *tables[t].n; i++)
			printf("%-16s %s\n", tables[t].k[i].name, tables[t].k[i].doc);
}

/* Give each role, also those that another role starts, its row. */
static void assign_rows(struct run *r, unsigned case_no)
{
	const struct kase *k = r->k[case_no];
	struct proc_row *row;
	unsigned i;

	r->b->cases[case_no].first_proc = r->b->nprocs;
	for (i = 0; i < k->nroles + k->nshort; i++) {
		if (r->b->nprocs >= MAX_PROCS)
			fail("too many processes for the board");
		row = &r->b->procs[r->b->nprocs++];
		row->case_no = case_no;
		if (i < k->nroles) {
			snprintf(row->name, sizeof(row->name), "%s", k->roles[i].name);
			snprintf(row->role, sizeof(row->role), "%u", i);
		} else {
			snprintf(row->name, sizeof(row->name), "%.11s-%02u", k->name, i - k->nroles);
			snprintf(row->role, sizeof(row->role), "short %u", i - k->nroles);
		}
	}
}

static void start_role(struct run *r, unsigned case_no, unsigned role)
{
	struct act a = {
		.b = r->b,
		.k = r->k[case_no],
		.case_no = case_no,
		.role = role,
		.board_fd = r->board_fd,
	};
	struct proc_row *row = &r->b->procs[r->b->cases[case_no].first_proc + role];
	int parent = getpid();
	int pid = fork();
	sigset_t none;

	if (pid < 0)
		fail("fork");
	if (pid > 0)
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	act_set_name(&a);
	__atomic_store_n(&row->pid, getpid(), __ATOMIC_RELEASE);
	syscall(SYS_futex, &row->pid, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	a.k->roles[role].fn(&a);
	act_hold(&a);
	_exit(0);
}

static void skip(struct run *r, unsigned case_no, const char *why)
{
	struct case_board *c = &r->b->cases[case_no];

	snprintf(c->skip_reason, sizeof(c->skip_reason), "%s", why);
	c->skipped = 1;
}

static void start_all(struct run *r)
{
	unsigned i, role;

	for (i = 0; i < r->n; i++)
		assign_rows(r, i);
	for (i = 0; i < r->n; i++) {
		if (r->k[i]->needs_root && geteuid() != 0) {
			skip(r, i, "needs root");
			continue;
		}
		for (role = 0; role < r->k[i]->nroles; role++)
			if (r->k[i]->roles[role].fn) {
				start_role(r, i, role);
				r->started[i]++;
			}
	}
}

/* A process that ended with an error has said why; one that was killed has not. */
static void check_children(void)
{
	int status;
	int pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		errno = 0;
		if (WIFSIGNALED(status)) {
			fprintf(stderr, "truth: process %d was ended by signal %d\n", pid,
				WTERMSIG(status));
			fail("a process died");
		}
		if (WEXITSTATUS(status) != 0)
			fail("a process failed");
	}
}

/* Wait until @word reaches @n, or the case is skipped, or a process failed. */
static void await_count(struct run *r, unsigned case_no, uint32_t *word, uint32_t n, const char *what)
{
	struct timespec ts = {.tv_nsec = POLL_NS};
	struct case_board *c = &r->b->cases[case_no];
	time_t end = time(NULL) + CASE_SECONDS;
	char text[128];
	uint32_t v;

	while ((v = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < n) {
		if (__atomic_load_n(&c->skipped, __ATOMIC_ACQUIRE))
			return;
		syscall(SYS_futex, word, FUTEX_WAIT, v, &ts, NULL, 0);
		check_children();
		if (time(NULL) < end)
			continue;
		errno = ETIMEDOUT;
		snprintf(text, sizeof(text), "case '%s': %s: %u of %u processes", r->k[case_no]->name,
			 what, v, n);
		fail(text);
	}
}

static void let(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The other roles of a case that cannot run wait for something that does not come. */
static void end_skipped(struct run *r, unsigned case_no)
{
	struct case_board *c = &r->b->cases[case_no];
	unsigned i;
	int pid;

	for (i = 0; i < r->k[case_no]->nroles; i++) {
		pid = r->b->procs[c->first_proc + i].pid;
		if (pid > 0 && kill(pid, SIGKILL) == 0)
			waitpid(pid, NULL, 0);
		r->b->procs[c->first_proc + i].pid = 0;
	}
}

static void set_up(struct run *r)
{
	unsigned i;

	start_all(r);
	for (i = 0; i < r->n; i++) {
		await_count(r, i, &r->b->cases[i].ready, r->started[i], "set-up");
		if (r->b->cases[i].skipped)
			end_skipped(r, i);
	}
}

static void run_cases(struct run *r)
{
	struct case_board *c;
	unsigned i;

	for (i = 0; i < r->n; i++) {
		c = &r->b->cases[i];
		if (c->skipped)
			continue;
		let(&c->go);
		await_count(r, i, &c->done, r->started[i], "traffic");
	}
}

static void finish(struct run *r)
{
	unsigned i;
	int status;

	for (i = 0; i < r->n; i++)
		let(&r->b->cases[i].release);
	while (waitpid(-1, &status, 0) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
			errno = 0;
			fail("a process did not end well");
		}
}

static void wait_for_start(void)
{
	struct timespec ts = {.tv_sec = START_SECONDS};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	printf("ready\n");
	fflush(stdout);
	if (sigtimedwait(&set, NULL, &ts) < 0)
		fail("wait for SIGUSR1");
}

static void make_board(struct run *r, const struct options *o)
{
	const char *tmp = getenv("TMPDIR");

	/* Inherited over exec by the one case that needs it. */
	r->board_fd = memfd_create("truth-board", 0);
	if (r->board_fd < 0 || ftruncate(r->board_fd, sizeof(*r->b)) < 0)
		fail("make the board");
	r->b = mmap(NULL, sizeof(*r->b), PROT_READ | PROT_WRITE, MAP_SHARED, r->board_fd, 0);
	if (r->b == MAP_FAILED)
		fail("map the board");
	r->b->scale = o->scale;
	snprintf(r->b->dir, sizeof(r->b->dir), "%.40s/truth.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(r->b->dir))
		fail("make a folder for Unix sockets");
}

static void remove_folder(const struct run *r)
{
	char path[300];
	unsigned i, slot;

	for (i = 0; i < r->n; i++)
		for (slot = 0; slot < MAX_ROLES; slot++) {
			snprintf(path, sizeof(path), "%s/%s.%u", r->b->dir, r->k[i]->name, slot);
			unlink(path);
		}
	rmdir(r->b->dir);
}

static void write_processes(const struct run *r, FILE *f)
{
	unsigned i;

	fprintf(f, "{\n\"processes\": [\n{\"pid\": %d, \"name\": \"truth\", \"role\": \"main\"}",
		getpid());
	for (i = 0; i < r->b->nprocs; i++) {
		const struct proc_row *p = &r->b->procs[i];

		if (p->pid > 0)
			fprintf(f, ",\n{\"pid\": %d, \"name\": \"%s\", \"role\": \"%s %s\"}", p->pid,
				p->name, r->k[p->case_no]->name, p->role);
	}
	fprintf(f, "\n],\n");
}

static void write_flow(const struct run *r, FILE *f, const struct flow *w)
{
	static const char *const kinds[] = {"tcp", "udp", "unix"};
	const struct case_board *c = &r->b->cases[w->case_no];
	const struct proc_row *from = &r->b->procs[c->first_proc + w->from];
	const struct proc_row *to = NULL;

	fprintf(f, "{\"case\": \"%s\", \"kind\": \"%s\", \"source_pid\": %d, \"source_name\": \"%s\", ",
		r->k[w->case_no]->name, kinds[w->kind], from->pid, from->name);
	if (w->to != TO_OUTSIDE)
		to = &r->b->procs[c->first_proc + w->to];
	if (to)
		fprintf(f, "\"target_pid\": %d, \"target_name\": \"%s\", ", to->pid, to->name);
	else
		fprintf(f, "\"target_pid\": null, \"target_name\": null, \"external\": \"%s\", ",
			w->external);
	fprintf(f, "\"bytes_sent\": %llu, \"messages_sent\": %llu, ",
		(unsigned long long)w->bytes_sent, (unsigned long long)w->messages_sent);
	fprintf(f, "\"bytes_received\": %llu, \"messages_received\": %llu",
		(unsigned long long)w->bytes_received, (unsigned long long)w->messages_received);
	if (w->flags & FLOW_BLIND_RECEIVE)
		fprintf(f, ", \"blind\": [\"receive\"]");
	if (w->flags & (FLOW_LOOSE_SENT | FLOW_LOOSE_RECEIVED))
		fprintf(f, ", \"loose_messages\": [%s%s%s]",
			w->flags & FLOW_LOOSE_SENT ? "\"sent\"" : "",
			(w->flags & FLOW_LOOSE_SENT) && (w->flags & FLOW_LOOSE_RECEIVED) ? ", " : "",
			w->flags & FLOW_LOOSE_RECEIVED ? "\"received\"" : "");
	fprintf(f, "}");
}

static void write_rest(const struct run *r, FILE *f)
{
	const char *sep = "";
	unsigned i;

	fprintf(f, "\"flows\": [");
	for (i = 0; i < r->b->nflows; i++) {
		const struct flow *w = &r->b->flows[i];

		/* A conversation without a message is no flow. */
		if (w->messages_sent == 0 && w->messages_received == 0)
			continue;
		fprintf(f, "%s\n", sep);
		write_flow(r, f, w);
		sep = ",";
	}
	fprintf(f, "\n],\n\"cases\": [");
	for (i = 0; i < r->n; i++)
		fprintf(f, "%s\"%s\"", i ? ", " : "", r->k[i]->name);
	fprintf(f, "],\n\"skipped\": [");
	sep = "";
	for (i = 0; i < r->n; i++) {
		if (!r->b->cases[i].skipped)
			continue;
		fprintf(f, "%s\n{\"case\": \"%s\", \"reason\": \"%s\"}", sep, r->k[i]->name,
			r->b->cases[i].skip_reason);
		sep = ",";
	}
	fprintf(f, "]\n}\n");
}

/* Complete or not there at all: a reader may wait for the file. */
static void write_truth(const struct run *r, const char *out)
{
	char tmp[PATH_MAX];
	FILE *f = stdout;

	if (out) {
		snprintf(tmp, sizeof(tmp), "%s.tmp", out);
		f = fopen(tmp, "w");
		if (!f)
			fail("open the output file");
	}
	write_processes(r, f);
	write_rest(r, f);
	if (fflush(f) != 0 || ferror(f))
		fail("write the output file");
	if (out && (fclose(f) != 0 || rename(tmp, out) != 0))
		fail("write the output file");
}

static _Noreturn void usage(void)
{
	fprintf(stderr, "usage: truth [--case NAME]... [--scale N] [--out FILE] [--wait-start] "
			"[--hold SECONDS] [--list]\n");
	exit(2);
}

static double number(const char *s, double max)
{
	char *end;
	double v = strtod(s, &end);

	if (*end || end == s || !(v >= 0 && v <= max))
		usage();
	return v;
}

static void parse(struct options *o, int argc, char **argv)
{
	int i;

	*o = (struct options){.scale = 1, .hold_s = 0.3};
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--wait-start") == 0)
			o->wait_start = true;
		else if (strcmp(argv[i], "--list") == 0)
			o->list = true;
		else if (i + 1 == argc)
			usage();
		else if (strcmp(argv[i], "--case") == 0 && o->ncases < MAX_CASES)
			o->cases[o->ncases++] = argv[++i];
		else if (strcmp(argv[i], "--scale") == 0)
			o->scale = (unsigned)number(argv[++i], 1000);
		else if (strcmp(argv[i], "--hold") == 0)
			o->hold_s = number(argv[++i], 3600);
		else if (strcmp(argv[i], "--out") == 0)
			o->out = argv[++i];
		else
			usage();
	}
	if (o->scale == 0)
		usage();
}

int main(int argc, char **argv)
{
	struct options o;
	struct run r = {0};
	sigset_t set;

	if (argc == 6 && strcmp(argv[1], "--exec-child") == 0)
		return misc_exec_child(argv + 2);
	parse(&o, argc, argv);
	if (o.list) {
		list();
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	setpgid(0, 0); /* so that a failure can end all of them, and nobody else */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	choose(&r, &o);
	make_board(&r, &o);
	set_up(&r);
	if (o.wait_start)
		wait_for_start();
	run_cases(&r);
	write_truth(&r, o.out);
	usleep((useconds_t)(o.hold_s * 1e6));
	finish(&r);
	remove_folder(&r);
	return 0;
}
