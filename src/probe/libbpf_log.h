#pragma once

/* Private to the layer: what libbpf says. It reaches stderr only with WITTY_DEBUG=probe. */

void libbpf_log_init(void);
void libbpf_log_reset(void);

/** Name of the last program that libbpf said it could not load since the reset, "" when none. */
const char *libbpf_log_failed_program(void);
