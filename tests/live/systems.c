/*
 * A parallel job whose pattern is known: real processes that exchange data over a real transport.
 *
 *	systems PATTERN RANKS TRANSPORT SEED SECONDS
 *
 * prints one line of JSON that says what the pattern is and which processes take which place in it,
 * once all of them are at work. The order of the processes is shuffled, sizes are random.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 16
#define OPS_MAX   256
/* Everything on the way fits into a pipe: whoever sends before it receives cannot block for ever.
 */
#define CHUNK_MAX    24000
#define HEARTBEAT_MS 400
#define CONTROL_FD   3 /* pipe to the launcher */

enum transport { TCP, UNIX, PIPE, SHM, MIXED };

/* One step of a rank's round. */
struct op {
	bool send;
	int peer;
	size_t bytes;
	bool outer; /* between groups: another transport in a mixed case */
};

/* A memory for one direction: the receiver can only read it, and says by a byte that it has. */
struct window {
	uint32_t full; /* futex: count of messages */
	char data[CHUNK_MAX];
};

struct channel {
	int in, out; /* streams; -1: none */
	struct window *w_in,
	    *w_out; /* or memory, with in and out as the pipes of acknowledgements */
	uint32_t seen, sent;
};

struct job {
	const char *pattern;
	int n, hubs, inner, outer, variant;
	enum transport transport;
	uint64_t seed;
	struct op ops[RANKS_MAX][OPS_MAX];
	int nops[RANKS_MAX];
	int memory[RANKS_MAX][RANKS_MAX]; /* memfd of a direction */
	int pipes[RANKS_MAX][RANKS_MAX][2];
	int listen_fd[RANKS_MAX];
	struct sockaddr_in addr[RANKS_MAX];
	bool used[RANKS_MAX][RANKS_MAX], outer_edge[RANKS_MAX][RANKS_MAX];
	struct channel ch[RANKS_MAX];
	int me;
};

