/* What every ground-truth program does with its cases: choose, start, let go, reap, write down. */
#include "truth.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared *shared;
int shared_fd = -1;
char buf[BUF_BYTES];

void *shared_map(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("map the shared counters");
	return p;
}

int shared_memory(size_t size)
{
	int fd = memfd_create("truth", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
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
}

static void init_shared(void)
{
	shared_fd = shared_memory(sizeof(*shared));
	shared = shared_map(shared_fd, sizeof(*shared));
	shared->scale = 1;
	shared->main_pid = getpid();
	sem_init(&shared->ready, 1, 0);
	sem_init(&shared->go, 1, 0);
	for (int i = 0; i < ncases; i++)
		init_case(&shared->cases[i], i);
	for (unsigned i = 0; i < sizeof(buf); i++)
		buf[i] = 'a' + i % 23;
}

struct tcase *case_after_exec(const char *index, int fd)
{
	int i = atoi(index);

	shared_fd = fd;
	shared = shared_map(fd, sizeof(*shared));
	if (i < 0 || i >= ncases) {
		errno = EINVAL;
		die("case number");
	}
	return &shared->cases[i];
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

static int count_selected(void)
{
	int n = 0;

	for (int i = 0; i < ncases; i++)
		n += shared->cases[i].selected;
	return n;
}

static void make_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(shared->dir, sizeof(shared->dir), "%s/truth.XXXXXX", tmp ? tmp : "/tmp");
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
		/* The page is shared: the child may not write its own 0 over the parent's pid. */
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

static bool reap_cases(void)
{
	bool good = true;
	int status;
	pid_t pid;

	while ((pid = wait(&status)) > 0 || errno == EINTR) {
		for (int i = 0; pid > 0 && i < ncases; i++) {
			if (shared->cases[i].runner != pid || status == 0)
				continue;
			fprintf(stderr, "truth: case %s failed\n", cases[i].name);
			good = false;
		}
	}
	return good && !atomic_load(&shared->failed);
}

static bool write_truth(const struct workload *w, const char *path)
{
	FILE *out = path ? fopen(path, "w") : stdout;

	if (!out) {
		fprintf(stderr, "truth: write '%s': %s\n", path, strerror(errno));
		return false;
	}
	w->print(out);
	if (fflush(out) || ferror(out) || (path && fclose(out))) {
		fprintf(stderr, "truth: write '%s': %s\n", path ? path : "-", strerror(errno));
		return false;
	}
	return true;
}

static int play_all(const struct workload *w, bool wait_start, const char *out)
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
	good = reap_cases() && write_truth(w, out);
	/* Last: a new file could get the inode number of a removed one. */
	remove_dir();
	return good ? 0 : 1;
}

int workload_main(const struct workload *w, int argc, char **argv)
{
	static const struct option options[] = {
		{"case", required_argument, NULL, 'c'}, {"scale", required_argument, NULL, 's'},
		{"out", required_argument, NULL, 'o'},	{"wait-start", no_argument, NULL, 'w'},
		{"recording", required_argument, NULL, 'r'}, {"list", no_argument, NULL, 'l'},
		{0},
	};
	const char *out = NULL;
	bool wait_start = false;
	int opt;

	init_shared();
	if (w->init)
		w->init();
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'c') {
			select_case(optarg);
		} else if (opt == 's' && w->scales && atoi(optarg) > 0) {
			shared->scale = atoi(optarg);
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
			fputs(w->usage, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fputs(w->usage, stderr);
		return 2;
	}
	return play_all(w, wait_start, out);
}
