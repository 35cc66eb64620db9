/*
 * Threads that are each held up, or hot, in one known way: hotspots SECONDS
 *
 * Prints "NAME TID" for each, which rests; after a line of standard input all go on for SECONDS. Prints "end" when all
 * rest again, which they do until standard input ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK  65536
#define REST_S 0.2

static double end_s; /* set before go */
static atomic_bool go;
static atomic_size_t resting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;
static int ping[2], pong[2], data[2];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool goes_on(void)
{
	return now() < end_s;
}

static void nap(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void turn(double seconds)
{
	double until = now() + seconds;
	volatile uint64_t x = 1;

	while (now() < until)
		for (int i = 0; i < 10000; i++)
			x = x * 2862933555777941757ull + 1;
}

static void spin(void)
{
	turn(end_s - now());
}

/* Nearly all of its time is the kernel's. */
static void calls(void)
{
	static char block[1 << 20];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (goes_on()) {
		for (int i = 0; i < 50; i++)
			if (read(fd, block, sizeof(block)) < 0)
				return;
		nap(0.005);
	}
	close(fd);
}

static void naps(void)
{
	while (goes_on())
		nap(0.001);
}

static void send_byte(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static void take_byte(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(1);
}

static void pings(void)
{
	while (goes_on()) {
		send_byte(ping[1]);
		take_byte(pong[0]);
		nap(0.0002);
	}
	close(ping[1]);
}

static void pongs(void)
{
	char c;

	while (read(ping[0], &c, 1) == 1)
		send_byte(pong[1]);
}

static void moves(void)
{
	static char block[BLOCK];

	while (goes_on()) {
		if (write(data[1], block, BLOCK) != BLOCK)
			_exit(1);
		nap(0.0005);
	}
	close(data[1]);
}

static void takes(void)
{
	static char block[BLOCK];

	while (read(data[0], block, BLOCK) > 0)
		;
}

static void owns(void)
{
	while (goes_on()) {
		pthread_mutex_lock(&lock);
		turn(0.008);
		pthread_mutex_unlock(&lock);
		nap(0.0002);
	}
}

static void waits(void)
{
	while (goes_on()) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
}

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {{"spin", spin},   {"calls", calls}, {"naps", naps}, {"pings", pings}, {"pongs", pongs},
	     {"moves", moves}, {"takes", takes}, {"owns", owns}, {"waits", waits}};
#define NPARTS (sizeof(parts) / sizeof(parts[0]))

static void *run_part(void *arg)
{
	const struct part *p = arg;
	pid_t tid = (pid_t)syscall(SYS_gettid);

	pthread_setname_np(pthread_self(), p->name);
	pthread_mutex_lock(&out);
	printf("%s %d\n", p->name, tid);
	fflush(stdout);
	pthread_mutex_unlock(&out);
	while (!go)
		nap(REST_S);
	p->run();
	resting++;
	for (;;)
		nap(REST_S);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[NPARTS];

	if (argc != 2 || atof(argv[1]) <= 0 || atof(argv[1]) > 100) {
		fprintf(stderr, "usage: hotspots SECONDS\n");
		return 2;
	}
	if (pipe2(ping, O_CLOEXEC) || pipe2(pong, O_CLOEXEC) || pipe2(data, O_CLOEXEC)) {
		perror("pipe2");
		return 1;
	}
	for (size_t i = 0; i < NPARTS; i++)
		if (pthread_create(&threads[i], NULL, run_part, (void *)&parts[i])) {
			fprintf(stderr, "pthread_create\n");
			return 1;
		}
	if (getchar() == EOF)
		return 1;
	end_s = now() + atof(argv[1]);
	go = true;
	while (resting < NPARTS)
		nap(REST_S);
	printf("end\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