static void die(const char *what)
{
	fprintf(stderr, "systems: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t random_next(struct job *j)
{
	j->seed ^= j->seed << 13;
	j->seed ^= j->seed >> 7;
	j->seed ^= j->seed << 17;
	return j->seed;
}

static size_t random_size(struct job *j, size_t from, size_t to)
{
	return from + random_next(j) % (to - from + 1);
}

static void add_op(struct job *j, int rank, bool send, int peer, size_t bytes, bool outer)
{
	if (j->nops[rank] == OPS_MAX) {
		fprintf(stderr, "systems: too many steps\n");
		exit(1);
	}
	j->ops[rank][j->nops[rank]++] = (struct op){send, peer, bytes, outer};
	j->used[rank][peer] = j->used[peer][rank] = true;
	j->outer_edge[rank][peer] = j->outer_edge[peer][rank] = outer;
}

static void move(struct job *j, int from, int to, size_t bytes, bool outer)
{
	add_op(j, from, true, to, bytes, outer);
	add_op(j, to, false, from, bytes, outer);
}

/* Ring all-reduce among @p v[n]: 2 (n - 1) steps of a share each. */
static void plan_ring(struct job *j, const int *v, int n, size_t bytes, bool outer)
{
	for (int step = 0; step < 2 * (n - 1); step++) {
		for (int i = 0; i < n; i++)
			add_op(j, v[i], true, v[(i + 1) % n], bytes / (size_t)n + 1, outer);
		for (int i = 0; i < n; i++)
			add_op(j, v[i], false, v[(i + n - 1) % n], bytes / (size_t)n + 1, outer);
	}
}

static void plan_all(struct job *j, const int *v, int n, size_t bytes, bool outer)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (i != k)
				add_op(j, v[i], true, v[k], bytes, outer);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (i != k)
				add_op(j, v[i], false, v[k], bytes, outer);
}

/* Up to the root and down again. Binary as in a heap, or binomial: without the lowest bit that is
 * set. */
static int tree_parent(const struct job *j, int rank)
{
	return j->variant ? rank & (rank - 1) : (rank - 1) / 2;
}

static void plan_tree(struct job *j, size_t bytes)
{
	for (int i = j->n - 1; i > 0; i--)
		move(j, i, tree_parent(j, i), bytes, false);
	for (int i = 1; i < j->n; i++)
		move(j, tree_parent(j, i), i, bytes, false);
}

static void plan_hierarchy(struct job *j, size_t bytes)
{
	int leaders[RANKS_MAX], group[RANKS_MAX];

	j->inner = j->variant % 2 ? j->n / 2 : 2;
	j->outer = j->n / j->inner;
	j->hubs = j->outer;
	for (int g = 0; g < j->outer; g++) {
		leaders[g] = g;
		group[0] = g;
		for (int i = 1; i < j->inner; i++)
			group[i] = j->outer + g * (j->inner - 1) + i - 1;
		if (j->variant >= 2 && j->inner > 2) {
			plan_ring(j, group, j->inner, bytes, false);
			continue;
		}
		for (int i = 1; i < j->inner; i++)
			move(j, group[i], g, bytes, false);
		for (int i = 1; i < j->inner; i++)
			move(j, g, group[i], bytes, false);
	}
	if (j->outer == 2) {
		move(j, 0, 1, bytes, true);
		move(j, 1, 0, bytes, true);
	} else {
		plan_ring(j, leaders, j->outer, bytes, true);
	}
}

static void plan_chain(struct job *j)
{
	size_t bytes[RANKS_MAX];

	for (int i = 0; i + 1 < j->n; i++) {
		bytes[i] = random_size(j, 2000, CHUNK_MAX);
		move(j, i, i + 1, bytes[i], false);
	}
	/* Training sends gradients back. */
	for (int i = j->n - 1; i > 0 && j->variant && j->n > 2; i--)
		move(j, i, i - 1, bytes[i - 1], false);
}

/* The first ranks serve, the others push to and pull from each of them. */
static void plan_servers(struct job *j, int servers)
{
	size_t bytes[RANKS_MAX];
	size_t all = random_size(j, 4000, CHUNK_MAX);

	j->n += servers;
	j->hubs = servers;
	for (int s = 0; s < servers; s++)
		bytes[s] = all - all / 8 * (random_next(j) % 2 ? 1 : 0);
	for (int w = servers; w < j->n; w++)
		for (int s = 0; s < servers; s++)
			move(j, w, s, servers > 1 ? bytes[s] : all, false);
	for (int w = servers; w < j->n; w++)
		for (int s = 0; s < servers; s++)
			move(j, s, w, servers > 1 ? bytes[s] : all, false);
}

static void plan_star(struct job *j)
{
	j->hubs = 1;
	for (int i = 1; i < j->n; i++)
		move(j, 0, i, random_size(j, 300, 2000), false);
	for (int i = 1; i < j->n; i++)
		move(j, i, 0, random_size(j, 4000, CHUNK_MAX), false);
}

/* Rows of tensor parallel ranks exchange several times as much as columns of data parallel ones. */
static void plan_grid(struct job *j, size_t bytes)
{
	int v[RANKS_MAX];
	int inner = j->n == 4 || j->variant % 2 ? 2 : 4, outer = j->n / inner;
	size_t heavy = bytes, light = bytes / (2 + random_next(j) % 3);

	j->inner = inner;
	j->outer = outer;
	for (int g = 0; g < outer; g++) {
		for (int i = 0; i < inner; i++)
			v[i] = g * inner + i;
		if (j->variant >= 2)
			plan_ring(j, v, inner, heavy, false);
		else
			plan_all(j, v, inner, heavy, false);
	}
	for (int i = 0; i < inner; i++) {
		for (int g = 0; g < outer; g++)
			v[g] = g * inner + i;
		if (j->variant >= 2)
			plan_ring(j, v, outer, light, true);
		else
			plan_all(j, v, outer, light, true);
	}
}

static void plan(struct job *j)
{
	int all[RANKS_MAX];
	size_t bytes = random_size(j, 4000, CHUNK_MAX);

	j->variant = (int)(random_next(j) >> 20) & 3;
	for (int i = 0; i < RANKS_MAX; i++)
		all[i] = i;
	if (!strcmp(j->pattern, "ring")) {
		plan_ring(j, all, j->n, bytes, false);
	} else if (!strcmp(j->pattern, "all-to-all")) {
		plan_all(j, all, j->n, bytes, false);
	} else if (!strcmp(j->pattern, "tree")) {
		j->variant &= 1;
		plan_tree(j, bytes);
	} else if (!strcmp(j->pattern, "hierarchy")) {
		plan_hierarchy(j, bytes);
	} else if (!strcmp(j->pattern, "chain")) {
		j->variant &= 1;
		plan_chain(j);
	} else if (!strcmp(j->pattern, "servers1")) {
		plan_servers(j, 1);
	} else if (!strcmp(j->pattern, "servers3")) {
		plan_servers(j, 3);
	} else if (!strcmp(j->pattern, "star")) {
		plan_star(j);
	} else if (!strcmp(j->pattern, "grid")) {
		plan_grid(j, bytes);
	} else if (strcmp(j->pattern, "replicas")) {
		fprintf(stderr, "systems: no pattern '%s'\n", j->pattern);
		exit(2);
	}
}

static enum transport transport_of(const struct job *j, int a, int b)
{
	if (j->transport != MIXED)
		return j->transport;
	if (j->inner)
		return j->outer_edge[a][b] ? TCP : UNIX;
	return (enum transport)((a + b) % 3);
}

/* What must exist before the processes do. */
static void open_shared(struct job *j)
{
	for (int i = 0; i < j->n; i++) {
		socklen_t len = sizeof(j->addr[i]);

		j->addr[i] = (struct sockaddr_in){.sin_family = AF_INET,
						  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		j->listen_fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (j->listen_fd[i] < 0 || bind(j->listen_fd[i], (void *)&j->addr[i], len) < 0 ||
		    listen(j->listen_fd[i], RANKS_MAX) < 0 ||
		    getsockname(j->listen_fd[i], (void *)&j->addr[i], &len) < 0)
			die("listen");
		for (int k = 0; k < j->n; k++) {
			int both[2];

			if (!j->used[i][k])
				continue;
			if ((transport_of(j, i, k) == PIPE || transport_of(j, i, k) == SHM) &&
			    pipe(j->pipes[i][k]) < 0)
				die("pipe");
			if (transport_of(j, i, k) == SHM) {
				j->memory[i][k] = memfd_create("systems", 0);
				if (j->memory[i][k] < 0 ||
				    ftruncate(j->memory[i][k], sizeof(struct window)) < 0)
					die("memory");
			}
			if (transport_of(j, i, k) != UNIX || k > i)
				continue;
			if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) < 0)
				die("socketpair");
			j->pipes[i][k][0] = j->pipes[i][k][1] = both[0];
			j->pipes[k][i][0] = j->pipes[k][i][1] = both[1];
		}
	}
}

