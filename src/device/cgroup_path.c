/* Paths of control groups, as the container runtimes make them. */
#include "cgroup_path.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Where a part of a path is PREFIX ID SUFFIX, the id is a container's. */
static const struct {
	const char *prefix, *suffix, *runtime;
} forms[] = {
	{"docker-", ".scope", "docker"},
	{"cri-containerd-", ".scope", "containerd"},
	{"nerdctl-", ".scope", "containerd"},
	{"crio-", ".scope", "crio"},
	{"crio-", "", "crio"},
	{"libpod-", ".scope", "podman"},
	{"libpod-", "", "podman"},
	{"isulad-", ".scope", "isulad"},
	{"lxc.payload.", "", "lxc"},
	{"systemd-nspawn@", ".service", "nspawn"},
	{"machine-", ".scope", "nspawn"},
};

/* Where a folder of that name holds one for each container. */
static const struct {
	const char *parent, *runtime;
} parents[] = {
	{"docker", "docker"}, {"isulad", "isulad"}, {"lxc", "lxc"}, {"lxc.payload", "lxc"},
	{"k8s.io", "containerd"}, {"libpod_parent", "podman"},
};

/* What begins like a container and is its monitor. */
static const char *const monitors[] = {"crio-conmon-", "libpod-conmon-", "lxc.monitor", "libpod_pod_"};

static bool is_hex(const char *s, size_t n, size_t least)
{
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return n >= least;
}

static void copy(char ret[CGROUP_ID_BYTES], const char *s, size_t n)
{
	if (n >= CGROUP_ID_BYTES)
		n = CGROUP_ID_BYTES - 1;
	memcpy(ret, s, n);
	ret[n] = '\0';
}

/* Whether @p what is in the @p n bytes at @p s. */
static const char *find(const char *s, size_t n, const char *what)
{
	size_t m = strlen(what);

	for (size_t i = 0; i + m <= n; i++)
		if (!memcmp(s + i, what, m))
			return s + i;
	return NULL;
}

static bool has_prefix(const char *s, size_t n, const char *prefix)
{
	size_t k = strlen(prefix);

	return n > k && !memcmp(s, prefix, k);
}

static bool has_suffix(const char *s, size_t n, const char *suffix)
{
	size_t k = strlen(suffix);

	return n > k && !memcmp(s + n - k, suffix, k);
}

/* systemd writes '-' within a name as '_', as '-' is its separator. */
static void set_pod(struct cgroup_name *c, const char *s, size_t n)
{
	copy(c->pod, s, n);
	for (char *p = c->pod; *p; p++)
		if (*p == '_')
			*p = '-';
}

/* "pod3f1c…", "kubepods-burstable-pod3f1c_….slice", "machine-libpod_pod_4e5f….slice" */
static bool parse_pod(const char *s, size_t n, struct cgroup_name *c)
{
	const char *at;

	if (has_suffix(s, n, ".slice"))
		n -= strlen(".slice");
	at = find(s, n, "libpod_pod_");
	if (at) {
		copy(c->pod, at + 11, n - (size_t)(at + 11 - s));
		return true;
	}
	if (has_prefix(s, n, "pod")) {
		set_pod(c, s + 3, n - 3);
	} else {
		if (!has_prefix(s, n, "kubepods"))
			return false;
		at = find(s, n, "-pod");
		if (at)
			set_pod(c, at + 4, n - (size_t)(at + 4 - s));
		c->qos = "guaranteed";
	}
	if (find(s, n, "burstable"))
		c->qos = "burstable";
	else if (find(s, n, "besteffort"))
		c->qos = "besteffort";
	return true;
}

