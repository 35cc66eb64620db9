#pragma once

#include "err.h"
#include "probe.h"

void dump_health(const struct probe_health *h);
void dump_ready(void);
int dump_other(const char *what, double seconds, const struct probe_options *o, struct err *e);
int dump_ipc(double seconds, const struct probe_options *o, struct err *e);
