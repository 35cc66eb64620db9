/* Names, images and pods of containers, by the state files of their runtimes. */
#include "container_names.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "json.h"

/* A member of a JSON document by its path, keys joined by '/', and where its text goes. */
struct wanted {
	const char *path;
	char *to;
	size_t size;
};

#define PATH_BYTES 512

struct json_walk {
	struct json_reader *r;
	const struct wanted *wanted;
	size_t n;
	char path[PATH_BYTES];
};

static void take(struct json_walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->wanted[i].path, w->path) && !w->wanted[i].to[0])
			snprintf(w->wanted[i].to, w->wanted[i].size, "%s", json_text(w->r, NULL));
}

static int walk_value(struct json_walk *w, int token, unsigned depth, struct err *e);

static int walk_object(struct json_walk *w, unsigned depth, struct err *e)
{
	size_t before = strlen(w->path);
	int token;

	while ((token = json_next(w->r, e)) == JSON_KEY) {
		int rc;

		snprintf(w->path + before, PATH_BYTES - before, "%s%s", before ? "/" : "", json_text(w->r, NULL));
		rc = walk_value(w, json_next(w->r, e), depth + 1, e);
		if (rc < 0)
			return rc;
		w->path[before] = '\0';
	}
	return token < 0 ? token : 0;
}

/* Nothing that is wanted lies in an array, except that the document may be one of objects. */
static int walk_value(struct json_walk *w, int token, unsigned depth, struct err *e)
{
	if (token < 0)
		return token;
	if (token == JSON_STRING)
		take(w);
	if (token == JSON_OBJECT && depth < 8)
		return walk_object(w, depth, e);
	return token == JSON_OBJECT || token == JSON_ARRAY ? json_skip(w->r, token, e) : 0;
}

static bool read_members(const char *text, size_t n, const struct wanted *wanted, size_t count)
{
	struct json_walk w = {.wanted = wanted, .n = count};
	struct err e;
	int rc;

	w.r = json_reader_new_mem(text, n, "state", NULL);
	rc = walk_value(&w, json_next(w.r, &e), 0, &e);
	json_reader_free(w.r);
	return rc >= 0;
}

#define OCI "annotations/"

/* config.json of the Open Container Initiative, and what docker and iSulad keep instead. */
static bool read_state(const char *text, size_t n, struct container_facts *f)
{
	char kind[32] = "", label[32] = "";
	const struct wanted all[] = {
		{"Name", f->name, sizeof(f->name)},
		{"CommonConfig/Name", f->name, sizeof(f->name)},
		{"Config/Image", f->image, sizeof(f->image)},
		{"CommonConfig/Image", f->image, sizeof(f->image)},
		{"CommonConfig/Config/Image", f->image, sizeof(f->image)},
		{"Config/Labels/io.kubernetes.container.name", f->name, sizeof(f->name)},
		{"Config/Labels/io.kubernetes.pod.name", f->pod_name, sizeof(f->pod_name)},
		{"Config/Labels/io.kubernetes.pod.namespace", f->pod_namespace, sizeof(f->pod_namespace)},
		{"Config/Labels/io.kubernetes.pod.uid", f->pod_id, sizeof(f->pod_id)},
		{"Config/Labels/io.kubernetes.docker.type", label, sizeof(label)},
		{OCI "io.kubernetes.cri.container-name", f->name, sizeof(f->name)},
		{OCI "io.kubernetes.cri.image-name", f->image, sizeof(f->image)},
		{OCI "io.kubernetes.cri.sandbox-name", f->pod_name, sizeof(f->pod_name)},
		{OCI "io.kubernetes.cri.sandbox-namespace", f->pod_namespace, sizeof(f->pod_namespace)},
		{OCI "io.kubernetes.cri.sandbox-uid", f->pod_id, sizeof(f->pod_id)},
		{OCI "io.kubernetes.cri.container-type", kind, sizeof(kind)},
		{OCI "io.kubernetes.container.name", f->name, sizeof(f->name)},
		{OCI "io.kubernetes.cri-o.ImageName", f->image, sizeof(f->image)},
		{OCI "io.kubernetes.cri-o.ContainerType", kind, sizeof(kind)},
		{OCI "io.kubernetes.pod.name", f->pod_name, sizeof(f->pod_name)},
		{OCI "io.kubernetes.pod.namespace", f->pod_namespace, sizeof(f->pod_namespace)},
		{OCI "io.kubernetes.pod.uid", f->pod_id, sizeof(f->pod_id)},
		{OCI "nerdctl/name", f->name, sizeof(f->name)},
	};
	bool ok = read_members(text, n, all, sizeof(all) / sizeof(all[0]));

	/* docker's names begin with a slash. */
	if (f->name[0] == '/')
		memmove(f->name, f->name + 1, strlen(f->name));
	f->sandbox |= !strcmp(kind, "sandbox") || !strcmp(label, "podsandbox");
	return ok;
}

