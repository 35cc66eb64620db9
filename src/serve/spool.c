/* Payloads on disk: numbered files in a folder, the oldest first. */
#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "mem.h"
#include "vec.h"

#define PAYLOAD_MAX (64u << 20)

struct item {
	uint64_t number, bytes;
};

struct spool {
	int fd;
	uint64_t limit, bytes, lost, next;
	VEC(struct item) v; /* oldest first */
};

static void name_of(uint64_t number, char ret[32])
{
	snprintf(ret, 32, "%016" PRIx64 ".spool", number);
}

static int by_number(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* What an earlier run left. */
static void scan(struct spool *s)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_CLOSEDIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	struct stat st;

	while (d && (de = readdir(d))) {
		uint64_t number;

		if (strlen(de->d_name) != 22 || strspn(de->d_name, "0123456789abcdef") != 16 ||
		    strcmp(de->d_name + 16, ".spool") || fstatat(s->fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		number = strtoull(de->d_name, NULL, 16);
		vec_push(&s->v, ((struct item){number, (uint64_t)st.st_size}));
		s->bytes += (uint64_t)st.st_size;
		if (number >= s->next)
			s->next = number + 1;
	}
	if (s->v.n)
		qsort(s->v.v, s->v.n, sizeof(*s->v.v), by_number);
}

int spool_open(struct spool **ret, const char *dir, const char *name, uint64_t bytes, struct err *e)
{
	CLEANUP_CLOSE int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct spool *s;
	int fd;

	if (top < 0 || (mkdirat(top, name, 0700) < 0 && errno != EEXIST))
		return err_set(e, -errno, "make spool '%s/%s'", dir, name);
	fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(e, -errno, "open spool '%s/%s'", dir, name);
	s = mem_alloc(sizeof(*s));
	s->fd = fd;
	s->limit = bytes;
	scan(s);
	*ret = s;
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	close(s->fd);
	vec_done(&s->v);
	free(s);
}

void spool_drop(struct spool *s)
{
	char name[32];

	if (!s->v.n)
		return;
	name_of(s->v.v[0].number, name);
	unlinkat(s->fd, name, 0);
	s->bytes -= s->v.v[0].bytes;
	memmove(&s->v.v[0], &s->v.v[1], --s->v.n * sizeof(*s->v.v));
}

int spool_put(struct spool *s, const struct strbuf *b, struct err *e)
{
	char name[32];
	size_t done = 0;
	int fd, rc = 0;

	if (b->n > s->limit || b->n > PAYLOAD_MAX) {
		s->lost++;
		return err_msg(e, -EFBIG, "%zu bytes are more than the spool may hold", b->n);
	}
	while (s->v.n && s->bytes + b->n > s->limit) {
		spool_drop(s);
		s->lost++;
	}
	name_of(s->next, name);
	fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		rc = err_set(e, -errno, "spool");
	while (!rc && done < b->n) {
		ssize_t n = write(fd, b->s + done, b->n - done);

		if (n < 0 && errno != EINTR)
			rc = err_set(e, -errno, "spool");
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0) {
		if (fd >= 0)
			unlinkat(s->fd, name, 0);
		s->lost++;
		return rc;
	}
	vec_push(&s->v, ((struct item){s->next++, b->n}));
	s->bytes += b->n;
	return 0;
}

int spool_peek(struct spool *s, struct strbuf *b, struct err *e)
{
	while (s->v.n) {
		CLEANUP_CLOSE int fd = -1;
		size_t want = s->v.v[0].bytes, got = 0;
		char name[32];
		ssize_t n = 1;

		name_of(s->v.v[0].number, name);
		fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		strbuf_clear(b);
		if (fd >= 0 && want <= PAYLOAD_MAX) {
			strbuf_reserve(b, want + 1);
			while (got < want && (n = read(fd, b->s + got, want - got)) > 0)
				got += (size_t)n;
		}
		if (fd >= 0 && got == want) {
			b->n = got;
			b->s[got] = '\0';
			return 1;
		}
		/* Somebody took it away, or cut it short. */
		s->lost++;
		spool_drop(s);
	}
	(void)e;
	return 0;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->bytes;
}

uint64_t spool_lost(const struct spool *s)
{
	return s->lost;
}
