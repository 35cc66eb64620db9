/* Remembers the objects of a JSON document by their bytes: see json_repeats.h. */
#include "json_repeats.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "mem.h"
#include "vec.h"

#define SLOTS	   1024U       /* the relations of an entity often stand close together */
#define OBJECT_MAX (8U << 10) /* bytes of an object */
#define HASHED_BYTES 256U

struct repeat {
	uint64_t hash, era;
	uint64_t serial; /* of the look that found it new; 0: the slot is free */
	size_t depth;	 /* a limit of the reader counts from here */
	uint32_t item;
	bool is_read;
	VEC(char) text; /* the reader alters its own in place */
};

struct repeats {
	uint64_t serial;
	struct repeat slot[SLOTS];
};

struct repeats *repeats_new(void)
{
	return mem_alloc(sizeof(struct repeats));
}

void repeats_free(struct repeats *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		vec_done(&t->slot[i].text);
	free(t);
}

static void hash_add(uint64_t lane[4], const char *s, size_t n)
{
	uint64_t word[4] = {0};

	memcpy(word, s, n);
	for (int k = 0; k < 4; k++)
		lane[k] = (lane[k] ^ word[k]) * 0x9e3779b97f4a7c15ULL;
}

/*
 * Of the length and the first bytes: what tells entities apart stands there. Four lanes, because
 * each multiplication waits for the one before it in its lane.
 */
static uint64_t hash_text(const char *s, size_t n)
{
	uint64_t lane[4] = {n, 1, 2, 3};
	size_t left = n < HASHED_BYTES ? n : HASHED_BYTES;

	for (; left >= 32; s += 32, left -= 32)
		hash_add(lane, s, 32);
	hash_add(lane, s, left);
	return hash_pair(hash_pair(lane[0], lane[1]), hash_pair(lane[2], lane[3]));
}

bool repeats_pass(struct repeats *t, struct json_reader *r, uint64_t era, uint32_t *ret_item,
		  struct repeat_mark *ret_mark)
{
	struct repeat *p;
	size_t n, depth = json_depth(r);
	const char *text = json_peek_object(r, OBJECT_MAX, &n);
	uint64_t hash;

	if (!text) {
		ret_mark->slot = SIZE_MAX;
		return false;
	}
	hash = hash_text(text, n);
	p = &t->slot[hash % SLOTS];
	if (p->is_read && p->hash == hash && p->era == era && p->depth == depth && p->text.n == n &&
	    !memcmp(p->text.v, text, n)) {
		*ret_item = p->item;
		json_pass_object(r, n);
		return true;
	}
	p->hash = hash;
	p->depth = depth;
	p->serial = ++t->serial;
	p->is_read = false;
	p->text.n = 0;
	vec_reserve(&p->text, n);
	memcpy(p->text.v, text, n);
	p->text.n = n;
	*ret_mark = (struct repeat_mark){hash % SLOTS, p->serial, json_offset(r) + n};
	return false;
}

void repeats_keep(struct repeats *t, const struct json_reader *r, uint64_t era, uint32_t item,
		  const struct repeat_mark *m)
{
	struct repeat *p;

	if (m->slot == SIZE_MAX || json_offset(r) != m->end)
		return;
	p = &t->slot[m->slot];
	/* An object inside it may have taken the slot. */
	if (p->serial != m->serial)
		return;
	p->era = era;
	p->item = item;
	p->is_read = true;
}