/* "kubepods-burstable-pod3f1c.slice:cri-containerd:0123": what systemd's runtimes write with version 1. */
static bool parse_triple(const char *s, size_t n, struct cgroup_name *c)
{
	const char *first = NULL, *last = NULL;

	for (size_t i = 0; i < n; i++)
		if (s[i] == ':') {
			first = first ?: s + i;
			last = s + i;
		}
	if (!first || first == last)
		return false;
	c->pod[0] = '\0';
	parse_pod(s, (size_t)(first - s), c);
	c->runtime = find(first, (size_t)(last - first), "containerd") ? "containerd"
		     : find(first, (size_t)(last - first), "crio")	     ? "crio"
									     : "unknown";
	copy(c->id, last + 1, n - (size_t)(last + 1 - s));
	return c->id[0];
}

static bool is_monitor(const char *s, size_t n)
{
	for (size_t i = 0; i < sizeof(monitors) / sizeof(monitors[0]); i++)
		if (has_prefix(s, n, monitors[i]))
			return true;
	return false;
}

static bool parse_form(const char *s, size_t n, struct cgroup_name *c)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t from = strlen(forms[i].prefix), to = n - strlen(forms[i].suffix);
		bool by_name = !strcmp(forms[i].runtime, "lxc") || !strcmp(forms[i].runtime, "nspawn");

		if (!has_prefix(s, n, forms[i].prefix) ||
		    (forms[i].suffix[0] && !has_suffix(s, n, forms[i].suffix)) || to <= from)
			continue;
		if (!by_name && !is_hex(s + from, to - from, 12))
			continue;
		c->runtime = forms[i].runtime;
		copy(c->id, s + from, to - from);
		return true;
	}
	return false;
}

/* The folder behind @parent; containers below a pod's folder have a bare id. */
static bool parse_child(const char *parent, size_t np, const char *s, size_t n, struct cgroup_name *c)
{
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		bool lxc = !strcmp(parents[i].runtime, "lxc");

		if (strlen(parents[i].parent) != np || memcmp(parents[i].parent, parent, np) ||
		    (!lxc && !is_hex(s, n, 12)))
			continue;
		c->runtime = parents[i].runtime;
		copy(c->id, s, n);
		return true;
	}
	if (!c->pod[0] || !is_hex(s, n, 32))
		return false;
	c->runtime = "unknown";
	copy(c->id, s, n);
	return true;
}

bool cgroup_parse(const char *path, struct cgroup_name *ret)
{
	const char *parent = "";
	size_t np = 0;
	bool found = false, in_kubepods = false, below_up = false;

	memset(ret, 0, sizeof(*ret));
	for (const char *s = path, *end; *s; s = *end ? end + 1 : end) {
		size_t n;

		end = strchrnul(s, '/');
		n = (size_t)(end - s);
		if (n == 2 && !memcmp(s, "..", 2))
			below_up = true;
		if (!n || (n == 2 && !memcmp(s, "..", 2)))
			continue;
		if (is_monitor(s, n))
			return false;
		if (memchr(s, ':', n) && parse_triple(s, n, ret)) {
			found = true;
		} else if (parse_form(s, n, ret) || parse_child(parent, np, s, n, ret)) {
			found = true;
		} else if (has_prefix(s, n, "kubepods") || (n == 8 && !memcmp(s, "kubepods", 8))) {
			in_kubepods = true;
			ret->qos = ret->qos ?: "guaranteed";
			parse_pod(s, n, ret);
		} else if (in_kubepods && (n == 9 || n == 10)) {
			ret->qos = !memcmp(s, "burstable", 9) ? "burstable"
				   : n == 10 && !memcmp(s, "besteffort", 10) ? "besteffort" : ret->qos;
		} else if (below_up && !found && is_hex(s, n, 64)) {
			/* Beside the group that the namespace shows as "/": what is above both is not told. */
			ret->runtime = "unknown";
			copy(ret->id, s, n);
			found = true;
		}
		below_up = false;
		if (!found && (has_prefix(s, n, "pod") || find(s, n, "libpod_pod_")))
			parse_pod(s, n, ret);
		parent = s;
		np = n;
	}
	return found;
}
