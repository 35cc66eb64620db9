#pragma once

#include "graph.h"

/*
 * What a graph says twice. Compact text writes `=` for a value that follows from others, and `==`
 * for all relations of a type that do. The writer compares before it leaves anything out, so these
 * rules only have to hold often, never always. None may depend on a value that another of them
 * gives, except that numa_access comes last and may use all others and its own fields of lower
 * number.
 */

struct text_deriver;

/* What is spent on sets of CPUs and nodes, in ids: a second. Only a hostile text asks for more. */
#define TEXT_WORK_MAX (1u << 28)

/**
 * @param g	   outlives it; nothing may be added to it meanwhile
 * @param work_max TEXT_WORK_MAX for a writer, twice that for a reader: it meets the same in another
 * order
 */
struct text_deriver *text_deriver_new(struct graph *g, uint64_t work_max);
void text_deriver_free(struct text_deriver *v);

enum text_follows { FOLLOWS_NOT, FOLLOWS_VALUE, FOLLOWS_UNMEASURED };

/**
 * What field @p field of an entity or a relation should be.
 *
 * @param ret set for FOLLOWS_VALUE; texts are owned by the graph
 */
enum text_follows text_derive_entity(struct text_deriver *v, const struct node *n, int field,
				     struct value *ret);
enum text_follows text_derive_relation(struct text_deriver *v, const struct edge *d, int field,
				       struct value *ret);

/** A type whose relations may follow from the entities. */
bool text_derives_relations(const struct type *t);

/**
 * Walk them in order.
 *
 * @param visit stops the walk by anything but 0, which is returned
 * @return 0, what @p visit said, or -E2BIG
 */
int text_derive_relations(struct text_deriver *v, const struct type *t,
			  int (*visit)(void *ctx, uint32_t source, uint32_t target), void *ctx);
