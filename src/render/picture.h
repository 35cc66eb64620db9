#pragma once

#include "arena.h"
#include "topology.h"
#include "vec.h"

/*
 * What a picture of a topology shows, whatever draws it: boxes within boxes, and arrows. All texts are one
 * clean line each (clean.h) and lie in the picture's arena. A pure function of the topology and the options.
 */

#define PICTURE_NONE UINT32_MAX

enum picture_level {
	PICTURE_PROCESS,
	PICTURE_CONTAINER, /**< one box for each container, and one for what is in none */
	PICTURE_HOST,	   /**< one box for each host */
};

struct picture_options {
	enum picture_level level;
	double min_rate_bps; /**< links of less, or of unknown amount, are left out; 0: none */
	uint64_t top;	     /**< at most so many boxes: parts of a job, ends of the largest links; 0: all */
	bool alone;	     /**< also boxes that have no link and no part in a job or a path */
};

/** A box around others. */
struct picture_group {
	uint32_t parent;  /**< the group that it lies in, PICTURE_NONE; less than its own index */
	const char *kind; /**< "host", "container", "ranks" */
	const char *id;	  /**< printed id of its entity; NULL: it is none */
	const char *label;
};

struct picture_node {
	uint32_t group;	     /**< PICTURE_NONE: outside all */
	const char *kind;    /**< "process", "container", "host", "outside", "storage", "device" */
	const char *id;	     /**< printed id of the entity, or of one that it stands for */
	const char *label;   /**< name */
	const char *detail;  /**< more for people; "": nothing */
	const char *role;    /**< "worker rank", …; NULL: not known */
	const char *command; /**< command line; NULL: not known or several */
	uint32_t members;    /**< processes that it stands for */
	double cpu_pct;	     /**< of one CPU over the window; < 0: not known */
	uint32_t numa_node;  /**< where it runs most; PICTURE_NONE: not known or several */
	uint64_t inner_bytes; /**< between its members: no link shows them */
	bool wanted;	     /**< has a part in a job or a path */
};

struct picture_edge {
	uint32_t from, to;
	const char *kind;   /**< "tcp", "pipe", …, "device"; "starts": parent and child, no data */
	const char *label;  /**< kind, amount, rate */
	bool measured;	    /**< bytes are known */
	uint64_t bytes, messages;
	double rate_bps;    /**< < 0: not known */
	uint64_t waited_ns; /**< what threads of @p to waited for threads of @p from */
};

struct picture {
	struct arena arena;
	VEC(struct picture_group) groups;
	VEC(struct picture_node) nodes; /**< by host, container, ranks; ends outside last */
	VEC(struct picture_edge) edges; /**< by from, to, kind */
	const char *title;
	const char *left_out; /**< one sentence; NULL: nothing was */
	uint64_t nodes_left, links_left, bytes_left; /**< that are not in it */
	uint64_t max_bytes; /**< of one edge */
	uint64_t start_ns, window_ns; /**< 0: not known */
};

void picture_init(struct picture *p, const struct topology *t, const struct picture_options *o);
void picture_done(struct picture *p);

bool picture_is_start(const struct picture_edge *e);

/** From 0 to 1 by the root of its bytes: how thick an arrow is. */
double picture_weight(const struct picture *p, const struct picture_edge *e);

/** "process" … @return 0 or -EINVAL */
int picture_level_find(const char *name, enum picture_level *ret);
