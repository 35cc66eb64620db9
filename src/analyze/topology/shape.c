/* Recognises the shape of the traffic within a group: ring, chain, tree, star, grid and so on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology_parts.h"

/* A link this much smaller than the largest of either end is greeting or control. */
#define NOISE_SHARE 0.01
/* Data goes one way when the other has less than this share: acknowledgements. */
#define ONE_WAY_SHARE 0.005
/* Weights within this ratio are one class. */
#define CLASS_RATIO 1.4
/* An all-reduce moves as much over each of its edges; a recording may cut the last round off. */
#define EVEN_RATIO 1.15
/* Likewise where its edges are paths of different kinds. */
#define KINDS_RATIO 2
#define NOBODY     UINT32_MAX

struct shaper {
	const struct topo_traffic *in;
	size_t n, edges;
	uint8_t *to;      /**< [n * n] data goes from row to column */
	double *weight;   /**< [n * n] larger of both directions, symmetric; 0: no edge */
	uint32_t *degree; /**< [n] */
	uint8_t *use;     /**< [n * n] scratch: edges of a part */
	uint32_t *part;   /**< [n] scratch: number of its component */
	struct topo_shape *ret;
};

static double at(const struct shaper *s, size_t i, size_t j)
{
	return s->weight[i * s->n + j];
}

static bool goes(const struct shaper *s, size_t i, size_t j)
{
	return s->to[i * s->n + j];
}

static bool both_ways(const struct shaper *s, size_t i, size_t j)
{
	return goes(s, i, j) && goes(s, j, i);
}

/* How many edges have data in one direction only. */
static size_t one_way_edges(const struct shaper *s)
{
	size_t ret = 0;

	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < i; j++)
			ret += at(s, i, j) > 0 && !both_ways(s, i, j);
	return ret;
}

static void build(struct shaper *s)
{
	double *most = mem_alloc(s->n * sizeof(*most));
	size_t n = s->n;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			most[i] =
			    fmax(most[i], fmax(s->in->bytes[i * n + j], s->in->bytes[j * n + i]));
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++) {
			double out = s->in->bytes[i * n + j], in = s->in->bytes[j * n + i],
			       w = fmax(out, in);

			if (w <= 0 || w < NOISE_SHARE * fmin(most[i], most[j]))
				continue;
			s->weight[i * n + j] = s->weight[j * n + i] = w;
			s->to[i * n + j] = out >= ONE_WAY_SHARE * w;
			s->to[j * n + i] = in >= ONE_WAY_SHARE * w;
			s->degree[i]++;
			s->degree[j]++;
			s->edges++;
		}
	}
	free(most);
}

/* Of edges by paths of one kind, or of all. */
static double weight_ratio(const struct shaper *s, int kind)
{
	double low = INFINITY, high = 0;

	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < i; j++) {
			if (at(s, i, j) <= 0 || (kind >= 0 && s->in->kind[i * s->n + j] != kind))
				continue;
			low = fmin(low, at(s, i, j));
			high = fmax(high, at(s, i, j));
		}
	return high > 0 ? high / low : 1;
}

/* Paths of different kinds are watched by different probes, which may begin at different times. */
static bool is_even(const struct shaper *s)
{
	bool seen[UINT8_MAX + 1] = {0};

	if (!s->in->amounts || weight_ratio(s, -1) > KINDS_RATIO)
		return false;
	for (size_t i = 0; i < s->n * s->n; i++)
		seen[s->in->kind[i]] = true;
	for (int k = 0; k <= UINT8_MAX; k++)
		if (seen[k] && weight_ratio(s, k) > EVEN_RATIO)
			return false;
	return true;
}

