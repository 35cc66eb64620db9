/* Known traffic over every path that is not a socket, and a file that says what it was. */
#include "paths.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared *shared;
int shared_fd = -1;
struct ledger *ledgers;
int ledger_fd = -1;
char buf[BUF_BYTES];

#define CASE(name_, run_, mechanism_, blind_) {.name = name_, .run = run_},
const struct case_def cases[] = {
#include "cases.def"
};
#undef CASE

#define CASE(name_, run_, mechanism_, blind_) {mechanism_, blind_},
const struct path_case path_cases[] = {
#include "cases.def"
};
#undef CASE

const int ncases = sizeof(cases) / sizeof(cases[0]);
_Static_assert(sizeof(cases) / sizeof(cases[0]) <= MAX_CASES, "room for each case");

static const char usage[] =
    "usage: paths [--case NAME]... [--out FILE] [--wait-start] [--recording FILE] [--list]\n"
    "Make known traffic, and write what it was as JSON to FILE (default: standard output).\n"
    "--wait-start: open the objects, print \"ready\", go on after SIGUSR1\n"
    "--recording: what is being made of this; wait for its looks\n";

static void *map_fd(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("map the shared counters");
	return p;
}

static void map_shared(void)
{
	shared = map_fd(shared_fd, sizeof(*shared));
	ledgers = map_fd(ledger_fd, sizeof(*ledgers) * ncases);
}

static int memory_of(size_t size)
{
	int fd = memfd_create("paths", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, size) < 0)
		die("make the shared counters");
	return fd;
}

static void init_case(struct tcase *c, int index)
{
	c->index = index;
	sem_init(&c->ready, 1, 0);
	sem_init(&c->start, 1, 0);
	sem_init(&c->done, 1, 0);
	sem_init(&c->release, 1, 0);
	for (int k = 0; k < MAX_ADDRS; k++)
		sem_init(&c->addrs[k].known, 1, 0);
	for (int k = 0; k < MAX_STEPS; k++)
		sem_init(&c->step[k], 1, 0);
	sem_init(&ledgers[index].lock, 1, 1);
}

static void init_shared(void)
{
	shared_fd = memory_of(sizeof(*shared));
	ledger_fd = memory_of(sizeof(*ledgers) * ncases);
	map_shared();
	shared->scale = 1;
	shared->main_pid = getpid();
	sem_init(&shared->ready, 1, 0);
	sem_init(&shared->go, 1, 0);
	for (int i = 0; i < ncases; i++)
		init_case(&shared->cases[i], i);
	for (unsigned i = 0; i < sizeof(buf); i++)
		buf[i] = 'a' + i % 23;
}

static void select_case(const char *name)
{
	for (int i = 0; i < ncases; i++) {
		if (strcmp(cases[i].name, name))
			continue;
		shared->cases[i].selected = true;
		return;
	}
	errno = ENOENT;
	die("case '%s'", name);
}

static void make_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(shared->dir, sizeof(shared->dir), "%s/paths.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(shared->dir))
		die("make a temporary folder");
}

