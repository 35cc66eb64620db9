#pragma once

#include "sink.h"

/** Read a subscriber's settings, as POST /subscriber takes them. @p ret is zeroed, and freed also on failure. */
int sink_settings_read(struct sink_settings *ret, const char *json, size_t n, struct err *e);
void sink_settings_done(struct sink_settings *s);
