/* Keeps libbpf quiet and picks from its messages which program failed to load. */
#include "libbpf_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

/* libbpf's callback has no context argument, so this cannot be passed along. */
static char failed_program[64];

static void note_failure(const char *line)
{
	char name[64];

	if (!failed_program[0] && strstr(line, "failed") &&
	    sscanf(line, "libbpf: prog '%63[^']'", name) == 1)
		snprintf(failed_program, sizeof(failed_program), "%s", name);
}

__attribute__((format(printf, 2, 0))) static int on_message(enum libbpf_print_level level,
							    const char *fmt, va_list args)
{
	const char *topics = getenv("WITTY_DEBUG");
	char line[256];
	va_list again;

	va_copy(again, args);
	vsnprintf(line, sizeof(line), fmt, again);
	va_end(again);
	if (level == LIBBPF_WARN)
		note_failure(line);
	if (topics && strstr(topics, "probe"))
		return vfprintf(stderr, fmt, args);
	return 0;
}

void libbpf_log_init(void)
{
	libbpf_set_print(on_message);
}

void libbpf_log_reset(void)
{
	failed_program[0] = '\0';
}

const char *libbpf_log_failed_program(void)
{
	return failed_program;
}
