/* Reads which events the machine can count, and how they are asked for: see perf_pmu.h. */
#include "perf_pmu.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define DEVICES "/sys/bus/event_source/devices"

/* First line of a file, or NULL. */
static char *line_of(const struct sysroot *r, const char *pmu, const char *dir, const char *name, const char *suffix)
{
	struct strbuf b = {0};

	if (sysroot_read(r, &b, DEVICES "/%s/%s%s%s", pmu, dir, name, suffix) <= 0) {
		strbuf_done(&b);
		return NULL;
	}
	b.s[strcspn(b.s, "\n")] = '\0';
	return b.s;
}

static void read_event(const struct sysroot *r, struct pmu *p, const char *name)
{
	char *terms = line_of(r, p->name, "events/", name, ""), *scale;
	struct pmu_event *x;

	if (!terms)
		return;
	scale = line_of(r, p->name, "events/", name, ".scale");
	x = vec_add(&p->events);
	x->name = mem_strdup(name);
	x->terms = terms;
	x->scale = scale ? strtod(scale, NULL) : 0;
	x->unit = line_of(r, p->name, "events/", name, ".unit");
	free(scale);
}

static void read_format(const struct sysroot *r, struct pmu *p, const char *name)
{
	char *text = line_of(r, p->name, "format/", name, ""), *bits = text ? strchr(text, ':') : NULL;
	struct pmu_format f = {0};
	struct err e;

	if (bits && !strncmp(text, "config", 6)) {
		*bits++ = '\0';
		f.word = text[6] ? (unsigned)strtoul(text + 6, NULL, 10) : 0;
		if (f.word < 3 && !idrange_parse(bits, &f.bits, &e) && idrange_next(&f.bits, 64) < 0) {
			f.name = mem_strdup(name);
			vec_push(&p->formats, f);
		} else {
			idrange_done(&f.bits);
		}
	}
	free(text);
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static void read_folder(const struct sysroot *r, struct pmu *p, const char *dir,
			void (*each)(const struct sysroot *r, struct pmu *p, const char *name))
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;

	if (sysroot_opendir(r, &d, DEVICES "/%s/%s", p->name, dir) < 0) {
		d = NULL;
		return;
	}
	while ((de = readdir(d)))
		if (de->d_name[0] != '.' && !ends_with(de->d_name, ".scale") && !ends_with(de->d_name, ".unit") &&
		    !ends_with(de->d_name, ".snapshot") && !ends_with(de->d_name, ".per-pkg"))
			each(r, p, de->d_name);
}

/* PMUs of CPUs say "cpus", or are called cpu; those of other parts say on which CPU they are read. */
static void read_cpus(const struct sysroot *r, struct pmu *p)
{
	char *cpus = line_of(r, p->name, "", "cpus", ""), *mask = line_of(r, p->name, "", "cpumask", "");
	struct err e;

	p->is_core = cpus || !strcmp(p->name, "cpu");
	if (cpus || mask)
		idrange_parse(cpus ?: mask, &p->cpus, &e);
	free(cpus);
	free(mask);
}

static int by_name(const void *a, const void *b)
{
	const struct pmu *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int pmus_read(const struct sysroot *r, struct pmus *ret)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = sysroot_opendir(r, &d, DEVICES);
	if (rc < 0) {
		d = NULL;
		return rc;
	}
	while ((de = readdir(d))) {
		char *type = de->d_name[0] == '.' ? NULL : line_of(r, de->d_name, "", "type", "");
		struct pmu *p;

		if (!type)
			continue;
		p = vec_add(&ret->v);
		p->name = mem_strdup(de->d_name);
		p->type = (uint32_t)strtoul(type, NULL, 10);
		free(type);
		read_cpus(r, p);
		read_folder(r, p, "events", read_event);
		read_folder(r, p, "format", read_format);
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_name);
	return (int)ret->v.n;
}

void pmus_done(struct pmus *pmus)
{
	vec_for(&pmus->v, p) {
		vec_for(&p->events, x) {
			free(x->name);
			free(x->terms);
			free(x->unit);
		}
		vec_for(&p->formats, f) {
			free(f->name);
			idrange_done(&f->bits);
		}
		vec_done(&p->events);
		vec_done(&p->formats);
		idrange_done(&p->cpus);
		free(p->name);
	}
	vec_done(&pmus->v);
}

const struct pmu_event *pmu_event(const struct pmu *p, const char *name)
{
	vec_for(&p->events, x)
		if (!strcmp(x->name, name))
			return x;
	return NULL;
}

static int put_bits(const struct pmu_format *f, uint64_t value, uint64_t config[3])
{
	for (int64_t bit = -1; (bit = idrange_next(&f->bits, bit + 1)) >= 0; value >>= 1)
		config[f->word] |= (value & 1) << bit;
	return value ? -ERANGE : 0;
}

