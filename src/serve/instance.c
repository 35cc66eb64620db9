/* One server a host: a lock on a file, which says who holds it. */
#include "instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ABOUT_MAX 240

void instance_default(char *ret, unsigned long size)
{
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (geteuid() && own && *own)
		snprintf(ret, size, "%s/witty-profiler/serve.lock", own);
	else
		snprintf(ret, size, "/run/witty-profiler/serve.lock");
}

static int make_folder(const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char folder[4096];

	if (!slash || slash == path)
		return 0;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	if (mkdir(folder, 0755) < 0 && errno != EEXIST) {
		err_set(e, -errno, "make folder '%s' for the lock", folder);
		return err_hint(e, "--lock FILE takes it elsewhere");
	}
	return 0;
}

static int taken(int fd, const char *path, struct err *e)
{
	char about[ABOUT_MAX + 1] = "";
	ssize_t n = pread(fd, about, ABOUT_MAX, 0);

	about[n > 0 ? n : 0] = '\0';
	about[strcspn(about, "\n")] = '\0';
	for (char *c = about; *c; c++)
		if (*c < ' ')
			*c = '?';
	close(fd);
	err_msg(e, -EALREADY, "another server runs on this host: %s (lock '%.100s')", about[0] ? about : "?", path);
	return err_hint(e, "end it first, or give this one a lock of its own with --lock FILE");
}

int instance_lock(const char *path, const char *about, struct err *e)
{
	int rc = make_folder(path, e), fd;
	struct stat st;

	if (rc < 0)
		return rc;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		err_set(e, -errno, "open lock '%s'", path);
		return err_hint(e, "--lock FILE takes it elsewhere");
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
		close(fd);
		return err_msg(e, -EINVAL, "lock '%s': no file of its own", path);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return taken(fd, path, e);
		rc = err_set(e, -errno, "lock '%s'", path);
		close(fd);
		return rc;
	}
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%s\n", about) < 0) {
		rc = err_set(e, -errno, "write lock '%s'", path);
		close(fd);
		return rc;
	}
	return fd;
}
