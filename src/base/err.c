/* Failures as data: see err.h. */
#include "err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void err_clear(struct err *e)
{
	memset(e, 0, sizeof(*e));
}

/* A message is one line: names of files and processes may hold anything. */
static void one_line(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

int err_msg(struct err *e, int code, const char *msg, ...)
{
	va_list ap;

	assert(code < 0);
	err_clear(e);
	e->code = code;
	va_start(ap, msg);
	vsnprintf(e->msg, sizeof(e->msg), msg, ap);
	va_end(ap);
	one_line(e->msg);
	return code;
}

int err_set(struct err *e, int code, const char *what, ...)
{
	va_list ap;
	size_t n;

	assert(code < 0);
	err_clear(e);
	e->code = code;
	va_start(ap, what);
	vsnprintf(e->msg, sizeof(e->msg), what, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(-code));
	one_line(e->msg);
	return code;
}

int err_ctx(struct err *e, const char *context, ...)
{
	char old[sizeof(e->msg)];
	va_list ap;
	size_t n;

	memcpy(old, e->msg, sizeof(old));
	va_start(ap, context);
	vsnprintf(e->msg, sizeof(e->msg), context, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", old);
	one_line(e->msg);
	return e->code;
}

int err_hint(struct err *e, const char *hint, ...)
{
	va_list ap;

	va_start(ap, hint);
	vsnprintf(e->hint, sizeof(e->hint), hint, ap);
	va_end(ap);
	one_line(e->hint);
	return e->code;
}
