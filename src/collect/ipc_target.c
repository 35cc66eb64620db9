/* Who has a pid in another pid namespace. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "cleanup.h"
#include "collect_ipc.h"

#define LEVELS_MAX 32 /* linux/pid_namespace.h: MAX_PID_NS_LEVEL */

/* The pids of a process from the host's namespace to its own. @return how many, 0: it has ended */
static int pids_of(uint32_t pid, uint32_t ret[LEVELS_MAX + 1])
{
	char path[64], line[512];
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *save = NULL;

		if (strncmp(line, "NSpid:", 6))
			continue;
		for (char *s = strtok_r(line + 6, " \t\n", &save); s && n <= LEVELS_MAX;
		     s = strtok_r(NULL, " \t\n", &save))
			ret[n++] = (uint32_t)strtoul(s, NULL, 10);
		break;
	}
	return n;
}

static uint64_t pidns_of(uint32_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* A process of exactly that namespace, or one of a namespace within it that has the pid there. */
static bool is_target(uint32_t pid, uint32_t nspid, uint32_t pidns, int level)
{
	uint32_t pids[LEVELS_MAX + 1];
	int n = pids_of(pid, pids);

	if (level < 0 || n <= level || pids[level] != nspid)
		return false;
	return n > level + 1 || pidns_of(pid) == pidns;
}

static uint32_t search_proc(const struct procs *p, uint32_t nspid, uint32_t pidns, int level)
{
	CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(de->d_name, &end, 10);

		if (end != de->d_name && !*end && is_target((uint32_t)pid, nspid, pidns, level))
			return procs_live(p, (uint32_t)pid);
	}
	return IDMAP_NONE;
}

uint32_t ipc_target(const struct procs *p, uint32_t caller, uint32_t nspid, uint32_t pidns)
{
	uint32_t own[LEVELS_MAX + 1], init = procs_live(p, 1);
	int level;

	if (init != IDMAP_NONE && p->v.v[init].pidns == pidns)
		return procs_live(p, nspid);
	level = pids_of(p->v.v[caller].pid, own) - 1;
	/* Those that have ended are still known here. */
	for (uint32_t i = (uint32_t)p->v.n; i-- > 0;)
		if (p->v.v[i].has_ids && p->v.v[i].pidns == pidns && p->v.v[i].nspid == nspid)
			return i;
	return search_proc(p, nspid, pidns, level);
}
