#pragma once

#include "accel.h"

/* Ascend NPUs as the tool npu-smi writes them; keeps a reason that the report holds, as nvidia_smi_read(). */
void npu_smi_read(struct accel_report *r);

/**
 * Parse the two tables of `npu-smi info`. Cards with one chip and with several, with and without the
 * column Phy-ID, with HBM and without are known.
 *
 * @return chips found
 */
unsigned npu_smi_parse_info(const char *text, struct accel_report *r);

/** Parse `npu-smi info -t topo` into links and CPUs of the devices found before. */
void npu_smi_parse_topo(const char *text, struct accel_report *r);
