/* Storage: who waits for disks, for reading or for writing, slow disks, stores that lie on a disk.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"
#include "shared_memory.h"

#define HOW_WAITS "record as root with probe 'sched': witty-profiler record"

/* What a thread waited for disks: blocks to come, files to be written out. */
static uint64_t disk_wait_ns(const struct hot_thread *th, uint32_t *ret_object)
{
	uint64_t ns = 0, most = 0;

	vec_for(&th->waits, w) {
		if (strcmp(w->cause, "disk") && strcmp(w->cause, "file"))
			continue;
		ns += w->waited_ns;
		if (w->waited_ns > most) {
			most = w->waited_ns;
			*ret_object = w->object;
		}
	}
	return ns;
}

static bool is_kernel(const struct facts *x, const struct hot_thread *th)
{
	const struct process_fact *p = fact_process(x, th->node);

	return p && p->kernel;
}

/* Bytes that a process asked disks for, and the disk that most of them were of. */
static uint32_t disk_of(const struct facts *x, uint32_t process, uint64_t *ret_read,
			uint64_t *ret_written)
{
	struct edge_list out = graph_out(x->g, process);
	uint32_t disk = NODE_NONE;
	uint64_t most = 0;

	*ret_read = *ret_written = 0;
	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = x->g->edges.v[out.v[i]];
		uint64_t rd, wr;

		if (d->type != &block_io_type)
			continue;
		rd = HAS(block_io, d, read_bytes) ? GET(block_io, d, read_bytes) : 0;
		wr = HAS(block_io, d, written_bytes) ? GET(block_io, d, written_bytes) : 0;
		*ret_read += rd;
		*ret_written += wr;
		if (rd + wr >= most) {
			most = rd + wr;
			disk = d->target;
		}
	}
	return disk;
}

/* Disk of the file system that a file is on: MAJOR:MINOR, of the partition or the whole. */
static uint32_t disk_by_dev(const struct facts *x, const char *dev)
{
	vec_for(&x->g->nodes, n)
		if ((*n)->type == &block_device_type && !strcmp(GET(block_device, *n, dev), dev))
			return (*n)->index;
	return NODE_NONE;
}

struct disk_waiter {
	const struct hot_thread *th;
	uint64_t ns;
	uint32_t object; /* file or wait object, HOT_NONE */
	uint32_t disk;
	uint64_t read, written; /* bytes of its own calls on files, else of its process */
};

static bool waits_for_disk(struct rule_run *r, const struct hot_thread *th, struct disk_waiter *ret)
{
	struct facts *x = r->x;
	uint64_t rd, wr;

	*ret = (struct disk_waiter){.th = th, .object = HOT_NONE, .disk = NODE_NONE};
	ret->ns = disk_wait_ns(th, &ret->object);
	if (facts_pct(x, (double)ret->ns) < rule_limit(r, LIMIT_disk_wait) || is_kernel(x, th))
		return false;
	vec_for(&th->bytes, b)
		if (!strcmp(b->kind, "file")) {
			ret->read += b->in_bytes;
			ret->written += b->out_bytes;
		}
	if (ret->object != HOT_NONE) {
		const struct node *n = x->g->nodes.v[ret->object];

		if (n->type == &file_type && HAS(file, n, dev))
			ret->disk = disk_by_dev(x, GET(file, n, dev));
		else if (n->type == &wait_object_type && HAS(wait_object, n, name))
			ret->disk = disk_by_dev(x, GET(wait_object, n, name));
	}
	if (th->process != HOT_NONE) {
		uint32_t disk = disk_of(x, th->process, &rd, &wr);

		if (ret->disk == NODE_NONE)
			ret->disk = disk;
		if (!ret->read && !ret->written) {
			ret->read = rd;
			ret->written = wr;
		}
	}
	return true;
}

static double mean_ns(const struct node *n)
{
	uint64_t requests = 0, ns = 0;

	if (HAS(block_device, n, timed_reads) || HAS(block_device, n, timed_writes)) {
		if (HAS(block_device, n, timed_reads)) {
			requests += GET(block_device, n, timed_reads);
			ns += GET(block_device, n, read_latency_ns);
		}
		if (HAS(block_device, n, timed_writes)) {
			requests += GET(block_device, n, timed_writes);
			ns += GET(block_device, n, write_latency_ns);
		}
	} else if (HAS(block_device, n, reads) && HAS(block_device, n, writes)) {
		requests = GET(block_device, n, reads) + GET(block_device, n, writes);
		ns = GET(block_device, n, read_ns) + GET(block_device, n, write_ns);
	} else {
		return NAN;
	}
	return requests ? (double)ns / (double)requests : 0;
}

