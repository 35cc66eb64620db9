#pragma once

#include "arena.h"
#include "finding.h"
#include "graph.h"
#include "vec.h"

/*
 * The data-flow topology of a graph: who runs what and where, how data moves between processes,
 * which processes form a group of equal ranks, and what communication pattern their traffic has.
 *
 * All of it is a pure function of the graph: no clock, no environment, no order of addresses in
 * memory. Texts live in the topology's own arena or in the graph's.
 */

#define TOPO_NONE UINT32_MAX

/** What an actor is. Actors are what flows end at. */
enum actor_kind {
	ACTOR_PROCESS,
	ACTOR_OUTSIDE, /**< an address with no process on this host, or a path whose other end is
			  unknown */
	ACTOR_STORAGE, /**< all files of one file system */
	ACTOR_DEVICE,  /**< an accelerator */
};

enum role {
	ROLE_UNKNOWN,
	ROLE_LAUNCHER,
	ROLE_API_SERVER,
	ROLE_ENGINE,
	ROLE_WORKER,
	ROLE_PARAMETER_SERVER,
	ROLE_LOADER,
	ROLE_STORE,
	ROLE_CLIENT,
	ROLE_DATABASE,
	ROLE_WEB_SERVER,
	ROLE_BUILD,
	ROLE_CONTAINER,
	ROLE_SHELL,
	ROLE_SERVER, /**< serves others, and nothing tells what */
	ROLE_MONITOR, /**< observes others: profilers, exporters of figures */
	ROLE_COUNT
};

enum thread_role {
	THREAD_STAGING, /**< copies to and from accelerators, pins memory */
	THREAD_PROXY,   /**< moves data for collectives */
	THREAD_RUNTIME, /**< of an accelerator's driver or runtime */
	THREAD_ROLE_COUNT
};

struct topo_actor {
	uint32_t node;   /**< in the graph; of storage: one of its files */
	uint32_t parent; /**< actor of the parent process, TOPO_NONE */
	uint32_t group;  /**< index of its rank group, TOPO_NONE */
	uint32_t rank;   /**< place in that group; of a device: its index in topology.devices */
	enum actor_kind kind;
	enum role role;
	unsigned role_pct;     /**< confidence */
	const char *role_why;  /**< evidence, one sentence; NULL when the role is unknown */
	const char *label;     /**< "vllm[4711]", "10.0.0.7", "storage 8:1 (ext4)" */
	const char *program;   /**< processes: what is run, without path and varying numbers */
	const char *container; /**< name, or NULL */
	uint64_t bytes_in, bytes_out;
	uint32_t children;
	bool listens;
};

/** All data that one actor gave to another by one kind of path. */
struct topo_link {
	uint32_t from, to;
	const char
	    *kind; /**< "tcp", "unix", "pipe", "shared_memory", "storage", "device", "ipc", … */
	uint64_t bytes;
	uint64_t messages;
	uint64_t first_ns;  /**< of the first transfer, since 1970; 0: not known */
	uint64_t waited_ns; /**< time that threads of @p to were blocked until threads of @p from
			       woke them */
	uint32_t from_node,
	    to_node;   /**< NUMA node where each end runs most, TOPO_NONE: not known */
	bool measured; /**< bytes are known */
	bool shared;   /**< all of it went through streams with several senders and receivers: who
			  gave to whom is a guess */
};

/** Actors that can all reach each other through data. */
struct topo_knot {
	VEC(uint32_t) actors; /**< ascending */
	uint64_t bytes;       /**< between them */
	const char *what;     /**< "request and response", "collective of 4 ranks", "cycle" */
};

/* Steps of a path that are no link. */
#define STEP_KNOT  (TOPO_NONE - 1) /**< somewhere within a knot */
#define STEP_GUESS (TOPO_NONE - 2) /**< no data was seen; it follows from who started whom */

