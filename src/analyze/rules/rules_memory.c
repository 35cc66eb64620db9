/* Memory: capacity, reclaim, page faults, /dev/shm. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "rule_parts.h"

#define HOW_LIVE "record with this program on a live host: witty-profiler record"

static const struct node *host_of(const struct rule_run *r)
{
	return r->x->host == NODE_NONE ? NULL : r->x->g->nodes.v[r->x->host];
}

/* --- capacity --- */

static void capacity_fired(struct rule_run *r, uint32_t node, enum severity s, double used_pct,
			   double used, double all, const char *what)
{
	struct finding *fi = rule_fire(r, s, 85, node);

	finding_subject(fi, node);
	finding_value(r, fi, node, "memory in use", used_pct, PERCENT, LIMIT_memory_warning);
	fi->title = rule_text(r, "%s uses %.0f %% of its memory", what, used_pct);
	fi->why = rule_text(r, "%s of %s.", rule_bytes(r, used), rule_bytes(r, all));
	finding_advice(fi, "Raise the limit, or use less: fewer loader workers and prefetched "
			   "batches, smaller caches.");
	fi->expectation = "Nothing is lost until memory has to be reclaimed: see memory-pressure. "
			  "Then it is much.";
}

static void check_capacity(struct rule_run *r)
{
	const struct node *h = host_of(r);
	size_t known = 0;

	if (h && HAS(host, h, memory_bytes) && HAS(host, h, memory_available_bytes) &&
	    GET(host, h, memory_bytes)) {
		double all = (double)GET(host, h, memory_bytes),
		       left = (double)GET(host, h, memory_available_bytes);
		double pct = (all - left) * 100 / all;
		enum severity s = rule_grade_value(r, pct, LIMIT_memory_notice,
						   LIMIT_memory_warning, LIMIT_memory_critical);

		known++;
		if (s > SEVERITY_INFO)
			capacity_fired(r, h->index, s, pct, all - left, all, "The host");
	}
	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double all, used, pct, stalled;
		enum severity s;

		if (n->type != &container_type || !HAS(container, n, memory_limit_bytes) ||
		    !HAS(container, n, memory_bytes) || !GET(container, n, memory_limit_bytes))
			continue;
		known++;
		all = (double)GET(container, n, memory_limit_bytes);
		used = (double)GET(container, n, memory_bytes);
		pct = used * 100 / all;
		s = rule_grade_value(r, pct, LIMIT_memory_notice, LIMIT_memory_warning,
				     LIMIT_memory_critical);
		/* Page cache counts too, and a full group is not late before it stalls. */
		stalled = HAS(container, n, memory_stalled_ns)
			      ? facts_pct(r->x, (double)GET(container, n, memory_stalled_ns))
			      : NAN;
		if (s > SEVERITY_NOTICE && !(stalled > 1))
			s = SEVERITY_NOTICE;
		if (s > SEVERITY_INFO)
			capacity_fired(r, n->index, s, pct, used, all, rule_name(r, n->index));
	}
	if (known)
		rule_clear(r, "memory of %zu host%s and control groups with a limit", known,
			   known == 1 ? "" : "s");
	else
		rule_unknown(r, "memory in use", HOW_LIVE);
}

/* --- reclaim --- */

/* Share of the last ten seconds in which some task waited for memory, of the host's pressure. */
static double host_pressure(const struct node *h, const char *what)
{
	struct json_reader *j;
	struct err e;
	double ret = NAN;
	int token, depth = 0;
	bool in = false;

	if (!HAS(host, h, psi))
		return NAN;
	j = json_reader_new_mem(GET(host, h, psi), strlen(GET(host, h, psi)), "psi", NULL);
	while ((token = json_next(j, &e)) > JSON_EOF && isnan(ret)) {
		if (token == JSON_KEY && depth <= 1)
			in = json_is(j, what);
		depth += (token == JSON_OBJECT || token == JSON_ARRAY);
		depth -= (token == JSON_OBJECT_END || token == JSON_ARRAY_END);
		if (in && token == JSON_NUMBER)
			json_get_f64(j, &ret);
	}
	json_reader_free(j);
	return ret;
}