static double busy_pct(const struct facts *x, const struct node *n)
{
	return HAS(block_device, n, busy_ns) && x->window_ns
		   ? facts_pct(x, (double)GET(block_device, n, busy_ns))
		   : NAN;
}

static const char *disk_text(struct rule_run *r, uint32_t disk)
{
	const struct node *n;
	const char *text;

	if (disk == NODE_NONE)
		return "";
	n = r->x->g->nodes.v[disk];
	text = rule_text(r, " Disk %s", rule_name(r, disk));
	if (!isnan(busy_pct(r->x, n)))
		text =
		    rule_text(r, "%s was busy for %.0f %% of the window", text, busy_pct(r->x, n));
	if (mean_ns(n) > 0)
		text = rule_text(r, "%s%s a request took %s on average", text,
				 isnan(busy_pct(r->x, n)) ? ":" : ",", rule_ns(r, mean_ns(n)));
	return rule_text(r, "%s.", text);
}

static const char *file_text(struct rule_run *r, const struct disk_waiter *w)
{
	const struct node *n = w->object == HOT_NONE ? NULL : r->x->g->nodes.v[w->object];

	if (n && n->type == &file_type && HAS(file, n, path))
		return rule_text(r, ", most of it on %s", GET(file, n, path));
	return "";
}

/* Blocked for long on a disk that is idle: it is not the disk that is slow. */
static bool is_limited(const struct rule_run *r, const struct disk_waiter *w)
{
	double busy = w->disk == NODE_NONE ? NAN : busy_pct(r->x, r->x->g->nodes.v[w->disk]);

	return busy * 3 < facts_pct(r->x, (double)w->ns) && facts_pct(r->x, (double)w->ns) > 20;
}

static void wait_fired(struct rule_run *r, const struct disk_waiter *w, bool writes)
{
	double pct = facts_pct(r->x, (double)w->ns);
	struct finding *fi =
	    rule_fire(r, rule_grade(r, pct), w->read || w->written ? 90 : 70, w->th->node);
	const char *name = rule_name(r, w->th->node);

	finding_subject(fi, w->th->node);
	if (w->disk != NODE_NONE)
		finding_subject(fi, w->disk);
	finding_lost(fi, (double)w->ns, "time that the thread was blocked on a disk");
	finding_value(r, fi, w->th->node, "time blocked on disks", pct, PERCENT, LIMIT_disk_wait);
	finding_value(r, fi, w->th->node, writes ? "bytes written" : "bytes read",
		      (double)(writes ? w->written : w->read), BYTES, LIMIT_COUNT);
	if (w->disk != NODE_NONE && mean_ns(r->x->g->nodes.v[w->disk]) >= 0)
		finding_value(r, fi, w->disk, "mean time of a request",
			      mean_ns(r->x->g->nodes.v[w->disk]), NS, LIMIT_disk_latency);
	fi->title = rule_text(r, "%s waits for a disk to %s for %.0f %% of the window", name,
			      writes ? "write" : "read", pct);
	fi->why = rule_text(r, "It was blocked for %s%s while it %s %s.%s",
			    rule_ns(r, (double)w->ns), file_text(r, w), writes ? "wrote" : "read",
			    rule_bytes(r, (double)(writes ? w->written : w->read)),
			    disk_text(r, w->disk));
	if (is_limited(r, w)) {
		fi->why =
		    rule_text(r,
			      "%s The disk itself had little to do meanwhile: a limit holds the "
			      "thread back, or a file system that is not on it.",
			      fi->why);
		finding_advice(
		    fi,
		    "Look for an I/O limit of its control group, and for a remote file system.");
		finding_command(
		    fi, "cat /sys/fs/cgroup/GROUP/io.max   # version 1: blkio.throttle.*_device");
	}
	if (writes) {
		finding_advice(fi, "Write checkpoints in the background (asynchronous "
				   "checkpointing, a thread or process of its own) "
				   "and call fsync once at the end instead of after each part.");
		finding_advice(fi, "Write rarer or less (sharded, compressed), to a faster disk, "
				   "or to memory first and on from there.");
		fi->expectation =
		    "The training loop gets back what it waits; the disk is as busy as before.";
	} else {
		finding_advice(fi, "Read ahead: more loader workers and prefetched batches, larger "
				   "sequential reads, a dataset packed "
				   "into few large files.");
		finding_advice(fi, "Keep the data nearer: page cache (memory), a local NVMe disk "
				   "instead of a network file system.");
		fi->expectation = "As much as others wait for this thread; a disk that is busy all "
				  "the time limits all of them.";
	}
	finding_command(fi, "iostat -x 1   # await, %util");
}

