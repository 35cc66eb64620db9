/* Tells what PMUs of a machine allow: see caps_pmu.h. */
#include "caps_pmu.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "cleanup.h"
#include "strbuf.h"

#define DEVICES	     "/sys/bus/event_source/devices"
#define CONFIG_BYTES (4U << 20) /* a configuration has some 300 KiB */

/* A PMU, and an event that it has to have, if any. */
struct wanted {
	const char *pmu, *event;
};

static bool has_pmu(const struct sysroot *r, const struct wanted *w)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	const struct dirent *de;

	if (sysroot_opendir(r, &d, DEVICES) < 0) {
		d = NULL;
		return false;
	}
	while ((de = readdir(d)))
		if (!fnmatch(w->pmu, de->d_name, FNM_PERIOD) &&
		    (!w->event || sysroot_has(r, DEVICES "/%s/events/%s", de->d_name, w->event)))
			return true;
	return false;
}

static int none_of(const char *first, char *why, size_t size)
{
	snprintf(why, size, "not available: no %s and the like in " DEVICES, first);
	return 0;
}

int pmu_counts_uncore(const struct sysroot *r, char *why, size_t size)
{
	static const struct wanted known[] = {{"hisi_sccl*", NULL}, {"hisi_sicl*", NULL},  {"uncore_imc*", NULL},
					      {"uncore_upi*", NULL}, {"amd_umc*", NULL},    {"amd_df", NULL},
					      {"uncore_cha*", NULL}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has_pmu(r, &known[i]))
			return 1;
	return none_of(known[0].pmu, why, size);
}

static void inflate_all(const struct strbuf *packed, struct strbuf *ret)
{
	z_stream z = {.next_in = (Bytef *)packed->s, .avail_in = (uInt)packed->n};
	char part[1 << 14];
	int rc = Z_OK;

	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return;
	while (rc == Z_OK && ret->n < CONFIG_BYTES) {
		z.next_out = (Bytef *)part;
		z.avail_out = sizeof(part);
		rc = inflate(&z, Z_NO_FLUSH);
		if (rc == Z_OK || rc == Z_STREAM_END)
			strbuf_addn(ret, part, sizeof(part) - z.avail_out);
	}
	inflateEnd(&z);
	if (rc != Z_STREAM_END)
		strbuf_clear(ret);
}

/* The kernel's configuration; empty where it is told nowhere. */
static void read_config(const struct sysroot *r, struct strbuf *ret)
{
	struct strbuf packed = {0}, release = {0};

	if (sysroot_read(r, &packed, "/proc/config.gz") > 0)
		inflate_all(&packed, ret);
	if (!ret->n && sysroot_read(r, &release, "/proc/sys/kernel/osrelease") > 0) {
		release.s[strcspn(release.s, "\n")] = '\0';
		if (sysroot_read(r, ret, "/boot/config-%s", release.s) <= 0)
			sysroot_read(r, ret, "/lib/modules/%s/config", release.s);
	}
	strbuf_done(&packed);
	strbuf_done(&release);
}

static bool lacks_option(const struct sysroot *r, const char *option)
{
	struct strbuf config = {0};
	char line[80];
	bool ret;

	read_config(r, &config);
	snprintf(line, sizeof(line), "\n%s=y\n", option);
	ret = config.n && !strstr(config.s, line);
	strbuf_done(&config);
	return ret;
}

int pmu_samples_memory(const struct sysroot *r, char *why, size_t size)
{
	static const struct wanted by_kernel[] = {{"cpu", "mem-loads"}, {"cpu_core", "mem-loads"}, {"ibs_op", NULL}},
				   spe = {"arm_spe_*", NULL};

	for (size_t i = 0; i < sizeof(by_kernel) / sizeof(by_kernel[0]); i++)
		if (has_pmu(r, &by_kernel[i]))
			return 1;
	if (!has_pmu(r, &spe))
		return none_of("mem-loads, ibs_op, arm_spe_0", why, size);
	if (!lacks_option(r, "CONFIG_PID_IN_CONTEXTIDR"))
		return 1;
	snprintf(why, size, "not available: SPE is there, but this kernel does not tell the CPU who runs "
			    "(CONFIG_PID_IN_CONTEXTIDR is not set)");
	return 0;
}
