/* Recordings of the newest minutes: when they are written, and how many are kept. */
#include "flight.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "collector.h"
#include "json.h"
#include "log.h"
#include "mem.h"
#include "vec.h"

#define FILES_MAX	  20
#define BYTES_MAX	  (2ull << 30)
#define FINDING_PAUSE_NS  (60 * NS_PER_SEC)
#define NAME_BYTES	  96

struct flight {
	char dir[PATH_MAX];
	int fd;
	struct collector *collector;
	pthread_mutex_t lock;
	uint64_t last_finding_ns; /* monotonic; 0: none yet */
	struct flight_counts counts;
};

struct entry {
	char name[NAME_BYTES];
	uint64_t bytes, written_ns;
};

void flight_close(struct flight *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static bool has_name(const char *name, const char *suffix)
{
	size_t n = strlen(name), end = strlen(suffix);

	return n > 7 + end && n < NAME_BYTES && !strncmp(name, "flight-", 7) &&
	       !strcmp(name + n - end, suffix) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		   n;
}

/* flight-20261130T114059.123Z-WHY.wpdb, and nothing else. */
static bool is_ours(const char *name)
{
	return has_name(name, ".wpdb");
}

/* While it is written: nobody sees half of one. SQLite has its own files beside it. */
static const char *const unfinished[] = {".wpdb.part", ".wpdb.part-wal", ".wpdb.part-shm",
					 ".wpdb.part-journal"};
#define NUNFINISHED (sizeof(unfinished) / sizeof(unfinished[0]))

/* What a server left that was killed: there is one server for a folder, and it has not begun yet.
 */
static void remove_unfinished(struct flight *f)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	while (d && (de = readdir(d)))
		for (size_t i = 0; i < NUNFINISHED; i++)
			if (has_name(de->d_name, unfinished[i]))
				unlinkat(f->fd, de->d_name, 0);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

int flight_open(struct flight **ret, const char *dir, struct collector *c, struct err *e)
{
	struct flight *f = mem_alloc(sizeof(*f));
	struct stat st;
	int rc = 0;

	f->collector = c;
	pthread_mutex_init(&f->lock, NULL);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		rc = err_set(e, -errno, "make folder '%s'", dir);
	f->fd = rc ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (!rc && (f->fd < 0 || fstat(f->fd, &st) < 0))
		rc = err_set(e, -errno, "open folder '%s'", dir);
	if (!rc && (st.st_uid != geteuid() || st.st_mode & 022)) {
		err_msg(e, -EPERM, "folder '%s': others own it or may write into it", dir);
		rc = err_hint(e, "give it a folder of its own, mode 0700");
	}
	if (!rc && !realpath(dir, f->dir))
		rc = err_set(e, -errno, "find folder '%s'", dir);
	if (!rc)
		remove_unfinished(f);
	if (rc) {
		flight_close(f);
		return rc;
	}
	*ret = f;
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	return strcmp(((const struct entry *)b)->name, ((const struct entry *)a)->name);
}

struct entries {
	VEC(struct entry) v;
};

static void list(struct flight *f, struct entries *ret)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	struct stat st;

	while (d && (de = readdir(d))) {
		struct entry *en;

		if (!is_ours(de->d_name) || fstatat(f->fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		en = vec_add(&ret->v);
		snprintf(en->name, sizeof(en->name), "%.95s", de->d_name);
		en->bytes = (uint64_t)st.st_size;
		en->written_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), newest_first);
}

static void make_room(struct flight *f)
{
	struct entries all = {0};
	uint64_t sum = 0;
	size_t n = 0;

	list(f, &all);
	vec_for(&all.v, en) {
		sum += en->bytes;
		if (++n < FILES_MAX && sum < BYTES_MAX)
			continue;
		if (!unlinkat(f->fd, en->name, 0))
			f->counts.removed++;
	}
	vec_done(&all.v);
}

bool flight_now(struct flight *f, const char *why, char *ret_name, size_t size)
{
	char path[PATH_MAX + NAME_BYTES], stamp[CLOCK_UTC_BYTES], *to = stamp;
	bool ok;

	clock_format_utc(clock_real_ns(), stamp);
	for (const char *s = stamp; *s; s++)
		if (*s != '-' && *s != ':')
			*to++ = *s;
	*to = '\0';
	snprintf(ret_name, size, "flight-%s-%.40s.wpdb", stamp, why);
	snprintf(path, sizeof(path), "%s/%s.part", f->dir, ret_name);
	if (!is_ours(ret_name))
		return false;
	pthread_mutex_lock(&f->lock);
	ok = collector_save(f->collector, path, 0);
	if (ok)
		make_room(f);
	pthread_mutex_unlock(&f->lock);
	return ok;
}

void flight_finding(struct flight *f, const char *rule)
{
	uint64_t now = clock_mono_ns();
	char name[NAME_BYTES + 32];
	bool due;

	pthread_mutex_lock(&f->lock);
	due = !f->last_finding_ns || now > f->last_finding_ns + FINDING_PAUSE_NS;
	if (due)
		f->last_finding_ns = now;
	pthread_mutex_unlock(&f->lock);
	if (due)
		flight_now(f, rule, name, sizeof(name));
}

/* Under its own name, now that it is whole. */
static int put_in_place(struct flight *f, const char *part, struct err *e)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)(strlen(part) - strlen(".part")), part);
	return renameat(f->fd, part, f->fd, name) < 0 ? err_set(e, -errno, "rename '%s'", part) : 1;
}

void flight_news(struct flight *f)
{
	char path[PATH_MAX + NAME_BYTES], name[NAME_BYTES];
	struct err e;
	int rc = collector_saved(f->collector, path, sizeof(path), &e);

	if (!rc)
		return;
	snprintf(name, sizeof(name), "%.95s", strrchr(path, '/') + 1);
	if (rc > 0)
		rc = put_in_place(f, name, &e);
	else
		unlinkat(f->fd, name, 0);
	pthread_mutex_lock(&f->lock);
	f->counts.written += rc > 0;
	f->counts.failed += rc < 0;
	pthread_mutex_unlock(&f->lock);
	if (rc < 0)
		log_debug(SERVE, "flight recorder: %s", e.msg);
}

void flight_list(struct flight *f, struct strbuf *b)
{
	struct entries all = {0};
	struct json_writer w;
	struct err e;

	list(f, &all);
	json_writer_init_strbuf(&w, b, 0);
	json_write_array(&w);
	vec_for(&all.v, en) {
		json_write_object(&w);
		json_key_str(&w, "name", en->name);
		json_key_u64(&w, "bytes", en->bytes);
		json_key_u64(&w, "written_ns", en->written_ns);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	vec_done(&all.v);
}

int flight_file(struct flight *f, const char *name, uint64_t *ret_bytes)
{
	struct stat st;
	int fd;

	if (!is_ours(name))
		return -ENOENT;
	fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	*ret_bytes = (uint64_t)st.st_size;
	return fd;
}

void flight_get(struct flight *f, struct flight_counts *ret)
{
	pthread_mutex_lock(&f->lock);
	*ret = f->counts;
	pthread_mutex_unlock(&f->lock);
}
