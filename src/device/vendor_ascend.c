/* Ascend NPUs: by the library DCMI, and by the tool npu-smi where that does not work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accel.h"
#include "dcmi_abi.h"
#include "dl_table.h"
#include "npu_smi.h"

struct dcmi {
#define FN(need, name, ...) int (*name)(__VA_ARGS__);
#include "dcmi_fn.def"
#undef FN
};

static const struct dl_function functions[] = {
#define FN(need, name, ...) {#name, need, offsetof(struct dcmi, name)},
#include "dcmi_fn.def"
#undef FN
};

#define CALL(n, f, ...) ((n)->f && (n)->f(__VA_ARGS__) == 0)

static const char *health_name(unsigned health)
{
	static const char *const names[] = {"OK", "Warning", "Alarm", "Critical"};

	return health < 4 ? names[health] : "Unknown";
}

static void read_identity(struct dcmi *n, int card, int chip, struct accel *d)
{
	struct dcmi_chip info = {0};
	struct dcmi_pcie pcie = {0};
	int logic, length = (int)sizeof(d->cpus) - 1;
	unsigned phy;

	if (CALL(n, dcmi_get_device_chip_info, card, chip, &info)) {
		info.type[sizeof(info.type) - 1] = info.name[sizeof(info.name) - 1] = '\0';
		snprintf(d->model, sizeof(d->model), "%s %s", (char *)info.type, (char *)info.name);
	}
	if (CALL(n, dcmi_get_device_pcie_info_v2, card, chip, &pcie))
		snprintf(d->pci, sizeof(d->pci), "%04x:%02x:%02x.%x", pcie.domain & 0xffff, pcie.bus & 0xff,
			 pcie.slot & 0x1f, pcie.function & 7);
	if (CALL(n, dcmi_get_device_logic_id, &logic, card, chip) && logic >= 0 &&
	    CALL(n, dcmi_get_device_phyid_from_logicid, (unsigned)logic, &phy))
		d->minor = (int32_t)phy;
	if (!CALL(n, dcmi_get_affinity_cpu_info_by_device_id, card, chip, d->cpus, &length))
		d->cpus[0] = '\0';
	d->cpus[sizeof(d->cpus) - 1] = '\0';
	d->cpus[strcspn(d->cpus, " \n")] = '\0';
}

static void read_memory(struct dcmi *n, int card, int chip, struct accel *d)
{
	struct dcmi_hbm hbm = {0};
	struct dcmi_memory memory = {0};

	/* Cards for inference have no HBM: the call fails, or says 0. */
	if (CALL(n, dcmi_get_device_hbm_info, card, chip, &hbm) && hbm.size) {
		accel_set(d, ACCEL_MEM_TOTAL_BYTES, (double)(hbm.size << 20));
		accel_set(d, ACCEL_MEM_USED_BYTES, (double)(hbm.used << 20));
		accel_set(d, ACCEL_MEM_CLOCK_KHZ, hbm.freq_mhz * 1000.0);
		if (hbm.bandwidth_pct <= 100)
			accel_set(d, ACCEL_MEM_UTIL_PCT, hbm.bandwidth_pct);
	} else if (CALL(n, dcmi_get_device_memory_info_v3, card, chip, &memory) && memory.size_mb) {
		accel_set(d, ACCEL_MEM_TOTAL_BYTES, (double)(memory.size_mb << 20));
		if (memory.available_mb <= memory.size_mb)
			accel_set(d, ACCEL_MEM_USED_BYTES, (double)((memory.size_mb - memory.available_mb) << 20));
		accel_set(d, ACCEL_MEM_CLOCK_KHZ, memory.freq_mhz * 1000.0);
	}
}

static void read_load(struct dcmi *n, int card, int chip, struct accel *d)
{
	struct dcmi_aicore core;
	unsigned v;
	int i;

	if (CALL(n, dcmi_get_device_health, card, chip, &v))
		snprintf(d->health, sizeof(d->health), "%s", health_name(v));
	if (CALL(n, dcmi_get_device_utilization_rate, card, chip, DCMI_USE_AICORE, &v) && v <= 100)
		accel_set(d, ACCEL_UTIL_PCT, v);
	/* In tenths of a watt. */
	if (CALL(n, dcmi_get_device_power_info, card, chip, &i) && i >= 0)
		accel_set(d, ACCEL_POWER_MW, i * 100.0);
	if (CALL(n, dcmi_get_device_temperature, card, chip, &i) && i > -100 && i < 300)
		accel_set(d, ACCEL_TEMPERATURE_C, i);
	if (CALL(n, dcmi_get_device_aicore_info, card, chip, &core)) {
		accel_set(d, ACCEL_CLOCK_KHZ, core.now_mhz * 1000.0);
		accel_set(d, ACCEL_CLOCK_MAX_KHZ, core.freq_mhz * 1000.0);
	}
	read_memory(n, card, chip, d);
	if (!accel_has(d, ACCEL_MEM_UTIL_PCT) &&
	    CALL(n, dcmi_get_device_utilization_rate, card, chip, DCMI_USE_HBM_BANDWIDTH, &v) && v <= 100)
		accel_set(d, ACCEL_MEM_UTIL_PCT, v);
}

