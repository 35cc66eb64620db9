/* AMD, Intel and other devices: by the kernel's interfaces, and ROCm SMI where it is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accel.h"
#include "clock.h"
#include "dev_holders.h"
#include "dl_table.h"
#include "drm_sysfs.h"
#include "rocm_abi.h"

#define HOLDERS_EVERY_NS (10 * NS_PER_SEC)

struct rocm {
#define FN(need, name, ...) int (*name)(__VA_ARGS__);
#include "rocm_fn.def"
#undef FN
};

static const struct dl_function functions[] = {
#define FN(need, name, ...) {#name, need, offsetof(struct rocm, name)},
#include "rocm_fn.def"
#undef FN
};

/* Engine time of a client at the last look. */
struct client_time {
	uint32_t pid;
	uint64_t id, engine_ns, mono_ns;
};

struct drm {
	struct sysroot root;
	struct rocm *rocm; /* NULL: not there */
	char rocm_why[160];
	struct dev_holders holders;
	uint64_t holders_ns;
	VEC(struct client_time) times;
};

#define CALL(n, f, ...) ((n)->f && (n)->f(__VA_ARGS__) == 0)

static struct drm *open_drm(bool no_library)
{
	static const char *const libraries[] = {"librocm_smi64.so", "librocm_smi64.so.7", "librocm_smi64.so.6",
						"librocm_smi64.so.5", "/opt/rocm/lib/librocm_smi64.so", NULL};
	struct drm *d = mem_alloc(sizeof(*d));
	struct rocm *n = mem_alloc(sizeof(*n));
	struct accel_report why = {0};
	struct err e;

	if (sysroot_open("/", &d->root, &e) < 0)
		d->root.fd = -1;
	if (!no_library && dl_table_load(n, libraries, functions, sizeof(functions) / sizeof(functions[0]), &why) &&
	    !n->rsmi_init(0)) {
		d->rocm = n;
		return d;
	}
	free(n);
	snprintf(d->rocm_why, sizeof(d->rocm_why), "%.150s",
		 why.head.why[0] ? why.head.why : "ROCm SMI cannot be initialised");
	return d;
}

static struct accel *device_at(struct accel_report *r, const char *pci, uint32_t index)
{
	struct accel *d;

	for (size_t i = 0; pci[0] && i < r->devices.n; i++)
		if (!strcmp(r->devices.v[i].pci, pci))
			return &r->devices.v[i];
	d = accel_add(r, ACCEL_GPU, index);
	memcpy(d->pci, pci, sizeof(d->pci));
	return d;
}

static void rocm_load(struct rocm *n, uint32_t i, struct accel *d)
{
	uint64_t v;
	uint32_t pct;
	int64_t milli;

	if (!CALL(n, rsmi_dev_name_get, i, d->model, sizeof(d->model)))
		d->model[0] = '\0';
	if (CALL(n, rsmi_dev_unique_id_get, i, &v))
		snprintf(d->uuid, sizeof(d->uuid), "%016llx", (unsigned long long)v);
	if (CALL(n, rsmi_dev_busy_percent_get, i, &pct))
		accel_set(d, ACCEL_UTIL_PCT, pct);
	if (CALL(n, rsmi_dev_memory_busy_percent_get, i, &pct))
		accel_set(d, ACCEL_MEM_UTIL_PCT, pct);
	if (CALL(n, rsmi_dev_memory_total_get, i, ROCM_MEMORY_VRAM, &v))
		accel_set(d, ACCEL_MEM_TOTAL_BYTES, (double)v);
	if (CALL(n, rsmi_dev_memory_usage_get, i, ROCM_MEMORY_VRAM, &v))
		accel_set(d, ACCEL_MEM_USED_BYTES, (double)v);
	/* In microwatts. */
	if (CALL(n, rsmi_dev_power_ave_get, i, 0, &v))
		accel_set(d, ACCEL_POWER_MW, (double)v / 1000);
	if (CALL(n, rsmi_dev_power_cap_get, i, 0, &v))
		accel_set(d, ACCEL_POWER_LIMIT_MW, (double)v / 1000);
	if (CALL(n, rsmi_dev_temp_metric_get, i, ROCM_TEMPERATURE_EDGE, ROCM_TEMPERATURE_NOW, &milli))
		accel_set(d, ACCEL_TEMPERATURE_C, (double)milli / 1000);
}

static void rocm_processes(struct rocm *n, const uint32_t *places, uint32_t count, struct accel_report *r)
{
	static struct rocm_process list[ROCM_PROCESSES_MOST];
	uint32_t total = ROCM_PROCESSES_MOST;

	if (!CALL(n, rsmi_compute_process_info_get, list, &total))
		return;
	for (uint32_t i = 0; i < total && i < ROCM_PROCESSES_MOST; i++) {
		uint32_t gpus[ROCM_DEVICES_MOST], ngpus = ROCM_DEVICES_MOST;

		if (!CALL(n, rsmi_compute_process_gpus_get, list[i].pid, gpus, &ngpus))
			continue;
		for (uint32_t k = 0; k < ngpus && k < ROCM_DEVICES_MOST; k++) {
			struct accel_process *p;

			if (gpus[k] >= count)
				continue;
			p = vec_add(&r->processes);
			p->device = places[gpus[k]];
			p->pid = list[i].pid;
			/* Of all its devices together. */
			p->has_memory = ngpus == 1;
			p->memory_bytes = list[i].vram_bytes;
		}
	}
}

