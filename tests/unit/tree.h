#pragma once

/* A folder of its own for a test, that stands for the root below which /proc and /sys are read. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysroot.h"
#include "unit.h"

static char folder[] = "/tmp/witty-unit-XXXXXX";
static struct sysroot root;

static inline void make_folders(char *full)
{
	for (char *s = full + sizeof(folder); (s = strchr(s, '/')); s++) {
		*s = '\0';
		mkdir(full, 0755);
		*s = '/';
	}
}

/** A file of the tree, with the folders above it. */
static inline void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", folder, path);
	make_folders(full);
	f = fopen(full, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/** Likewise a symbolic link. */
static inline void put_link(const char *path, const char *target)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", folder, path);
	make_folders(full);
	assert_int_equal(symlink(target, full), 0);
}

/** For cmocka_run_group_tests(). */
static inline int make_tree(void **state)
{
	struct err e;

	return mkdtemp(folder) && !sysroot_open(folder, &root, &e) ? 0 : -1;
}

static inline int remove_tree(void **state)
{
	char command[64];

	sysroot_close(&root);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}