static void pressure_fired(struct rule_run *r, uint32_t node, double pct, double lost_ns,
			   const char *whose)
{
	struct finding *fi = rule_fire(r, rule_grade(r, pct), 85, node);

	finding_subject(fi, node);
	if (lost_ns >= 0)
		finding_lost(fi, lost_ns,
			     "time in which some thread of the group waited for memory (pressure)");
	finding_value(r, fi, node, "time with a thread waiting for memory", pct, PERCENT,
		      LIMIT_finding_notice);
	fi->title =
	    rule_text(r, "Threads of %s wait for memory for %.0f %% of the time", whose, pct);
	fi->why = "The kernel had to take memory from somebody first (reclaim, swap, or reading "
		  "back what was given up).";
	finding_advice(fi, "Raise the memory limit, or use less memory: fewer workers, smaller "
			   "caches, smaller batches in "
			   "flight; mlock what must not be given up.");
	fi->expectation = "The time lost comes back once all fits.";
}

static void check_pressure(struct rule_run *r)
{
	const struct node *h = host_of(r);
	size_t known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double pct;

		if (n->type != &container_type || !HAS(container, n, memory_stalled_ns) ||
		    !r->x->window_ns)
			continue;
		known++;
		pct = facts_pct(r->x, (double)GET(container, n, memory_stalled_ns));
		if (rule_grade(r, pct) > SEVERITY_INFO)
			pressure_fired(r, n->index, pct,
				       (double)GET(container, n, memory_stalled_ns),
				       rule_name(r, n->index));
	}
	if (h && !isnan(host_pressure(h, "memory"))) {
		double pct = host_pressure(h, "memory");

		known++;
		if (!r->f->v.n || rule_grade(r, pct) > SEVERITY_INFO) {
			if (rule_grade(r, pct) > SEVERITY_INFO)
				pressure_fired(r, h->index, pct, -1, "the host");
		}
	}
	if (known)
		rule_clear(r, "memory pressure of the host or of control groups");
	else
		rule_unknown(r, "memory pressure",
			     "a kernel with CONFIG_PSI, and control groups of version 2 for single "
			     "containers");
}

/* --- page faults --- */

struct fault_sum {
	const struct hot_thread *worst;
	uint64_t worst_ns, ns;
	size_t n;
};

static struct fault_sum faults_of(const struct facts *x, const struct process_fact *p)
{
	struct fault_sum sum = {0};

	for (uint32_t i = 0; i < p->n; i++) {
		const struct hot_thread *th = fact_thread(x, p, i);

		vec_for(&th->waits, w) {
			if (strcmp(w->cause, "page_fault") ||
			    facts_pct(x, (double)w->waited_ns) < 1)
				continue;
			sum.n++;
			sum.ns += w->waited_ns;
			if (w->waited_ns > sum.worst_ns) {
				sum.worst_ns = w->waited_ns;
				sum.worst = th;
			}
		}
	}
	return sum;
}

static void fault_waits(struct rule_run *r)
{
	vec_for(&r->x->processes, p) {
		struct fault_sum s = faults_of(r->x, p);
		double pct = s.n ? facts_pct(r->x, (double)s.ns) / (double)s.n : 0;
		struct finding *fi;

		if (!s.n || p->kernel || rule_grade(r, pct) == SEVERITY_INFO)
			continue;
		fi = rule_fire(r, rule_grade(r, pct), 85, s.worst->node);
		finding_subject(fi, s.worst->node);
		finding_lost(fi, (double)s.ns, "time that its threads were blocked in page faults");
		finding_value(r, fi, s.worst->node, "blocked in page faults",
			      facts_pct(r->x, (double)s.worst_ns), PERCENT, LIMIT_finding_notice);
		fi->title =
		    rule_text(r, "%s is blocked in page faults for %.0f %% of the window",
			      rule_name(r, s.worst->node), facts_pct(r->x, (double)s.worst_ns));
		fi->why = rule_text(r,
				    "%zu thread%s of %s touched memory that had to be read from a "
				    "file or from swap, or waited for "
				    "the lock of the memory map, for %s in all.",
				    s.n, s.n == 1 ? "" : "s", rule_name(r, p->node),
				    rule_ns(r, (double)s.ns));
		finding_advice(fi, "Read large files with read() or a prefetching loader rather "
				   "than by touching a mapping; keep "
				   "models in tmpfs or huge pages; load them before serving.");
		finding_advice(fi, "Many threads that map and unmap at once wait for one lock: "
				   "reuse buffers, use an allocator "
				   "with arenas (jemalloc, tcmalloc), MALLOC_TRIM_THRESHOLD_, "
				   "MALLOC_MMAP_THRESHOLD_.");
		fi->expectation = "The time blocked, once memory is there before it is used.";
	}
}

