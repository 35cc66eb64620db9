/* Ascend NPUs by the text of npu-smi. */
#include "npu_smi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spawn.h"

#define TOOL_MS	  8000
#define TEXT_MOST (1 << 20)
#define CELLS	  6

/* A row of a table: what is between its bars. */
struct row {
	char cell[CELLS][128];
	int n;
};

static bool split_row(const char *line, const char *end, struct row *ret)
{
	ret->n = 0;
	while (line < end && isspace((unsigned char)*line))
		line++;
	if (line >= end || *line != '|')
		return false;
	for (line++; line < end && ret->n < CELLS;) {
		const char *bar = memchr(line, '|', (size_t)(end - line));

		if (!bar)
			break;
		accel_text(ret->cell[ret->n++], sizeof(ret->cell[0]), line, (size_t)(bar - line));
		line = bar + 1;
	}
	return ret->n > 0;
}

/* What the header says of the second line of a chip. */
struct layout {
	bool has_phy;	  /* a number behind the chip's: of its file in /dev */
	bool has_hbm;	  /* the second pair of the memory columns is HBM */
	bool processes; /* the second table began */
};

static bool read_header(const struct row *row, struct layout *l)
{
	const char *first = row->cell[0];

	if (!strncmp(first, "NPU", 3) && row->n > 1 && strstr(row->cell[1], "Process id")) {
		l->processes = true;
		return true;
	}
	if (!strncmp(first, "Chip", 4)) {
		l->has_phy = strstr(first, "Phy-ID") || strstr(first, "Device");
		l->has_hbm = row->n > 2 && strstr(row->cell[2], "HBM-Usage");
		return true;
	}
	return !isdigit((unsigned char)first[0]);
}

/* "91.3        36                0    / 0": power in W, temperature; "-": not measured. */
static void read_first(const struct row *row, struct accel *d)
{
	char power[32] = "", temperature[32] = "", *end;
	double v;
	int at = 0;

	d->index = (uint32_t)strtoul(row->cell[0], &end, 10);
	accel_text(d->model, sizeof(d->model), end, strlen(end));
	snprintf(d->health, sizeof(d->health), "%.40s", row->cell[1]);
	sscanf(row->cell[2], "%31s %31s%n", power, temperature, &at);
	v = strtod(power, &end);
	if (end != power)
		accel_set(d, ACCEL_POWER_MW, v * 1000);
	v = strtod(temperature, &end);
	if (end != temperature)
		accel_set(d, ACCEL_TEMPERATURE_C, v);
}

/* "0           0    / 0          3465 / 65536": use of the cores, then pairs of used and total in MB. */
static void read_second(const struct row *row, const struct layout *l, struct accel *d)
{
	unsigned long chip = 0, phy = d->index, use;
	unsigned long long used = 0, total = 0, hbm_used, hbm_total;
	int n = sscanf(row->cell[0], "%lu %lu", &chip, &phy);

	d->chip = (uint32_t)chip;
	/* Where a card has one chip, it has the card's number. */
	d->minor = l->has_phy && n < 2 ? -1 : (int32_t)phy;
	accel_pci(d->pci, row->cell[1]);
	if (sscanf(row->cell[2], "%lu", &use) == 1)
		accel_set(d, ACCEL_UTIL_PCT, (double)use);
	n = sscanf(row->cell[2], "%*s %llu / %llu %llu / %llu", &used, &total, &hbm_used, &hbm_total);
	if (l->has_hbm && n == 4 && hbm_total) {
		used = hbm_used;
		total = hbm_total;
	}
	if (n >= 2 && total) {
		accel_set(d, ACCEL_MEM_TOTAL_BYTES, (double)(total << 20));
		accel_set(d, ACCEL_MEM_USED_BYTES, (double)(used << 20));
	}
}

static void read_process(const struct row *row, struct accel_report *r)
{
	unsigned npu, chip = 0;
	unsigned long pid;
	int n = sscanf(row->cell[0], "%u %u", &npu, &chip);

	if (n < 1 || row->n < 4 || sscanf(row->cell[1], "%lu", &pid) != 1)
		return;
	for (size_t i = 0; i < r->devices.n; i++) {
		struct accel_process *p;

		if (r->devices.v[i].index != npu || r->devices.v[i].chip != chip)
			continue;
		p = vec_add(&r->processes);
		p->device = (uint32_t)i;
		p->pid = (uint32_t)pid;
		p->has_memory = isdigit((unsigned char)row->cell[3][0]);
		p->memory_bytes = strtoull(row->cell[3], NULL, 10) << 20;
		return;
	}
}

/* "npu-smi 24.1.rc1                 Version: 24.1.rc1" */
static void read_version(const struct row *row, struct accel_report *r)
{
	const char *v = strstr(row->cell[0], "Version:");

	if (v && !strncmp(row->cell[0], "npu-smi", 7))
		accel_text(r->head.driver, sizeof(r->head.driver), v + 8, strlen(v + 8));
}

unsigned npu_smi_parse_info(const char *text, struct accel_report *r)
{
	struct layout l = {0};
	struct accel pending = {.kind = ACCEL_NPU, .minor = -1, .parent = -1};
	bool has_first = false;
	unsigned found = 0;

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		struct row row;
		char pci[20];

		end = strchrnul(line, '\n');
		if (!split_row(line, end, &row))
			continue;
		read_version(&row, r);
		if (read_header(&row, &l) || row.n < 3)
			continue;
		accel_pci(pci, row.cell[1]);
		if (l.processes) {
			read_process(&row, r);
		} else if (!pci[0]) {
			pending = (struct accel){.kind = ACCEL_NPU, .minor = -1, .parent = -1};
			read_first(&row, &pending);
			has_first = true;
		} else if (has_first) {
			read_second(&row, &l, &pending);
			vec_push(&r->devices, pending);
			has_first = false;
			found++;
		}
	}
	return found;
}

