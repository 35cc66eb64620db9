#pragma once

/* The part of DCMI's binary interface that is used, after Huawei's public DCMI API reference. */

enum { DCMI_UNIT_NPU = 0 };
enum { DCMI_USE_AICORE = 2, DCMI_USE_HBM_BANDWIDTH = 10 };

#define DCMI_CARDS_MOST	    64
#define DCMI_PROCESSES_MOST 512

struct dcmi_chip {
	unsigned char type[32], name[32], version[32];
	unsigned aicores;
};

struct dcmi_pcie {
	unsigned vendor, subvendor, device, subdevice;
	int domain;
	unsigned bus, slot, function;
	unsigned char reserved[32];
};

/* Sizes in MB. */
struct dcmi_hbm {
	unsigned long long size;
	unsigned freq_mhz;
	unsigned long long used;
	int temperature;
	unsigned bandwidth_pct;
};

struct dcmi_memory {
	unsigned long long size_mb, available_mb;
	unsigned freq_mhz;
	unsigned long hugepage_kb, hugepages, hugepages_free;
	unsigned used_pct;
	unsigned char reserved[60];
};

struct dcmi_aicore {
	unsigned freq_mhz, now_mhz;
};

struct dcmi_process {
	int pid;
	unsigned long bytes;
};
