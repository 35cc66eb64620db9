#pragma once

#include "accel.h"

/*
 * NVIDIA's devices as the tool nvidia-smi writes them. A reason that the report holds already, why the
 * library could not be used, is kept and completed.
 */
void nvidia_smi_read(struct accel_report *r);

/** Parse `--query-gpu=…` with the columns of nvidia_smi_columns(). @return devices found */
unsigned nvidia_smi_parse_devices(const char *text, struct accel_report *r);
/** Parse `--query-compute-apps=gpu_uuid,pid,used_memory`. Lines about unknown devices are left out. */
void nvidia_smi_parse_processes(const char *text, struct accel_report *r);
