/*
 * place NAME GO CPU[,CPU] POLICY PAGES MIB CPU_MS - be on known CPUs with memory on known nodes.
 *
 * CPU     where to run; with a second one, move there after half of the time
 * POLICY  local, bind:N, interleave:N,N,…
 * PAGES   small, thp (transparent huge pages), huge (of hugetlbfs) or shm (small, of one file that all share)
 *
 * Makes the file NAME.ready once it has its memory, waits for the file GO, and at the end writes to
 * NAME.json how much CPU time it used on each CPU since then and how many bytes of its private memory
 * lie on which node, by its own numa_maps; with shm, of the shared memory too.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NODES 64
#define HUGE_BYTES (2u << 20)
#define SEGMENT	   "/dev/shm/place"
enum { POLICY_BIND = 2, POLICY_INTERLEAVE = 3 }; /* linux/mempolicy.h */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("place: sched_setaffinity");
}

/* Policy of one mapping, so that the rest of the process stays out of it. */
static void set_policy(void *p, size_t bytes, const char *policy)
{
	unsigned long mask = 0;
	int mode = !strncmp(policy, "bind:", 5) ? POLICY_BIND : POLICY_INTERLEAVE;
	const char *s = strchr(policy, ':');

	if (!strcmp(policy, "local"))
		return;
	while (s && *s) {
		char *end;

		mask |= 1ul << strtoul(s + 1, &end, 10);
		s = end;
	}
	if (syscall(SYS_mbind, p, bytes, mode, &mask, sizeof(mask) * 8, 0) < 0)
		die("place: mbind");
}

static volatile char *get_memory(size_t bytes, const char *policy, const char *pages)
{
	int huge = !strcmp(pages, "huge"), fd = -1;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0);
	char *p;

	if (!strcmp(pages, "shm")) {
		fd = open(SEGMENT, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || ftruncate(fd, (off_t)(bytes + HUGE_BYTES)) < 0)
			die("place: " SEGMENT);
		flags = MAP_SHARED;
	}
	p = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		die("place: mmap");
	if (fd >= 0) {
		/* The same pages of the file in each process. */
		set_policy(p, bytes, policy);
		for (size_t i = 0; i < bytes; i += 4096)
			p[i] = 1;
		return p;
	}
	p = (char *)(((uintptr_t)p + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
	if (!huge && madvise(p, bytes, strcmp(pages, "thp") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE) < 0)
		die("place: madvise");
	set_policy(p, bytes, policy);
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	return p;
}

static FILE *create(const char *name, const char *suffix)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%s", name, suffix);
	f = fopen(path, "w");
	if (!f)
		die(path);
	return f;
}

static void wait_for(const char *name, const char *go)
{
	fclose(create(name, "ready"));
	while (access(go, F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
}

static uint64_t burn(volatile char *p, size_t bytes, uint64_t ns)
{
	uint64_t start = cpu_ns(), used;

	do {
		for (size_t i = 0; i < bytes; i += 4096)
			p[i]++;
		used = cpu_ns() - start;
	} while (used < ns);
	return used;
}

static void count_pages(uint64_t bytes_on[NODES])
{
	char line[4096];
	FILE *f = fopen("/proc/self/numa_maps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		char *size = strstr(line, "kernelpagesize_kB=");

		if (!size || (!strstr(line, " anon=") && !strstr(line, SEGMENT)))
			continue;
		for (char *s = line; (s = strstr(s, " N")); s++) {
			unsigned node;
			unsigned long pages;

			if (sscanf(s, " N%u=%lu", &node, &pages) == 2 && node < NODES)
				bytes_on[node] += pages * strtoul(size + 18, NULL, 10) * 1024;
		}
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	uint64_t bytes_on[NODES] = {0}, before, first, second = 0, ns;
	int cpus[2], n;
	char path[256], from[256];
	volatile char *p;
	size_t bytes;
	FILE *f;

	if (argc != 8 || (n = sscanf(argv[3], "%d,%d", &cpus[0], &cpus[1])) < 1)
		return 2;
	bytes = strtoul(argv[6], NULL, 10) << 20;
	ns = strtoul(argv[7], NULL, 10) * 1000000;
	go_to(cpus[0]);
	p = get_memory(bytes, argv[4], argv[5]);
	wait_for(argv[1], argv[2]);
	before = cpu_ns();
	burn(p, bytes, (n > 1 ? ns / 2 : ns) - 1);
	first = cpu_ns() - before;
	if (n > 1) {
		go_to(cpus[1]);
		second = burn(p, bytes, ns / 2);
	}
	count_pages(bytes_on);
	/* Under emulation that takes a while, too. */
	*(n > 1 ? &second : &first) = cpu_ns() - before - (n > 1 ? first : 0);
	f = create(argv[1], "json.new");
	fprintf(f, "{\"name\":\"%s\",\"pid\":%d,\"pages\":\"%s\",\"cpu_ns\":[[%d,%llu]", argv[1], getpid(), argv[5],
		cpus[0], (unsigned long long)first);
	if (n > 1)
		fprintf(f, ",[%d,%llu]", cpus[1], (unsigned long long)second);
	fprintf(f, "],\"bytes\":{");
	for (unsigned i = 0, any = 0; i < NODES; i++)
		if (bytes_on[i])
			fprintf(f, "%s\"%u\":%llu", any++ ? "," : "", i, (unsigned long long)bytes_on[i]);
	fprintf(f, "}}\n");
	if (fclose(f))
		die("place: write");
	snprintf(path, sizeof(path), "%s.json", argv[1]);
	snprintf(from, sizeof(from), "%s.json.new", argv[1]);
	return rename(from, path) ? 1 : 0;
}
