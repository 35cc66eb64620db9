/* What vendors tell of accelerators, in one form: see accel.h. */
#include "accel.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct accel_source *const accel_sources[ACCEL_SOURCES] = {&accel_nvidia, &accel_ascend, &accel_drm};

void accel_report_done(struct accel_report *r)
{
	vec_done(&r->devices);
	vec_done(&r->processes);
	vec_done(&r->links);
	memset(&r->head, 0, sizeof(r->head));
}

void accel_set(struct accel *d, enum accel_fact f, double v)
{
	d->facts[f] = v;
	d->has |= 1u << f;
}

struct accel *accel_add(struct accel_report *r, enum accel_kind kind, uint32_t index)
{
	struct accel *d = vec_add(&r->devices);

	d->kind = kind;
	d->index = index;
	d->minor = -1;
	d->parent = -1;
	return d;
}

void accel_pci(char ret[20], const char *text)
{
	unsigned domain = 0, bus, slot, function;

	ret[0] = '\0';
	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
		domain = 0;
		if (sscanf(text, "%x:%x.%x", &bus, &slot, &function) != 3)
			return;
	}
	if (bus <= 0xff && slot <= 0x1f && function <= 7)
		snprintf(ret, 20, "%04x:%02x:%02x.%x", domain, bus, slot, function);
}

void accel_text(char *ret, size_t size, const char *s, size_t n)
{
	while (n && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	if (n >= size)
		n = size - 1;
	memmove(ret, s, n);
	ret[n] = '\0';
}

void accel_state(struct accel_report *r, enum accel_state s, const char *why, ...)
{
	va_list args;

	r->head.state = s;
	va_start(args, why);
	vsnprintf(r->head.why, sizeof(r->head.why), why, args);
	va_end(args);
}
