/* Files of /proc and /sys, of this host or of a captured tree: see sysroot.h. */
#include "sysroot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"

/* As the kernel's MAXSYMLINKS. */
#define LINKS_MAX 40

int sysroot_open(const char *path, struct sysroot *ret, struct err *e)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat root, st;

	if (fd < 0)
		return err_set(e, -errno, "open root '%s'", path);
	ret->fd = fd;
	ret->live = !stat("/", &root) && !fstat(fd, &st) && root.st_dev == st.st_dev &&
		    root.st_ino == st.st_ino;
	return 0;
}

void sysroot_close(struct sysroot *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* The kernel (before 5.6) or a filter lacks openat2(), or it gave up as the tree is being changed. */
static bool is_missing(int error)
{
	return error == ENOSYS || error == EPERM || error == EAGAIN;
}

static int open_in_root(const struct sysroot *r, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, r->fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* One step of a path: a name, or a link whose text goes in front of the rest. */
struct walk {
	char rest[PATH_MAX];
	int links;
};

/* Take the first name off the rest. @return its length, 0 at the end */
static size_t walk_name(struct walk *w, char name[NAME_MAX + 1])
{
	const char *s = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(s, "/");

	if (n > NAME_MAX)
		n = NAME_MAX;
	memcpy(name, s, n);
	name[n] = '\0';
	memmove(w->rest, s + n, strlen(s + n) + 1);
	return n;
}

/* Put the text of the link @p name in front of the rest. @return its length, or -errno: no link */
static int walk_link(struct walk *w, int dir, const char *name)
{
	char text[PATH_MAX], joined[PATH_MAX];
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (snprintf(joined, sizeof(joined), "%s%s", text, w->rest) >= (int)sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(w->rest, joined, sizeof(joined));
	return (int)n;
}

static bool is_root(const struct sysroot *r, int fd)
{
	struct stat a, b;

	return !fstat(r->fd, &a) && !fstat(fd, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int reopen(int *dir, int at, const char *name, int flags)
{
	int fd = openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(*dir);
	*dir = fd;
	return 0;
}

/* Name by name, so that each link is seen before it is followed. */
static int open_stepwise(const struct sysroot *r, const char *path, int flags)
{
	CLEANUP_CLOSE int dir = openat(r->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct walk w = {.links = 0};
	char name[NAME_MAX + 1];
	int rc;

	if (dir < 0)
		return -errno;
	if (snprintf(w.rest, sizeof(w.rest), "%s", path) >= (int)sizeof(w.rest))
		return -ENAMETOOLONG;
	while (walk_name(&w, name)) {
		bool is_last = !w.rest[strspn(w.rest, "/")];

		if (!strcmp(name, "..") && is_root(r, dir))
			continue;
		rc = is_last && (flags & O_NOFOLLOW) ? -EINVAL : walk_link(&w, dir, name);
		if (rc >= 0)
			rc = w.rest[0] == '/' ? reopen(&dir, r->fd, ".", O_PATH | O_DIRECTORY) : 0;
		else if (rc == -EINVAL)
			rc = reopen(&dir, dir, name, is_last ? flags : O_PATH | O_DIRECTORY);
		if (rc < 0)
			return rc;
		if (is_last && !w.rest[0])
			return TAKE_FD(dir);
	}
	rc = reopen(&dir, dir, ".", flags);
	return rc < 0 ? rc : TAKE_FD(dir);
}

static int open_path(const struct sysroot *r, const char *path, int flags)
{
	int fd;

	path += strspn(path, "/");
	if (!*path)
		path = ".";
	/* The host's /proc has links of its own kind, /proc/PID/root, which are meant to be followed. */
	if (r->live) {
		fd = openat(r->fd, path, flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	fd = open_in_root(r, path, flags);
	return fd < 0 && is_missing(-fd) ? open_stepwise(r, path, flags) : fd;
}

static int open_formatted(const struct sysroot *r, int flags, const char *fmt, va_list ap)
{
	char path[PATH_MAX];
	int n = vsnprintf(path, sizeof(path), fmt, ap);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : open_path(r, path, flags);
}

/* open_formatted() for a function whose last parameter is @p fmt. @return a descriptor, or -errno */
#define OPEN_FORMATTED(r, flags, fmt)                                                              \
	({                                                                                         \
		va_list ap_;                                                                       \
		va_start(ap_, fmt);                                                                \
		int fd_ = open_formatted(r, flags, fmt, ap_);                                      \
		va_end(ap_);                                                                       \
		fd_;                                                                               \
	})

/* Read to the end. @return bytes added, or -errno */
static ssize_t read_all(int fd, struct strbuf *out)
{
	size_t before = out->n;

	for (;;) {
		ssize_t n;

		strbuf_reserve(out, 4096);
		n = read(fd, out->s + out->n, out->cap - out->n - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return (ssize_t)(out->n - before);
		out->n += (size_t)n;
		if (out->n - before > SYSROOT_FILE_BYTES)
			return -EFBIG;
	}
}

ssize_t sysroot_read(const struct sysroot *r, struct strbuf *out, const char *fmt, ...)
{
	size_t before = out->n;
	ssize_t rc;

	/* A captured tree could hold a FIFO, which must not stop us. */
	CLEANUP_CLOSE int fd =
		OPEN_FORMATTED(r, O_RDONLY | O_NOCTTY | (r->live ? 0 : O_NONBLOCK), fmt);
	if (fd < 0)
		return fd;
	rc = read_all(fd, out);
	if (rc < 0)
		out->n = before;
	if (out->s)
		out->s[out->n] = '\0';
	return rc;
}

ssize_t sysroot_readlink(const struct sysroot *r, struct strbuf *out, const char *fmt, ...)
{
	char text[PATH_MAX];
	ssize_t rc;

	CLEANUP_CLOSE int fd = OPEN_FORMATTED(r, O_PATH | O_NOFOLLOW, fmt);
	if (fd < 0)
		return fd;
	/* The empty name means the link that is open; for what is no link the kernel says ENOENT. */
	rc = readlinkat(fd, "", text, sizeof(text));
	if (rc < 0)
		return errno == ENOENT ? -EINVAL : -errno;
	strbuf_addn(out, text, (size_t)rc);
	return rc;
}

int sysroot_opendir(const struct sysroot *r, DIR **ret, const char *fmt, ...)
{
	DIR *dir;

	CLEANUP_CLOSE int fd = OPEN_FORMATTED(r, O_RDONLY | O_DIRECTORY, fmt);
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1; /* the folder owns it */
	*ret = dir;
	return 0;
}

bool sysroot_has(const struct sysroot *r, const char *fmt, ...)
{
	CLEANUP_CLOSE int fd = OPEN_FORMATTED(r, O_PATH, fmt);
	return fd >= 0;
}
