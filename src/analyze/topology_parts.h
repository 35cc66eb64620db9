#pragma once

#include "topology.h"

/* Private to the topology: its steps, in the order in which topology_init() takes them. */

/** Formatted text in the topology's arena. */
__attribute__((format(printf, 2, 3))) const char *topo_text(struct topology *t, const char *fmt,
							    ...);

/** The text of a field, or NULL when it is not measured. */
const char *topo_str(const struct node *n, unsigned field);

/** Actors of processes with parents, programs and containers. */
void topo_add_processes(struct topology *t);
/** Links by kind, and the actors outside, of storage and of devices that they end at. */
void topo_add_links(struct topology *t);
/** Devices with their users, and where processes and their memory are. */
void topo_add_places(struct topology *t);
/** Command lines and environments that name a kind of parallelism. */
void topo_add_declared(struct topology *t);
/** Roles that a process has by what it runs, before groups are known. */
void topo_add_program_roles(struct topology *t);
/** Groups of equal ranks. */
void topo_add_groups(struct topology *t);
/** Shapes of the traffic within groups; groups whose parts exchange nothing become several. */
void topo_add_shapes(struct topology *t);
/** What shapes and declarations stand for. */
void topo_add_patterns(struct topology *t);
/** Roles that follow from groups and traffic. */
void topo_add_roles(struct topology *t);
/** Knots and paths. */
void topo_add_paths(struct topology *t);
/** Problems, and what the graph cannot tell. */
void topo_add_problems(struct topology *t);

struct topo_actor *topo_new_actor(struct topology *t, enum actor_kind kind, uint32_t node,
				  const char *label);

/** Add up another observation; topo_sort_links() merges those of the same ends and kind. */
void topo_put_link(struct topology *t, const struct topo_link *l);

/** First link from one actor to another, SIZE_MAX: there is none. */
size_t topo_find_link(const struct topology *t, uint32_t from, uint32_t to);

/** Whether the actor descends from @p ancestor, or is it. */
bool topo_descends(const struct topology *t, uint32_t actor, uint32_t ancestor);

/** The declaration that rules an actor: its own, or the nearest ancestor's; NULL: none. */
const struct topo_declared *topo_declared_of(const struct topology *t, uint32_t actor);

/** A known server, database or tool: never a rank of an AI job. */
bool topo_is_foreign(const struct topo_actor *a);

/** Traffic within a group. */
struct topo_traffic {
	size_t n;
	double *bytes;    /**< [n * n], row sends to column; where amounts are not known, 1 for
			     "something" */
	uint64_t *first;  /**< [n * n] time of the first transfer, 0: not known */
	uint8_t *listens; /**< [n] accepts connections */
	uint8_t *kind;	  /**< [n * n] number of the probe that counts it, symmetric */
	bool amounts;     /**< bytes are amounts */
};

/**
 * Find the shape of @p traffic: SHAPE_UNKNOWN rather than a wrong one.
 * @param ret zeroed; its order gets indexes below n
 */
void topo_find_shape(const struct topo_traffic *traffic, struct topo_shape *ret);

/** Number the parts that have nothing to do with each other, [n]. @return how many there are */
uint32_t topo_split_traffic(const struct topo_traffic *traffic, uint32_t *ret_part);

/** More than greetings and tokens, between processes. */
bool topo_carries_data(const struct topology *t, const struct topo_link *l);

/** Something other than its traffic says that it belongs to an AI job. */
bool topo_is_of_job(const struct topology *t, uint32_t actor);

/** Uses an accelerator. */
bool topo_has_device(const struct topology *t, uint32_t actor);

/** What an actor and its ancestors declare, the nearest first; its `actor` is the one that says
 * most. */
void topo_declared_around(struct topology *t, uint32_t actor, struct topo_declared *ret);

struct topo_pattern *topo_new_pattern(struct topo_group *gr, enum parallelism kind, unsigned pct);

#define topo_evidence(list, kind, txt) vec_push(list, ((struct topo_evidence){(kind), (txt)}))

/** Node with the largest amount in a JSON map of node to amount, TOPO_NONE when there is none. */
uint32_t topo_top_of_map(const char *json);
