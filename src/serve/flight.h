#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/*
 * The flight recorder: the newest minutes are kept in memory, and written as a recording when
 * somebody asks, or when a finding comes up. Files are `flight-TIME-WHY.wpdb` in a folder of the
 * server's own, there once they are whole; of these the oldest make room for new ones. But for what
 * a killed server left half written, nothing else is ever deleted.
 */
struct flight;
struct collector;

struct flight_counts {
	uint64_t written, failed, removed;
};

/**
 * @param dir is made when it is not there; it must be a folder that only this user may write
 */
int flight_open(struct flight **ret, const char *dir, struct collector *c, struct err *e);
void flight_close(struct flight *f);

/** Have it written now. @param ret_name of the file, at least 128 bytes @return false: one is being written */
bool flight_now(struct flight *f, const char *why, char *ret_name, size_t size);
/** A finding came up: have it written, unless that was done a minute ago. Does not wait. */
void flight_finding(struct flight *f, const char *rule);
/** The collection did something: look whether the file is there. */
void flight_news(struct flight *f);

/** JSON array of {name, bytes, written_ns}, newest first. */
void flight_list(struct flight *f, struct strbuf *b);
/** Open one for reading. @return the file, or -ENOENT: there is none of that name */
int flight_file(struct flight *f, const char *name, uint64_t *ret_bytes);
void flight_get(struct flight *f, struct flight_counts *ret);
