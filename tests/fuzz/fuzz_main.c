/*
 * Runs a fuzz target without libFuzzer, for any compiler: `fuzz_X [-runs=N] FILE|FOLDER...` gives
 * it every file, and N mutations of each, always the same ones.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define INPUT_BYTES_MAX (1U << 20)

static unsigned long inputs;
static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dULL;
}

/* The copy has the exact size, so that a sanitizer sees a read behind it. */
static void give(const uint8_t *data, size_t n)
{
	uint8_t *exact = malloc(n ? n : 1);

	if (!exact)
		abort();
	if (n)
		memcpy(exact, data, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	inputs++;
}

/* A few small changes of @p n bytes, in place. @return the new size, <= @p n */
static size_t mutate(uint8_t *data, size_t n)
{
	for (uint64_t k = next_random() % 4 + 1; k && n; k--) {
		size_t at = next_random() % n, from = next_random() % n;
		size_t len = next_random() % 16 + 1, room = n - (at > from ? at : from);

		len = len < room ? len : room;
		switch (next_random() % 4) {
		case 0:
			data[at] ^= (uint8_t)(1U << next_random() % 8);
			break;
		case 1:
			data[at] = (uint8_t)next_random();
			break;
		case 2:
			memmove(data + at, data + from, len);
			break;
		default:
			memmove(data + at, data + at + len, n - at - len);
			n -= len;
		}
	}
	return n;
}

static int run_file(const char *path, unsigned long runs)
{
	uint8_t *data = malloc(INPUT_BYTES_MAX), *changed = malloc(INPUT_BYTES_MAX);
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f || !data || !changed) {
		fprintf(stderr, "cannot read '%s'\n", path);
		return 1;
	}
	n = fread(data, 1, INPUT_BYTES_MAX, f);
	fclose(f);
	give(data, n);
	for (; runs; runs--) {
		memcpy(changed, data, n);
		give(changed, mutate(changed, n));
	}
	free(data);
	free(changed);
	return 0;
}

static int run_folder(const char *path, unsigned long runs)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort), rc = n < 0;

	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			rc |= run_file(file, runs);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return rc;
}

int main(int argc, char **argv)
{
	unsigned long runs = 0;
	struct stat st;
	int rc = 0;

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "-runs=", 6))
			runs = strtoul(argv[i] + 6, NULL, 10);
		else if (!stat(argv[i], &st) && S_ISDIR(st.st_mode))
			rc |= run_folder(argv[i], runs);
		else
			rc |= run_file(argv[i], runs);
	printf("%lu inputs\n", inputs);
	return rc || !inputs;
}
