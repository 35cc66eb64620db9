#pragma once

#include "procs.h"
#include "worker.h"

/*
 * What only /proc tells of a process: its program file, its control group, and those variables of
 * its environment that say which part of a job it is. Read once while it is alive, and again after
 * it runs another program.
 */

/** Read them by @p r, unless that was done; counts what could not be read. */
void proc_details_read(struct proc *x, struct slow_reader *r, uint64_t *unreadable);

/**
 * Control group that names the container of a process, else that of the unified hierarchy, else the
 * first one.
 *
 * @param text content of /proc/PID/cgroup
 * @return a new string, NULL: none is named
 */
char *proc_details_cgroup(const char *text);

/**
 * The variables of @p text that are kept, as a JSON object.
 *
 * @param text NUL-separated, as /proc/PID/environ has them
 * @return a new string, NULL: none of them is set
 */
char *proc_details_environment(const char *text, size_t n);