/** One way of data through the host. */
struct topo_path {
	VEC(uint32_t) actors; /**< in the direction of the request or of the data */
	VEC(uint32_t) links;  /**< [actors.n - 1] the largest link of each step, or STEP_… */
	uint64_t bytes;       /**< both directions of its smallest step whose amount is known */
	uint64_t waited_ns;   /**< what its steps made others wait */
};

enum shape {
	SHAPE_UNKNOWN,
	SHAPE_NONE, /**< no data between the members was seen */
	SHAPE_PAIR,
	SHAPE_RING,
	SHAPE_CHAIN,
	SHAPE_TREE,
	SHAPE_STAR,
	SHAPE_SERVERS, /**< some members serve all others */
	SHAPE_ALL_TO_ALL,
	SHAPE_HIERARCHY,
	SHAPE_GRID,
	SHAPE_COUNT
};

/** What the traffic between the members looks like. */
struct topo_shape {
	enum shape shape;
	unsigned pct; /**< confidence */
	VEC(uint32_t)
	order;         /**< members in their order: along a ring or chain, hub or root first */
	uint32_t hubs; /**< of @p order, the first so many are hubs, servers or leaders */
	uint32_t inner, outer; /**< grid and hierarchy: size of a group, number of groups */
	enum shape inner_shape, outer_shape;
	bool both_ways;   /**< data goes both ways along each edge */
	const char *also; /**< shapes that look the same with so few members; NULL: none */
};

enum evidence { EVIDENCE_FOR, EVIDENCE_AGAINST, EVIDENCE_UNSEEN };

/** Sentence for or against a claim, or on what would decide it and could not be observed. */
struct topo_evidence {
	enum evidence kind;
	const char *text;
};

enum parallelism {
	PAR_UNKNOWN,
	PAR_TENSOR,
	PAR_PIPELINE,
	PAR_DATA,
	PAR_EXPERT,
	PAR_CONTEXT,
	PAR_PARAMETER_SERVER,
	PAR_RING,
	PAR_TREE,
	PAR_HIERARCHICAL,
	PAR_ALL_TO_ALL,
	PAR_STAR,
	PAR_PREFILL_DECODE,
	PAR_REPLICAS,
	PAR_GRID,
	PAR_PAIR,
	PAR_COUNT
};

struct topo_pattern {
	enum parallelism kind;
	unsigned pct;
	uint32_t degree;  /**< members of one instance; 0: does not apply */
	const char *text; /**< "tensor parallel 4", "ring all-reduce of 8" */
	bool declared, observed;
	VEC(struct topo_evidence) evidence;
};

/** Processes that play the same part in one job. */
struct topo_group {
	VEC(uint32_t)
	members; /**< actors; in the order of the shape where there is one, else by rank or pid */
	uint32_t launcher; /**< common ancestor, or TOPO_NONE */
	struct topo_shape shape;
	VEC(struct topo_pattern) patterns; /**< most certain first */
	VEC(struct topo_evidence) basis;   /**< why these are a group */
	uint32_t loaders;                  /**< data loading children of the members */
	uint64_t bytes;                    /**< between the members */
	bool has_devices;
	bool is_job;      /**< devices, variables or a launcher say that it is a parallel job */
	const char *name; /**< "4 x python3 train.py" */
};

/** How large each kind of parallelism was declared to be; 0: not said. */
struct topo_declared {
	uint32_t actor; /**< whose command line or environment */
	const char *framework;
	unsigned tensor, pipeline, data, expert, context, processes, nodes, world, servers, workers;
	bool has_rank;
	bool is_job; /**< a variable that launchers of AI jobs set: a rank, or devices to use */
	unsigned rank, local_rank;
	const char *master; /**< address that the ranks meet at */
	const char *part;   /**< "prefill", "decode", "server", "worker", "scheduler" */
	const char *text;   /**< the words that say it, "--tensor-parallel-size 4" */
};

struct topo_share {
	uint32_t node; /**< number of the NUMA node */
	double share;  /**< 0–1 */
	uint64_t amount;
};

