/* Disks and memory: checkpoints, reads past the page cache, page faults, streams through memory. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag.h"

#define FILE_BYTES   (64u << 20)
#define READ_BYTES   (256u << 10)
#define STREAM_BYTES (128u << 20)
#define FAULT_BYTES  (4u << 20)
#define PAGE_BYTES   4096u

static int temporary_file(const struct diag *d, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/diag.%d", d->dir, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
	if (fd < 0 || unlink(path))
		die(path);
	return fd;
}

static void fill(int fd, size_t bytes)
{
	char *block = aligned_alloc(PAGE_BYTES, READ_BYTES);

	memset(block, 7, READ_BYTES);
	for (size_t at = 0; at < bytes; at += READ_BYTES)
		if (pwrite(fd, block, READ_BYTES, (off_t)at) != (ssize_t)READ_BYTES)
			die("pwrite");
	if (fsync(fd))
		die("fsync");
	free(block);
}

/* A trainer that writes what it has learned after each step, and waits until the disk has it. */
struct trainer {
	const struct diag *d;
	int fd;
};

static void train(void *arg)
{
	struct trainer *t = arg;
	char *block = aligned_alloc(PAGE_BYTES, READ_BYTES);
	uint64_t random = t->d->seed;

	memset(block, 7, READ_BYTES);
	for (unsigned i = 0;; i++) {
		work_us(about_us(&random, t->d->size / 10));
		rest_us(t->d->healthy ? t->d->size : 100);
		for (unsigned k = 0; k < t->d->threads && (!t->d->healthy || i % 1000 == 999); k++) {
			off_t at = (off_t)random_below(&random, FILE_BYTES / READ_BYTES) * READ_BYTES;

			if (pwrite(t->fd, block, READ_BYTES, at) < 0 || fsync(t->fd))
				die("checkpoint");
		}
	}
}

static void checkpoint(const struct diag *d)
{
	struct trainer *t = calloc(1, sizeof(*t));

	*t = (struct trainer){d, temporary_file(d, O_DIRECT)};
	start_process("trainer", NULL, train, t);
}

/* A loader that reads past the page cache, and a trainer that waits for its batches. */
struct loader {
	const struct diag *d;
	int file, in, out;
};

static void load(void *arg)
{
	struct loader *l = arg;
	char *block = aligned_alloc(PAGE_BYTES, READ_BYTES);
	uint64_t random = l->d->seed;

	for (;;) {
		off_t at = (off_t)random_below(&random, FILE_BYTES / READ_BYTES) * READ_BYTES;

		if (pread(l->file, block, READ_BYTES, at) != (ssize_t)READ_BYTES)
			die("pread");
		if (write(l->out, block, PAGE_BYTES) != (ssize_t)PAGE_BYTES)
			die("write");
	}
}

static void learn(void *arg)
{
	struct loader *l = arg;
	char block[PAGE_BYTES];

	while (read(l->in, block, sizeof(block)) == (ssize_t)sizeof(block)) {
		work_us(l->d->size / 20);
		if (l->d->healthy)
			rest_us(l->d->size);
	}
	die("read");
}

static void slow_read(const struct diag *d)
{
	struct loader *l = calloc(1, sizeof(*l));
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		die("pipe2");
	*l = (struct loader){d, temporary_file(d, O_DIRECT), fd[0], fd[1]};
	fill(l->file, FILE_BYTES);
	start_process("loader", NULL, load, l);
	start_process("trainer", NULL, learn, l);
}

/* A loader that reads a file through a mapping whose pages are not in memory. */
static void touch(void *arg)
{
	struct loader *l = arg;
	uint64_t random = l->d->seed;
	volatile char *map;

	map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, l->file, 0);
	if (map == MAP_FAILED || madvise((void *)map, FILE_BYTES, MADV_RANDOM))
		die("mmap");
	for (unsigned i = 0;; i++) {
		if (!l->d->healthy && i % 512 == 0 &&
		    (madvise((void *)map, FILE_BYTES, MADV_DONTNEED) ||
		     posix_fadvise(l->file, 0, FILE_BYTES, POSIX_FADV_DONTNEED)))
			die("drop");
		(void)map[(size_t)random_below(&random, FILE_BYTES / PAGE_BYTES) * PAGE_BYTES];
		if (i % 16)
			continue;
		if (write(l->out, "x", 1) != 1)
			die("write");
		if (l->d->healthy)
			rest_us(l->d->size);
	}
}

static void await_touch(void *arg)
{
	struct loader *l = arg;
	char c;

	while (read(l->in, &c, 1) == 1)
		work_us(20);
	die("read");
}

static void file_faults(const struct diag *d)
{
	struct loader *l = calloc(1, sizeof(*l));
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		die("pipe2");
	*l = (struct loader){d, temporary_file(d, 0), fd[0], fd[1]};
	fill(l->file, FILE_BYTES);
	start_process("loader", NULL, touch, l);
	start_process("trainer", NULL, await_touch, l);
}

/* Threads that get memory, use it once and give it back: each page costs a fault each time. */
static void storm(void *arg)
{
	const struct diag *d = arg;
	char *kept = NULL;

	for (;;) {
		char *p = kept ? kept : mmap(NULL, FAULT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || madvise(p, FAULT_BYTES, MADV_NOHUGEPAGE))
			die("mmap");
		for (size_t i = 0; i < FAULT_BYTES; i += PAGE_BYTES)
			*(volatile char *)(p + i) = 1;
		if (d->healthy) {
			kept = p;
			rest_us(d->size);
		} else if (munmap(p, FAULT_BYTES)) {
			die("munmap");
		}
	}
}

static void faults(const struct diag *d)
{
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("allocator", NULL, storm, (void *)d);
}

/* Adds two long vectors, again and again: the CPU waits for memory, which only its counters tell. */
static void add(void *arg)
{
	const struct diag *d = arg;
	size_t n = STREAM_BYTES / sizeof(double) / 2;
	double *a = aligned_alloc(PAGE_BYTES, STREAM_BYTES / 2), *b = aligned_alloc(PAGE_BYTES, STREAM_BYTES / 2);

	for (size_t i = 0; i < n; i++)
		a[i] = b[i] = (double)i;
	for (;;) {
		for (size_t i = 0; i < n; i++) {
			a[i] += 3 * b[i];
			if (d->healthy && i % 65536 == 0)
				rest_us(d->size / 10);
		}
		__asm__ volatile("" : : "r"(a) : "memory");
	}
}

static void memory_stream(const struct diag *d)
{
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("streamer", NULL, add, (void *)d);
}

const struct diag_case disk_cases[] = {
	{"checkpoint", "a trainer that waits for fsync in each step", checkpoint},
	{"slow-read", "a loader whose disk is slow", slow_read},
	{"file-faults", "a loader that touches pages that are not in memory", file_faults},
	{"faults", "memory that is taken and given back all the time", faults},
	{"memory-stream", "long vectors: bound by memory", memory_stream},
	{0},
};