static void check_wait(struct rule_run *r, bool writes)
{
	size_t known = 0;

	if (r->x->hot)
		vec_for(&r->x->hot->threads, th) {
			struct disk_waiter w;

			known += th->waits.n != 0;
			if (waits_for_disk(r, th, &w) && (w.written > w.read) == writes)
				wait_fired(r, &w, writes);
		}
	if (known)
		rule_clear(r, "what %zu threads waited for", known);
	else
		rule_unknown(r, "what threads wait for", HOW_WAITS);
}

static void check_read_wait(struct rule_run *r)
{
	check_wait(r, false);
}

static void check_write_wait(struct rule_run *r)
{
	check_wait(r, true);
}

/* A slow disk is a finding only when somebody waits for it. */
static void check_slow(struct rule_run *r)
{
	size_t known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double latency, busy;
		uint64_t lost = 0;
		struct finding *fi = NULL;

		if (n->type != &block_device_type)
			continue;
		latency = mean_ns(n);
		busy = busy_pct(r->x, n);
		if (isnan(latency) && isnan(busy))
			continue;
		known++;
		if (!(latency > rule_limit(r, LIMIT_disk_latency)) &&
		    !(busy > rule_limit(r, LIMIT_disk_busy)))
			continue;
		if (r->x->hot)
			vec_for(&r->x->hot->threads, th) {
				struct disk_waiter w;

				if (!waits_for_disk(r, th, &w) || w.disk != n->index)
					continue;
				if (!fi)
					fi = rule_fire(r, SEVERITY_NOTICE, 80, n->index);
				finding_subject(fi, th->node);
				lost += w.ns;
			}
		if (!fi)
			continue;
		finding_subject(fi, n->index);
		fi->severity =
		    rule_grade(r, facts_pct(r->x, (double)lost) / (double)(fi->subjects.n - 1));
		finding_lost(fi, (double)lost, "time that threads were blocked on it");
		if (!isnan(latency))
			finding_value(r, fi, n->index, "mean time of a request", latency, NS,
				      LIMIT_disk_latency);
		if (!isnan(busy))
			finding_value(r, fi, n->index, "time with a request under way", busy,
				      PERCENT, LIMIT_disk_busy);
		fi->title = rule_text(
		    r, "Disk %s is slow: %s a request%s", rule_name(r, n->index),
		    rule_ns(r, latency),
		    busy > rule_limit(r, LIMIT_disk_busy) ? ", and busy nearly all the time" : "");
		fi->why = rule_text(r, "%zu thread%s waited for it, for %s in all.%s",
				    fi->subjects.n - 1, fi->subjects.n == 2 ? "" : "s",
				    rule_ns(r, (double)lost), disk_text(r, n->index));
		finding_advice(
		    fi,
		    "Move the data to a faster disk or into memory, or spread it over several.");
		finding_command(fi, "iostat -x 1   # await, %util, aqu-sz");
		fi->expectation = "What the threads waited, if the new disk answers at once.";
	}
	if (known)
		rule_clear(r, "%zu disks", known);
	else
		rule_unknown(r, "requests of disks",
			     "record with this program on a live host, with probe 'block'");
}

static void check_io_pressure(struct rule_run *r)
{
	size_t known = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double pct;
		struct finding *fi;

		if (n->type != &container_type || !HAS(container, n, io_stalled_ns) ||
		    !r->x->window_ns)
			continue;
		known++;
		pct = facts_pct(r->x, (double)GET(container, n, io_stalled_ns));
		if (rule_grade(r, pct) == SEVERITY_INFO)
			continue;
		fi = rule_fire(r,
			       rule_grade(r, pct) > SEVERITY_WARNING ? SEVERITY_WARNING
								     : rule_grade(r, pct),
			       70, n->index);
		finding_subject(fi, n->index);
		finding_lost(fi, (double)GET(container, n, io_stalled_ns),
			     "time in which some thread of the group waited for disks");
		finding_value(r, fi, n->index, "time with a thread waiting for disks", pct, PERCENT,
			      LIMIT_finding_notice);
		fi->title = rule_text(r, "Threads of %s wait for disks for %.0f %% of the time",
				      rule_name(r, n->index), pct);
		fi->why = "Pressure as the kernel counts it for the control group.";
		finding_advice(fi, "The findings about single threads say who and what for.");
	}
	if (known)
		rule_clear(r, "%zu control groups", known);
	else
		rule_unknown(r, "disk pressure of control groups",
			     "control groups of version 2 and CONFIG_PSI");
}

/* Memory that processes share through a file on a disk: an object store without room in /dev/shm.
 */
