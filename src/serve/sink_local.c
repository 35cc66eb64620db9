/* Subscribers on this host: the console, memory, and files in one folder. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "answers.h"
#include "cleanup.h"
#include "server.h"
#include "sink.h"

#define FILE_MAX (4ull << 30) /* bytes; a file that large is not added to */

static void render_text(const struct sink_settings *o, struct server *s, struct snapshot *snap, struct strbuf *b)
{
	const struct strbuf *text = describe_text(snap);

	(void)o;
	(void)s;
	strbuf_addn(b, strbuf_str(text), text->n);
	strbuf_addc(b, '\n');
}

static void render_json(const struct sink_settings *o, struct server *s, struct snapshot *snap, struct strbuf *b)
{
	(void)o;
	(void)s;
	graph_content(snap, b);
	strbuf_addc(b, '\n');
}

static int print(const struct sink_settings *o, const struct sink_limits *l, const struct strbuf *b, struct err *e)
{
	(void)o;
	(void)l;
	if (fwrite(b->s, 1, b->n, stderr) != b->n)
		return err_set(e, -EIO, "write to standard error");
	return 0;
}

/*
 * Below the folder, and nowhere else: no link on the way or at the end, no `..`, nothing that leads out by
 * being moved meanwhile. The kernel sees to it while it resolves the name.
 */
static int open_below(const char *dir, const char *path, bool append, struct err *e)
{
	struct open_how how = {.flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
					(append ? O_APPEND : 0),
			       .mode = 0640,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char real[PATH_MAX];
	struct stat st;
	size_t n;
	int fd;

	if (top < 0)
		return err_set(e, -errno, "open folder '%s'", dir);
	/* A whole path is fine when it says the folder's own. */
	if (*path == '/') {
		n = realpath(dir, real) ? strlen(real) : 0;
		if (n && !strncmp(path, real, n) && path[n] == '/')
			path += n + 1;
	}
	fd = (int)syscall(SYS_openat2, top, path, &how, sizeof(how));
	if (fd < 0 && (errno == EXDEV || errno == ELOOP || errno == ENXIO))
		return err_msg(e, -EACCES, "dump_path: it has to be a plain file below the folder for output");
	if (fd < 0)
		return err_set(e, -errno, "dump_path: open '%.200s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
		close(fd);
		return err_msg(e, -EACCES, "dump_path: it has to be a plain file below the folder for output");
	}
	return fd;
}

static int check_file(struct sink_settings *o, const struct sink_limits *l, struct err *e)
{
	int fd;

	if (!l->output_dir)
		return err_msg(e, -EACCES, "no files are written: the server runs without --output-dir");
	fd = open_below(l->output_dir, o->path ?: "example.txt", o->append, e);
	if (fd < 0)
		return fd == -EACCES ? fd : -EINVAL;
	close(fd);
	return 0;
}

static int write_file(const struct sink_settings *o, const struct sink_limits *l, const struct strbuf *b,
		      struct err *e)
{
	int fd = open_below(l->output_dir, o->path ?: "example.txt", o->append, e), rc = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || (o->append && (uint64_t)st.st_size + b->n > FILE_MAX))
		rc = err_msg(e, -EBADMSG, "'%s' has grown to %llu bytes: it is not added to", o->path ?: "example.txt",
			     FILE_MAX);
	if (!rc && !o->append && ftruncate(fd, 0) < 0)
		rc = err_set(e, -errno, "empty '%s'", o->path);
	for (size_t at = 0; !rc && at < b->n;) {
		ssize_t n = write(fd, b->s + at, b->n - at);

		if (n < 0 && errno != EINTR)
			rc = err_set(e, -errno, "write '%s'", o->path);
		at += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	return rc;
}

const struct sink_kind sink_console = {.name = "ConsoleGraphSubscriber", .doc = "the graph as text to standard error",
				       .render = render_text, .deliver = print};
const struct sink_kind sink_memory = {.name = "NaiveMemoryStorageGraphSubscriber",
				      .doc = "nothing: the newest graph is kept anyway"};
const struct sink_kind sink_file_text = {.name = "FileGraphDescSubscriber", .doc = "the graph as text to a file",
					 .takes_path = true, .check = check_file, .render = render_text,
					 .deliver = write_file};
const struct sink_kind sink_file_json = {.name = "FileJsonGraphSubscriber", .doc = "a line of graph JSON to a file",
					 .takes_path = true, .check = check_file, .render = render_json,
					 .deliver = write_file};
