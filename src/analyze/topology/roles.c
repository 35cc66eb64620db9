/* Roles of processes: from what they do, and from what they run. */
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "topology_parts.h"

/* Programs whose name says what they are for. A "*" at the end stands for anything. */
static const struct {
	const char *program;
	enum role role;
} programs[] = {
	{"postgres*", ROLE_DATABASE},
	{"mysqld*", ROLE_DATABASE},
	{"mariadbd*", ROLE_DATABASE},
	{"redis-server*", ROLE_DATABASE},
	{"valkey-server*", ROLE_DATABASE},
	{"mongod*", ROLE_DATABASE},
	{"memcached*", ROLE_DATABASE},
	{"etcd*", ROLE_DATABASE},
	{"clickhouse*", ROLE_DATABASE},
	{"cockroach*", ROLE_DATABASE},
	{"influxd*", ROLE_DATABASE},
	{"sqlite#", ROLE_DATABASE},
	{"nginx*", ROLE_WEB_SERVER},
	{"apache#*", ROLE_WEB_SERVER},
	{"httpd*", ROLE_WEB_SERVER},
	{"haproxy*", ROLE_WEB_SERVER},
	{"envoy*", ROLE_WEB_SERVER},
	{"caddy*", ROLE_WEB_SERVER},
	{"lighttpd*", ROLE_WEB_SERVER},
	{"traefik*", ROLE_WEB_SERVER},
	{"php-fpm*", ROLE_WEB_SERVER},
	{"gunicorn*", ROLE_WEB_SERVER},
	{"uwsgi*", ROLE_WEB_SERVER},
	{"uvicorn*", ROLE_WEB_SERVER},
	{"consul*", ROLE_DATABASE},
	{"nats-server*", ROLE_DATABASE},
	{"minio*", ROLE_DATABASE},
	{"ceph-*", ROLE_DATABASE},
	{"beam.smp*", ROLE_DATABASE},
	{"mosquitto*", ROLE_DATABASE},
	{"tikv-server*", ROLE_DATABASE},
	{"tidb-server*", ROLE_DATABASE},
	{"pd-server*", ROLE_DATABASE},
	{"scylla*", ROLE_DATABASE},
	{"keydb-server*", ROLE_DATABASE},
	{"dragonfly*", ROLE_DATABASE},
	{"pgbouncer*", ROLE_DATABASE},
	{"vault*", ROLE_DATABASE},
	{"neo#j*", ROLE_DATABASE},
	{"varnishd*", ROLE_WEB_SERVER},
	{"squid*", ROLE_WEB_SERVER},
	{"puma*", ROLE_WEB_SERVER},
	{"unicorn*", ROLE_WEB_SERVER},
	{"celery*", ROLE_WEB_SERVER},
	{"sidekiq*", ROLE_WEB_SERVER},
	{"http.server*", ROLE_WEB_SERVER},
	{"make*", ROLE_BUILD},
	{"gmake*", ROLE_BUILD},
	{"ninja*", ROLE_BUILD},
	{"samu*", ROLE_BUILD},
	{"cc#*", ROLE_BUILD},
	{"gcc*", ROLE_BUILD},
	{"g++*", ROLE_BUILD},
	{"cc", ROLE_BUILD},
	{"c++", ROLE_BUILD},
	{"as", ROLE_BUILD},
	{"ld*", ROLE_BUILD},
	{"collect#", ROLE_BUILD},
	{"clang*", ROLE_BUILD},
	{"cmake*", ROLE_BUILD},
	{"meson*", ROLE_BUILD},
	{"cargo*", ROLE_BUILD},
	{"rustc*", ROLE_BUILD},
	{"javac*", ROLE_BUILD},
	{"bazel*", ROLE_BUILD},
	{"ccache*", ROLE_BUILD},
	{"ar", ROLE_BUILD},
	{"x##_##-linux-gnu-*", ROLE_BUILD},
	{"aarch##-linux-gnu-*", ROLE_BUILD},
	{"dockerd*", ROLE_CONTAINER},
	{"containerd*", ROLE_CONTAINER},
	{"runc*", ROLE_CONTAINER},
	{"crio*", ROLE_CONTAINER},
	{"conmon*", ROLE_CONTAINER},
	{"podman*", ROLE_CONTAINER},
	{"kubelet*", ROLE_CONTAINER},
	{"docker-proxy*", ROLE_CONTAINER},
	{"bash", ROLE_SHELL},
	{"sh", ROLE_SHELL},
	{"dash", ROLE_SHELL},
	{"zsh", ROLE_SHELL},
	{"fish", ROLE_SHELL},
	{"tmux*", ROLE_SHELL},
	{"screen*", ROLE_SHELL},
	{"sshd*", ROLE_SHELL},
	{"sudo", ROLE_SHELL},
	{"su", ROLE_SHELL},
	{"systemd*", ROLE_SHELL},
	{"init", ROLE_SHELL},
	{"tini", ROLE_SHELL},
	{"wrk*", ROLE_CLIENT},
	{"ab", ROLE_CLIENT},
	{"hey", ROLE_CLIENT},
	{"pgbench*", ROLE_CLIENT},
	{"psql*", ROLE_CLIENT},
	{"redis-benchmark*", ROLE_CLIENT},
	{"redis-cli*", ROLE_CLIENT},
	{"curl", ROLE_CLIENT},
	{"wget", ROLE_CLIENT},
	{"sysbench*", ROLE_CLIENT},
	{"h#load*", ROLE_CLIENT},
	{"vllm bench", ROLE_CLIENT},
	{"memtier_benchmark*", ROLE_CLIENT},
	{"locust*", ROLE_CLIENT},
	{"torchrun*", ROLE_LAUNCHER},
	{"torch.distributed.*", ROLE_LAUNCHER},
	{"mpirun*", ROLE_LAUNCHER},
	{"mpiexec*", ROLE_LAUNCHER},
	{"orterun*", ROLE_LAUNCHER},
	{"prterun*", ROLE_LAUNCHER},
	{"orted*", ROLE_LAUNCHER},
	{"prted*", ROLE_LAUNCHER},
	{"hydra_pmi_proxy*", ROLE_LAUNCHER},
	{"deepspeed*", ROLE_LAUNCHER},
	{"horovodrun*", ROLE_LAUNCHER},
	{"msrun*", ROLE_LAUNCHER},
	{"accelerate*", ROLE_LAUNCHER},
	{"srun*", ROLE_LAUNCHER},
	{"vllm serve", ROLE_API_SERVER},
	{"vllm.entrypoints.*", ROLE_API_SERVER},
	{"sglang.launch_server*", ROLE_API_SERVER},
	{"tritonserver*", ROLE_API_SERVER},
	{"VLLM::APIServer*", ROLE_API_SERVER},
	{"VLLM::EngineCore*", ROLE_ENGINE},
	{"sglang::scheduler*", ROLE_ENGINE},
	{"witty-profiler*", ROLE_MONITOR},
	{"perf", ROLE_MONITOR},
	{"bpftrace*", ROLE_MONITOR},
	{"py-spy*", ROLE_MONITOR},
	{"nsys*", ROLE_MONITOR},
	{"msprof*", ROLE_MONITOR},
	{"prometheus*", ROLE_MONITOR},
	{"node_exporter*", ROLE_MONITOR},
	{"dcgm-exporter*", ROLE_MONITOR},
	{"nv-hostengine*", ROLE_MONITOR},
	{"raylet*", ROLE_STORE},
	{"plasma*", ROLE_STORE},
	{"gcs_server*", ROLE_STORE},
};

