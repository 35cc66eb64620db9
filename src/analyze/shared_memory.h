#pragma once

#include "graph.h"
#include "vec.h"

/* Shared memory objects with who maps them, and what proves in which direction data goes. */

/** One process that maps the object, or has it open. */
struct shared_mapper {
	uint32_t process; /**< node */
	uint32_t access;  /**< edge, for its fields */
};

/** Threads of one process end waits of another's on words inside the object. */
struct shared_wakes {
	uint32_t waker, waiter; /**< nodes of processes */
	uint64_t wakeups;
	uint64_t waited_ns; /**< time that those waits had lasted */
};

struct shared_object {
	uint32_t node;
	VEC(struct shared_mapper) mappers; /**< ascending by pid */
	VEC(struct shared_wakes) wakes;	   /**< most first */
	uint32_t writers;		   /**< mappers that may write */
};

struct shared_objects {
	VEC(struct shared_object) v;
};

/**
 * All of @p g. Those that several processes map and somebody writes come first, then by size.
 *
 * A wake-up counts when the waiter waited on a futex word inside the object and the waker's process
 * maps it too. When a thread waits on several words and is woken by several threads, which of them
 * ended which wait is not recorded: then the smaller of both counts is taken.
 */
void shared_memory_objects(struct graph *g, struct shared_objects *ret);
void shared_memory_done(struct shared_objects *o);

/** Whether data can go from one process to another through it. */
bool shared_memory_is_path(const struct shared_object *o);
