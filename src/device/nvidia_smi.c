/* NVIDIA's devices by the text of nvidia-smi: less than the library tells, and slower. */
#include "nvidia_smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spawn.h"

#define TOOL_MS	  4000
#define TEXT_MOST (1 << 20)

/* The order of the columns that are asked for, and what they become. */
static const struct {
	const char *name;
	int fact; /* -1: text */
	double scale;
} columns[] = {
	{"index", -1, 0},
	{"uuid", -1, 0},
	{"pci.bus_id", -1, 0},
	{"name", -1, 0},
	{"driver_version", -1, 0},
	{"utilization.gpu", ACCEL_UTIL_PCT, 1},
	{"utilization.memory", ACCEL_MEM_UTIL_PCT, 1},
	{"memory.total", ACCEL_MEM_TOTAL_BYTES, 1 << 20},
	{"memory.used", ACCEL_MEM_USED_BYTES, 1 << 20},
	{"power.draw", ACCEL_POWER_MW, 1000},
	{"enforced.power.limit", ACCEL_POWER_LIMIT_MW, 1000},
	{"temperature.gpu", ACCEL_TEMPERATURE_C, 1},
	{"clocks.sm", ACCEL_CLOCK_KHZ, 1000},
	{"clocks.max.sm", ACCEL_CLOCK_MAX_KHZ, 1000},
	{"clocks.mem", ACCEL_MEM_CLOCK_KHZ, 1000},
	{"pcie.link.gen.current", ACCEL_PCIE_GEN, 1},
	{"pcie.link.gen.max", ACCEL_PCIE_GEN_MAX, 1},
	{"pcie.link.width.current", ACCEL_PCIE_WIDTH, 1},
	{"pcie.link.width.max", ACCEL_PCIE_WIDTH_MAX, 1},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void set_text(struct accel_report *r, struct accel *d, size_t column, const char *s)
{
	switch (column) {
	case 0:
		d->index = (uint32_t)strtoul(s, NULL, 10);
		break;
	case 1:
		accel_text(d->uuid, sizeof(d->uuid), s, strlen(s));
		break;
	case 2:
		accel_pci(d->pci, s);
		break;
	case 3:
		accel_text(d->model, sizeof(d->model), s, strlen(s));
		break;
	default:
		accel_text(r->head.driver, sizeof(r->head.driver), s, strlen(s));
	}
}

static void set_cell(struct accel_report *r, struct accel *d, size_t column, const char *s, size_t n)
{
	char cell[128], *end;
	double v;

	accel_text(cell, sizeof(cell), s, n);
	/* "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]". */
	if (strstr(cell, "lost"))
		snprintf(d->state, sizeof(d->state), "lost: it fell off the bus");
	if (!cell[0] || cell[0] == '[' || cell[0] == 'N')
		if (columns[column].fact >= 0)
			return;
	if (columns[column].fact < 0) {
		set_text(r, d, column, cell);
		return;
	}
	v = strtod(cell, &end);
	if (end != cell)
		accel_set(d, (enum accel_fact)columns[column].fact, v * columns[column].scale);
}

unsigned nvidia_smi_parse_devices(const char *text, struct accel_report *r)
{
	unsigned found = 0;

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		struct accel *d;
		size_t column = 0;

		end = strchrnul(line, '\n');
		/* A message instead of a table: "No devices were found". */
		if (line[0] < '0' || line[0] > '9' || !memchr(line, ',', (size_t)(end - line)))
			continue;
		d = accel_add(r, ACCEL_GPU, 0);
		found++;
		for (const char *s = line, *stop; s <= end && column < N_COLUMNS; s = stop + 1) {
			stop = memchr(s, ',', (size_t)(end - s)) ?: end;
			set_cell(r, d, column++, s, (size_t)(stop - s));
		}
	}
	return found;
}

static int device_by_uuid(const struct accel_report *r, const char *uuid)
{
	for (size_t i = 0; i < r->devices.n; i++)
		if (!strcmp(r->devices.v[i].uuid, uuid))
			return (int)i;
	return -1;
}

void nvidia_smi_parse_processes(const char *text, struct accel_report *r)
{
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		char uuid[80], memory[32] = "";
		struct accel_process *p;
		unsigned pid;
		int device;

		end = strchrnul(line, '\n');
		if (sscanf(line, "%79[^, \n] , %u , %31[^,\n]", uuid, &pid, memory) < 2)
			continue;
		device = device_by_uuid(r, uuid);
		if (device < 0)
			continue;
		p = vec_add(&r->processes);
		p->device = (uint32_t)device;
		p->pid = pid;
		p->has_memory = memory[0] >= '0' && memory[0] <= '9';
		p->memory_bytes = strtoull(memory, NULL, 10) << 20;
	}
}

static bool run_tool(const char *query, struct strbuf *out, char *why, size_t size)
{
	const char *argv[] = {"nvidia-smi", query, "--format=csv,noheader,nounits", NULL};
	struct spawn_result ran;
	struct err e;

	if (spawn_run(argv, TOOL_MS, TEXT_MOST, out, &ran, &e) < 0)
		snprintf(why, size, "%.120s", e.msg);
	else if (ran.timed_out)
		snprintf(why, size, "nvidia-smi gave no answer within %d s", TOOL_MS / 1000);
	else if (ran.exit_code)
		snprintf(why, size, "nvidia-smi ended with %d", ran.exit_code);
	else
		return true;
	return false;
}

void nvidia_smi_read(struct accel_report *r)
{
	char query[640] = "--query-gpu=", why[160] = "", before[200];
	struct strbuf out = {0};

	for (size_t i = 0; i < N_COLUMNS; i++) {
		size_t n = strlen(query);

		snprintf(query + n, sizeof(query) - n, "%s%s", i ? "," : "", columns[i].name);
	}
	snprintf(before, sizeof(before), "%.199s", r->head.why);
	if (!run_tool(query, &out, why, sizeof(why))) {
		/* Neither is there: so there is no such device. */
		accel_state(r, r->head.state == ACCEL_FAILED ? ACCEL_FAILED : ACCEL_ABSENT, "%s%s%s", before,
			    before[0] ? "; " : "", why);
		strbuf_done(&out);
		return;
	}
	nvidia_smi_parse_devices(strbuf_str(&out), r);
	snprintf(r->head.rung, sizeof(r->head.rung), "nvidia-smi");
	accel_state(r, ACCEL_REDUCED, "%s%sread by nvidia-smi: no links, no use by process", before,
		    before[0] ? "; " : "");
	strbuf_clear(&out);
	if (run_tool("--query-compute-apps=gpu_uuid,pid,used_memory", &out, why, sizeof(why)))
		nvidia_smi_parse_processes(strbuf_str(&out), r);
	strbuf_done(&out);
}