static int put_term(const struct pmu *p, char *term, uint64_t config[3], struct err *e)
{
	char *value = strchr(term, '=');
	uint64_t v = 1;

	if (value) {
		*value++ = '\0';
		v = strtoull(value, NULL, 0);
	}
	vec_for(&p->formats, f)
		if (!strcmp(f->name, term)) {
			int rc = put_bits(f, v, config);

			return rc ? err_set(e, rc, "PMU '%s': term '%s'", p->name, term) : 0;
		}
	/* The kernel takes these of any PMU. */
	for (unsigned i = 0; i < 3; i++) {
		static const char *const words[] = {"config", "config1", "config2"};

		if (!strcmp(term, words[i])) {
			config[i] |= v;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "PMU '%s': term '%s'", p->name, term);
}

int pmu_encode(const struct pmu *p, const char *terms, uint64_t ret_config[3], struct err *e)
{
	CLEANUP_FREE char *copy = mem_strdup(terms);
	uint64_t config[3] = {0};
	char *save = NULL;
	int rc = 0;

	for (char *t = strtok_r(copy, ",", &save); !rc && t; t = strtok_r(NULL, ",", &save))
		rc = put_term(p, t, config, e);
	if (!rc)
		memcpy(ret_config, config, sizeof(config));
	return rc;
}

const char *core_event_name(enum core_event e)
{
	static const char *const names[] = {"cycles", "instructions", "llc_references", "llc_misses", "l1i_misses"};

	return names[e];
}

/*
 * Names in the drivers, the best first. Those of the last-level cache go in pairs, so that references
 * and misses are of the same level. On arm64 the kernel's generic cache events are of the first level.
 */
static const char *const names_of[CORE_EVENTS][4] = {
	[CORE_CYCLES] = {"cpu-cycles", "cpu_cycles"},
	[CORE_INSTRUCTIONS] = {"instructions", "inst_retired"},
	[CORE_LLC_REFERENCES] = {"cache-references", "ll_cache_rd", "l3d_cache"},
	[CORE_LLC_MISSES] = {"cache-misses", "ll_cache_miss_rd", "l3d_cache_refill"},
	[CORE_L1I_MISSES] = {"l1i_cache_refill", "icache_misses"},
};

/* The pair of names must both be there. */
static const struct pmu_event *named(const struct pmu *p, enum core_event e)
{
	for (unsigned i = 0; i < 4 && names_of[e][i]; i++) {
		const struct pmu_event *x = pmu_event(p, names_of[e][i]);

		if (!x)
			continue;
		if (e == CORE_LLC_REFERENCES && !pmu_event(p, names_of[CORE_LLC_MISSES][i]))
			continue;
		if (e == CORE_LLC_MISSES && !pmu_event(p, names_of[CORE_LLC_REFERENCES][i]))
			continue;
		return x;
	}
	return NULL;
}

int core_event_of(const struct pmu *p, enum core_event e, uint32_t *ret_type, uint64_t ret_config[3])
{
	static const uint64_t generic[CORE_EVENTS] = {
		[CORE_CYCLES] = PERF_COUNT_HW_CPU_CYCLES,
		[CORE_INSTRUCTIONS] = PERF_COUNT_HW_INSTRUCTIONS,
		[CORE_LLC_REFERENCES] = PERF_COUNT_HW_CACHE_REFERENCES,
		[CORE_LLC_MISSES] = PERF_COUNT_HW_CACHE_MISSES,
		[CORE_L1I_MISSES] = PERF_COUNT_HW_CACHE_L1I | PERF_COUNT_HW_CACHE_OP_READ << 8 |
				    PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
	};
	const struct pmu_event *x = named(p, e);
	bool hybrid = strcmp(p->name, "cpu") != 0;
	struct err ignored;

	if (!p->is_core)
		return -ENOENT;
	if (x && !pmu_encode(p, x->terms, ret_config, &ignored)) {
		*ret_type = p->type;
		return 0;
	}
	if (!strncmp(p->name, "arm", 3) && (e == CORE_LLC_REFERENCES || e == CORE_LLC_MISSES))
		return -ENOENT;
	*ret_type = e == CORE_L1I_MISSES ? PERF_TYPE_HW_CACHE : PERF_TYPE_HARDWARE;
	/* The upper half says of which of several PMUs (linux/perf_event.h, v5.13: 55bcf6ef314a). */
	ret_config[0] = generic[e] | (hybrid ? (uint64_t)p->type << 32 : 0);
	ret_config[1] = ret_config[2] = 0;
	return 0;
}
