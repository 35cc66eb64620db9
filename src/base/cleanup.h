#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Scope-bound resources: declare the variable where it gets its value. */

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define CLEANUP(fn)	 __attribute__((cleanup(fn)))
#define CLEANUP_FREE	 CLEANUP(cleanup_free)
#define CLEANUP_CLOSE	 CLEANUP(cleanup_close)
#define CLEANUP_FCLOSE	 CLEANUP(cleanup_fclose)
#define CLEANUP_CLOSEDIR CLEANUP(cleanup_closedir)

/** Move a pointer out of a cleaned variable: the caller owns it from here on. */
#define TAKE(p)                                                                                    \
	({                                                                                         \
		typeof(p) take_ = (p);                                                             \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})

/** Move a file descriptor out of a cleaned variable. */
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int take_ = (fd);                                                                  \
		(fd) = -1;                                                                         \
		take_;                                                                             \
	})
