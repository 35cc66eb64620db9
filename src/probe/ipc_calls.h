#pragma once

#include "ipc_abi.h"

/** Fill the table of enum ipc_call by system call number. Private to the layer. */
void ipc_calls_fill(unsigned char table[IPC_CALLS]);