/** Where a process runs and where its memory is. */
struct topo_place {
	uint32_t actor;
	VEC(struct topo_share) cpu; /**< CPU time by node in ns, largest first; empty: not known */
	VEC(struct topo_share) memory; /**< written private pages, likewise */
	const char *cpus_allowed;      /**< ranges, or NULL */
	double cosine;                 /**< of both vectors; -1: not known */
	/**
	 * Share of accesses to other nodes: of those that were sampled, if those were enough, else as placement
	 * lets expect; -1: not known.
	 */
	double remote;
	bool remote_measured; /**< it is of sampled accesses */
	uint64_t samples;     /**< how many were sampled */
	const char *mode; /**< "local", "mixed", "cross", "remote"; NULL: not known. RULES.md 6.3 */
};

struct topo_device {
	uint32_t node;
	const char *label;        /**< "npu 0" */
	const char *numa;         /**< ranges of near nodes, NULL: not known */
	uint32_t numa_node;       /**< the only near one, or TOPO_NONE */
	const char *cpu_affinity; /**< NULL: not known */
	VEC(uint32_t) users;      /**< actors */
};

/** Something about placement, transport or declaration that costs time or is not as declared. */
struct topo_problem {
	const char *id; /**< "worker-off-device-node" */
	enum severity severity;
	unsigned pct; /**< confidence */
	const char *text;
	const char *advice;
	VEC(uint32_t) actors; /**< about whom */
};

/** A thread whose name says what it is for. */
struct topo_thread {
	uint32_t node, actor;
	enum thread_role role;
};

struct topology {
	struct graph *g;
	struct arena arena;
	VEC(struct topo_actor) actors; /**< processes first, by host, pid and start */
	size_t n_processes;
	uint32_t *actor_of;          /**< [g->nodes.n], TOPO_NONE */
	VEC(struct topo_link) links; /**< by from, to, kind */
	uint32_t *first_link;        /**< [actors.n + 1] of each sender */
	VEC(struct topo_knot) knots;
	VEC(struct topo_path) paths; /**< most bytes first */
	VEC(struct topo_group) groups;
	VEC(struct topo_declared) declared;
	VEC(struct topo_place) places; /**< [n_processes] */
	VEC(struct topo_device) devices;
	VEC(struct topo_thread) threads;   /**< of processes in groups */
	VEC(struct topo_problem) problems; /**< worst first */
	VEC(const char *) unseen;          /**< what the graph cannot tell, one sentence each */
	size_t status_from, status_to;     /**< of these: status and losses of the file */
	uint64_t window_ns;                /**< 0: not known */
	uint32_t main_actor; /**< the process that the host is there for, or TOPO_NONE */
};

/**
 * Analyse @p g, which gets derived flows if it has none, and must outlive the result.
 *
 * Cost: O((V + E) log E) for V entities and E relations; the shape of a group of n ranks adds
 * O(n²), and none is sought for groups above TOPO_SHAPE_MAX. Paths: one for each end of data, found
 * by widest-path search on the graph without its cycles, O(V + E); at most TOPO_PATHS_MAX are kept.
 */
void topology_init(struct topology *t, struct graph *g);
void topology_done(struct topology *t);

#define TOPO_SHAPE_MAX 512
#define TOPO_PATHS_MAX 200

const char *role_name(enum role r);
const char *thread_role_name(enum thread_role r);
const char *shape_name(enum shape s);
const char *parallelism_name(enum parallelism p);
const char *actor_kind_name(enum actor_kind k);

/** Links of one sender: [*ret_n]. */
const struct topo_link *topology_out(const struct topology *t, uint32_t actor, size_t *ret_n);

/** Share of the CPU time on one node, 0 when the place is not known. */
double topo_cpu_share(const struct topo_place *p, uint32_t numa_node);

/** Whether @p other is @p actor, an ancestor or descendant of it, in its group, or exchanges data
 * with it. */
bool topo_related(const struct topology *t, uint32_t actor, uint32_t other);

/** @return 1: @p a asks @p b, as far as roles, open ears and the first transfers tell; -1: @p b
 * asks; 0: not known */
int topo_who_asks(const struct topology *t, uint32_t a, uint32_t b);
