/* Debug messages by topic: see log.h. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned log_on;

static const char *const names[] = {
#define X(id, name) name,
	LOG_TOPICS(X)
#undef X
};

static unsigned topic_bits(const char *s, size_t n)
{
	if (n == 3 && !memcmp(s, "all", 3))
		return (1U << LOG_TOPIC_COUNT) - 1;
	for (unsigned i = 0; i < LOG_TOPIC_COUNT; i++)
		if (strlen(names[i]) == n && !memcmp(names[i], s, n))
			return 1U << i;
	return 0;
}

static int fail_unknown(const char *s, size_t n, struct err *e)
{
	char known[128] = "all";
	size_t at = strlen(known);

	for (unsigned i = 0; i < LOG_TOPIC_COUNT; i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, ", %s", names[i]);
	err_msg(e, -EINVAL, "unknown debug topic '%.*s'", n < 40 ? (int)n : 40, s);
	return err_hint(e, "topics are %s", known);
}

int log_init(const char *spec, struct err *e)
{
	unsigned on = 0, bits;
	size_t n;

	for (const char *s = spec ? spec : ""; *s; s += n + (s[n] == ',')) {
		n = strcspn(s, ",");
		bits = topic_bits(s, n);
		if (!bits)
			return fail_unknown(s, n, e);
		on |= bits;
	}
	log_on = on;
	return 0;
}

void log_print(enum log_topic topic, const char *fmt, ...)
{
	int saved = errno;
	char line[1024];
	va_list ap;
	size_t n;

	/* One write, so that the lines of two processes do not mix. */
	n = (size_t)snprintf(line, sizeof(line), "%s: ", names[topic]);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	n = strlen(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		log_on = 0;
	errno = saved;
}