static const struct {
	const char *name; /**< beginning of a thread's name */
	enum thread_role role;
} threads[] = {
	{"pt_data_pin", THREAD_STAGING},
	{"pin_memory", THREAD_STAGING},
	{"NCCL", THREAD_PROXY},
	{"nccl", THREAD_PROXY},
	{"hccl", THREAD_PROXY},
	{"HCCL", THREAD_PROXY},
	{"gloo", THREAD_PROXY},
	{"acl_thread", THREAD_RUNTIME},
	{"release_thread", THREAD_RUNTIME},
	{"cuda", THREAD_RUNTIME},
};

static bool matches(const char *program, const char *pattern)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return !strncmp(program, pattern, n - 1);
	return !strcmp(program, pattern);
}

static bool set_role(struct topo_actor *a, enum role role, unsigned pct, const char *why)
{
	if (a->role != ROLE_UNKNOWN && a->role_pct >= pct)
		return false;
	a->role = role;
	a->role_pct = pct;
	a->role_why = why;
	return true;
}

/* Servers in Java are known by a class somewhere on their long command lines. */
static const char *java_server(const struct node *n)
{
	static const char *const words[] = {"kafka.Kafka",        "zookeeper",  "cassandra",
					    "elasticsearch",      "opensearch", "org.apache.hadoop",
					    "org.apache.catalina"};
	const char *line = topo_str(n, process_f_cmdline), *name = topo_str(n, process_f_name);

	if (!line || !name || strcmp(name, "java") != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(line, words[i]))
			return words[i];
	return NULL;
}

