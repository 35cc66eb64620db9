#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * jansson behind a few functions: its names and ours meet in json_copy() and JSON_OBJECT, so that
 * no file can include both.
 */
enum verdict {
	ACCEPTED,
	REFUSED,
	REFUSED_BY_INTENT, /**< for one of the differences that test_json_oracle.c lists */
};

enum verdict oracle_reads(const char *text, size_t n, char *reason, size_t size);
/** Both documents are valid and have the same value. */
bool oracle_equal(const char *a, size_t na, const char *b, size_t nb);