/* Faults that need no wait cost time on the CPU. */
static size_t fault_rates(struct rule_run *r)
{
	size_t all = 0;

	vec_for(&r->x->processes, p) {
		const struct hot_thread *worst = NULL;
		uint64_t faults = 0, most = 0;
		size_t known = 0;
		struct finding *fi;
		double per_s, pct;

		for (uint32_t i = 0; i < p->n; i++) {
			const struct hot_thread *th = fact_thread(r->x, p, i);
			const struct node *n = r->x->g->nodes.v[th->node];

			if (!HAS(thread, n, minor_faults))
				continue;
			known++;
			faults += GET(thread, n, minor_faults);
			if (!worst || GET(thread, n, minor_faults) > most) {
				most = GET(thread, n, minor_faults);
				worst = th;
			}
		}
		all += known;
		if (!known || !r->x->window_ns || p->kernel || !p->run_ns)
			continue;
		per_s = (double)faults * 1e9 / (double)r->x->window_ns;
		pct = fmin((double)faults * rule_limit(r, LIMIT_faults_cost) * 100 /
			       (double)p->run_ns,
			   100);
		if (per_s < rule_limit(r, LIMIT_faults_rate) || rule_grade(r, pct) == SEVERITY_INFO)
			continue;
		fi = rule_fire(r, rule_grade(r, pct), 75, worst->node);
		finding_subject(fi, worst->node);
		finding_subject(fi, p->node);
		finding_lost(fi, pct / 100 * (double)p->run_ns,
			     "page faults times their usual cost (faults.cost)");
		finding_value(r, fi, p->node, "page faults a second", per_s, COUNT_S,
			      LIMIT_faults_rate);
		fi->title = rule_text(r, "%s takes %s page faults a second",
				      rule_name(r, worst->node), rule_count(r, per_s));
		fi->why = rule_text(
		    r, "About %.0f %% of the CPU time of %s goes into them, if each costs %.0f ns.",
		    pct, rule_name(r, p->node), rule_limit(r, LIMIT_faults_cost));
		finding_advice(fi, "Memory is given back and taken anew again and again: reuse "
				   "buffers, use huge pages (madvise), or "
				   "an allocator that keeps memory (jemalloc, "
				   "MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_).");
		finding_command(
		    fi,
		    "MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=1073741824 COMMAND");
		fi->expectation = "Most of that CPU time, where the faults are for private memory.";
	}
	return all;
}

static void check_faults(struct rule_run *r)
{
	bool waits = false;
	size_t known;

	if (r->x->hot)
		vec_for(&r->x->hot->threads, th)
			waits |= th->waits.n != 0;
	if (waits)
		fault_waits(r);
	known = fault_rates(r);
	if (waits || known)
		rule_clear(r, "page faults of %zu threads%s", known,
			   waits ? ", and time blocked in them" : "");
	else
		rule_unknown(r, "page faults and time blocked in them", HOW_LIVE);
}

/* --- /dev/shm --- */

static bool has_several_processes(const struct facts *x, uint32_t container)
{
	size_t n = 0;

	vec_for(&x->processes, p)
		n += p->container == container && !p->kernel;
	return n > 1;
}

/* A loader or a rank in it: these pass batches and gradients through /dev/shm. */
static bool has_job(const struct facts *x, uint32_t container)
{
	if (x->s->t)
		vec_for(&x->s->t->actors, a) {
			const struct process_fact *p =
			    a->kind == ACTOR_PROCESS ? fact_process(x, a->node) : NULL;

			if (p && p->container == container &&
			    (a->role == ROLE_LOADER || a->role == ROLE_WORKER ||
			     a->role == ROLE_STORE))
				return true;
		}
	return false;
}

static void shm_fired(struct rule_run *r, uint32_t node, double used_pct, double all,
		      const char *whose)
{
	bool full = used_pct > rule_limit(r, LIMIT_shm_full);
	struct finding *fi = rule_fire(r, full ? SEVERITY_CRITICAL : SEVERITY_WARNING, 90, node);

	finding_subject(fi, node);
	finding_value(r, fi, node, "/dev/shm in use", used_pct, PERCENT, LIMIT_shm_used);
	fi->title = rule_text(r, "/dev/shm of %s is %.0f %% full (%s)", whose, used_pct,
			      rule_bytes(r, all));
	fi->why = "What does not fit there fails with a bus error or falls back to slower ways, "
		  "such as files on disk.";
	finding_advice(fi, "Give it more, or share the host's: --shm-size, --ipc=host, an emptyDir "
			   "of medium Memory.");
	finding_command(fi, "docker run --shm-size=16g …   # or --ipc=host");
	finding_command(fi, "mount -o remount,size=16g /dev/shm");
}

