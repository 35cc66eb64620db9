#pragma once

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/*
 * What could not be delivered, on disk, in order, until it can be. One folder each, used by one thread.
 * It is bounded: the oldest makes room for the newest, and is counted. Only files that the spool made, by
 * their names, are ever removed.
 */
struct spool;

/**
 * @param dir   exists; the spool's own folder in it is made
 * @param name  of that folder; letters, digits, '-' and '_'
 * @param bytes that it may hold
 */
int spool_open(struct spool **ret, const char *dir, const char *name, uint64_t bytes, struct err *e);
void spool_close(struct spool *s);

/** @return 0 or -errno */
int spool_put(struct spool *s, const struct strbuf *b, struct err *e);
/** The oldest one into @p b. @return 1, 0: there is none, or -errno */
int spool_peek(struct spool *s, struct strbuf *b, struct err *e);
/** It was delivered. */
void spool_drop(struct spool *s);

uint64_t spool_bytes(const struct spool *s);
uint64_t spool_lost(const struct spool *s); /**< made room since the start */
