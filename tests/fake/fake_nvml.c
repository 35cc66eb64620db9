/* libnvidia-ml.so.1 as a test wants it: real names and binary interface, numbers by the scenario in FAKE_NVML. */
#include "scenario.h"

/* Declared here anew and not by the header under test: two opinions of the interface must agree. */
typedef struct { int index, part; } *device;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, sub; char bus_id[32]; } pci_info;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process;
typedef struct { unsigned pid; unsigned long long time; unsigned sm, mem, enc, dec; } sample;
typedef struct {
	unsigned field, scope;
	long long time, latency;
	int type, rc;
	union { double d; unsigned u; unsigned long long ull; } value;
} field_value;

#define API __attribute__((visibility("default"))) int
#define ENV "FAKE_NVML"
enum { OK = 0, UNSUPPORTED = 3, NOT_FOUND = 6, SMALL = 7, LOST = 15 };

static struct { int index, part; } all[64][8];

static int is_lost(device d)
{
	struct scenario_line l;

	return scenario_keyed(ENV, "lost", d->index, &l);
}

API nvmlInit_v2(void)
{
	return (int)scenario_number(ENV, "init", 0);
}

API nvmlSystemGetDriverVersion(char *s, unsigned n)
{
	snprintf(s, n, "550.54.15");
	return OK;
}

API nvmlDeviceGetCount_v2(unsigned *n)
{
	scenario_hang(ENV);
	if (scenario_number(ENV, "crash", 0) > 0)
		abort();
	*n = (unsigned)scenario_number(ENV, "devices", 0);
	return OK;
}

API nvmlDeviceGetHandleByIndex_v2(unsigned i, device *ret)
{
	all[i][0].index = (int)i;
	all[i][0].part = -1;
	*ret = (device)(void *)&all[i][0];
	return is_lost(*ret) ? LOST : OK;
}

API nvmlDeviceGetName(device d, char *s, unsigned n)
{
	snprintf(s, n, d->part < 0 ? "NVIDIA H100 80GB HBM3" : "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
	return OK;
}

API nvmlDeviceGetUUID(device d, char *s, unsigned n)
{
	snprintf(s, n, d->part < 0 ? "GPU-0000-%04d" : "MIG-0000-%04d-%d", d->index, d->part);
	return OK;
}

API nvmlDeviceGetMinorNumber(device d, unsigned *v)
{
	*v = (unsigned)d->index;
	return OK;
}

API nvmlDeviceGetPciInfo_v3(device d, pci_info *p)
{
	struct scenario_line l;

	memset(p, 0, sizeof(*p));
	/* "pci INDEX BUS DEVICE": where this machine has something. */
	if (scenario_keyed(ENV, "pci", d->index, &l) && l.n > 2)
		snprintf(p->bus_id, sizeof(p->bus_id), "00000000:%02X:%02X.0", (unsigned)l.v[1], (unsigned)l.v[2]);
	else
		snprintf(p->bus_id, sizeof(p->bus_id), "00000000:%02X:00.0", 0x10 + d->index);
	return OK;
}

API nvmlDeviceGetUtilizationRates(device d, utilization *u)
{
	if (is_lost(d))
		return LOST;
	*u = (utilization){10u * (unsigned)d->index + 5, (unsigned)d->index};
	return OK;
}

API nvmlDeviceGetMemoryInfo(device d, memory *m)
{
	*m = (memory){80ull << 30, 0, (1ull + (unsigned)d->index) << 30};
	return is_lost(d) ? LOST : OK;
}

#ifndef OLD_DRIVER
API nvmlDeviceGetMemoryInfo_v2(device d, memory_v2 *m)
{
	if (m->version != (sizeof(*m) | 2u << 24))
		return 25;
	*m = (memory_v2){m->version, 80ull << 30, 1ull << 29, 0, (1ull + (unsigned)d->index) << 30};
	return is_lost(d) ? LOST : OK;
}
#endif

API nvmlDeviceGetPowerUsage(device d, unsigned *v)
{
	*v = 300000 + 1000 * (unsigned)d->index;
	return is_lost(d) ? LOST : OK;
}

API nvmlDeviceGetEnforcedPowerLimit(device d, unsigned *v)
{
	*v = 700000;
	return is_lost(d) ? LOST : OK;
}

API nvmlDeviceGetTemperature(device d, int sensor, unsigned *v)
{
	*v = 40 + (unsigned)d->index;
	return sensor || is_lost(d) ? LOST : OK;
}

API nvmlDeviceGetClockInfo(device d, int type, unsigned *v)
{
	*v = type == 1 ? 1980 - (unsigned)d->index : type == 2 ? 2619 : 0;
	return is_lost(d) ? LOST : OK;
}

API nvmlDeviceGetMaxClockInfo(device d, int type, unsigned *v)
{
	*v = 1980;
	return is_lost(d) ? LOST : OK;
}

API nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *v)
{
	struct scenario_line l;

	*v = scenario_keyed(ENV, "throttle", d->index, &l) ? (unsigned long long)l.v[1] : 0;
	return is_lost(d) ? LOST : OK;
}

