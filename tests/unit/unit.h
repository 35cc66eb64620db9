#pragma once

/* What every unit test includes; cmocka.h needs the first four. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** A test case, named after the rule that it checks; listed in main() with cmocka_unit_test(). */
#define TEST(name) static void name(void **state)

/** A repeatable sequence of 64-bit numbers (xorshift64*); @p seed is not 0. */
static inline uint64_t unit_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dULL;
}
