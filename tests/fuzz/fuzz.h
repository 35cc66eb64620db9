#pragma once

#include <stddef.h>
#include <stdint.h>

/** What libFuzzer, or the main() of fuzz_main.c, calls with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