static void check_store(struct rule_run *r)
{
	struct shared_objects all;
	size_t known = 0;

	shared_memory_objects(r->x->g, &all);
	vec_for(&all.v, o) {
		const struct node *n = r->x->g->nodes.v[o->node];
		const char *path = HAS(shared_memory, n, path) ? GET(shared_memory, n, path) : "";
		bool store = strstr(path, "plasma") || strstr(path, "/ray/") ||
			     strstr(path, "torch_") || strstr(path, "object");
		struct finding *fi;

		if (!HAS(shared_memory, n, kind))
			continue;
		known++;
		if (strcmp(GET(shared_memory, n, kind), "file") || o->mappers.n < 2 ||
		    !o->writers || !HAS(shared_memory, n, shm_size) ||
		    (double)GET(shared_memory, n, shm_size) < rule_limit(r, LIMIT_store_size))
			continue;
		fi = rule_fire(r, store ? SEVERITY_WARNING : SEVERITY_NOTICE, store ? 85 : 60,
			       o->node);
		finding_subject(fi, o->node);
		vec_for(&o->mappers, m)
			finding_subject(fi, m->process);
		finding_value(r, fi, o->node, "size", (double)GET(shared_memory, n, shm_size),
			      BYTES, LIMIT_store_size);
		fi->title = rule_text(
		    r, "%zu processes share %s through a file on %s: %s", o->mappers.n,
		    rule_bytes(r, (double)GET(shared_memory, n, shm_size)),
		    HAS(shared_memory, n, fs_type) ? GET(shared_memory, n, fs_type) : "a disk",
		    path);
		fi->why = "What is written there goes to the disk, too; object stores do so when "
			  "/dev/shm is too small for them.";
		finding_advice(fi, "Make /dev/shm large enough and put the store there.");
		finding_command(fi,
				"ray start --plasma-directory=/dev/shm --object-store-memory=BYTES "
				"  # with --shm-size of at least that");
		fi->expectation = "Writing back the file stops; how much that costs now, the rule "
				  "checkpoint tells.";
	}
	shared_memory_done(&all);
	if (known)
		rule_clear(r, "%zu shared memory objects", known);
	else
		rule_unknown(r, "shared memory and the file systems it is on",
			     "record with this program as root");
}

const struct rule rules_storage[] = {
    {.id = "disk-wait",
     .layer = LAYER_STORAGE,
     .title = "A thread waits for a disk to read",
     .fires = "a thread is blocked on disks or files for at least `disk.wait` of the window, and "
	      "reads more from files than it "
	      "writes: also a loader that is idle because its data comes slowly.",
     .graded = "share of time lost: blocked on disks, of the window.",
     .needs = "waits_for disk and file (probe sched); bytes of files (probe ipc) or block_io.",
     .advice = "read ahead, larger reads, data nearer.",
     RULE_LIMITS(LIMIT_disk_wait),
     .family = "disk",
     .check = check_read_wait},
    {.id = "checkpoint",
     .layer = LAYER_STORAGE,
     .title = "A thread waits for a disk to write: a checkpoint, a log",
     .fires = "a thread is blocked on disks or files for at least `disk.wait` of the window, and "
	      "writes more to files than it "
	      "reads (fsync, fdatasync, synchronous writes).",
     .graded = "share of time lost: blocked on disks, of the window.",
     .needs = "waits_for disk and file (probe sched); bytes of files (probe ipc) or block_io.",
     .advice = "checkpoint in the background, one fsync at the end.",
     RULE_LIMITS(LIMIT_disk_wait),
     .family = "disk",
     .check = check_write_wait},
    {.id = "disk-slow",
     .layer = LAYER_STORAGE,
     .title = "A disk is slow or busy, and threads wait for it",
     .fires = "a request takes longer than `disk.latency` on average or the disk is busy for more "
	      "than `disk.busy`, and a thread is "
	      "blocked on it for at least `disk.wait`.",
     .graded = "share of time lost: mean time blocked of those threads, of the window.",
     .needs = "block_device times (probe block, else /proc/diskstats); waits_for (probe sched).",
     .advice = "a faster disk, or memory.",
     RULE_LIMITS(LIMIT_disk_latency, LIMIT_disk_busy, LIMIT_disk_wait),
     .check = check_slow},
    {.id = "io-pressure",
     .layer = LAYER_STORAGE,
     .title = "Threads of a control group wait for disks",
     .fires = "some thread of a control group waited for disks for a share of time that is worth "
	      "telling.",
     .graded = "share of time, at most a warning: one idle writer is enough to raise it.",
     .needs = "container.io_stalled_ns (control groups of version 2).",
     .advice = "see who waits.",
     .check = check_io_pressure},
    {.id = "store-on-disk",
     .layer = LAYER_STORAGE,
     .title = "Processes share memory through a file on a disk",
     .fires = "at least two processes map a file on a disk that has at least `store.size`, and one "
	      "may write it.",
     .graded = "a warning when its path is that of an object store, else a notice.",
     .needs = "shared_memory.kind and its mappers (collector shm).",
     .advice = "put the store into /dev/shm and make that large enough.",
     RULE_LIMITS(LIMIT_store_size),
     .check = check_store},
    {0}};