/* Those that could not be corrected, since the last reset. */
API nvmlDeviceGetTotalEccErrors(device d, int type, int counter, unsigned long long *v)
{
	*v = (unsigned long long)d->index;
	return type != 1 || counter != 0 ? UNSUPPORTED : is_lost(d) ? LOST : OK;
}

API nvmlDeviceGetCurrPcieLinkGeneration(device d, unsigned *v)
{
	*v = 5;
	return OK;
}

API nvmlDeviceGetMaxPcieLinkGeneration(device d, unsigned *v)
{
	*v = 5;
	return OK;
}

API nvmlDeviceGetCurrPcieLinkWidth(device d, unsigned *v)
{
	struct scenario_line l;

	*v = scenario_keyed(ENV, "width", d->index, &l) ? (unsigned)l.v[1] : 16;
	return OK;
}

API nvmlDeviceGetMaxPcieLinkWidth(device d, unsigned *v)
{
	*v = 16;
	return OK;
}

API nvmlDeviceGetPcieThroughput(device d, int counter, unsigned *v)
{
	*v = counter ? 2000 : 1000;
	return OK;
}

API nvmlDeviceGetNvLinkState(device d, unsigned link, int *v)
{
	*v = link != 3;
	return link < 4 ? OK : NOT_FOUND;
}

API nvmlDeviceGetNvLinkVersion(device d, unsigned link, unsigned *v)
{
	*v = 4;
	return OK;
}

/* Two links to the neighbour, two to a switch that is no GPU. */
API nvmlDeviceGetNvLinkRemotePciInfo_v2(device d, unsigned link, pci_info *p)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->bus_id, sizeof(p->bus_id), "00000000:%02X:00.0", link < 2 ? 0x10 + (d->index ^ 1) : 0xf0);
	return OK;
}

API nvmlDeviceGetFieldValues(device d, int n, field_value *v)
{
	static unsigned long long reads;

	reads++;
	for (int i = 0; i < n; i++) {
		v[i].rc = v[i].field == 138 || v[i].field == 139 ? OK : UNSUPPORTED;
		v[i].value.ull = 1000 * reads;
	}
	return OK;
}

API nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *pending)
{
	struct scenario_line l;

	*now = *pending = (unsigned)scenario_keyed(ENV, "mig", d->index, &l);
	return OK;
}

API nvmlDeviceGetMaxMigDeviceCount(device d, unsigned *n)
{
	*n = 7;
	return OK;
}

API nvmlDeviceGetMigDeviceHandleByIndex(device d, unsigned i, device *ret)
{
	struct scenario_line l;

	if (!scenario_keyed(ENV, "mig", d->index, &l) || i >= l.v[1])
		return NOT_FOUND;
	all[d->index][i + 1].index = d->index;
	all[d->index][i + 1].part = (int)i;
	*ret = (device)(void *)&all[d->index][i + 1];
	return OK;
}

API nvmlDeviceGetGpuInstanceId(device d, unsigned *v)
{
	*v = (unsigned)d->part + 7;
	return OK;
}

API nvmlDeviceGetComputeInstanceId(device d, unsigned *v)
{
	*v = 0;
	return OK;
}

#ifndef OLD_DRIVER
API nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *n, process *list)
#else
API nvmlDeviceGetComputeRunningProcesses_v2(device d, unsigned *n, process *list)
#endif
{
	struct scenario_line l;
	unsigned found = 0;

	for (int i = 0; scenario_nth(ENV, "process", i, &l); i++) {
		if (l.v[0] != d->index || d->part != (l.n > 3 ? (int)l.v[3] : -1))
			continue;
		if (found == *n)
			return SMALL;
		list[found++] = (process){(unsigned)l.v[1], (unsigned long long)l.v[2] << 20, ~0u, ~0u};
	}
	*n = found;
	return OK;
}

API nvmlDeviceGetProcessUtilization(device d, sample *list, unsigned *n, unsigned long long since)
{
	struct scenario_line l;
	unsigned found = 0;

	for (int i = 0; d->part < 0 && scenario_nth(ENV, "process", i, &l); i++)
		if (l.v[0] == d->index && found < *n && l.n == 3)
			list[found++] = (sample){(unsigned)l.v[1], since + 1000000, 33, 4, 0, 0};
	*n = found;
	return OK;
}
