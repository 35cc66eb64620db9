/* Graphics and compute devices by /sys/class/drm, /sys/class/kfd and /proc/PID/fdinfo. */
#include "drm_sysfs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define NVIDIA_VENDOR 0x10de

static bool read_text(const struct sysroot *root, struct strbuf *b, const char *folder, const char *file)
{
	strbuf_clear(b);
	if (sysroot_read(root, b, "%s/%s", folder, file) <= 0)
		return false;
	b->s[strcspn(b->s, "\n")] = '\0';
	return b->s[0];
}

static void set_number(const struct sysroot *root, struct strbuf *b, const char *folder, const char *file,
		       struct accel *d, enum accel_fact fact, double scale)
{
	char *end;
	double v;

	if (!read_text(root, b, folder, file))
		return;
	v = strtod(b->s, &end);
	if (end != b->s && v >= 0)
		accel_set(d, fact, v * scale);
}

/* "16.0 GT/s PCIe": its generation, 0: not known */
static double generation(const char *s)
{
	static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
	double v = strtod(s, NULL);

	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (v > speeds[i] - 0.1 && v < speeds[i] + 0.1)
			return (double)i + 1;
	return 0;
}

static void read_link(const struct sysroot *root, struct strbuf *b, const char *folder, struct accel *d)
{
	if (read_text(root, b, folder, "current_link_speed") && generation(b->s) > 0)
		accel_set(d, ACCEL_PCIE_GEN, generation(b->s));
	if (read_text(root, b, folder, "max_link_speed") && generation(b->s) > 0)
		accel_set(d, ACCEL_PCIE_GEN_MAX, generation(b->s));
	set_number(root, b, folder, "current_link_width", d, ACCEL_PCIE_WIDTH, 1);
	set_number(root, b, folder, "max_link_width", d, ACCEL_PCIE_WIDTH_MAX, 1);
}

/* Sensors are in microwatts and thousandths of a degree. */
static void read_sensors(const struct sysroot *root, struct strbuf *b, const char *folder, struct accel *d)
{
	CLEANUP_CLOSEDIR DIR *dir = NULL;
	struct dirent *de;
	char path[256];

	if (sysroot_opendir(root, &dir, "%s/hwmon", folder) < 0) {
		dir = NULL;
		return;
	}
	while ((de = readdir(dir))) {
		if (strncmp(de->d_name, "hwmon", 5))
			continue;
		snprintf(path, sizeof(path), "%.180s/hwmon/%.40s", folder, de->d_name);
		set_number(root, b, path, "power1_input", d, ACCEL_POWER_MW, 1e-3);
		set_number(root, b, path, "power1_average", d, ACCEL_POWER_MW, 1e-3);
		set_number(root, b, path, "power1_cap", d, ACCEL_POWER_LIMIT_MW, 1e-3);
		set_number(root, b, path, "temp1_input", d, ACCEL_TEMPERATURE_C, 1e-3);
	}
}

static void read_device(const struct sysroot *root, const char *folder, int32_t minor, bool accel_class,
			struct accel_report *r)
{
	struct strbuf b = {0}, link = {0};
	struct accel *d;
	const char *name;
	char pci[20] = "";
	unsigned long vendor, device = 0;

	if (sysroot_readlink(root, &link, "%s", folder) > 0) {
		name = strrchr(link.s, '/');
		accel_pci(pci, name ? name + 1 : link.s);
	}
	strbuf_done(&link);
	vendor = read_text(root, &b, folder, "vendor") ? strtoul(b.s, NULL, 16) : 0;
	if (read_text(root, &b, folder, "device"))
		device = strtoul(b.s, NULL, 16);
	/* A virtual card drives no device. */
	if (!vendor || vendor == NVIDIA_VENDOR) {
		strbuf_done(&b);
		return;
	}
	d = accel_add(r, ACCEL_GPU, (uint32_t)r->devices.n);
	d->minor = minor;
	d->accel_class = accel_class;
	memcpy(d->pci, pci, sizeof(d->pci));
	snprintf(d->model, sizeof(d->model), "%04lx:%04lx", vendor & 0xffff, device & 0xffff);
	if (read_text(root, &b, folder, "unique_id"))
		snprintf(d->uuid, sizeof(d->uuid), "%.79s", b.s);
	set_number(root, &b, folder, "gpu_busy_percent", d, ACCEL_UTIL_PCT, 1);
	set_number(root, &b, folder, "mem_busy_percent", d, ACCEL_MEM_UTIL_PCT, 1);
	set_number(root, &b, folder, "mem_info_vram_total", d, ACCEL_MEM_TOTAL_BYTES, 1);
	set_number(root, &b, folder, "mem_info_vram_used", d, ACCEL_MEM_USED_BYTES, 1);
	read_link(root, &b, folder, d);
	read_sensors(root, &b, folder, d);
	strbuf_done(&b);
}

