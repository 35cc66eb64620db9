#pragma once

#include <stddef.h>

#include "bpf/wait_abi.h"

/** Set the entries of all system calls that threads wait in; the others are left as they are. */
void wait_calls_fill(unsigned char table[WAIT_CALLS_MAX]);
