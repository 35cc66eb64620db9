#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * One program that is held up in a known way, and that says which of its threads are to blame. Each case has a
 * healthy form: the same threads and the same ways to wait, without the fault.
 */

#define DIAG_THREADS_MAX 64

/** What the command line asks for. */
struct diag {
	bool healthy;
	unsigned threads; /**< how many take part, those to blame not counted; at least 1 */
	unsigned size;	  /**< length of a step, in us of CPU time where it is work */
	uint64_t seed;	  /**< of pauses and lengths */
	double after_s;	  /**< cases that come to a stop: when they do, counted from the start of the program; SIGUSR1: at once */
	const char *dir;  /**< folder for files, on a disk */
};

/** A case: starts threads and processes and comes back, or never. */
struct diag_case {
	const char *name;
	const char *what;
	void (*start)(const struct diag *d);
};

extern const struct diag_case cpu_cases[], lock_cases[], flow_cases[], disk_cases[], rank_cases[], quiet_cases[];

/** End the program with a message about the system call that failed. */
void die(const char *what) __attribute__((noreturn));

/** Wait for the clock, in one nanosleep(2) that signals do not end. */
void rest_us(unsigned us);

/** Compute for so long, by CPU time: nothing but arithmetic, no system call. */
void work_us(unsigned us);

/** Monotonic time since the program started. */
double elapsed_s(void);
/** Whether cases that come to a stop do so by now: after_s has passed, or SIGUSR1 has come. */
bool is_over(const struct diag *d);

/**
 * Start a thread of this process that never ends.
 *
 * @param role what it is in this case, as written down
 * @param name of the thread, at most 15 bytes; NULL: the role
 * @param arg  handed to @p run; what it points to has to stay
 */
void start_thread(const char *role, const char *name, void (*run)(void *), void *arg);

/** Likewise a process, with one thread. It ends with this program. @return its pid */
pid_t start_process(const char *role, const char *name, void (*run)(void *), void *arg);

/** Memory that processes started afterwards share, filled with zeros. */
void *shared_memory(size_t bytes);

/** A number of 0 to @p below - 1: the next of those that @p state gives, which starts as a seed. */
unsigned random_below(uint64_t *state, unsigned below);

/** @p us with a tenth more or less, at random. */
unsigned about_us(uint64_t *state, unsigned us);