/* Number the components of the edges in use. @return how many */
static uint32_t components(struct shaper *s, const uint8_t *use)
{
	uint32_t *stack = mem_alloc(s->n * sizeof(*stack)), count = 0;

	for (size_t i = 0; i < s->n; i++)
		s->part[i] = NOBODY;
	for (size_t i = 0; i < s->n; i++) {
		size_t depth = 0;

		if (s->part[i] != NOBODY)
			continue;
		stack[depth++] = (uint32_t)i;
		s->part[i] = count;
		while (depth) {
			uint32_t a = stack[--depth];

			for (uint32_t b = 0; b < s->n; b++) {
				if (!use[a * s->n + b] || s->part[b] != NOBODY)
					continue;
				s->part[b] = count;
				stack[depth++] = b;
			}
		}
		count++;
	}
	free(stack);
	return count;
}

static void use_all(struct shaper *s)
{
	for (size_t i = 0; i < s->n * s->n; i++)
		s->use[i] = s->weight[i] > 0;
}

static void claim(struct shaper *s, enum shape shape, unsigned pct)
{
	s->ret->shape = shape;
	s->ret->pct = pct;
	s->ret->both_ways = one_way_edges(s) == 0;
}

static uint32_t neighbour(const struct shaper *s, uint32_t a, uint32_t not_this)
{
	for (uint32_t b = 0; b < s->n; b++)
		if (at(s, a, b) > 0 && b != not_this)
			return b;
	return NOBODY;
}

/* Append what follows @p a along a path or ring, away from @p before. */
static void walk(struct shaper *s, uint32_t a, uint32_t before)
{
	uint32_t begin = a;

	do {
		uint32_t next = neighbour(s, a, before);

		vec_push(&s->ret->order, a);
		before = a;
		a = next;
	} while (a != NOBODY && a != begin && s->ret->order.n < s->n);
}

/* Which of both ends of an edge sent first; NOBODY: not known. */
static uint32_t first_sender(const struct shaper *s, uint32_t a, uint32_t b)
{
	uint64_t there = s->in->first[a * s->n + b], back = s->in->first[b * s->n + a];

	if (goes(s, a, b) != goes(s, b, a))
		return goes(s, a, b) ? a : b;
	if (!there || !back || there == back)
		return NOBODY;
	return there < back ? a : b;
}

static void shape_of_pair(struct shaper *s)
{
	uint32_t from = goes(s, 0, 1) ? 0 : 1;

	if (both_ways(s, 0, 1)) {
		claim(s, SHAPE_PAIR, 90);
		s->ret->also = "ring, tree, star, all-to-all and servers of two are all the same";
		from = 0;
	} else {
		claim(s, SHAPE_CHAIN, 75);
		s->ret->also = "one end that only sends and one that only receives";
	}
	vec_push(&s->ret->order, from);
	vec_push(&s->ret->order, 1 - from);
}

/* Four in a circle whose edges alternate between two weights are two pairs by two pairs. */
static bool alternates(const struct shaper *s)
{
	uint32_t b = neighbour(s, 0, 0), c = neighbour(s, b, 0), d = neighbour(s, c, b);
	double ab = at(s, 0, b), bc = at(s, b, c), cd = at(s, c, d), da = at(s, d, 0);
	double even = fmax(fmax(ab, cd) / fmin(ab, cd), fmax(bc, da) / fmin(bc, da));
	double odd = fmax(fmin(ab, cd) / fmax(bc, da), fmin(bc, da) / fmax(ab, cd));

	return s->in->amounts && even <= EVEN_RATIO && odd >= CLASS_RATIO;
}

/* Of four in a circle, two that face each other accept connections and the others do not. */
static bool faces_servers(const struct shaper *s, uint32_t *ret_server)
{
	uint32_t b = neighbour(s, 0, 0), c = neighbour(s, b, 0), d = neighbour(s, c, b);
	const uint8_t *l = s->in->listens;

	*ret_server = l[0] ? 0 : b;
	return l[0] == l[c] && l[b] == l[d] && l[0] != l[b];
}