static void rocm_links(struct rocm *n, const uint32_t *places, uint32_t count, struct accel_report *r)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < count; k++) {
			struct accel_link *l;
			uint64_t hops;
			int type;

			if (i == k || !CALL(n, rsmi_topo_get_link_type, i, k, &hops, &type))
				continue;
			l = vec_add(&r->links);
			l->device = places[i];
			l->peer_device = (int32_t)places[k];
			snprintf(l->kind, sizeof(l->kind), "%s",
				 type == ROCM_LINK_XGMI ? "XGMI" : type == ROCM_LINK_PCIE ? "PCIe" : "other");
		}
}

static void read_rocm(struct rocm *n, struct accel_report *r)
{
	uint32_t places[ROCM_DEVICES_MOST], count = 0;

	if (!CALL(n, rsmi_num_monitor_devices, &count))
		return;
	if (count > ROCM_DEVICES_MOST)
		count = ROCM_DEVICES_MOST;
	for (uint32_t i = 0; i < count; i++) {
		char pci[20] = "";
		struct accel *d;
		uint64_t id;

		if (CALL(n, rsmi_dev_pci_id_get, i, &id))
			snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", (unsigned)(id >> 32) & 0xffff,
				 (unsigned)(id >> 8) & 0xff, (unsigned)(id >> 3) & 0x1f, (unsigned)id & 7);
		d = device_at(r, pci, i);
		places[i] = (uint32_t)(d - r->devices.v);
		rocm_load(n, i, d);
	}
	rocm_processes(n, places, count, r);
	if (!r->links.n)
		rocm_links(n, places, count, r);
}

/* Time on the engines since the last look, in percent of it; several engines may run at once. */
static bool client_use(struct drm *d, uint32_t pid, const struct drm_client *c, double *ret_pct)
{
	uint64_t now = clock_mono_ns();
	bool known = false;

	vec_for(&d->times, t) {
		if (t->pid != pid || t->id != c->id)
			continue;
		known = c->engine_ns >= t->engine_ns && now > t->mono_ns;
		if (known)
			*ret_pct = (double)(c->engine_ns - t->engine_ns) * 100 / (double)(now - t->mono_ns);
		t->engine_ns = c->engine_ns;
		t->mono_ns = now;
		return known;
	}
	vec_push(&d->times, ((struct client_time){pid, c->id, c->engine_ns, now}));
	return false;
}

static struct accel_process *process_on(struct accel_report *r, uint32_t device, uint32_t pid)
{
	struct accel_process *p;

	vec_for(&r->processes, x)
		if (x->device == device && x->pid == pid)
			return x;
	p = vec_add(&r->processes);
	p->device = device;
	p->pid = pid;
	return p;
}

static void read_client(struct drm *d, const struct dev_holder *h, struct accel_report *r)
{
	struct strbuf b = {0};
	struct drm_client c;
	double pct;

	if (sysroot_read(&d->root, &b, "/proc/%u/fdinfo/%u", h->pid, h->example_fd) > 0 &&
	    drm_fdinfo_parse(b.s, &c))
		for (uint32_t i = 0; i < r->devices.n; i++) {
			const struct accel *a = &r->devices.v[i];
			struct accel_process *p;

			if (c.pci[0] ? strcmp(a->pci, c.pci) != 0
				     : a->minor != (int32_t)h->minor || a->accel_class != (h->family == DEV_ACCEL))
				continue;
			p = process_on(r, i, h->pid);
			if (c.has_memory && !p->has_memory) {
				p->has_memory = true;
				p->memory_bytes = c.memory_bytes;
			}
			if (c.has_engine && client_use(d, h->pid, &c, &pct)) {
				p->has_util = true;
				p->util_pct += pct;
			}
		}
	strbuf_done(&b);
}

static void read_clients(struct drm *d, struct accel_report *r)
{
	uint64_t now = clock_mono_ns();

	if (!d->holders_ns || now - d->holders_ns >= HOLDERS_EVERY_NS) {
		d->holders_ns = now;
		dev_holders_done(&d->holders);
		dev_holders_read(&d->root, NULL, 0, &d->holders);
	}
	vec_for(&d->holders.v, h)
		if (h->family == DEV_RENDER || h->family == DEV_ACCEL)
			read_client(d, h, r);
}

static void drm_read(void **state, bool no_library, struct accel_report *r)
{
	struct drm *d = *state;

	if (!d)
		*state = d = open_drm(no_library);
	drm_devices_read(&d->root, r);
	kfd_links_read(&d->root, r);
	if (d->rocm)
		read_rocm(d->rocm, r);
	if (!r->devices.n) {
		accel_state(r, ACCEL_ABSENT, "no such device in /sys/class/drm and /sys/class/accel; %s",
			    d->rocm ? "none by ROCm SMI" : d->rocm_why);
		return;
	}
	snprintf(r->head.rung, sizeof(r->head.rung), "%s", d->rocm ? "rocm-smi" : "drm");
	read_clients(d, r);
}

const struct accel_source accel_drm = {
	.name = "drm",
	.gives = "AMD, Intel and other devices: use, memory, power, links, processes",
	.how = "load the kernel's driver of the device; for AMD's also install librocm_smi64.so",
	.read = drm_read,
};
