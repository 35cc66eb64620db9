#pragma once

#include <stdint.h>

/**
 * Well mixed 64 bits of @p v, one to one: every input bit changes about half of the output's.
 * Source: the finaliser of splitmix64 (Steele, Lea, Flood 2014, variant 13 of Stafford's).
 */
static inline uint64_t hash_u64(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ULL;
	v = (v ^ v >> 27) * 0x94d049bb133111ebULL;
	return v ^ v >> 31;
}

/** Of two values, in this order. */
static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return hash_u64(hash_u64(a) + 0x9e3779b97f4a7c15ULL + b);
}