#define TOPO_COLUMNS 64

/* The device that a name of the matrix means: "NPU3" a card, "Phy-ID3" a chip. */
static int topo_device(const struct accel_report *r, const char *name)
{
	size_t digits = strcspn(name, "0123456789");
	uint32_t id = (uint32_t)strtoul(name + digits, NULL, 10);
	bool by_file = !strncmp(name, "Phy", 3);

	for (size_t i = 0; i < r->devices.n; i++)
		if (by_file ? r->devices.v[i].minor == (int32_t)id : r->devices.v[i].index == id)
			return (int)i;
	return -1;
}

static size_t split_words(const char *line, const char *end, char words[TOPO_COLUMNS][40])
{
	size_t n = 0;

	while (line < end && n < TOPO_COLUMNS) {
		size_t w = 0;

		while (line < end && isspace((unsigned char)*line))
			line++;
		while (line + w < end && !isspace((unsigned char)line[w]))
			w++;
		if (!w)
			break;
		accel_text(words[n++], sizeof(words[0]), line, w);
		line += w;
	}
	return n;
}

static bool is_device_name(const char *word)
{
	return (!strncmp(word, "NPU", 3) && isdigit((unsigned char)word[3])) ||
	       (!strncmp(word, "Phy-ID", 6) && isdigit((unsigned char)word[6]));
}

static void topo_row(struct accel_report *r, char words[TOPO_COLUMNS][40], size_t n, char names[TOPO_COLUMNS][40],
		     size_t ncolumns)
{
	int from = topo_device(r, words[0]);

	for (size_t i = 0; from >= 0 && i < ncolumns && i + 1 < n; i++) {
		int to = topo_device(r, names[i]);
		struct accel_link *l;

		if (to < 0 || to == from || !strcmp(words[i + 1], "X"))
			continue;
		l = vec_add(&r->links);
		l->device = (uint32_t)from;
		l->peer_device = to;
		snprintf(l->kind, sizeof(l->kind), "%.15s", words[i + 1]);
	}
	/* Behind the matrix: "144-167", where the machine tells it. */
	if (from >= 0 && n > ncolumns + 1 && isdigit((unsigned char)words[ncolumns + 1][0]))
		snprintf(r->devices.v[from].cpus, sizeof(r->devices.v[from].cpus), "%s", words[ncolumns + 1]);
}

void npu_smi_parse_topo(const char *text, struct accel_report *r)
{
	char names[TOPO_COLUMNS][40], words[TOPO_COLUMNS][40];
	size_t ncolumns = 0;

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		size_t n;

		end = strchrnul(line, '\n');
		n = split_words(line, end, words);
		if (!n || !is_device_name(words[0]))
			continue;
		/* The header is a row of names alone. */
		if (n > 1 && is_device_name(words[1])) {
			ncolumns = 0;
			while (ncolumns < n && is_device_name(words[ncolumns])) {
				memcpy(names[ncolumns], words[ncolumns], sizeof(names[0]));
				ncolumns++;
			}
		} else if (!ncolumns && n > 1 && !strcmp(words[1], "CPU")) {
			/* A single card: its header is "NPU0 CPU Affinity". */
			memcpy(names[ncolumns++], words[0], sizeof(names[0]));
		} else {
			topo_row(r, words, n, names, ncolumns);
		}
	}
}

static bool run_tool(const char *const argv[], struct strbuf *out, char *why, size_t size)
{
	struct spawn_result ran;
	struct err e;

	if (spawn_run(argv, TOOL_MS, TEXT_MOST, out, &ran, &e) < 0)
		snprintf(why, size, "%.120s", e.msg);
	else if (ran.timed_out)
		snprintf(why, size, "npu-smi gave no answer within %d s", TOOL_MS / 1000);
	else if (ran.exit_code)
		snprintf(why, size, "npu-smi ended with %d", ran.exit_code);
	else
		return true;
	return false;
}

void npu_smi_read(struct accel_report *r)
{
	static const char *const info[] = {"npu-smi", "info", NULL};
	static const char *const topo[] = {"npu-smi", "info", "-t", "topo", NULL};
	char why[160] = "", before[200];
	struct strbuf out = {0};

	snprintf(before, sizeof(before), "%.199s", r->head.why);
	if (!run_tool(info, &out, why, sizeof(why))) {
		accel_state(r, r->head.state == ACCEL_FAILED ? ACCEL_FAILED : ACCEL_ABSENT, "%s%s%s", before,
			    before[0] ? "; " : "", why);
		strbuf_done(&out);
		return;
	}
	snprintf(r->head.rung, sizeof(r->head.rung), "npu-smi");
	if (npu_smi_parse_info(strbuf_str(&out), r))
		accel_state(r, ACCEL_REDUCED, "%s%sread by npu-smi: no clocks, no bandwidth of memory", before,
			    before[0] ? "; " : "");
	else
		accel_state(r, ACCEL_FAILED, "%s%snpu-smi wrote no table that is known", before,
			    before[0] ? "; " : "");
	strbuf_clear(&out);
	/* Not every card has a topology to tell. */
	if (r->devices.n && run_tool(topo, &out, why, sizeof(why)))
		npu_smi_parse_topo(strbuf_str(&out), r);
	strbuf_done(&out);
}
