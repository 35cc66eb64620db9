#pragma once

#include <stdbool.h>
#include <stddef.h>

enum cap_state { CAP_NOT_ASKED = 0, CAP_PRESENT, CAP_ABSENT };

/** One thing that a host may or may not allow, as `witty-profiler doctor` prints it. */
struct cap {
	const char *name;  /**< "btf", "tp_btf" …: also the key of cap_has() */
	const char *gives; /**< what it is for */
	const char *cost;  /**< what is lost without it */
	const char *how;   /**< how to get it */
	/** @return 1 present, 0 absent; writes the reason or detail to @p why, "" when none */
	int (*probe)(char *why, size_t size);
};

extern const struct cap caps[];
extern const size_t ncaps;

/**
 * Whether capability @p i of caps[] is there. Asked once, then remembered for the process.
 *
 * @param ret_why detail ("/sys/kernel/btf/vmlinux: No such file or directory"); NULL: not wanted.
 *                Static, valid until the end
 */
enum cap_state cap_check(size_t i, const char **ret_why);

/** Whether capability @p name is there. An unknown name is a bug. */
bool cap_has(const char *name);

/** As cap_check() by name; an unknown name is a bug. */
enum cap_state cap_check_name(const char *name, const char **ret_why);
