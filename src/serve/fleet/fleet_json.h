#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Members of small JSON objects, as brokers answer with: by name, or "outer.inner". What is not there, or is of another
 * kind, is the default.
 */
uint64_t fleet_json_u64(const char *json, const char *path, uint64_t absent);
bool fleet_json_bool(const char *json, const char *path);
/** @param ret "" when it is not there; what is longer is cut off @return whether it is there */
bool fleet_json_text(const char *json, const char *path, char *ret, size_t size);
