#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A program that blocks in every way there is, and writes down for how long and who ended it. */

#define ROUNDS	   40
#define PERIOD_US  10000 /* between two wake-ups */
#define CHILDREN   ROUNDS
#define OBJECT_TEXT 96

struct wait_run;

/** One waiter and its waker: what happens in each round, and what that must be recorded as. */
struct wait_case {
	const char *name;
	const char *cause;
	const char *object; /**< type of the entity that is waited for */
	const char *waker;  /**< NULL: the waker thread; else a kind: "timer", "disk", "child", "kernel" */
	int (*setup)(struct wait_run *r); /**< may be NULL; 0, or < 0: not possible here */
	void (*wait)(struct wait_run *r); /**< blocks */
	void (*wake)(struct wait_run *r); /**< ends it, once a period; NULL: nobody does */
	bool alone; /**< before all others: a fork holds up every thread of its process */
};

/** A case as it runs. */
struct wait_run {
	const struct wait_case *c;
	bool possible, finished;
	int fd[4];
	int id;	       /* of a System V object */
	void *memory;
	char object[OBJECT_TEXT]; /**< printed id of the object, "": any of the type */
	char path[128];
	pid_t waiter, waker; /**< thread ids */
	pid_t pid;	     /**< process of the waiter */
	uint64_t waited_ns;  /**< by the clock, around the calls */
	uint64_t begin_ns;   /**< of the wait under way: one that has to prepare it sets it anew */
	bool held;	     /**< the waker has the lock */
	bool done;	     /**< the waker has ended: nobody will hold it again */
	pid_t children[CHILDREN];
	size_t nchildren;
};

extern const struct wait_case wait_cases[];
extern const size_t n_wait_cases;

/** Directory on a real disk for files. */
extern const char *wait_dir;

uint64_t now_ns(void);
void pause_us(unsigned us);
/** End the program with a message about the system call that failed. */
void die(const char *what) __attribute__((noreturn));