void topo_add_program_roles(struct topology *t)
{
	for (size_t i = 0; i < t->n_processes; i++) {
		struct topo_actor *a = &t->actors.v[i];
		size_t k = 0, n = sizeof(programs) / sizeof(programs[0]);
		const char *java = java_server(t->g->nodes.v[a->node]);

		if (java)
			set_role(a, ROLE_DATABASE, 70, topo_text(t, "runs %s in Java", java));

		while (k < n && !matches(a->program, programs[k].program))
			k++;
		if (k < n)
			set_role(a, programs[k].role, 70, topo_text(t, "runs %s", a->program));
	}
}

static bool is_kin(const struct topology *t, uint32_t a, uint32_t b)
{
	return topo_descends(t, a, b) || topo_descends(t, b, a);
}

/* Exchanges data with somebody who is neither its ancestor nor its descendant. */
static uint32_t stranger_of(const struct topology *t, uint32_t actor)
{
	size_t n;
	const struct topo_link *l = topology_out(t, actor, &n);

	for (size_t i = 0; i < n; i++) {
		const struct topo_actor *b = &t->actors.v[l[i].to];

		if (b->kind == ACTOR_OUTSIDE ||
		    (b->kind == ACTOR_PROCESS && !is_kin(t, actor, l[i].to) &&
		     (b->group == TOPO_NONE || b->group != t->actors.v[actor].group)))
			return l[i].to;
	}
	return TOPO_NONE;
}

static void set_member_roles(struct topology *t, const struct topo_group *gr)
{
	enum parallelism kind = gr->patterns.n ? gr->patterns.v[0].kind : PAR_UNKNOWN;
	unsigned pct = gr->has_devices ? 90 : kind == PAR_UNKNOWN ? 55 : gr->patterns.v[0].pct;

	for (size_t i = 0; i < gr->members.n; i++) {
		struct topo_actor *a = &t->actors.v[gr->members.v[i]];

		if (kind == PAR_PARAMETER_SERVER && i < gr->shape.hubs)
			set_role(a, ROLE_PARAMETER_SERVER, pct,
				 "all other members exchange data with it only");
		else if (kind == PAR_STAR && i < gr->shape.hubs)
			set_role(a, ROLE_ENGINE, pct,
				 "master of a star: all others exchange data with it only");
		else
			set_role(
			    a, ROLE_WORKER, pct,
			    topo_text(t, "one of %s%s", gr->name,
				      gr->has_devices ? ", uses an accelerator of its own" : ""));
	}
}

