#pragma once

#include <stdint.h>

/** Who answered a sampled access to memory. */
enum mem_answer {
	MEM_UNKNOWN, /**< not an access to memory, or not told */
	MEM_OWN,     /**< a cache of the CPU's own node */
	MEM_LOCAL,   /**< memory of its node */
	MEM_REMOTE,  /**< memory, or a cache, of another node; SPE: of another socket */
};

/** A sampled access. */
struct mem_access {
	uint32_t tid; /**< of the host; 0: nobody ran */
	enum mem_answer answer;
	uint32_t cycles; /**< of the CPU, until the data was there; 0: not told */
};