void drm_devices_read(const struct sysroot *root, struct accel_report *r)
{
	static const struct {
		const char *class, *prefix;
	} classes[] = {{"/sys/class/drm", "renderD"}, {"/sys/class/accel", "accel"}};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		size_t n = strlen(classes[i].prefix);

		/* In the order of their numbers, so that an index means the same each time. */
		for (int32_t minor = 0; minor < 256; minor++) {
			char folder[96];

			snprintf(folder, sizeof(folder), "%s/%.*s%d/device", classes[i].class, (int)n, classes[i].prefix,
				 minor);
			if (sysroot_has(root, "%s", folder))
				read_device(root, folder, minor, i == 1, r);
		}
	}
}

static unsigned long long property(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = text; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
		if (!strncmp(s, name, n) && s[n] == ' ')
			return strtoull(s + n, NULL, 10);
	return 0;
}

#define KFD "/sys/class/kfd/kfd/topology/nodes"
#define KFD_NODES 64

/* The device that node @node is; -1: a CPU, or none that is known. */
static int kfd_device(const struct sysroot *root, unsigned node, const struct accel_report *r)
{
	struct strbuf b = {0};
	unsigned long long location, domain;
	char pci[20];
	int ret = -1;

	if (sysroot_read(root, &b, KFD "/%u/properties", node) > 0 && property(b.s, "simd_count")) {
		location = property(b.s, "location_id");
		domain = property(b.s, "domain");
		snprintf(pci, sizeof(pci), "%04llx:%02llx:%02llx.%llx", domain & 0xffff, location >> 8 & 0xff,
			 location >> 3 & 0x1f, location & 7);
		for (size_t i = 0; ret < 0 && i < r->devices.n; i++)
			if (!strcmp(r->devices.v[i].pci, pci))
				ret = (int)i;
	}
	strbuf_done(&b);
	return ret;
}

static void kfd_node_links(const struct sysroot *root, unsigned node, const int *devices, struct accel_report *r)
{
	struct strbuf b = {0};

	for (unsigned i = 0; i < KFD_NODES; i++) {
		unsigned long long to, type;
		struct accel_link *l;

		strbuf_clear(&b);
		if (sysroot_read(root, &b, KFD "/%u/io_links/%u/properties", node, i) <= 0)
			break;
		to = property(b.s, "node_to");
		type = property(b.s, "type");
		if (to >= KFD_NODES || devices[to] < 0)
			continue;
		l = vec_add(&r->links);
		l->device = (uint32_t)devices[node];
		l->peer_device = devices[to];
		/* HSA_IOLINKTYPE_XGMI, …_PCIEXPRESS of the kernel's kfd_crat.h */
		snprintf(l->kind, sizeof(l->kind), "%s", type == 11 ? "XGMI" : type == 2 ? "PCIe" : "other");
	}
	strbuf_done(&b);
}

void kfd_links_read(const struct sysroot *root, struct accel_report *r)
{
	int devices[KFD_NODES];

	for (unsigned i = 0; i < KFD_NODES; i++)
		devices[i] = r->devices.n ? kfd_device(root, i, r) : -1;
	for (unsigned i = 0; i < KFD_NODES; i++)
		if (devices[i] >= 0)
			kfd_node_links(root, i, devices, r);
}

/* "drm-memory-vram: 123 KiB" */
static uint64_t amount(const char *value)
{
	char *end;
	uint64_t v = strtoull(value, &end, 10);

	while (*end == ' ' || *end == '\t')
		end++;
	return !strncmp(end, "KiB", 3) ? v << 10 : !strncmp(end, "MiB", 3) ? v << 20 : v;
}

/* Memory of the device itself; the rest is of the host. */
static bool is_device_memory(const char *key)
{
	return !strncmp(key, "drm-memory-vram", 15) || !strncmp(key, "drm-resident-vram", 17) ||
	       !strncmp(key, "drm-resident-local", 18);
}

bool drm_fdinfo_parse(const char *text, struct drm_client *ret)
{
	bool found = false;
	char resident[32] = "";

	memset(ret, 0, sizeof(*ret));
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		const char *colon, *value;
		char key[64], first[20];

		end = strchrnul(line, '\n');
		colon = memchr(line, ':', (size_t)(end - line));
		if (!colon || strncmp(line, "drm-", 4) || (size_t)(colon - line) >= sizeof(key))
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)(colon - line), line);
		value = colon + 1 + strspn(colon + 1, " \t");
		if (!strcmp(key, "drm-client-id")) {
			ret->id = strtoull(value, NULL, 10);
			found = true;
		} else if (!strcmp(key, "drm-pdev")) {
			snprintf(first, sizeof(first), "%.*s", (int)(end - value), value);
			accel_pci(ret->pci, first);
		} else if (!strncmp(key, "drm-engine-", 11) && strncmp(key, "drm-engine-capacity-", 20)) {
			ret->engine_ns += strtoull(value, NULL, 10);
			ret->has_engine = true;
		} else if (is_device_memory(key)) {
			/* Drivers that tell it under its older name too say the same twice. */
			if (resident[0] && strncmp(resident, key, 8))
				continue;
			snprintf(resident, sizeof(resident), "%.31s", key);
			ret->memory_bytes += amount(value);
			ret->has_memory = true;
		}
	}
	return found;
}
