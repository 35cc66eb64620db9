/* librocm_smi64.so as a test wants it: real names and binary interface, numbers by the scenario in FAKE_ROCM. */
#include <stdint.h>

#include "scenario.h"

typedef struct { uint32_t pid, pasid; uint64_t vram, sdma; uint32_t occupancy; } process;

#define API __attribute__((visibility("default"))) int
#define ENV "FAKE_ROCM"
enum { OK = 0, UNSUPPORTED = 2 };

API rsmi_init(uint64_t flags)
{
	return (int)scenario_number(ENV, "init", 0);
}

API rsmi_num_monitor_devices(uint32_t *n)
{
	scenario_hang(ENV);
	*n = (uint32_t)scenario_number(ENV, "devices", 0);
	return OK;
}

API rsmi_dev_pci_id_get(uint32_t i, uint64_t *v)
{
	*v = (uint64_t)(0xc0 + i) << 8;
	return OK;
}

API rsmi_dev_name_get(uint32_t i, char *s, size_t n)
{
	snprintf(s, n, "AMD Instinct MI300X");
	return OK;
}

API rsmi_dev_unique_id_get(uint32_t i, uint64_t *v)
{
	*v = 0xabc0 + i;
	return OK;
}

API rsmi_dev_busy_percent_get(uint32_t i, uint32_t *v)
{
	*v = 60 + i;
	return OK;
}

API rsmi_dev_memory_total_get(uint32_t i, int type, uint64_t *v)
{
	*v = 192ull << 30;
	return type ? UNSUPPORTED : OK;
}

API rsmi_dev_memory_usage_get(uint32_t i, int type, uint64_t *v)
{
	*v = (10ull + i) << 30;
	return type ? UNSUPPORTED : OK;
}

API rsmi_dev_memory_busy_percent_get(uint32_t i, uint32_t *v)
{
	*v = 20 + i;
	return OK;
}

API rsmi_dev_power_cap_get(uint32_t i, uint32_t sensor, uint64_t *v)
{
	*v = 750000000;
	return OK;
}

API rsmi_dev_power_ave_get(uint32_t i, uint32_t sensor, uint64_t *v)
{
	*v = 400000000;
	return OK;
}

API rsmi_dev_temp_metric_get(uint32_t i, uint32_t sensor, int metric, int64_t *v)
{
	*v = 55000;
	return OK;
}

API rsmi_compute_process_info_get(process *list, uint32_t *n)
{
	struct scenario_line l;
	uint32_t found = 0;

	for (int i = 0; scenario_nth(ENV, "process", i, &l); i++)
		if (found < *n)
			list[found++] = (process){(uint32_t)l.v[1], 0, (uint64_t)l.v[2] << 20, 0, 0};
	*n = found;
	return OK;
}

API rsmi_compute_process_gpus_get(uint32_t pid, uint32_t *gpus, uint32_t *n)
{
	struct scenario_line l;
	uint32_t found = 0;

	for (int i = 0; scenario_nth(ENV, "process", i, &l); i++)
		if (l.v[1] == pid && found < *n)
			gpus[found++] = (uint32_t)l.v[0];
	*n = found;
	return OK;
}

API rsmi_topo_get_link_type(uint32_t a, uint32_t b, uint64_t *hops, int *type)
{
	*hops = 1;
	*type = 2;
	return OK;
}