static void remove_dir(void)
{
	DIR *d = opendir(shared->dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(shared->dir);
}

static void start_cases(void)
{
	pid_t pid;

	for (int i = 0; i < ncases; i++) {
		struct tcase *c = &shared->cases[i];

		if (!c->selected)
			continue;
		fflush(NULL);
		pid = fork();
		if (pid < 0)
			die("fork");
		if (pid) {
			c->runner = pid;
			continue;
		}
		role_enter(c, -1);
		cases[i].run(c);
		_exit(0);
	}
}

static int count_selected(void)
{
	int n = 0;

	for (int i = 0; i < ncases; i++)
		n += shared->cases[i].selected;
	return n;
}

static bool reap_cases(void)
{
	bool good = true;
	int status;
	pid_t pid;

	while ((pid = wait(&status)) > 0 || errno == EINTR) {
		for (int i = 0; pid > 0 && i < ncases; i++) {
			if (shared->cases[i].runner != pid || status == 0)
				continue;
			fprintf(stderr, "paths: case %s failed\n", cases[i].name);
			good = false;
		}
	}
	return good && !atomic_load(&shared->failed);
}

static const char *object_kind_name(enum object_kind k)
{
	static const char *const names[] = {
	    [OBJECT_PIPE] = "pipe",
	    [OBJECT_FIFO] = "fifo",
	    [OBJECT_EVENTFD] = "eventfd",
	    [OBJECT_POSIX_QUEUE] = "posix_queue",
	    [OBJECT_SYSV_QUEUE] = "sysv_queue",
	    [OBJECT_SYSV_SEM] = "sysv_sem",
	    [OBJECT_FILE] = "file",
	    [OBJECT_SOCKET] = "socket",
	};

	return names[k];
}

static void print_objects(FILE *out, const struct ledger *l)
{
	fprintf(out, "     \"objects\": [");
	for (int i = 0; i < l->nobjects; i++) {
		const struct object *o = &l->objects[i];

		fprintf(
		    out,
		    "%s\n      {\"kind\": \"%s\", \"dev\": \"%u:%u\", \"id\": %ju, \"ns\": %ju, "
		    "\"path\": \"%s\"}",
		    i ? "," : "", object_kind_name(o->kind), major(o->dev), minor(o->dev),
		    (uintmax_t)o->id, (uintmax_t)o->ns, o->path);
	}
	fprintf(out, "],\n");
}

static void print_accesses(FILE *out, const struct ledger *l)
{
	static const char *const dirs[] = {"read", "write", "zero"};

	fprintf(out, "     \"accesses\": [");
	for (int i = 0; i < l->naccesses; i++) {
		const struct access *a = &l->accesses[i];

		fprintf(out,
			"%s\n      {\"pid\": %d, \"tid\": %d, \"object\": %d, \"dir\": \"%s\", "
			"\"bytes\": %ju, \"calls\": %ju}",
			i ? "," : "", (int)a->pid, (int)a->tid, a->object, dirs[a->dir],
			(uintmax_t)a->bytes, (uintmax_t)a->calls);
	}
	fprintf(out, "],\n     \"moves\": [");
	for (int i = 0; i < l->nmoves; i++) {
		const struct move *m = &l->moves[i];

		fprintf(out, "%s\n      {\"from\": %d, \"to\": %d, ", i ? "," : "", (int)m->from,
			(int)m->to);
		if (m->object >= 0)
			fprintf(out, "\"object\": %d, ", m->object);
		fprintf(out, "\"bytes\": %ju, \"count\": %ju}", (uintmax_t)m->bytes,
			(uintmax_t)m->count);
	}
	fprintf(out, "],\n");
}

static void print_flows(FILE *out, const struct tcase *c)
{
	static const char *const kinds[] = {"tcp", "udp", "unix"};

	fprintf(out, "     \"flows\": [");
	for (int i = 0; i < c->nflows; i++) {
		const struct flow *f = &c->flows[i];

		fprintf(
		    out,
		    "%s\n      {\"kind\": \"%s\", \"from\": %d, \"to\": %d, \"bytes_sent\": %ju, "
		    "\"messages_sent\": %ju, \"bytes_received\": %ju, \"messages_received\": %ju, "
		    "\"blind_receive\": %s}",
		    i ? "," : "", kinds[f->kind], (int)c->roles[f->src].pid,
		    (int)c->roles[f->dst].pid, (uintmax_t)f->bytes_sent,
		    (uintmax_t)f->messages_sent, (uintmax_t)f->bytes_received,
		    (uintmax_t)f->messages_received, f->blind_receive ? "true" : "false");
	}
	fprintf(out, "]}");
}

static void print_processes(FILE *out, const struct tcase *c)
{
	fprintf(out, "     \"processes\": [\n      {\"pid\": %d, \"name\": \"%.11s.run\"}",
		(int)c->runner, cases[c->index].name);
	for (int k = 0; k < c->nroles; k++)
		fprintf(out, ",\n      {\"pid\": %d, \"name\": \"%s\"}", (int)c->roles[k].pid,
			c->roles[k].name);
	fprintf(out, "],\n");
}

static void print_truth(FILE *out)
{
	const char *sep = "";
	struct stat proc;

	if (stat("/proc/self/stat", &proc) < 0)
		die("look at /proc");
	fprintf(out, "{\"main_pid\": %d, \"proc_dev\": \"%u:%u\",\n  \"cases\": [",
		(int)shared->main_pid, major(proc.st_dev), minor(proc.st_dev));
	for (int i = 0; i < ncases; i++) {
		const struct tcase *c = &shared->cases[i];

		if (!c->selected)
			continue;
		fprintf(out,
			"%s\n    {\"case\": \"%s\", \"mechanism\": \"%s\", \"blind\": \"%s\", "
			"\"skipped\": \"%s\",\n",
			sep, cases[i].name, path_cases[i].mechanism,
			path_cases[i].blind ? path_cases[i].blind : "", c->skipped);
		print_processes(out, c);
		print_objects(out, &ledgers[i]);
		print_accesses(out, &ledgers[i]);
		print_flows(out, c);
		sep = ",";
	}
	fprintf(out, "\n  ]\n}\n");
}

static int write_truth(const char *path)
{
	FILE *out = path ? fopen(path, "w") : stdout;

	if (!out) {
		fprintf(stderr, "paths: write '%s': %s\n", path, strerror(errno));
		return 1;
	}
	print_truth(out);
	if (fflush(out) || ferror(out) || (path && fclose(out))) {
		fprintf(stderr, "paths: write '%s': %s\n", path ? path : "-", strerror(errno));
		return 1;
	}
	return 0;
}

/* exec case: argv is paths --after-exec CASE ROLE OBJECT DESCRIPTOR SHARED LEDGERS. */
static void after_exec(char **argv)
{
	int index = atoi(argv[2]);

	shared_fd = atoi(argv[6]);
	ledger_fd = atoi(argv[7]);
	map_shared();
	if (index < 0 || index >= ncases) {
		errno = EINVAL;
		die("case number");
	}
	pipe_exec_continue(&shared->cases[index], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
}

static int play_all(bool wait_start, const char *out)
{
	sigset_t usr1;
	int n, sig;
	bool good;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (!count_selected())
		for (int i = 0; i < ncases; i++)
			shared->cases[i].selected = true;
	n = count_selected();
	make_dir();
	start_cases();
	for (int i = 0; i < n; i++)
		sem_take(&shared->ready);
	if (wait_start) {
		puts("ready");
		fflush(stdout);
		sigwait(&usr1, &sig);
	} else {
		await_look();
	}
	for (int i = 0; i < n; i++)
		sem_post(&shared->go);
	good = reap_cases() && write_truth(out) == 0;
	/* Last: a new file could get the inode number of a removed one. */
	remove_dir();
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"case", required_argument, NULL, 'c'},
	    {"out", required_argument, NULL, 'o'},
	    {"wait-start", no_argument, NULL, 'w'},
	    {"recording", required_argument, NULL, 'r'},
	    {"list", no_argument, NULL, 'l'},
	    {0},
	};
	const char *out = NULL;
	bool wait_start = false;
	int opt;

	if (argc == 8 && !strcmp(argv[1], "--after-exec"))
		after_exec(argv);
	init_shared();
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'c') {
			select_case(optarg);
		} else if (opt == 'o') {
			out = optarg;
		} else if (opt == 'w') {
			wait_start = true;
		} else if (opt == 'r' && strlen(optarg) < sizeof(shared->recording)) {
			strcpy(shared->recording, optarg);
		} else if (opt == 'l') {
			for (int i = 0; i < ncases; i++)
				puts(cases[i].name);
			return 0;
		} else {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	return play_all(wait_start, out);
}