static void connect_to(struct job *j, int peer)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	uint32_t me = (uint32_t)j->me;

	if (fd < 0 || connect(fd, (void *)&j->addr[peer], sizeof(j->addr[peer])) < 0 ||
	    write(fd, &me, 4) != 4)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	j->ch[peer].in = j->ch[peer].out = fd;
}

static void accept_from(struct job *j)
{
	int fd = accept(j->listen_fd[j->me], NULL, NULL), one = 1;
	uint32_t peer = 0;

	if (fd < 0 || read(fd, &peer, 4) != 4 || peer >= (uint32_t)j->n)
		die("accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	j->ch[peer].in = j->ch[peer].out = fd;
}

static void map_windows(struct job *j, int peer)
{
	struct channel *c = &j->ch[peer];

	c->w_out = mmap(NULL, sizeof(*c->w_out), PROT_READ | PROT_WRITE, MAP_SHARED,
			j->memory[j->me][peer], 0);
	c->w_in = mmap(NULL, sizeof(*c->w_in), PROT_READ, MAP_SHARED, j->memory[peer][j->me], 0);
	if (c->w_out == MAP_FAILED || c->w_in == MAP_FAILED)
		die("map");
}

/* Every rank keeps its own ends only: an end that stays open elsewhere would hide who uses it. */
static void close_others(struct job *j)
{
	for (int i = 0; i < j->n; i++) {
		if (i != j->me)
			close(j->listen_fd[i]);
		for (int k = 0; k < j->n; k++) {
			enum transport t = transport_of(j, i, k);

			if (!j->used[i][k] || t == TCP)
				continue;
			if (t == UNIX && i != j->me)
				close(j->pipes[i][k][0]);
			/* pipes[i][k]: from i to k, or, with memory, k's acknowledgements to i. */
			if (t == PIPE || t == SHM) {
				int reader = t == PIPE ? k : i, writer = t == PIPE ? i : k;

				if (reader != j->me)
					close(j->pipes[i][k][0]);
				if (writer != j->me)
					close(j->pipes[i][k][1]);
			}
			if (t == SHM)
				close(j->memory[i][k]);
		}
	}
}

static void open_channels(struct job *j)
{
	int me = j->me, accepts = 0;

	for (int p = 0; p < j->n; p++) {
		struct channel *c = &j->ch[p];

		c->in = c->out = -1;
		if (!j->used[me][p])
			continue;
		switch (transport_of(j, me, p)) {
		case TCP:
			/* Servers and those before in a chain or ring are there first. */
			if (p < me)
				connect_to(j, p);
			else
				accepts++;
			break;
		case UNIX:
			c->in = c->out = j->pipes[me][p][0];
			break;
		case PIPE:
			c->out = j->pipes[me][p][1];
			c->in = j->pipes[p][me][0];
			break;
		default:
			map_windows(j, p);
			c->out = j->pipes[me][p][0]; /* acknowledgements come from here */
			c->in = j->pipes[p][me][1];  /* and go there */
		}
	}
	close_others(j);
	while (accepts--)
		accept_from(j);
	/* Who only connects needs no ear, as a worker of a server has none. */
	if (me >= j->hubs && j->hubs)
		close(j->listen_fd[me]);
}

static void send_stream(int fd, size_t bytes)
{
	static char data[CHUNK_MAX];

	for (size_t at = 0; at < bytes;) {
		ssize_t n = write(fd, data, bytes - at);

		if (n <= 0)
			exit(0);
		at += (size_t)n;
	}
}

static void receive_stream(int fd, size_t bytes)
{
	static char data[CHUNK_MAX];

	for (size_t at = 0; at < bytes;) {
		ssize_t n = read(fd, data, bytes - at);

		if (n <= 0)
			exit(0);
		at += (size_t)n;
	}
}

/* One message is in a window at a time: the next one waits for the acknowledgement of the one
 * before. */
static void send_memory(struct channel *c, size_t bytes)
{
	char ack;

	if (c->sent && read(c->out, &ack, 1) != 1)
		exit(0);
	memset(c->w_out->data, (int)c->sent, bytes);
	__atomic_store_n(&c->w_out->full, ++c->sent, __ATOMIC_RELEASE);
	syscall(SYS_futex, &c->w_out->full, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void receive_memory(struct channel *c)
{
	while (__atomic_load_n(&c->w_in->full, __ATOMIC_ACQUIRE) == c->seen)
		syscall(SYS_futex, &c->w_in->full, FUTEX_WAIT, c->seen, NULL, NULL, 0);
	c->seen++;
	if (write(c->in, "", 1) != 1)
		exit(0);
}

static void run_op(struct job *j, const struct op *op)
{
	struct channel *c = &j->ch[op->peer];

	if (c->w_out && op->send)
		send_memory(c, op->bytes);
	else if (c->w_out)
		receive_memory(c);
	else if (op->send)
		send_stream(c->out, op->bytes);
	else
		receive_stream(c->in, op->bytes);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* What a replica does: some work of its own. */
static void compute(unsigned ms)
{
	uint64_t until = now_ms() + ms;
	volatile uint64_t sink = 0;

	while (now_ms() < until)
		for (int i = 0; i < 10000; i++)
			sink = sink + (uint64_t)i;
}

static void pause_ms(unsigned ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000L};

	nanosleep(&ts, NULL);
}

static void run_rank(struct job *j)
{
	static const char beat[64];
	uint64_t last = 0;

	open_channels(j);
	for (;;) {
		for (int i = 0; i < j->nops[j->me]; i++)
			run_op(j, &j->ops[j->me][i]);
		if (!j->nops[j->me])
			compute(3);
		pause_ms(12);
		/* What launchers and stores see of a rank; no part of the pattern. */
		if (now_ms() - last > HEARTBEAT_MS) {
			if (write(CONTROL_FD, beat, sizeof(beat)) < 0)
				exit(0);
			last = now_ms();
		}
	}
}

static pid_t start_rank(struct job *j, int rank, const int *control, unsigned seconds)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	/* Who waits for a rank that has ended would wait for ever. */
	alarm(seconds);
	if (control[1] != CONTROL_FD && dup2(control[1], CONTROL_FD) < 0)
		die("dup2");
	close(control[0]);
	if (control[1] != CONTROL_FD)
		close(control[1]);
	j->me = rank;
	/* Who serves on its own was told which device to use, by its launcher. */
	if (!strcmp(j->pattern, "replicas")) {
		char device[16], time[16];

		snprintf(device, sizeof(device), "%d", rank);
		snprintf(time, sizeof(time), "%u", seconds);
		setenv("CUDA_VISIBLE_DEVICES", device, 1);
		execl("/proc/self/exe", "systems", "replica", time, (char *)NULL);
		die("exec");
	}
	run_rank(j);
	return 0;
}

static void tell(const struct job *j, const char *transport, const pid_t *pid_of)
{
	printf("{\"pattern\": \"%s\", \"transport\": \"%s\", \"launcher\": %d, \"hubs\": %d, "
	       "\"inner\": %d, \"outer\": %d, "
	       "\"members\": [",
	       j->pattern, transport, getpid(), j->hubs, j->inner, j->outer);
	for (int i = 0; i < j->n; i++)
		printf("%s%d", i ? ", " : "", pid_of[i]);
	printf("]}\n");
	fflush(stdout);
}

static void shuffle(struct job *j, int *v, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int k = (int)(random_next(j) % (uint64_t)(i + 1)), x = v[i];

		v[i] = v[k];
		v[k] = x;
	}
}

/* A launcher reads what its ranks say, and waits for them. */
static void attend(int fd)
{
	char beats[256];

	while (read(fd, beats, sizeof(beats)) > 0)
		continue;
	while (wait(NULL) > 0)
		continue;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"tcp", "unix", "pipe", "shm", "mixed"};
	static struct job j;
	int order[RANKS_MAX], control[2], transport = 0;
	pid_t pid_of[RANKS_MAX];
	unsigned seconds;

	if (argc == 3 && !strcmp(argv[1], "replica")) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm((unsigned)atoi(argv[2]));
		run_rank(&j);
	}
	if (argc != 6) {
		fprintf(stderr, "usage: systems PATTERN RANKS TRANSPORT SEED SECONDS\n");
		return 2;
	}
	j.pattern = argv[1];
	j.n = atoi(argv[2]);
	while (transport < 5 && strcmp(argv[3], names[transport]))
		transport++;
	j.transport = (enum transport)transport;
	j.seed = strtoull(argv[4], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
	seconds = (unsigned)atoi(argv[5]);
	if (j.n < 2 || j.n > 8 || transport == 5 || !seconds || seconds > 600) {
		fprintf(stderr, "systems: wrong ranks, transport or seconds\n");
		return 2;
	}
	for (int i = 0; i < 8; i++)
		random_next(&j);
	/* The lowest number is free for the ranks' end of the control pipe. */
	if (dup2(0, CONTROL_FD) < 0)
		die("dup2");
	plan(&j);
	open_shared(&j);
	if (pipe(control) < 0)
		die("pipe");
	for (int i = 0; i < j.n; i++)
		order[i] = i;
	shuffle(&j, order, j.n);
	for (int i = 0; i < j.n; i++)
		pid_of[order[i]] = start_rank(&j, order[i], control, seconds);
	close(control[1]);
	for (int fd = CONTROL_FD; fd < 1024; fd++)
		if (fd != control[0])
			close(fd);
	tell(&j, names[transport], pid_of);
	attend(control[0]);
	return 0;
}
