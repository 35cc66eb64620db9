#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * What a fake library plays: a file of lines "NAME NUMBER…", named by an environment variable. It is read
 * anew at each question, so that a test may change it in mid-recording.
 */

#define SCENARIO_NUMBERS 6

struct scenario_line {
	char name[64];
	double v[SCENARIO_NUMBERS];
	int n;
};

/* Line number @i from 0 among those with that name. */
static inline int scenario_nth(const char *variable, const char *name, int i, struct scenario_line *ret)
{
	const char *path = getenv(variable);
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[256];
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f)) {
		double *v = ret->v;

		ret->n = sscanf(line, "%63s %lf %lf %lf %lf %lf %lf", ret->name, &v[0], &v[1], &v[2], &v[3], &v[4],
				&v[5]) - 1;
		found = ret->n >= 0 && !strcmp(ret->name, name) && i-- == 0;
	}
	if (f)
		fclose(f);
	return found;
}

static inline double scenario_number(const char *variable, const char *name, double otherwise)
{
	struct scenario_line l;

	return scenario_nth(variable, name, 0, &l) && l.n > 0 ? l.v[0] : otherwise;
}

/* The line with that name whose first number is @key. */
static inline int scenario_keyed(const char *variable, const char *name, double key, struct scenario_line *ret)
{
	for (int i = 0; scenario_nth(variable, name, i, ret); i++)
		if (ret->n > 0 && ret->v[0] == key)
			return 1;
	return 0;
}

/* As a driver does that hangs. */
static inline void scenario_hang(const char *variable)
{
	double seconds = scenario_number(variable, "hang", 0);
	struct timespec t = {(time_t)seconds, 0};

	while (seconds > 0 && nanosleep(&t, &t))
		;
}
