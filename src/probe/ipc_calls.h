#pragma once

#include <stdint.h>

#include "ipc_abi.h"

/** Fill the table of enum ipc_call by system call number: ipc_abi.h. Private to the layer. */
void ipc_calls_fill(uint16_t table[IPC_CALLS]);
