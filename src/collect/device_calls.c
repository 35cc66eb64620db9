/* Calls of processes on devices, and the time that these take: see device_calls.h. */
#include "device_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "collect_device.h"
#include "ipc_abi.h"
#include "sysroot.h"

/* As long as a driver may take for its first answer, and a little more. */
#define PATIENCE_NS (10 * NS_PER_SEC)

struct device_file {
	uint32_t rdev;
	char path[IPC_NAME_BYTES + 32]; /* "/dev/net/tun"; "": not known */
	bool asked;			/* the kernel, for its name */
};

/* Of one process and one device, not told yet. */
struct calls {
	uint32_t pid, rdev;
	uint64_t start_ns; /* of the process */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint64_t ioctls, failed, waits, blocked_ns;
	bool has_ioctls, has_waits;
};

struct device_calls {
	struct sysroot root;
	VEC(struct device_file) files;
	VEC(struct calls) calls;
};

struct device_calls *device_calls_new(void)
{
	struct device_calls *d = mem_alloc(sizeof(*d));
	struct err e;

	if (sysroot_open("/", &d->root, &e) < 0)
		d->root.fd = -1;
	return d;
}

void device_calls_free(struct device_calls *d)
{
	if (!d)
		return;
	vec_done(&d->files);
	vec_done(&d->calls);
	sysroot_close(&d->root);
	free(d);
}

static struct device_file *file_of(struct device_calls *d, uint32_t rdev)
{
	struct device_file *f;

	vec_for(&d->files, x)
		if (x->rdev == rdev)
			return x;
	f = vec_add(&d->files);
	f->rdev = rdev;
	return f;
}

static bool is_terminal(uint32_t rdev)
{
	uint32_t major = rdev >> 20;

	/* linux/major.h: memory devices, terminals, pseudo terminals */
	return major == 1 || major == 4 || major == 5 || (major >= 136 && major < 144);
}

/* Those of one interval are few: a process and the devices that it uses. */
static struct calls *calls_of(struct device_calls *d, const struct proc *by, uint32_t rdev)
{
	struct calls *c;

	for (size_t i = d->calls.n; i; i--) {
		c = &d->calls.v[i - 1];
		if (c->pid == by->pid && c->start_ns == by->start_ns && c->rdev == rdev)
			return c;
	}
	c = vec_add(&d->calls);
	*c = (struct calls){.pid = by->pid, .start_ns = by->start_ns, .rdev = rdev, .since_ns = clock_mono_ns()};
	return c;
}

void device_calls_ioctl(struct device_calls *d, const struct proc *by, uint32_t rdev, const char *name, uint64_t ioctls,
			uint64_t failed)
{
	struct device_file *f = file_of(d, rdev);
	struct calls *c = calls_of(d, by, rdev);

	if (!f->path[0] && name[0])
		snprintf(f->path, sizeof(f->path), "/dev/%.*s", IPC_NAME_BYTES, name);
	c->ioctls += ioctls;
	c->failed += failed;
	c->has_ioctls = true;
}

void device_calls_blocked(struct device_calls *d, const struct proc *by, uint32_t rdev, uint64_t waits, uint64_t ns)
{
	struct calls *c;

	if (is_terminal(rdev))
		return;
	c = calls_of(d, by, rdev);
	c->waits += waits;
	c->blocked_ns += ns;
	c->has_waits = true;
}

/* What the kernel calls it counts for more than a name that somebody gave it: "DEVNAME=net/tun". */
static void ask_name(struct device_calls *d, struct device_file *f)
{
	struct strbuf b = {0};
	const char *name;

	if (f->asked)
		return;
	f->asked = true;
	if (sysroot_read(&d->root, &b, "/sys/dev/char/%u:%u/uevent", f->rdev >> 20, f->rdev & 0xfffff) > 0 &&
	    (name = strstr(b.s, "DEVNAME=")))
		snprintf(f->path, sizeof(f->path), "/dev/%.*s", (int)strcspn(name + 8, "\n"), name + 8);
	strbuf_done(&b);
}

/* @return NODE_NONE: it is an accelerator whose driver has not answered yet, or it has no name so far */
static uint32_t device_node(struct collect *c, struct graph *g, uint32_t rdev, bool patient)
{
	struct device_file *f = file_of(c->device_calls, rdev);
	const char *path;
	struct node *n;
	enum dev_family family;
	uint32_t minor, accel = NODE_NONE;
	char number[32];

	ask_name(c->device_calls, f);
	/* Who has it open may be found out yet. */
	path = f->path[0] ? NULL : dev_holders_path(&c->devices->holders, rdev);
	if (path)
		snprintf(f->path, sizeof(f->path), "%s", path);
	if (!f->path[0] && patient)
		return NODE_NONE;
	family = dev_file_family(&c->device_calls->root, f->path, &minor);
	if (family == DEV_NVIDIA || family == DEV_ASCEND || family == DEV_RENDER || family == DEV_ACCEL) {
		accel = devices_node(c->devices, g, family, minor);
		if (accel != NODE_NONE || patient)
			return accel;
	}
	snprintf(number, sizeof(number), "char %u:%u", rdev >> 20, rdev & 0xfffff);
	n = graph_new_node(g, &device_type);
	SET(device, n, device_id, graph_str(g, f->path[0] ? f->path : number));
	SET(device, n, device_type, graph_str(g, "char_device"));
	return graph_add_node(g, n)->index;
}

static bool emit(struct collect *c, struct graph *g, const struct calls *k, bool patient)
{
	uint32_t proc = procs_get(&c->procs, k->pid, k->start_ns), device;
	struct edge *x;

	if (!c->procs.v.v[proc].selected)
		return true;
	device = device_node(c, g, k->rdev, patient);
	if (device == NODE_NONE)
		return false;
	x = graph_new_edge(g, &access_type, procs_node(&c->procs, g, proc), device);
	if (k->has_ioctls) {
		SET(access, x, ioctls, k->ioctls);
		SET(access, x, failed_ioctls, k->failed);
	}
	if (k->has_waits) {
		SET(access, x, blocked_ns, k->blocked_ns);
		SET(access, x, blocked_calls, k->waits);
	}
	graph_add_edge(g, x);
	return true;
}

void device_calls_emit(struct collect *c, struct graph *g, bool last)
{
	struct device_calls *d = c->device_calls;
	uint64_t now = clock_mono_ns();
	size_t kept = 0;

	for (size_t i = 0; i < d->calls.n; i++) {
		struct calls k = d->calls.v[i];

		if (!emit(c, g, &k, !last && now - k.since_ns < PATIENCE_NS))
			d->calls.v[kept++] = k;
	}
	d->calls.n = kept;
}