static void put_sides(struct shaper *s, const uint8_t *is_server)
{
	for (int side = 1; side >= 0; side--)
		for (uint32_t i = 0; i < s->n; i++)
			if (is_server[i] == side)
				vec_push(&s->ret->order, i);
	for (size_t i = 0; i < s->n; i++)
		s->ret->hubs += is_server[i];
}

static bool shape_of_ring(struct shaper *s)
{
	size_t forward = 0, one_way = one_way_edges(s);
	uint32_t server;

	for (size_t i = 0; i < s->n; i++)
		if (s->degree[i] != 2)
			return false;
	/* A circle of requests, answers and log lines is no ring: in that all do alike. */
	if ((one_way && one_way != s->n) || (s->in->amounts && weight_ratio(s, -1) > KINDS_RATIO))
		return false;
	if (s->n == 4 && one_way == 0 && faces_servers(s, &server)) {
		uint8_t side[4];

		for (uint32_t i = 0; i < 4; i++)
			side[i] = i == server || !at(s, server, i);
		claim(s, SHAPE_SERVERS, 75);
		put_sides(s, side);
		return true;
	}
	if (s->n == 4 && one_way == 0 && alternates(s))
		return false;
	walk(s, 0, neighbour(s, 0, 0));
	for (size_t i = 0; i < s->n; i++)
		forward += goes(s, s->ret->order.v[i], s->ret->order.v[(i + 1) % s->n]);
	if (one_way == s->n && forward && forward < s->n) {
		vec_clear(&s->ret->order);
		return false;
	}
	if (one_way == s->n && !forward) {
		vec_clear(&s->ret->order);
		walk(s, 0, neighbour(s, 0, neighbour(s, 0, 0)));
	}
	if (one_way == 0 && s->n == 4 && !is_even(s)) {
		vec_clear(&s->ret->order);
		return false;
	}
	claim(s, SHAPE_RING, one_way == s->n ? 95 : 85);
	if (s->n == 4 && !one_way)
		s->ret->also = "two servers with two workers";
	return true;
}

/* The only node whose edges all point at it, when each other has one edge that points away. */
static uint32_t root_by_time(const struct shaper *s)
{
	uint32_t root = NOBODY;

	for (uint32_t a = 0; a < s->n; a++) {
		size_t away = 0;

		for (uint32_t b = 0; b < s->n; b++) {
			uint32_t first = at(s, a, b) > 0 ? first_sender(s, a, b) : 0;

			if (first == NOBODY)
				return NOBODY;
			away += at(s, a, b) > 0 && first == a;
		}
		if (away > 1 || (!away && root != NOBODY))
			return NOBODY;
		if (!away)
			root = a;
	}
	return root;
}

static void shape_of_path(struct shaper *s)
{
	uint32_t end = 0, root;
	size_t along = 0, back = 0;

	while (s->degree[end] != 1)
		end++;
	walk(s, end, NOBODY);
	for (size_t i = 1; i < s->n; i++) {
		uint32_t a = s->ret->order.v[i - 1], b = s->ret->order.v[i],
			 first = first_sender(s, a, b);

		along += first == a;
		back += first == b;
	}
	if (back == s->n - 1)
		for (size_t i = 0; i < s->n / 2; i++) {
			uint32_t x = s->ret->order.v[i];

			s->ret->order.v[i] = s->ret->order.v[s->n - 1 - i];
			s->ret->order.v[s->n - 1 - i] = x;
		}
	if (along == s->n - 1 || back == s->n - 1) {
		claim(s, SHAPE_CHAIN, one_way_edges(s) == s->n - 1 ? 95 : 85);
		return;
	}
	root = root_by_time(s);
	if (root != NOBODY && one_way_edges(s) == 0 && is_even(s)) {
		vec_clear(&s->ret->order);
		vec_push(&s->ret->order, root);
		for (uint32_t i = 0; i < s->n; i++)
			if (i != root)
				vec_push(&s->ret->order, i);
		claim(s, SHAPE_TREE, 70);
		s->ret->hubs = 1;
		s->ret->also = "a chain in both directions";
		return;
	}
	if (one_way_edges(s) || (is_even(s) && s->n < 5)) {
		s->ret->also = "a chain, or a tree without branches";
		return;
	}
	claim(s, SHAPE_CHAIN, 65);
	s->ret->also = "begin and end of the chain may be the other way round";
}