/* The members' ancestors: who takes requests from outside, and who passes them on. */
static void set_ancestor_roles(struct topology *t, const struct topo_group *gr)
{
	uint32_t api = TOPO_NONE, a, stranger = TOPO_NONE;
	uint32_t first = gr->launcher;

	if (first == TOPO_NONE || t->actors.v[first].group != TOPO_NONE)
		return;
	for (a = first; a != TOPO_NONE && !topo_is_foreign(&t->actors.v[a]);
	     a = t->actors.v[a].parent) {
		stranger = stranger_of(t, a);
		if (stranger != TOPO_NONE || t->actors.v[a].role == ROLE_API_SERVER) {
			api = a;
			break;
		}
	}
	if (api == TOPO_NONE) {
		if (!topo_is_foreign(&t->actors.v[first]))
			set_role(&t->actors.v[first], ROLE_LAUNCHER, 75,
				 topo_text(t, "started the %zu ranks", gr->members.n));
		return;
	}
	if (stranger != TOPO_NONE && t->actors.v[api].role != ROLE_LAUNCHER)
		set_role(&t->actors.v[api], ROLE_API_SERVER, 85,
			 topo_text(t,
				   "exchanges data with %s, which is none of its kin; the ranks "
				   "descend from it",
				   t->actors.v[stranger].label));
	for (a = first; a != api; a = t->actors.v[a].parent)
		set_role(&t->actors.v[a], ROLE_ENGINE, 75,
			 topo_text(t, "stands between %s and the %zu ranks", t->actors.v[api].label,
				   gr->members.n));
}

/* Children that a rank keeps for itself: they exchange data with it, and with no other process. */
static void find_helpers(struct topology *t)
{
	uint8_t *others = mem_alloc(t->n_processes + 1), *own = mem_alloc(t->n_processes + 1);

	vec_for(&t->links, l) {
		const struct topo_actor *a = &t->actors.v[l->from], *b = &t->actors.v[l->to];

		if (a->kind != ACTOR_PROCESS || b->kind != ACTOR_PROCESS)
			continue;
		(a->parent == l->to ? own : others)[l->from] = 1;
		(b->parent == l->from ? own : others)[l->to] = 1;
	}
	for (uint32_t i = 0; i < t->n_processes; i++) {
		struct topo_actor *a = &t->actors.v[i];
		const struct topo_actor *up =
		    a->parent != TOPO_NONE ? &t->actors.v[a->parent] : NULL;

		if (!up || up->group == TOPO_NONE || a->group != TOPO_NONE || !own[i] ||
		    others[i] || a->children)
			continue;
		/* A child that ended soon may have left no command line: then its name is its
		 * parent's. */
		if (strcmp(a->program, up->program) != 0 &&
		    HAS(process, t->g->nodes.v[a->node], cmdline) &&
		    GET(process, t->g->nodes.v[a->node], cmdline)[0])
			continue;
		if (set_role(
			a, ROLE_LOADER, 65,
			topo_text(
			    t, "child of the rank %s, exchanges data with it and no other process",
			    up->label)))
			t->groups.v[up->group].loaders++;
	}
	free(others);
	free(own);
}

/* All ranks exchange little with one process: where they meet. */
static void find_meeting_point(struct topology *t, struct topo_group *gr)
{
	uint32_t a = gr->launcher;
	size_t met = 0;
	uint64_t bytes = 0;

	if (a == TOPO_NONE || t->actors.v[a].group != TOPO_NONE || gr->members.n < 2)
		return;
	vec_for(&gr->members, m) {
		size_t n;
		const struct topo_link *l = topology_out(t, *m, &n);

		for (size_t i = 0; i < n; i++)
			if (l[i].to == a && !strcmp(l[i].kind, "tcp")) {
				met++;
				bytes += l[i].bytes;
				break;
			}
	}
	if (met == gr->members.n && bytes * 20 < gr->bytes)
		topo_evidence(&gr->basis, EVIDENCE_FOR,
			      topo_text(t,
					"all exchange small messages with %s over TCP: it keeps "
					"their meeting point "
					"(rendezvous store)",
					t->actors.v[a].label));
}

