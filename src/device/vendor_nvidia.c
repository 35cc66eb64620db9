/* NVIDIA's devices: by the library NVML, and by the tool nvidia-smi where that does not work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accel.h"
#include "dl_table.h"
#include "nvml_abi.h"
#include "nvidia_smi.h"

struct nvml {
#define FN(need, name, ...) int (*name)(__VA_ARGS__);
#include "nvml_fn.def"
#undef FN
	unsigned long long seen_us[256]; /* newest sample of use by process, by device */
};

static const struct dl_function functions[] = {
#define FN(need, name, ...) {#name, need, offsetof(struct nvml, name)},
#include "nvml_fn.def"
#undef FN
};

static bool load(struct nvml *n, struct accel_report *r)
{
	static const char *const libraries[] = {"libnvidia-ml.so.1", NULL};

	return dl_table_load(n, libraries, functions, sizeof(functions) / sizeof(functions[0]), r);
}

static bool init(struct nvml *n, struct accel_report *r)
{
	int rc = n->nvmlInit_v2();

	if (rc == NVML_MISMATCH)
		accel_state(r, ACCEL_FAILED, "the library NVML is not of the driver's version: one of them was "
					     "updated without a restart");
	else if (rc == NVML_NO_DRIVER)
		accel_state(r, ACCEL_ABSENT, "the library NVML is there, but no driver is loaded");
	else if (rc)
		accel_state(r, ACCEL_FAILED, "NVML cannot be initialised: error %d", rc);
	return !rc;
}

#define CALL(n, f, ...) ((n)->f && (n)->f(__VA_ARGS__) == NVML_OK)

static void read_names(struct nvml *n, nvml_device h, struct accel *d)
{
	if (!CALL(n, nvmlDeviceGetName, h, d->model, sizeof(d->model)))
		d->model[0] = '\0';
	if (!CALL(n, nvmlDeviceGetUUID, h, d->uuid, sizeof(d->uuid)))
		d->uuid[0] = '\0';
}

static void read_identity(struct nvml *n, nvml_device h, struct accel *d)
{
	struct nvml_pci pci = {0};
	unsigned minor;

	if (CALL(n, nvmlDeviceGetPciInfo_v3, h, &pci) || CALL(n, nvmlDeviceGetPciInfo_v2, h, &pci)) {
		pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
		accel_pci(d->pci, pci.bus_id);
	}
	read_names(n, h, d);
	if (CALL(n, nvmlDeviceGetMinorNumber, h, &minor))
		d->minor = (int32_t)minor;
}

static void read_memory(struct nvml *n, nvml_device h, struct accel *d)
{
	struct nvml_memory_v2 m2 = {.version = NVML_MEMORY_V2};
	struct nvml_memory m;

	/* The first version counts what the driver keeps for itself as used. */
	if (CALL(n, nvmlDeviceGetMemoryInfo_v2, h, &m2)) {
		accel_set(d, ACCEL_MEM_TOTAL_BYTES, (double)m2.total);
		accel_set(d, ACCEL_MEM_USED_BYTES, (double)m2.used);
	} else if (CALL(n, nvmlDeviceGetMemoryInfo, h, &m)) {
		accel_set(d, ACCEL_MEM_TOTAL_BYTES, (double)m.total);
		accel_set(d, ACCEL_MEM_USED_BYTES, (double)m.used);
	}
}

static void read_load(struct nvml *n, nvml_device h, struct accel *d)
{
	struct nvml_utilization u;
	unsigned long long bits;
	unsigned v;

	if (CALL(n, nvmlDeviceGetUtilizationRates, h, &u)) {
		accel_set(d, ACCEL_UTIL_PCT, u.gpu);
		accel_set(d, ACCEL_MEM_UTIL_PCT, u.memory);
	}
	read_memory(n, h, d);
	if (CALL(n, nvmlDeviceGetPowerUsage, h, &v))
		accel_set(d, ACCEL_POWER_MW, v);
	if (CALL(n, nvmlDeviceGetEnforcedPowerLimit, h, &v))
		accel_set(d, ACCEL_POWER_LIMIT_MW, v);
	if (CALL(n, nvmlDeviceGetTemperature, h, 0, &v))
		accel_set(d, ACCEL_TEMPERATURE_C, v);
	if (CALL(n, nvmlDeviceGetClockInfo, h, NVML_CLOCK_SM, &v))
		accel_set(d, ACCEL_CLOCK_KHZ, v * 1000.0);
	if (CALL(n, nvmlDeviceGetClockInfo, h, NVML_CLOCK_MEM, &v))
		accel_set(d, ACCEL_MEM_CLOCK_KHZ, v * 1000.0);
	if (CALL(n, nvmlDeviceGetMaxClockInfo, h, NVML_CLOCK_SM, &v))
		accel_set(d, ACCEL_CLOCK_MAX_KHZ, v * 1000.0);
	if (CALL(n, nvmlDeviceGetCurrentClocksEventReasons, h, &bits) ||
	    CALL(n, nvmlDeviceGetCurrentClocksThrottleReasons, h, &bits))
		accel_set(d, ACCEL_THROTTLE_BITS, (double)bits);
	if (CALL(n, nvmlDeviceGetTotalEccErrors, h, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &bits))
		accel_set(d, ACCEL_ECC_ERRORS, (double)bits);
}