/* As much goes to each leaf as comes from it, and as much as for each other leaf. */
static bool is_symmetric_star(const struct shaper *s, uint32_t hub)
{
	for (uint32_t i = 0; i < s->n; i++) {
		double there = s->in->bytes[hub * s->n + i], back = s->in->bytes[i * s->n + hub];

		if (i != hub && fmax(there, back) > EVEN_RATIO * fmin(there, back))
			return false;
	}
	return is_even(s);
}

static void shape_of_star(struct shaper *s, uint32_t hub)
{
	vec_push(&s->ret->order, hub);
	for (uint32_t i = 0; i < s->n; i++)
		if (i != hub)
			vec_push(&s->ret->order, i);
	s->ret->hubs = 1;
	if (is_symmetric_star(s, hub)) {
		claim(s, SHAPE_SERVERS, s->n > 3 ? 80 : 65);
		s->ret->also = "a tree of one level: reduce to one rank, and broadcast";
	} else {
		claim(s, SHAPE_STAR, s->n > 3 ? 85 : 65);
	}
}

/* The middle of the longest path: leaves are taken off in rounds until one or two are left. */
static uint32_t centre(const struct shaper *s)
{
	uint32_t *degree = mem_alloc(s->n * sizeof(*degree)), left = (uint32_t)s->n, last = 0;
	uint8_t *gone = mem_alloc(s->n);

	memcpy(degree, s->degree, s->n * sizeof(*degree));
	while (left > 2) {
		uint32_t *leaves = mem_alloc(s->n * sizeof(*leaves)), k = 0;

		for (uint32_t i = 0; i < s->n; i++)
			if (!gone[i] && degree[i] <= 1)
				leaves[k++] = i;
		for (uint32_t i = 0; i < k; i++) {
			gone[leaves[i]] = 1;
			for (uint32_t j = 0; j < s->n; j++)
				degree[j] -= at(s, leaves[i], j) > 0 && !gone[j];
		}
		left -= k;
		free(leaves);
		if (!k)
			break;
	}
	for (uint32_t i = 0; i < s->n; i++)
		if (!gone[i] && (gone[last] || s->degree[i] > s->degree[last]))
			last = i;
	free(degree);
	free(gone);
	return last;
}

static void shape_of_tree(struct shaper *s)
{
	uint32_t root = root_by_time(s);
	size_t one_way = one_way_edges(s);
	bool timed = root != NOBODY;

	if (!timed)
		root = centre(s);
	/* Breadth first, so that parents come before their children. */
	vec_push(&s->ret->order, root);
	for (size_t k = 0; k < s->ret->order.n; k++)
		for (uint32_t b = 0; b < s->n; b++) {
			bool known = false;

			vec_for(&s->ret->order, o)
				known |= *o == b;
			if (!known && at(s, s->ret->order.v[k], b) > 0)
				vec_push(&s->ret->order, b);
		}
	if (one_way && one_way < s->edges)
		return;
	claim(s, SHAPE_TREE, is_even(s) ? (timed ? 90 : 80) : 60);
	s->ret->hubs = 1;
	if (!timed)
		s->ret->also = "which of the inner ranks is the root is not certain";
}

