#pragma once

#include <stdint.h>

/**
 * One wait of some length, for what needs the order of events: who held up whom. Times are ns on one
 * clock, out <= wake <= in; texts are of a graph or constants.
 */
struct wait_row {
	uint64_t out_ns;  /**< the thread stopped running, and waited */
	uint64_t wake_ns; /**< the wait ended: it could run again */
	uint64_t in_ns;	  /**< it did */
	uint64_t waiter_tid, waiter_start_ns; /**< key of a thread entity */
	uint64_t waker_tid, waker_start_ns;   /**< likewise; 0: no thread */
	const char *waker;  /**< "thread", or what an interrupt stands for: "timer", "disk" …; NULL: not known */
	const char *cause;  /**< as in waits_for */
	const char *object; /**< printed id of what was waited for */
};
