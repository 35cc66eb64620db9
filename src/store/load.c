/* Any file that holds a graph: the content tells the format. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "graph_json.h"
#include "graph_text.h"
#include "recording.h"

static int open_input(const char *path, struct err *e)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);

	if (fd < 0)
		return err_set(e, -errno, "open '%s'", path);
	return fd;
}

static int format_of(const char *head, size_t n)
{
	size_t i = 0;

	if (n >= 16 && !memcmp(head, "SQLite format 3", 16))
		return FORMAT_RECORDING;
	if (n >= 3 && !memcmp(head, "\xef\xbb\xbf", 3))
		i = 3;
	while (i < n && strchr(" \t\r\n", head[i]))
		i++;
	return i < n && head[i] == '#' ? FORMAT_TEXT : FORMAT_JSON;
}

int file_format(const char *path, struct err *e)
{
	char head[4096];
	ssize_t n;

	if (!strcmp(path, "-"))
		return FORMAT_JSON;
	CLEANUP_CLOSE int fd = open_input(path, e);
	if (fd < 0)
		return fd;
	n = read(fd, head, sizeof(head));
	if (n < 0)
		return err_set(e, -errno, "read '%s'", path);
	if (!n)
		return err_msg(e, -EBADMSG, "read '%s': the file is empty", path);
	return format_of(head, (size_t)n);
}

/* @t: NULL when it is not wanted */
static int load_recording(struct graph *g, struct timeline *t, const char *path, struct err *e)
{
	struct stored *s;
	int rc = stored_open(&s, path, e);

	if (rc < 0)
		return rc;
	rc = stored_load(s, g, e);
	if (!rc && t)
		rc = stored_load_timeline(s, g, t, e);
	stored_close(s);
	return rc;
}

static int load_json(struct graph *g, const char *path, struct err *e)
{
	CLEANUP_CLOSE int fd = open_input(path, e);
	if (fd < 0)
		return fd;
	CLEANUP(cleanup_json_reader)
	struct json_reader *r = json_reader_new_fd(fd, path, NULL);
	return graph_read_json(g, r, e);
}

#define TEXT_MAX_BYTES (64u << 20) /* five million relations; JSON has no such limit */

static int load_text(struct graph *g, const char *path, struct err *e)
{
	struct strbuf b = {0};
	ssize_t n = 1;
	int rc = 0;

	CLEANUP_CLOSE int fd = open_input(path, e);
	if (fd < 0)
		return fd;
	while (!rc && n > 0) {
		strbuf_reserve(&b, 1 << 16);
		n = read(fd, b.s + b.n, 1 << 16);
		if (n < 0)
			rc = err_set(e, -errno, "read '%s'", path);
		else if (b.n + (size_t)n > TEXT_MAX_BYTES)
			rc = err_msg(e, -EFBIG, "read '%s': longer than 64 MiB", path);
		else
			b.n += (size_t)n;
	}
	if (!rc) {
		strbuf_addc(&b, '\n');
		rc = graph_read_text(g, b.s, b.n, path, e);
	}
	strbuf_done(&b);
	return rc;
}

int graph_load_timed(struct graph *g, struct timeline *ret, const char *path, struct err *e)
{
	int format = file_format(path, e);

	if (format < 0)
		return format;
	if (format == FORMAT_RECORDING)
		return load_recording(g, ret, path, e);
	return format == FORMAT_TEXT ? load_text(g, path, e) : load_json(g, path, e);
}

int graph_load(struct graph *g, const char *path, struct err *e)
{
	return graph_load_timed(g, NULL, path, e);
}

int graph_load_amounts(struct graph *g, struct interval_amounts *ret, const char *path, struct err *e)
{
	int format = strcmp(path, "-") ? file_format(path, e) : FORMAT_JSON, rc;
	struct stored *s;

	if (format != FORMAT_RECORDING)
		return format < 0 ? format : 0;
	rc = stored_open(&s, path, e);
	if (rc < 0)
		return rc;
	rc = stored_load_amounts(s, g, ret, e);
	stored_close(s);
	return rc;
}