/* Shape of one component of the edges in use: pair, ring, complete, star or chain, of @p size. */
static enum shape part_shape(const struct shaper *s, const uint8_t *use, uint32_t part,
			     size_t *ret_size)
{
	size_t size = 0, ends = 0, two = 0, full = 0, edges = 0, n = s->n, hub = 0;

	for (size_t i = 0; i < n; i++)
		size += s->part[i] == part;
	for (size_t i = 0; i < n; i++) {
		size_t degree = 0;

		if (s->part[i] != part)
			continue;
		for (size_t j = 0; j < n; j++)
			degree += use[i * n + j];
		ends += degree == 1;
		two += degree == 2;
		full += degree == size - 1;
		hub += degree == size - 1 && size > 2;
		edges += degree;
	}
	*ret_size = size;
	if (size == 1)
		return SHAPE_NONE;
	if (size == 2)
		return SHAPE_PAIR;
	if (full == size)
		return SHAPE_ALL_TO_ALL;
	if (two == size)
		return SHAPE_RING;
	if (hub == 1 && ends == size - 1)
		return SHAPE_STAR;
	if (ends == 2 && two == size - 2 && edges == 2 * (size - 1))
		return SHAPE_CHAIN;
	return SHAPE_UNKNOWN;
}

/* All components have one size and one shape. @return that shape, SHAPE_UNKNOWN if they do not */
static enum shape equal_parts(struct shaper *s, const uint8_t *use, uint32_t *ret_size,
			      uint32_t *ret_parts)
{
	enum shape ret = SHAPE_UNKNOWN;
	size_t size, common = 0;

	*ret_size = 0;
	*ret_parts = components(s, use);
	for (uint32_t p = 0; p < *ret_parts; p++) {
		enum shape shape = part_shape(s, use, p, &size);

		if (p && (shape != ret || size != common))
			return SHAPE_UNKNOWN;
		ret = shape;
		common = size;
	}
	*ret_size = (uint32_t)common;
	return ret;
}

static bool is_collective(enum shape shape)
{
	return shape == SHAPE_PAIR || shape == SHAPE_RING || shape == SHAPE_ALL_TO_ALL;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The widest gap between two neighbouring weights. @return the weight above it, 0: there is none */
static double class_limit(const struct shaper *s)
{
	double *all = mem_alloc((s->edges + 1) * sizeof(*all)), ret = 0, widest = CLASS_RATIO;
	size_t k = 0;

	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < i; j++)
			if (at(s, i, j) > 0)
				all[k++] = at(s, i, j);
	qsort(all, k, sizeof(*all), compare_doubles);
	for (size_t i = 1; i < k; i++) {
		if (all[i] / all[i - 1] < widest)
			continue;
		widest = all[i] / all[i - 1];
		ret = all[i];
	}
	free(all);
	return ret;
}

static void use_class(struct shaper *s, double limit, bool heavy)
{
	for (size_t i = 0; i < s->n * s->n; i++)
		s->use[i] = s->weight[i] > 0 && (s->weight[i] >= limit) == heavy;
}

/* Members of one group side by side. */
static void order_by_part(struct shaper *s, const uint32_t *part, uint32_t parts)
{
	for (uint32_t p = 0; p < parts; p++)
		for (uint32_t i = 0; i < s->n; i++)
			if (part[i] == p)
				vec_push(&s->ret->order, i);
}

/* Heavy edges make equal groups, light ones join their members across: each pair of groups meets
 * once. */
static bool shape_of_grid(struct shaper *s)
{
	double limit = s->in->amounts ? class_limit(s) : 0;
	uint32_t inner = 0, outer = 0, rows = 0, columns = 0, *heavy;
	enum shape in, out;
	bool crossed = true;

	if (limit <= 0)
		return false;
	use_class(s, limit, true);
	in = equal_parts(s, s->use, &inner, &rows);
	if (!is_collective(in) || inner < 2 || rows < 2)
		return false;
	heavy = mem_alloc(s->n * sizeof(*heavy));
	memcpy(heavy, s->part, s->n * sizeof(*heavy));
	use_class(s, limit, false);
	out = equal_parts(s, s->use, &outer, &columns);
	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < i; j++)
			crossed = crossed && !(heavy[i] == heavy[j] && s->part[i] == s->part[j]);
	if (is_collective(out) && outer == rows && columns == inner && crossed) {
		claim(s, SHAPE_GRID, 90);
		s->ret->inner = inner;
		s->ret->outer = outer;
		s->ret->inner_shape = in;
		s->ret->outer_shape = out;
		order_by_part(s, heavy, rows);
	}
	free(heavy);
	return s->ret->shape == SHAPE_GRID;
}