static void read_pcie(struct nvml *n, nvml_device h, struct accel *d)
{
	unsigned v;

	if (CALL(n, nvmlDeviceGetCurrPcieLinkGeneration, h, &v))
		accel_set(d, ACCEL_PCIE_GEN, v);
	if (CALL(n, nvmlDeviceGetMaxPcieLinkGeneration, h, &v))
		accel_set(d, ACCEL_PCIE_GEN_MAX, v);
	if (CALL(n, nvmlDeviceGetCurrPcieLinkWidth, h, &v))
		accel_set(d, ACCEL_PCIE_WIDTH, v);
	if (CALL(n, nvmlDeviceGetMaxPcieLinkWidth, h, &v))
		accel_set(d, ACCEL_PCIE_WIDTH_MAX, v);
	/* In KB/s, over the 20 ms that each of the two calls takes. */
	if (CALL(n, nvmlDeviceGetPcieThroughput, h, NVML_PCIE_TX, &v))
		accel_set(d, ACCEL_PCIE_TX_BYTES_S, v * 1000.0);
	if (CALL(n, nvmlDeviceGetPcieThroughput, h, NVML_PCIE_RX, &v))
		accel_set(d, ACCEL_PCIE_RX_BYTES_S, v * 1000.0);
}

/* One entry for all links to the same peer. */
static struct accel_link *link_to(struct accel_report *r, uint32_t device, const char *pci)
{
	struct accel_link *l;

	vec_for(&r->links, known)
		if (known->device == device && !strcmp(known->peer_pci, pci))
			return known;
	l = vec_add(&r->links);
	l->device = device;
	l->peer_device = -1;
	snprintf(l->kind, sizeof(l->kind), "NVLink");
	snprintf(l->peer_pci, sizeof(l->peer_pci), "%s", pci);
	return l;
}

static void read_links(struct nvml *n, nvml_device h, struct accel_report *r, uint32_t device)
{
	struct nvml_field_value v[2] = {
		{.field = NVML_FIELD_LINK_TX_KIB, .scope = ~0u},
		{.field = NVML_FIELD_LINK_RX_KIB, .scope = ~0u},
	};
	bool any = false;

	for (unsigned i = 0; i < NVML_LINKS_MOST; i++) {
		struct nvml_pci pci = {0};
		struct accel_link *l;
		unsigned version;
		char peer[20] = "";
		int active;

		if (!CALL(n, nvmlDeviceGetNvLinkState, h, i, &active))
			break;
		any = true;
		if (CALL(n, nvmlDeviceGetNvLinkRemotePciInfo_v2, h, i, &pci)) {
			pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
			accel_pci(peer, pci.bus_id);
		}
		l = link_to(r, device, peer);
		l->links++;
		l->active += active == 1;
		if (CALL(n, nvmlDeviceGetNvLinkVersion, h, i, &version))
			l->version = version;
	}
	if (!any || !CALL(n, nvmlDeviceGetFieldValues, h, 2, v))
		return;
	if (v[0].rc == NVML_OK)
		accel_set(&r->devices.v[device], ACCEL_LINK_TX_BYTES, (double)v[0].value.ull * 1024);
	if (v[1].rc == NVML_OK)
		accel_set(&r->devices.v[device], ACCEL_LINK_RX_BYTES, (double)v[1].value.ull * 1024);
}

#define PROCESSES_MOST 512

static struct accel_process *process_of(struct accel_report *r, uint32_t device, uint32_t pid)
{
	struct accel_process *p;

	vec_for(&r->processes, known)
		if (known->device == device && known->pid == pid)
			return known;
	p = vec_add(&r->processes);
	p->device = device;
	p->pid = pid;
	return p;
}

static void add_processes(struct accel_report *r, uint32_t device, const struct nvml_process *list, unsigned count)
{
	for (unsigned i = 0; i < count && i < PROCESSES_MOST; i++) {
		struct accel_process *p = process_of(r, device, list[i].pid);

		/* In several lists when it does both, with the same memory. */
		if (list[i].used_bytes == NVML_UNKNOWN)
			continue;
		p->has_memory = true;
		if (list[i].used_bytes > p->memory_bytes)
			p->memory_bytes = list[i].used_bytes;
	}
}

static void read_process_use(struct nvml *n, nvml_device h, struct accel_report *r, uint32_t device,
			     uint32_t index)
{
	static struct nvml_process_utilization list[PROCESSES_MOST];
	unsigned count = PROCESSES_MOST;
	unsigned long long *seen = &n->seen_us[index % 256], newest = *seen;

	if (!CALL(n, nvmlDeviceGetProcessUtilization, h, list, &count, *seen))
		return;
	for (unsigned i = 0; i < count && i < PROCESSES_MOST; i++) {
		struct accel_process *p = process_of(r, device, list[i].pid);

		p->has_util = true;
		p->util_pct = list[i].sm;
		if (list[i].time_us > newest)
			newest = list[i].time_us;
	}
	*seen = newest;
}

