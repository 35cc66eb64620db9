#pragma once

#include "err.h"

/**
 * Take the lock of the one server of this host. It lasts as long as the file is open; the file stays.
 *
 * @param path  its folder is made when it is not there
 * @param about JSON object for whoever finds the lock taken
 * @return the open file, or -errno; -EALREADY: another one runs, and the message says which
 */
int instance_lock(const char *path, const char *about, struct err *e);

/** Where the lock is when nobody says: /run for root, else the user's own folder. */
void instance_default(char *ret, unsigned long size);
