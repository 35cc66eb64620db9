#pragma once

#include "err.h"
#include "top_state.h"

/* The terminal of the live view: only cells that changed are sent, and it is left as it was found. */

struct screen;

/** @return 0; -ENOTTY: no terminal; -ENOTSUP: one of an unknown kind */
int screen_open(struct screen **ret, struct err *e);
/** Give the terminal back. NULL is fine. */
void screen_close(struct screen *s);

/** Its size changed. */
void screen_resized(struct screen *s);

/** The next key that was typed, as top_key() takes it. @return false: there is none */
bool screen_key(struct screen *s, uint32_t *ret);

void screen_draw(struct screen *s, struct top *t);

/** Whether TERM names a kind that is known here. newterm() would leak where it does not. */
bool terminal_is_known(void);
