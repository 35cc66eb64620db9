#pragma once

/** Who answered a sampled access to memory. */
enum mem_answer {
	MEM_UNKNOWN, /**< not an access to memory, or not told */
	MEM_OWN,     /**< a cache of the CPU's own node */
	MEM_LOCAL,   /**< memory of its node */
	MEM_REMOTE,  /**< memory, or a cache, of another node; SPE: of another socket */
};
