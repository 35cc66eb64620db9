/* Configuration files, those of the older program included. */
#include "old_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "json.h"

#define FILE_MAX (1u << 20)

static const struct {
	const char *flag, *now;
} flags[] = {
	{"--offline", "witty-profiler record -d 10s -o FILE.wpdb, then convert or report"},
	{"--duration", "witty-profiler record --duration"},
	{"--verify", "witty-profiler doctor"},
	{"--dump-config", "witty-profiler serve --help, which has all options with their defaults"},
	{"--dump", "witty-profiler serve --help, which has all options with their defaults"},
	{"--view-graph", "witty-profiler topology FILE, or show FILE"},
	{"--log-level", "the environment variable WITTY_DEBUG=serve,collect,probe"},
	{"--fast-fail", "nothing: a process that is not there is an error"},
	{"--no-fast-fail", "nothing: a process that is not there is an error"},
};

const char *old_flag_now(const char *flag)
{
	size_t n = strcspn(flag, "=");

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strlen(flags[i].flag) == n && !strncmp(flags[i].flag, flag, n))
			return flags[i].now;
	return NULL;
}

/* A key of the older file, by its path; `*` at the end stands for all below. */
static const struct old_key {
	const char *path;
	const char *option; /* takes its value over; NULL: */
	const char *now;    /* what does it now */
} old_keys[] = {
	{"server_config.server_addr.host", "host", NULL},
	{"server_config.server_addr.port", "port", NULL},
	{"server_config.preferred_backend", NULL, "there is one server"},
	{"tmp_dir", NULL, "files go to --state-dir and --output-dir, and nothing is ever emptied"},
	{"collector_config.start_nodes", NULL, "--pid names processes to follow"},
	{"collector_config.disabled_collectors", NULL, "--refuse names probes that are not used"},
	{"collector_config.remote_slaves", NULL, "each host serves itself; merge joins their graphs"},
	{"collector_config.seed_graph_collectors", NULL, "everything is observed, from the start"},
	{"collector_config.socket_collector_config.*", NULL, "the interface filters: /api/v1/flows?min_bytes=N"},
	{"collector_config.*", NULL, "everything is observed; the interface filters"},
	{"sniffer_config.*", NULL, "the probes are inside the program and need no settings"},
};

struct reading {
	const struct config_sink *to;
	const char *file;
	char path[512];
};

static const struct old_key *find_old(const char *path)
{
	for (size_t i = 0; i < sizeof(old_keys) / sizeof(old_keys[0]); i++) {
		const char *pattern = old_keys[i].path;
		size_t n = strlen(pattern);

		if (pattern[n - 1] == '*' ? !strncmp(pattern, path, n - 1) : !strcmp(pattern, path))
			return &old_keys[i];
	}
	return NULL;
}

/* An object on the way to such a key. */
static bool is_old_section(const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof(old_keys) / sizeof(old_keys[0]); i++)
		if (!strncmp(old_keys[i].path, path, n) && old_keys[i].path[n] == '.')
			return true;
	return false;
}

static int set(struct reading *r, const char *option, const char *value, struct err *e)
{
	int rc = r->to->set(r->to->ctx, option, value);

	if (rc == -ENOENT)
		return err_msg(e, -EINVAL, "configuration '%s': no key '%s'", r->file, r->path);
	if (rc < 0)
		return err_msg(e, -EINVAL, "configuration '%s': key '%s': '%.100s' is not right", r->file, r->path, value);
	return 0;
}

static int take_value(struct reading *r, struct json_reader *j, int token, const char *option, struct err *e)
{
	char text[4096];

	if (token == JSON_FALSE || token == JSON_NULL)
		return 0;
	if (token == JSON_OBJECT)
		return err_msg(e, -EINVAL, "configuration '%s': key '%s' holds an object", r->file, r->path);
	if (token == JSON_ARRAY) {
		while ((token = json_next(j, e)) != JSON_ARRAY_END) {
			int rc = token < 0 ? token : take_value(r, j, token, option, e);

			if (rc < 0)
				return rc;
		}
		return 0;
	}
	snprintf(text, sizeof(text), "%s", token == JSON_TRUE ? "" : json_text(j, NULL));
	return set(r, option, text, e);
}

static int read_object(struct reading *r, struct json_reader *j, struct err *e);

static int read_key(struct reading *r, struct json_reader *j, struct err *e)
{
	const struct old_key *old = find_old(r->path);
	int token = json_next(j, e);
	char text[800];

	if (token < 0)
		return token;
	if (token == JSON_OBJECT && is_old_section(r->path))
		return read_object(r, j, e);
	if (!old)
		return take_value(r, j, token, r->path, e);
	if (old->option)
		return take_value(r, j, token, old->option, e);
	snprintf(text, sizeof(text), "configuration '%.200s': '%.200s' has no effect: %s", r->file, r->path, old->now);
	r->to->note(r->to->ctx, text);
	return json_skip(j, token, e);
}

static int read_object(struct reading *r, struct json_reader *j, struct err *e)
{
	size_t base = strlen(r->path);
	int token, rc = 0;

	while (!rc && (token = json_next(j, e)) == JSON_KEY) {
		snprintf(r->path + base, sizeof(r->path) - base, "%s%s", base ? "." : "", json_text(j, NULL));
		rc = read_key(r, j, e);
		r->path[base] = '\0';
	}
	return rc ?: token < 0 ? token : 0;
}

int config_read(const char *path, const struct config_sink *to, struct err *e)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct json_limits limits = {.depth = 16, .string_bytes = 4095};
	CLEANUP(cleanup_json_reader) struct json_reader *j = NULL;
	struct reading r = {.to = to, .file = path};
	int token, rc;

	if (fd < 0)
		return err_set(e, -errno, "open configuration '%s'", path);
	if (lseek(fd, 0, SEEK_END) > FILE_MAX)
		return err_msg(e, -EFBIG, "configuration '%s' is larger than %u bytes", path, FILE_MAX);
	lseek(fd, 0, SEEK_SET);
	j = json_reader_new_fd(fd, path, &limits);
	token = json_next(j, e);
	if (token >= 0 && token != JSON_OBJECT)
		return err_msg(e, -EINVAL, "configuration '%s' is no object", path);
	rc = token < 0 ? token : read_object(&r, j, e);
	if (!rc && (token = json_next(j, e)) < 0)
		rc = token;
	return rc;
}
