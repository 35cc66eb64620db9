#pragma once

#include "json.h"

/*
 * Objects that a document repeats word for word, as graph JSON repeats an entity in each of its
 * relations: the repetition is known by its bytes and needs no reading. Only the most recent
 * objects are remembered, in 16 MiB at most.
 */
struct repeats;

struct repeats *repeats_new(void);
void repeats_free(struct repeats *t);

/** An object that is being read for the first time. */
struct repeat_mark {
	size_t slot;	 /**< SIZE_MAX: it cannot be remembered */
	uint64_t serial; /**< the slot still waits for this object if it has the same */
	uint64_t end;	 /**< json_offset() where it ends, if the guess is right */
};

/**
 * Look at the object whose JSON_OBJECT was just returned; pass over it when it is a repetition.
 *
 * @param era as it was when the object was read, or that does not count: what the reading of an
 *            object does can depend on more than its bytes
 * @return true: passed over, @p ret_item is the number that repeats_keep() was given; false: read
 *         it and give @p ret_mark to repeats_keep()
 */
bool repeats_pass(struct repeats *t, struct json_reader *r, uint64_t era, uint32_t *ret_item,
		  struct repeat_mark *ret_mark);

/** The object was read without an error: its JSON_OBJECT_END is the last token. */
void repeats_keep(struct repeats *t, const struct json_reader *r, uint64_t era, uint32_t item,
		  const struct repeat_mark *m);