/* One object of podman's list of containers: names are in an array. */
static int read_listed(struct json_reader *r, const char *id, struct container_facts *f, struct err *e)
{
	char this_id[128] = "", name[256] = "", key[32];
	int token;

	while ((token = json_next(r, e)) == JSON_KEY) {
		snprintf(key, sizeof(key), "%.31s", json_text(r, NULL));
		token = json_next(r, e);
		if (token == JSON_STRING && !strcmp(key, "id"))
			snprintf(this_id, sizeof(this_id), "%s", json_text(r, NULL));
		if (token == JSON_ARRAY && !strcmp(key, "names")) {
			token = json_next(r, e);
			if (token == JSON_STRING)
				snprintf(name, sizeof(name), "%s", json_text(r, NULL));
			while (token >= 0 && token != JSON_ARRAY_END)
				token = json_next(r, e);
		} else if (token == JSON_OBJECT || token == JSON_ARRAY) {
			token = json_skip(r, token, e);
		}
		if (token < 0)
			return token;
	}
	if (!strcmp(this_id, id) && name[0] && !f->name[0])
		snprintf(f->name, sizeof(f->name), "%s", name);
	return token < 0 ? token : 0;
}

static void read_list(const char *text, size_t n, const char *id, struct container_facts *f)
{
	struct json_reader *r = json_reader_new_mem(text, n, "containers.json", NULL);
	struct err e;

	if (json_next(r, &e) == JSON_ARRAY)
		while (json_next(r, &e) == JSON_OBJECT && read_listed(r, id, f, &e) >= 0)
			;
	json_reader_free(r);
}

/* Folders where a runtime keeps one folder for each container. */
static const struct {
	const char *runtime, *format;
} places[] = {
	{"docker", "/var/lib/docker/containers/%s/config.v2.json"},
	{"isulad", "/var/lib/isulad/engines/lcr/%s/config.v2.json"},
	{"containerd", "/run/containerd/io.containerd.runtime.v2.task/k8s.io/%s/config.json"},
	{"containerd", "/run/containerd/io.containerd.runtime.v2.task/default/%s/config.json"},
	{"containerd", "/run/containerd/io.containerd.runtime.v1.linux/k8s.io/%s/config.json"},
	{"crio", "/run/containers/storage/overlay-containers/%s/userdata/config.json"},
	{"podman", "/run/containers/storage/overlay-containers/%s/userdata/config.json"},
	{"crio", "/var/lib/containers/storage/overlay-containers/%s/userdata/config.json"},
	{"podman", "/var/lib/containers/storage/overlay-containers/%s/userdata/config.json"},
};

/* Kubernetes' folders of logs are named "NAMESPACE_POD_UID", whatever the runtime. */
static void read_pod_folder(const struct sysroot *root, const char *pod, struct container_facts *f)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	size_t n = strlen(pod);

	if (!n || sysroot_opendir(root, &d, "/var/log/pods") < 0) {
		d = NULL;
		return;
	}
	while ((de = readdir(d))) {
		size_t all = strlen(de->d_name);
		const char *bar = strchr(de->d_name, '_');

		if (!bar || all <= n + 2 || strcmp(de->d_name + all - n, pod) || de->d_name[all - n - 1] != '_' ||
		    bar >= de->d_name + all - n - 1)
			continue;
		snprintf(f->pod_namespace, sizeof(f->pod_namespace), "%.*s", (int)(bar - de->d_name), de->d_name);
		snprintf(f->pod_name, sizeof(f->pod_name), "%.*s", (int)(de->d_name + all - n - 1 - (bar + 1)),
			 bar + 1);
		return;
	}
}

