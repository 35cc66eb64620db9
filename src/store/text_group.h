#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strbuf.h"
#include "vec.h"

/*
 * Maps of a column that all have the same keys: the header names these once, with their units, and
 * a cell holds the values alone.
 *
 *   mem_info{MemTotal$ kB,MemFree,MemUsed==MemTotal-MemFree,Mlocked=0,HugePages_Total$}
 *   131507688,101135084,0
 *
 * `$` and a unit: this value and those after it are texts that end so; `$#`: numbers again. `=0`:
 * the value in all rows. `==A`, `==A-B`, `==A+B`: it follows from others that the rows hold.
 */
#define TEXT_GROUP_MEMBERS 1024

struct text_member {
	char *name;
	char *suffix;   /* of a text; NULL: a number */
	char *constant; /* value without suffix, NULL: none */
	char op;        /* 0: the rows hold it; `=`, `+`, `-` */
	uint32_t a, b;  /* members it follows from */
};

struct text_group {
	VEC(struct text_member) members;
	size_t nheld; /* values in a row */
};

void text_group_done(struct text_group *g);

/* How the maps of a column agree. Zeroed: nothing seen. */
struct text_group_plan {
	struct text_group group;
	VEC(char *) first;       /* values of the first map */
	VEC(bool) same, numeric; /* by member: as in the first map; all are whole numbers */
	VEC(uint64_t) numbers;   /* by row and member */
	size_t rows;
	bool failed;
};

void text_group_see(struct text_group_plan *p, const char *json);
/** @return false: the maps differ, or are small; else @p ret is the caller's to release */
bool text_group_finish(struct text_group_plan *p, struct text_group *ret);

/** As in the header. */
void text_group_write(const struct text_group *g, struct strbuf *b);
/** @return false when malformed; @p ret needs text_group_done() either way */
bool text_group_read(struct text_group *ret, const char *s, size_t n);

/** The cell of one map. */
void text_group_pack(const struct text_group *g, const char *json, struct strbuf *b);
/** And back to JSON. @return false when it does not fit the header */
bool text_group_unpack(const struct text_group *g, const char *s, size_t n, struct strbuf *out);