static void read_processes(struct nvml *n, nvml_device h, struct accel_report *r, uint32_t device)
{
	static struct nvml_process list[PROCESSES_MOST];
	unsigned count = PROCESSES_MOST;

	if (CALL(n, nvmlDeviceGetComputeRunningProcesses_v3, h, &count, list))
		add_processes(r, device, list, count);
	else if (count = PROCESSES_MOST, CALL(n, nvmlDeviceGetComputeRunningProcesses_v2, h, &count, list))
		add_processes(r, device, list, count);
	count = PROCESSES_MOST;
	if (CALL(n, nvmlDeviceGetGraphicsRunningProcesses_v3, h, &count, list))
		add_processes(r, device, list, count);
}

/* The parts of a device that was divided are devices of their own. */
static void read_parts(struct nvml *n, nvml_device whole, struct accel_report *r, uint32_t parent)
{
	unsigned now = 0, pending, most = 0;

	if (!CALL(n, nvmlDeviceGetMigMode, whole, &now, &pending) || !now ||
	    !CALL(n, nvmlDeviceGetMaxMigDeviceCount, whole, &most))
		return;
	for (unsigned i = 0; i < most; i++) {
		unsigned gi = 0, ci = 0;
		struct accel *d;
		nvml_device h;

		if (!CALL(n, nvmlDeviceGetMigDeviceHandleByIndex, whole, i, &h))
			continue;
		d = accel_add(r, ACCEL_GPU, r->devices.v[parent].index);
		d->parent = (int32_t)parent;
		memcpy(d->pci, r->devices.v[parent].pci, sizeof(d->pci));
		d->minor = r->devices.v[parent].minor;
		if (CALL(n, nvmlDeviceGetGpuInstanceId, h, &gi) && CALL(n, nvmlDeviceGetComputeInstanceId, h, &ci))
			snprintf(d->instance, sizeof(d->instance), "gi%u/ci%u", gi, ci);
		else
			snprintf(d->instance, sizeof(d->instance), "mig%u", i);
		read_names(n, h, d);
		read_memory(n, h, d);
		read_processes(n, h, r, (uint32_t)r->devices.n - 1);
	}
}

static void read_device(struct nvml *n, struct accel_report *r, unsigned index)
{
	struct accel *d = accel_add(r, ACCEL_GPU, index);
	uint32_t device = (uint32_t)r->devices.n - 1;
	struct nvml_utilization u;
	nvml_device h;
	int rc = n->nvmlDeviceGetHandleByIndex_v2(index, &h);

	if (!rc && n->nvmlDeviceGetUtilizationRates &&
	    n->nvmlDeviceGetUtilizationRates(h, &u) == NVML_LOST)
		rc = NVML_LOST;
	if (rc && rc != NVML_LOST) {
		snprintf(d->state, sizeof(d->state), "not accessible: NVML error %d", rc);
		return;
	}
	if (rc == NVML_LOST)
		snprintf(d->state, sizeof(d->state), "lost: it fell off the bus");
	if (!rc || CALL(n, nvmlDeviceGetHandleByIndex_v2, index, &h))
		read_identity(n, h, d);
	if (rc)
		return;
	read_load(n, h, d);
	read_pcie(n, h, d);
	read_processes(n, h, r, device);
	read_process_use(n, h, r, device, index);
	read_links(n, h, r, device);
	read_parts(n, h, r, device);
}

static void read_nvml(struct nvml *n, struct accel_report *r)
{
	unsigned count = 0;
	int rc = n->nvmlDeviceGetCount_v2(&count);

	if (rc) {
		accel_state(r, ACCEL_FAILED, "NVML does not count its devices: error %d", rc);
		return;
	}
	snprintf(r->head.rung, sizeof(r->head.rung), "nvml");
	if (!CALL(n, nvmlSystemGetDriverVersion, r->head.driver, sizeof(r->head.driver)))
		r->head.driver[0] = '\0';
	for (unsigned i = 0; i < count && i < 256; i++)
		read_device(n, r, i);
}

static void nvidia_read(void **state, bool no_library, struct accel_report *r)
{
	struct nvml *n = *state;

	if (!n && !no_library) {
		n = mem_alloc(sizeof(*n));
		if (load(n, r) && init(n, r))
			*state = n;
		else
			free(n);
		n = *state;
	}
	if (n)
		read_nvml(n, r);
	else
		nvidia_smi_read(r);
}

const struct accel_source accel_nvidia = {
	.name = "nvidia",
	.gives = "NVIDIA GPUs: use, memory, power, links, processes",
	.how = "install the driver of the GPUs, with its library libnvidia-ml.so.1",
	.read = nvidia_read,
};
