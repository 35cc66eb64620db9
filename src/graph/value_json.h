#pragma once

#include "graph.h"
#include "json.h"

/** Write @p v unless it is a T_REF, which each format has in its own way. @return false: it is one */
bool value_write_json(const struct value *v, struct json_writer *w);
