#pragma once

#include "picture.h"

/* Private to pictures: how they are made. */

/** What may become a box. */
struct picture_slot {
	uint32_t actor;	    /**< the first that it stands for */
	uint32_t members;   /**< processes */
	uint32_t numa_node; /**< PICTURE_NONE: not known or several */
	uint32_t index;	    /**< in picture.nodes, PICTURE_NONE: it has none */
	uint64_t cpu_ns, bytes, inner_bytes;
	bool has_cpu, wanted, linked;
};

/** All links of one kind from one slot to another. */
struct picture_sum {
	uint32_t from, to; /**< slots */
	const char *kind;
	uint64_t bytes, messages, waited_ns;
	bool measured, kept;
};

struct picture_maker {
	struct picture *p;
	const struct topology *t;
	const struct picture_options *o;
	uint32_t *container; /**< [actors] node of the container, NODE_NONE */
	uint32_t *slot_of;   /**< [actors] */
	VEC(struct picture_slot) slots;
	VEC(struct picture_sum) sums;
	VEC(uint32_t) kept; /**< slots that become boxes, in order */
	size_t with_links;  /**< slots that could have */
};

/** Not within any host that was observed. */
bool picture_is_outside(const struct picture_maker *m, const struct picture_slot *s);
/** Namespace of its host. */
const char *picture_ns(const struct picture_maker *m, const struct picture_slot *s);
/** Node of the container that it is shown in, NODE_NONE sorts last. */
uint32_t picture_container(const struct picture_maker *m, const struct picture_slot *s);
/** Index of the rank group that it is shown in, TOPO_NONE sorts last. */
uint32_t picture_ranks(const struct picture_maker *m, const struct picture_slot *s);

/** Boxes with their texts, and the groups around them. */
void picture_add_nodes(struct picture_maker *m);
/** Title, and what is left out. */
void picture_add_texts(struct picture_maker *m);
const char *picture_edge_label(struct picture_maker *m, const struct picture_edge *e);
/** A clean copy in the picture's arena; @p most as in clean_add(). */
const char *picture_clean(struct picture_maker *m, const char *s, size_t most);