static bool is_served(const struct topo_actor *a)
{
	return a->role == ROLE_API_SERVER || a->role == ROLE_DATABASE || a->role == ROLE_WEB_SERVER;
}

/* Who exchanges data with a known server asks it, or is asked by it. */
static void set_partner_role(struct topology *t, uint32_t server, uint32_t other)
{
	struct topo_actor *a = &t->actors.v[other];
	const struct topo_actor *s = &t->actors.v[server];

	if (a->kind != ACTOR_PROCESS || a->group != TOPO_NONE || is_served(a) ||
	    is_kin(t, server, other) || (a->role != ROLE_UNKNOWN && a->role != ROLE_CLIENT))
		return;
	if (topo_who_asks(t, server, other) > 0)
		set_role(a, ROLE_SERVER, 65, topo_text(t, "answers %s", s->label));
	else if (!a->listens)
		set_role(a, ROLE_CLIENT, 75, topo_text(t, "exchanges data with %s", s->label));
}

static void set_clients(struct topology *t)
{
	vec_for(&t->links, l) {
		if (t->actors.v[l->from].kind == ACTOR_PROCESS && is_served(&t->actors.v[l->from]))
			set_partner_role(t, l->from, l->to);
		if (t->actors.v[l->to].kind == ACTOR_PROCESS && is_served(&t->actors.v[l->to]))
			set_partner_role(t, l->to, l->from);
	}
	for (uint32_t i = 0; i < t->n_processes; i++) {
		struct topo_actor *a = &t->actors.v[i];

		if (a->role == ROLE_UNKNOWN && a->listens && stranger_of(t, i) != TOPO_NONE)
			set_role(a, ROLE_SERVER, 60,
				 topo_text(t, "accepts connections, and exchanges data with %s",
					   t->actors.v[stranger_of(t, i)].label));
	}
}

static void find_threads(struct topology *t)
{
	vec_for(&t->g->nodes, n) {
		const char *name = (*n)->type == &thread_type ? topo_str(*n, thread_f_name) : NULL;
		uint32_t p = name ? process_of(t->g, (*n)->index) : NODE_NONE;
		uint32_t a = p != NODE_NONE ? t->actor_of[p] : TOPO_NONE;

		if (a == TOPO_NONE || t->actors.v[a].group == TOPO_NONE)
			continue;
		for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
			if (strncmp(name, threads[i].name, strlen(threads[i].name)) != 0)
				continue;
			vec_push(&t->threads,
				 ((struct topo_thread){(*n)->index, a, threads[i].role}));
			break;
		}
	}
}

/* What the host is there for: the top of the job that has accelerators, else of the one that moves
 * most. */
static void find_main(struct topology *t)
{
	const struct topo_group *best = NULL;

	vec_for(&t->groups, gr)
		if (!best || gr->has_devices > best->has_devices ||
		    (gr->has_devices == best->has_devices && gr->bytes > best->bytes))
			best = gr;
	if (!best)
		return;
	for (uint32_t a = best->launcher; a != TOPO_NONE && !topo_is_foreign(&t->actors.v[a]);
	     a = t->actors.v[a].parent)
		if (t->actors.v[a].role != ROLE_UNKNOWN || t->main_actor == TOPO_NONE)
			t->main_actor = a;
}

void topo_add_roles(struct topology *t)
{
	vec_for(&t->groups, gr) {
		set_member_roles(t, gr);
		set_ancestor_roles(t, gr);
		find_meeting_point(t, gr);
	}
	find_helpers(t);
	set_clients(t);
	find_threads(t);
	find_main(t);
}