static void check_shm(struct rule_run *r)
{
	size_t known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double all, used = -1; /* not known */

		if (n->type != &container_type || !HAS(container, n, shm_bytes) ||
		    !GET(container, n, shm_bytes))
			continue;
		all = (double)GET(container, n, shm_bytes);
		if (HAS(container, n, shm_free_bytes)) {
			used = (all - (double)GET(container, n, shm_free_bytes)) * 100 / all;
			known++;
		}
		if (used > rule_limit(r, LIMIT_shm_used)) {
			shm_fired(r, n->index, used, all, rule_name(r, n->index));
		} else if (all <= rule_limit(r, LIMIT_shm_small) &&
			   has_several_processes(r->x, n->index) && has_job(r->x, n->index)) {
			struct finding *fi = rule_fire(r, SEVERITY_NOTICE, 70, n->index);

			finding_subject(fi, n->index);
			finding_value(r, fi, n->index, "size of /dev/shm", all, BYTES,
				      LIMIT_shm_small);
			fi->title = rule_text(r, "/dev/shm of %s has only %s",
					      rule_name(r, n->index), rule_bytes(r, all));
			fi->why = "Loaders and collectives pass data through it; the default of "
				  "container runtimes is 64 MiB.";
			finding_advice(fi,
				       "Give it more before it is full: --shm-size, --ipc=host.");
			finding_command(fi, "docker run --shm-size=16g …");
		}
	}
	/* The host's: what shared memory in it tells of its file system. */
	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double used;

		if (n->type != &shared_memory_type || !HAS(shared_memory, n, fs_bytes) ||
		    !GET(shared_memory, n, fs_bytes) || !HAS(shared_memory, n, fs_used_bytes))
			continue;
		known++;
		used = (double)GET(shared_memory, n, fs_used_bytes) * 100 /
		       (double)GET(shared_memory, n, fs_bytes);
		if (used > rule_limit(r, LIMIT_shm_used) && !r->f->v.n) {
			shm_fired(r, n->index, used, (double)GET(shared_memory, n, fs_bytes),
				  "the host");
			break;
		}
	}
	if (known)
		rule_clear(r, "%zu memory file systems", known);
	else if (facts_has_source(r->x, "collector shm"))
		rule_clear(r, "no process was seen to use a memory file system");
	else
		rule_unknown(r, "sizes of memory file systems (/dev/shm)", HOW_LIVE);
}

const struct rule rules_memory[] = {
    {.id = "memory-pressure",
     .layer = LAYER_MEMORY,
     .title = "Threads wait for memory to be reclaimed",
     .fires = "a control group, or the host, had threads that waited for memory for a share of "
	      "time that is worth telling.",
     .graded = "share of time lost: time with a thread waiting for memory.",
     .needs = "container.memory_stalled_ns (control groups of version 2), host.psi.",
     .advice = "raise the limit or use less memory.",
     .family = "memory",
     .check = check_pressure},
    {.id = "memory-capacity",
     .layer = LAYER_MEMORY,
     .title = "Memory is nearly used up",
     .fires = "host or control group uses more than `memory.notice` of its memory.",
     .graded = "`memory.notice`, `memory.warning`, `memory.critical`; a control group without "
	       "stalls at most a notice, for its "
	       "page cache counts too.",
     .needs = "host.memory_available_bytes; container.memory_bytes and memory_limit_bytes.",
     .advice = "raise the limit or use less memory.",
     RULE_LIMITS(LIMIT_memory_notice, LIMIT_memory_warning, LIMIT_memory_critical),
     .family = "memory",
     .check = check_capacity},
    {.id = "page-faults",
     .layer = LAYER_MEMORY,
     .title = "Page faults take much time",
     .fires = "threads are blocked in page faults, or a process takes more than `faults.rate` of "
	      "them a second, for a share of "
	      "time that is worth telling.",
     .graded = "share of time lost: blocked in faults of the window; faults times `faults.cost` of "
	       "the CPU time.",
     .needs = "waits_for page_fault (probe sched); thread.minor_faults.",
     .advice = "reuse buffers; read rather than map; huge pages.",
     RULE_LIMITS(LIMIT_faults_rate, LIMIT_faults_cost),
     .family = "thread",
     .check = check_faults},
    {.id = "shm-size",
     .layer = LAYER_MEMORY,
     .title = "/dev/shm is full or small",
     .fires = "a memory file system is used to more than `shm.used`; or that of a container with "
	      "loaders or ranks has at most "
	      "`shm.small`.",
     .graded = "above `shm.full` critical, above `shm.used` a warning, small a notice.",
     .needs = "container.shm_bytes, shared_memory.fs_bytes.",
     .advice = "--shm-size or --ipc=host.",
     RULE_LIMITS(LIMIT_shm_used, LIMIT_shm_full, LIMIT_shm_small),
     .check = check_shm},
    {0}};
