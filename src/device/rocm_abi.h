#pragma once

#include <stdint.h>

/* The part of ROCm SMI's binary interface that is used, after AMD's public reference. */

enum { ROCM_MEMORY_VRAM = 0, ROCM_TEMPERATURE_EDGE = 0, ROCM_TEMPERATURE_NOW = 0 };
enum { ROCM_LINK_PCIE = 1, ROCM_LINK_XGMI = 2 };

#define ROCM_PROCESSES_MOST 512
#define ROCM_DEVICES_MOST   64

struct rocm_process {
	uint32_t pid, pasid;
	uint64_t vram_bytes, sdma_us;
	uint32_t occupancy_pct;
};