/* Leaders have more edges than the others; without the edges between leaders, equal groups are
 * left. */
static bool shape_of_hierarchy(struct shaper *s)
{
	uint32_t fewest = NOBODY, leaders = 0, inner = 0, parts = 0, outer_parts = 0,
		 outer_size = 0;
	uint8_t *leads = mem_alloc(s->n);
	enum shape in, out = SHAPE_UNKNOWN;
	size_t size;

	for (size_t i = 0; i < s->n; i++)
		fewest = s->degree[i] < fewest ? s->degree[i] : fewest;
	for (size_t i = 0; i < s->n; i++)
		leaders += leads[i] = s->degree[i] > fewest;
	for (size_t i = 0; i < s->n * s->n; i++)
		s->use[i] = s->weight[i] > 0 && leads[i / s->n] && leads[i % s->n];
	components(s, s->use);
	for (uint32_t i = 0; i < s->n; i++)
		if (leads[i] && out == SHAPE_UNKNOWN)
			out = part_shape(s, s->use, s->part[i], &size);
	outer_size = (uint32_t)(out == SHAPE_UNKNOWN ? 0 : size);
	for (size_t i = 0; i < s->n * s->n; i++)
		s->use[i] = s->weight[i] > 0 && !(leads[i / s->n] && leads[i % s->n]);
	in = equal_parts(s, s->use, &inner, &parts);
	outer_parts = parts;
	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < i; j++)
			if (leads[i] && leads[j] && s->part[i] == s->part[j])
				outer_parts = 0;
	if (leaders >= 2 && outer_parts == leaders && outer_size == leaders && is_collective(out) &&
	    (is_collective(in) || in == SHAPE_STAR) && s->n > 4) {
		claim(s, SHAPE_HIERARCHY, 85);
		s->ret->inner = inner;
		s->ret->outer = leaders;
		s->ret->inner_shape = in;
		s->ret->outer_shape = out;
		s->ret->hubs = leaders;
		for (int side = 1; side >= 0; side--)
			for (uint32_t i = 0; i < s->n; i++)
				if (leads[i] == side)
					vec_push(&s->ret->order, i);
	}
	free(leads);
	return s->ret->shape == SHAPE_HIERARCHY;
}

static bool shape_of_all(struct shaper *s)
{
	if (s->edges != s->n * (s->n - 1) / 2 || one_way_edges(s))
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		vec_push(&s->ret->order, i);
	claim(s, SHAPE_ALL_TO_ALL, is_even(s) ? 95 : 85);
	return true;
}

/* The side that never sends first is asked, and serves. @return 0, 1, or 2: not known */
static size_t side_asked(const struct shaper *s, const uint8_t *side)
{
	size_t first[2] = {0};

	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t j = 0; j < i; j++) {
			uint32_t a = at(s, i, j) > 0 ? first_sender(s, i, j) : NOBODY;

			if (a != NOBODY)
				first[side[a]]++;
		}
	if (first[0] == s->edges)
		return 1;
	return first[1] == s->edges ? 0 : 2;
}

