/* Who has files of accelerators open: by the links in /proc/PID/fd. */
#include "dev_holders.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cleanup.h"

static const struct {
	const char *prefix;
	bool numbered;
	enum dev_family family;
} names[] = {
	{"/dev/nvidiactl", false, DEV_NVIDIA_ALL},
	{"/dev/nvidia-uvm", false, DEV_NVIDIA_ALL},
	{"/dev/nvidia", true, DEV_NVIDIA},
	{"/dev/davinci_manager", false, DEV_ASCEND_ALL},
	{"/dev/davinci", true, DEV_ASCEND},
	{"/dev/dri/renderD", true, DEV_RENDER},
	{"/dev/dri/card", true, DEV_RENDER},
	{"/dev/kfd", false, DEV_KFD},
	{"/dev/accel/accel", true, DEV_ACCEL},
	{"/dev/infiniband/uverbs", true, DEV_RDMA},
};

enum dev_family dev_family(const char *path, uint32_t *ret_minor)
{
	*ret_minor = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i].prefix);
		char *end;

		if (strncmp(path, names[i].prefix, n))
			continue;
		if (!names[i].numbered && !path[n])
			return names[i].family;
		if (!names[i].numbered || !isdigit((unsigned char)path[n]))
			continue;
		*ret_minor = (uint32_t)strtoul(path + n, &end, 10);
		if (!*end)
			return names[i].family;
	}
	return DEV_NONE;
}

#define CARD "/dev/dri/card"

enum dev_family dev_file_family(const struct sysroot *root, const char *path, uint32_t *ret_minor)
{
	enum dev_family family = dev_family(path, ret_minor);
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;

	if (family != DEV_RENDER || strncmp(path, CARD, strlen(CARD)) ||
	    sysroot_opendir(root, &d, "/sys/class/drm/card%u/device/drm", *ret_minor) < 0) {
		d = NULL;
		return family;
	}
	while ((de = readdir(d)))
		if (sscanf(de->d_name, "renderD%u", ret_minor) == 1)
			break;
	return family;
}

const char *dev_holders_path(const struct dev_holders *h, uint32_t rdev)
{
	vec_for(&h->numbers, x)
		if (x->rdev == rdev)
			return x->path;
	return NULL;
}

/* Not all drivers tell the kernel the names of their devices: NVIDIA's does not. */
static void keep_number(const struct sysroot *root, uint32_t pid, const char *fd, const char *path, struct dev_holders *h)
{
	struct dev_number n = {0};
	char file[64];
	struct stat st;

	snprintf(file, sizeof(file), "proc/%u/fd/%.20s", pid, fd);
	if (!root->live || strlen(path) >= sizeof(n.path) || fstatat(root->fd, file, &st, 0) || !S_ISCHR(st.st_mode))
		return;
	n.rdev = major(st.st_rdev) << 20 | minor(st.st_rdev);
	if (dev_holders_path(h, n.rdev))
		return;
	memcpy(n.path, path, strlen(path));
	vec_push(&h->numbers, n);
}

static void found(struct dev_holders *h, uint32_t pid, enum dev_family family, uint32_t minor, uint32_t fd)
{
	struct dev_holder *x;

	for (size_t i = h->v.n; i && h->v.v[i - 1].pid == pid; i--)
		if (h->v.v[i - 1].family == family && h->v.v[i - 1].minor == minor) {
			h->v.v[i - 1].opened++;
			return;
		}
	x = vec_add(&h->v);
	*x = (struct dev_holder){.pid = pid, .family = family, .minor = minor, .opened = 1, .example_fd = fd};
}

static void read_process(const struct sysroot *root, uint32_t pid, struct dev_holders *h)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct strbuf b = {0};
	struct dirent *de;
	int rc = sysroot_opendir(root, &d, "/proc/%u/fd", pid);

	if (rc < 0) {
		d = NULL;
		h->unreadable += rc != -ENOENT && rc != -ESRCH;
		return;
	}
	while ((de = readdir(d))) {
		enum dev_family family;
		uint32_t number;

		strbuf_clear(&b);
		if (de->d_name[0] == '.' || sysroot_readlink(root, &b, "/proc/%u/fd/%s", pid, de->d_name) <= 0)
			continue;
		if (strncmp(b.s, "/dev/", 5))
			continue;
		family = dev_file_family(root, b.s, &number);
		if (family == DEV_NONE)
			continue;
		found(h, pid, family, number, (uint32_t)strtoul(de->d_name, NULL, 10));
		keep_number(root, pid, de->d_name, b.s, h);
	}
	strbuf_done(&b);
}

static int by_pid(const void *a, const void *b)
{
	const struct dev_holder *x = a, *y = b;

	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : x->family != y->family
		? (x->family < y->family ? -1 : 1) : x->minor < y->minor ? -1 : x->minor > y->minor;
}

void dev_holders_read(const struct sysroot *root, const uint32_t *pids, size_t n, struct dev_holders *ret)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; pids && i < n; i++)
		read_process(root, pids[i], ret);
	if (!pids && sysroot_opendir(root, &d, "/proc") < 0) {
		d = NULL;
		return;
	}
	while (!pids && (de = readdir(d)))
		if (isdigit((unsigned char)de->d_name[0]))
			read_process(root, (uint32_t)strtoul(de->d_name, NULL, 10), ret);
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(ret->v.v[0]), by_pid);
}

void dev_holders_done(struct dev_holders *h)
{
	vec_done(&h->v);
	vec_done(&h->numbers);
}