static void read_processes(struct dcmi *n, int card, int chip, struct accel_report *r, uint32_t device)
{
	static struct dcmi_process list[DCMI_PROCESSES_MOST];
	int count = DCMI_PROCESSES_MOST;

	if (!CALL(n, dcmi_get_device_resource_info, card, chip, list, &count))
		return;
	for (int i = 0; i < count && i < DCMI_PROCESSES_MOST; i++) {
		struct accel_process *p = vec_add(&r->processes);

		p->device = device;
		p->pid = (uint32_t)list[i].pid;
		p->has_memory = true;
		p->memory_bytes = list[i].bytes;
	}
}

static void read_chip(struct dcmi *n, int card, int chip, struct accel_report *r)
{
	struct accel *d;
	int type = DCMI_UNIT_NPU;

	/* A card's management controller is listed as one of its devices. */
	if (CALL(n, dcmi_get_device_type, card, chip, &type) && type != DCMI_UNIT_NPU)
		return;
	d = accel_add(r, ACCEL_NPU, (uint32_t)card);
	d->chip = (uint32_t)chip;
	read_identity(n, card, chip, d);
	read_load(n, card, chip, d);
	if (!d->has && !d->pci[0])
		snprintf(d->state, sizeof(d->state), "not accessible: DCMI gives nothing for it");
	read_processes(n, card, chip, r, (uint32_t)r->devices.n - 1);
}

static void read_links(struct dcmi *n, struct accel_report *r)
{
	static const char *const kinds[] = {NULL, "SYS", "PHB", "HCCS", "PXB", "PIX", "SIO", "HCCS_SW", "UB"};

	for (size_t i = 0; i < r->devices.n; i++) {
		for (size_t k = 0; k < r->devices.n; k++) {
			const struct accel *a = &r->devices.v[i], *b = &r->devices.v[k];
			struct accel_link *l;
			int type;

			if (i == k || !CALL(n, dcmi_get_topo_info_by_device_id, (int)a->index, (int)a->chip,
					    (int)b->index, (int)b->chip, &type))
				continue;
			if (type < 1 || (size_t)type >= sizeof(kinds) / sizeof(kinds[0]))
				continue;
			l = vec_add(&r->links);
			l->device = (uint32_t)i;
			l->peer_device = (int32_t)k;
			snprintf(l->kind, sizeof(l->kind), "%s", kinds[type]);
		}
	}
}

static void read_dcmi(struct dcmi *n, struct accel_report *r)
{
	int cards[DCMI_CARDS_MOST], count = 0, rc = n->dcmi_get_card_list(&count, cards, DCMI_CARDS_MOST);

	if (rc) {
		accel_state(r, ACCEL_FAILED, "DCMI does not list its cards: error %d", rc);
		return;
	}
	snprintf(r->head.rung, sizeof(r->head.rung), "dcmi");
	if (!CALL(n, dcmi_get_driver_version, r->head.driver, sizeof(r->head.driver)))
		r->head.driver[0] = '\0';
	for (int i = 0; i < count && i < DCMI_CARDS_MOST; i++) {
		int chips = 0;

		if (!CALL(n, dcmi_get_device_num_in_card, cards[i], &chips))
			continue;
		for (int k = 0; k < chips && k < 16; k++)
			read_chip(n, cards[i], k, r);
	}
	read_links(n, r);
}

static void ascend_read(void **state, bool no_library, struct accel_report *r)
{
	static const char *const libraries[] = {"libdcmi.so", "/usr/local/dcmi/libdcmi.so", NULL};
	struct dcmi *n = *state;
	int rc;

	if (!n && !no_library) {
		n = mem_alloc(sizeof(*n));
		if (dl_table_load(n, libraries, functions, sizeof(functions) / sizeof(functions[0]), r)) {
			rc = n->dcmi_init();
			if (!rc)
				*state = n;
			else
				accel_state(r, ACCEL_FAILED, "DCMI cannot be initialised: error %d", rc);
		}
		if (!*state)
			free(n);
		n = *state;
	}
	if (n)
		read_dcmi(n, r);
	else
		npu_smi_read(r);
}

const struct accel_source accel_ascend = {
	.name = "ascend",
	.gives = "Ascend NPUs: use, memory, power, links, processes",
	.how = "install the driver of the NPUs, with its library libdcmi.so",
	.read = ascend_read,
};