/* Links "POD_NAMESPACE_CONTAINER-ID.log". */
static void read_log_link(const struct sysroot *root, const char *id, struct container_facts *f)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	char suffix[192];

	snprintf(suffix, sizeof(suffix), "-%.128s.log", id);
	if (sysroot_opendir(root, &d, "/var/log/containers") < 0) {
		d = NULL;
		return;
	}
	while ((de = readdir(d))) {
		size_t n = strlen(de->d_name), k = strlen(suffix);
		const char *bar = n > k && !strcmp(de->d_name + n - k, suffix) ? strchr(de->d_name, '_') : NULL;

		bar = bar ? strchr(bar + 1, '_') : NULL;
		if (!bar || bar >= de->d_name + n - k)
			continue;
		snprintf(f->name, sizeof(f->name), "%.*s", (int)(de->d_name + n - k - (bar + 1)), bar + 1);
		return;
	}
}

void container_facts_read(const struct sysroot *root, const char *runtime, const char *id, const char *pod,
			  struct container_facts *ret)
{
	bool any = !strcmp(runtime, "unknown"), got = false;
	struct strbuf b = {0};

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; !got && i < sizeof(places) / sizeof(places[0]); i++) {
		char path[320];

		if ((!any && strcmp(places[i].runtime, runtime)) || strchr(id, '/') || id[0] == '.')
			continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path, sizeof(path), places[i].format, id);
#pragma GCC diagnostic pop
		strbuf_clear(&b);
		if (sysroot_read(root, &b, "%s", path) > 0)
			got = read_state(b.s, b.n, ret);
	}
	strbuf_clear(&b);
	if (!ret->name[0] && (any || !strcmp(runtime, "podman")) &&
	    sysroot_read(root, &b, "/var/lib/containers/storage/overlay-containers/containers.json") > 0)
		read_list(b.s, b.n, id, ret);
	if (!ret->name[0])
		read_log_link(root, id, ret);
	if (!ret->pod_name[0])
		read_pod_folder(root, pod, ret);
	strbuf_done(&b);
}

/* What stands between the mount and the group: nothing with version 2, a controller with version 1. */
static bool is_controller(const char *s, size_t n)
{
	static const char *const all[] = {"cpu", "cpuacct", "cpu,cpuacct", "cpuset", "memory", "devices", "blkio",
					  "freezer", "pids", "hugetlb", "perf_event", "systemd", "unified"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (n == strlen(all[i]) + 1 && s[0] == '/' && !memcmp(s + 1, all[i], n - 1))
			return true;
	return n == 0;
}

/* "/sys/fs/cgroup/memory/x" and "/sys/fs/cgroup/x" both mean "/x". */
static bool names_group(const char *text, const char *cgroup)
{
	static const char mount[] = "\"/sys/fs/cgroup";
	size_t n = strlen(cgroup);

	for (const char *s = text; (s = strstr(s, mount)); s++) {
		const char *from = s + sizeof(mount) - 1, *end = strchr(from, '"');

		if (end && (size_t)(end - from) >= n && !memcmp(end - n, cgroup, n) &&
		    is_controller(from, (size_t)(end - from) - n))
			return true;
	}
	return false;
}

bool container_by_state(const struct sysroot *root, const char *cgroup, char *ret_id, size_t size)
{
	static const char *const folders[] = {"/run/runc", "/run/crun", "/run/user/0/runc"};
	struct strbuf b = {0};
	bool found = false;

	if (strlen(cgroup) < 2)
		return false;
	for (size_t i = 0; !found && i < sizeof(folders) / sizeof(folders[0]); i++) {
		CLEANUP_CLOSEDIR DIR *d = NULL;
		struct dirent *de;

		if (sysroot_opendir(root, &d, "%s", folders[i]) < 0) {
			d = NULL;
			continue;
		}
		while (!found && (de = readdir(d))) {
			strbuf_clear(&b);
			if (de->d_name[0] == '.' ||
			    sysroot_read(root, &b, "%s/%s/state.json", folders[i], de->d_name) <= 0)
				continue;
			found = names_group(b.s, cgroup);
			if (found)
				snprintf(ret_id, size, "%s", de->d_name);
		}
	}
	strbuf_done(&b);
	return found;
}