/* Two sides, each of one joined to each of the other. */
static bool shape_of_sides(struct shaper *s)
{
	uint8_t *side = mem_alloc(s->n);
	size_t sizes[2] = {0}, listens[2] = {0}, serving, asked;
	bool ok = true, known = false; /* one side accepts connections, and the other does not */

	for (uint32_t i = 0; i < s->n; i++)
		side[i] = i && at(s, 0, i) > 0;
	for (uint32_t i = 0; i < s->n; i++) {
		sizes[side[i]]++;
		listens[side[i]] += s->in->listens[i];
		for (uint32_t j = 0; j < i; j++)
			ok = ok && (at(s, i, j) > 0) == (side[i] != side[j]);
	}
	asked = side_asked(s, side);
	serving = asked < 2 ? asked : sizes[1] < sizes[0];
	for (size_t k = 0; k < 2; k++) {
		if (listens[k] != sizes[k] || listens[1 - k])
			continue;
		serving = k;
		known = true;
	}
	ok = ok && sizes[0] >= 2 && sizes[1] >= 2 && !one_way_edges(s);
	if (ok && (sizes[0] != sizes[1] || known || asked < 2)) {
		for (size_t i = 0; i < s->n; i++)
			side[i] = side[i] == serving;
		/* Who began tells less when the recording did not see the beginning. */
		claim(s, SHAPE_SERVERS, known ? 85 : asked < 2 ? 75 : 65);
		s->ret->also = known	   ? NULL
			       : asked < 2 ? "which side serves is told by who began, as far as was seen"
					   : "which side serves is not certain: the smaller one is taken";
		put_sides(s, side);
	}
	free(side);
	return s->ret->shape == SHAPE_SERVERS;
}

static void find_tree_like(struct shaper *s)
{
	size_t ends = 0;

	if (s->n == 3 && one_way_edges(s) == 2) {
		shape_of_path(s);
		return;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		ends += s->degree[i] == 1;
		if (s->degree[i] == s->n - 1) {
			shape_of_star(s, i);
			return;
		}
	}
	if (ends == 2)
		shape_of_path(s);
	else if (!shape_of_hierarchy(s))
		shape_of_tree(s);
}

static void find(struct shaper *s)
{
	use_all(s);
	if (!s->edges) {
		s->ret->shape = SHAPE_NONE;
		return;
	}
	/* Parts that have nothing to do with each other: the caller takes each on its own. */
	if (components(s, s->use) > 1)
		return;
	if (s->n == 2)
		shape_of_pair(s);
	else if (s->edges == s->n - 1)
		find_tree_like(s);
	else if (!shape_of_all(s) && !shape_of_ring(s) && !shape_of_grid(s) && !shape_of_sides(s))
		shape_of_hierarchy(s);
}

static void shaper_init(struct shaper *s, const struct topo_traffic *in, struct topo_shape *ret)
{
	memset(s, 0, sizeof(*s));
	s->in = in;
	s->n = in->n;
	s->ret = ret;
	s->to = mem_alloc(s->n * s->n);
	s->use = mem_alloc(s->n * s->n);
	s->weight = mem_alloc(s->n * s->n * sizeof(*s->weight));
	s->degree = mem_alloc(s->n * sizeof(*s->degree));
	s->part = mem_alloc(s->n * sizeof(*s->part));
	build(s);
}

static void shaper_done(struct shaper *s)
{
	free(s->to);
	free(s->use);
	free(s->weight);
	free(s->degree);
	free(s->part);
}

void topo_find_shape(const struct topo_traffic *in, struct topo_shape *ret)
{
	struct shaper s;

	shaper_init(&s, in, ret);
	find(&s);
	if (ret->shape == SHAPE_UNKNOWN)
		vec_clear(&ret->order);
	shaper_done(&s);
}

uint32_t topo_split_traffic(const struct topo_traffic *in, uint32_t *ret_part)
{
	struct topo_shape none = {0};
	struct shaper s;
	uint32_t ret;

	shaper_init(&s, in, &none);
	use_all(&s);
	ret = components(&s, s.use);
	memcpy(ret_part, s.part, s.n * sizeof(*ret_part));
	shaper_done(&s);
	return ret;
}
