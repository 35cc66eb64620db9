/* The files that a server for agents may look at. */
#include "mcp_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hash.h"
#include "load.h"

static void unload(struct mcp_file *f)
{
	if (!f->o)
		return;
	study_close(f->o);
	free(f->o);
	f->o = NULL;
	f->g = NULL;
}

void mcp_files_done(struct mcp_files *f)
{
	vec_for(&f->v, x) {
		unload(x);
		free(x->name);
		free(x->path);
	}
	vec_done(&f->v);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static struct mcp_file *find(struct mcp_files *f, const char *name)
{
	vec_for(&f->v, x)
		if (!strcmp(x->name, name))
			return x;
	return NULL;
}

int mcp_files_add(struct mcp_files *f, const char *path, struct err *e)
{
	const char *name = base_of(path);
	struct mcp_file *x;
	int rc;

	if (!strcmp(path, "-"))
		return err_msg(e, -EINVAL, "standard input is for requests, and no file");
	rc = file_format(path, e);
	if (rc < 0)
		return rc;
	vec_for(&f->v, have)
		if (!strcmp(have->path, path))
			return err_msg(e, -EEXIST, "'%s' is given twice", path);
	if (find(f, name))
		name = path;
	x = vec_add(&f->v);
	x->name = mem_strdup(name);
	x->path = mem_strdup(path);
	return 0;
}

/* A recording that goes on grows in its log before it grows itself. */
static uint64_t stamp_of(const char *path)
{
	uint64_t h = 1;
	char wal[4096];
	struct stat st;

	if (snprintf(wal, sizeof(wal), "%s-wal", path) >= (int)sizeof(wal))
		wal[0] = '\0';
	for (int i = 0; i < 2; i++) {
		if (stat(i ? wal : path, &st) < 0)
			continue;
		h = hash_pair(h, (uint64_t)st.st_size);
		h = hash_pair(h, (uint64_t)st.st_mtim.tv_sec * 1000000000ull +
				     (uint64_t)st.st_mtim.tv_nsec);
		h = hash_pair(h, (uint64_t)st.st_ino);
	}
	return h;
}

static void make_room(struct mcp_files *f)
{
	struct mcp_file *oldest = NULL;
	size_t loaded = 0;

	vec_for(&f->v, x) {
		if (!x->o)
			continue;
		loaded++;
		if (!oldest || x->used < oldest->used)
			oldest = x;
	}
	if (loaded >= MCP_LOADED_MAX)
		unload(oldest);
}

static int load(struct mcp_files *f, struct mcp_file *x, struct err *e)
{
	uint64_t stamp = stamp_of(x->path);
	int rc;

	if (x->o && x->stamp == stamp)
		return 0;
	unload(x);
	make_room(f);
	x->o = mem_alloc(sizeof(*x->o));
	rc = study_open(x->o, x->path, NULL, e);
	if (rc < 0) {
		free(x->o);
		x->o = NULL;
		return rc;
	}
	x->g = &x->o->graph;
	x->stamp = stamp;
	return 0;
}

static int no_such_file(struct mcp_files *f, const char *name, struct err *e)
{
	err_msg(e, -ENOENT, name ? "there is no file '%.100s'" : "there is no file yet", name);
	for (size_t i = 0; i < f->v.n && i < 8; i++) {
		size_t n = strlen(e->msg);

		snprintf(e->msg + n, sizeof(e->msg) - n, "%s'%.40s'",
			 i ? ", " : "; there are: ", f->v.v[i].name);
	}
	return e->code;
}

int mcp_files_get(struct mcp_files *f, const char *name, struct mcp_file **ret, struct err *e)
{
	struct mcp_file *x = name ? find(f, name) : f->v.n ? &f->v.v[f->v.n - 1] : NULL;
	int rc;

	if (!x)
		return no_such_file(f, name, e);
	rc = load(f, x, e);
	if (rc < 0)
		return rc;
	x->used = ++f->uses;
	*ret = x;
	return 0;
}
