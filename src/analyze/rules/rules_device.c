/* Compute: accelerators: idle ones, hot ones, broken ones. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"

/* What the rules look at, of a GPU or an NPU. NAN and NULL: not known. */
struct accelerator {
	uint32_t node;
	double util, memory_util, temperature, clock, clock_max;
	double memory_used, memory_total, pcie_width, pcie_width_max, pcie_gen, pcie_gen_max,
	    pcie_bytes_s;
	double ecc_errors;
	const char *throttle, *health, *state;
};

#define NUMBER(T, n, f) (HAS(T, n, f) ? (double)GET(T, n, f) : NAN)
#define TEXT(T, n, f)   (HAS(T, n, f) ? GET(T, n, f) : NULL)

#define FILL(T, n)                                                                                 \
	((struct accelerator){                                                                     \
	    .node = (n)->index,                                                                    \
	    .util = NUMBER(T, n, utilization_pct),                                                 \
	    .memory_util = NUMBER(T, n, memory_util_pct),                                          \
	    .temperature = NUMBER(T, n, temperature_c),                                            \
	    .clock_max = NUMBER(T, n, clock_max_khz),                                              \
	    .memory_used = NUMBER(T, n, memory_used_bytes),                                        \
	    .memory_total = NUMBER(T, n, memory_total_bytes),                                      \
	    .pcie_width = NUMBER(T, n, pcie_width),                                                \
	    .pcie_width_max = NUMBER(T, n, pcie_width_max),                                        \
	    .pcie_gen = NUMBER(T, n, pcie_gen),                                                    \
	    .pcie_gen_max = NUMBER(T, n, pcie_gen_max),                                            \
	    .pcie_bytes_s = NUMBER(T, n, pcie_rx_bytes_s) + NUMBER(T, n, pcie_tx_bytes_s),         \
	    .ecc_errors = NUMBER(T, n, ecc_errors),                                                \
	    .health = TEXT(T, n, health),                                                          \
	    .state = TEXT(T, n, state),                                                            \
	    .clock = NAN,                                                                          \
	})

/* @return false: it is no accelerator */
static bool read_accelerator(const struct node *n, struct accelerator *ret)
{
	if (n->type == &gpu_type) {
		*ret = FILL(gpu, n);
		ret->clock = NUMBER(gpu, n, clock_khz);
		ret->throttle = TEXT(gpu, n, throttle);
		return true;
	}
	if (n->type == &npu_type) {
		*ret = FILL(npu, n);
		return true;
	}
	return false;
}

#define HOW_DEVICE                                                                                 \
	"record on the host of the accelerators, with the vendor's library or tool (NVML, DCMI, "  \
	"npu-smi)"

static const struct topo_device *users_of(const struct facts *x, uint32_t node)
{
	if (x->s->t)
		vec_for(&x->s->t->devices, d)
			if (d->node == node)
				return d;
	return NULL;
}

static void add_users(struct rule_run *r, struct finding *fi, const struct topo_device *d)
{
	finding_subject(fi, r->x->g->nodes.v[d->node]->index);
	vec_for(&d->users, u)
		finding_subject(fi, r->x->s->t->actors.v[*u].node);
}

/* Call @p look for each accelerator; say what is missing when none tells @p what. */
static void each(struct rule_run *r, bool (*look)(struct rule_run *r, const struct accelerator *a),
		 const char *what)
{
	size_t all = 0, known = 0;

	vec_for(&r->x->g->nodes, n) {
		struct accelerator a;

		if (!read_accelerator(*n, &a))
			continue;
		all++;
		known += look(r, &a);
	}
	if (!known && (all || !r->x->window_ns))
		rule_unknown(r, what, HOW_DEVICE);
	else
		rule_clear(r,
			   all ? "%zu of %zu accelerators tell it" : "no accelerator in this file",
			   known, all);
}

static bool look_idle(struct rule_run *r, const struct accelerator *a)
{
	const struct topo_device *d = users_of(r->x, a->node);
	enum severity s;
	struct finding *fi;

	if (isnan(a->util))
		return false;
	if (!d || !d->users.n || a->util >= rule_limit(r, LIMIT_device_idle))
		return true;
	s = a->util < rule_limit(r, LIMIT_device_idle_critical)  ? SEVERITY_CRITICAL
	    : a->util < rule_limit(r, LIMIT_device_idle_warning) ? SEVERITY_WARNING
								 : SEVERITY_NOTICE;
	/* Nothing tells that there was work for it: a server without requests looks the same. */
	if (s == SEVERITY_CRITICAL)
		s = SEVERITY_WARNING;
	if (a->util < 1)
		s = SEVERITY_NOTICE;
	fi = rule_fire(r, s, a->util < 1 ? 50 : 60, a->node);
	add_users(r, fi, d);
	finding_value(r, fi, a->node, "utilization_pct", a->util, PERCENT, LIMIT_device_idle);
	fi->title = rule_text(r, "%s is used by %s and busy for %.0f %% of the time", d->label,
			      rule_name(r, r->x->s->t->actors.v[d->users.v[0]].node), a->util);
	fi->why = "The device waits for its host, for other devices, or for requests; findings "
		  "about the threads of its users "
		  "say which.";
	finding_advice(fi, "Look at what its users wait for: data loading, the collective, "
			   "requests. Larger batches help only "
			   "when work is there.");
	fi->expectation =
	    "Without a finding about its users, an idle device may just have nothing to do.";
	return true;
}

static bool look_busy(struct rule_run *r, const struct accelerator *a)
{
	const struct topo_device *d = users_of(r->x, a->node);
	struct finding *fi;

	if (isnan(a->util))
		return false;
	if (a->util <= rule_limit(r, LIMIT_device_busy) || !d || !d->users.n)
		return true;
	fi = rule_fire(r, SEVERITY_NOTICE, 60, a->node);
	add_users(r, fi, d);
	finding_value(r, fi, a->node, "utilization_pct", a->util, PERCENT, LIMIT_device_busy);
	fi->title = rule_text(r, "%s is busy for %.0f %% of the time", d->label, a->util);
	fi->why = "At least one kernel ran all the time: the job is bound by the device, as it "
		  "should be.";
	finding_advice(fi, "Fewer operations, better kernels, lower precision, or more devices. "
			   "Utilization says that something "
			   "runs, not how well.");
	return true;
}

static bool look_throttled(struct rule_run *r, const struct accelerator *a)
{
	bool hot = a->temperature > rule_limit(r, LIMIT_device_temperature);
	bool held = a->throttle && a->throttle[0] && strcmp(a->throttle, "none");
	double clock = a->clock / a->clock_max * 100;
	struct finding *fi;

	if (isnan(a->temperature) && !a->throttle)
		return false;
	if (!hot && !held)
		return true;
	/* The power cap of a busy device is how it is meant to run. */
	fi = rule_fire(r,
		       a->temperature > rule_limit(r, LIMIT_device_temperature_critical) ||
			       (held && strstr(a->throttle, "hw_"))
			   ? SEVERITY_CRITICAL
		       : hot || (held && strstr(a->throttle, "thermal")) ? SEVERITY_WARNING
									 : SEVERITY_NOTICE,
		       85, a->node);
	finding_subject(fi, a->node);
	if (!isnan(a->temperature))
		finding_value(r, fi, a->node, "temperature_c", a->temperature, CELSIUS,
			      LIMIT_device_temperature);
	if (!isnan(clock))
		finding_value(r, fi, a->node, "clock of its highest", clock, PERCENT, LIMIT_COUNT);
	fi->title = rule_text(r, "%s %s", rule_name(r, a->node),
			      held ? rule_text(r, "holds its clock down: %s", a->throttle)
				   : rule_text(r, "is at %.0f degrees", a->temperature));
	fi->why = held ? "The driver gives this as the reason for a lower clock at the last look."
		       : "Above its limit a device lowers its clock.";
	finding_advice(
	    fi, "Look at fans, airflow and power; a power cap is lifted with nvidia-smi -pl.");
	return true;
}

static bool look_health(struct rule_run *r, const struct accelerator *a)
{
	bool sick = a->health && a->health[0] && strcasecmp(a->health, "OK") &&
		    strcasecmp(a->health, "good");
	struct finding *fi;

	if (!a->health && !a->state && isnan(a->ecc_errors))
		return false;
	if (!sick && !(a->state && a->state[0]) && !(a->ecc_errors > 0))
		return true;
	fi = rule_fire(r, a->state && a->state[0] ? SEVERITY_CRITICAL : SEVERITY_WARNING, 90,
		       a->node);
	finding_subject(fi, a->node);
	if (!isnan(a->ecc_errors))
		finding_value(r, fi, a->node, "ecc_errors", a->ecc_errors, COUNT, LIMIT_COUNT);
	fi->title = rule_text(r, "%s is not healthy: %s", rule_name(r, a->node),
			      a->state && a->state[0] ? a->state
			      : sick                  ? a->health
				     : "memory errors that could not be corrected");
	fi->why = "The driver reports it.";
	finding_advice(fi, "Take it out of the job, and have it checked.");
	return true;
}

static bool look_memory(struct rule_run *r, const struct accelerator *a)
{
	enum severity s;
	struct finding *fi;

	if (isnan(a->memory_util))
		return false;
	s = rule_grade_value(r, a->memory_util, LIMIT_COUNT, LIMIT_hbm_warning, LIMIT_hbm_critical);
	if (s == SEVERITY_CRITICAL && !(a->util < 50))
		s = SEVERITY_WARNING;
	if (s == SEVERITY_WARNING && !(a->util < 70))
		s = SEVERITY_NOTICE;
	if (s == SEVERITY_INFO)
		return true;
	fi = rule_fire(r, s, 75, a->node);
	finding_subject(fi, a->node);
	finding_value(r, fi, a->node, "memory_util_pct", a->memory_util, PERCENT,
		      LIMIT_hbm_warning);
	if (!isnan(a->util))
		finding_value(r, fi, a->node, "utilization_pct", a->util, PERCENT, LIMIT_COUNT);
	fi->title = rule_text(r, "The memory of %s is read or written for %.0f %% of the time",
			      rule_name(r, a->node), a->memory_util);
	fi->why = "The device waits for its own memory.";
	finding_advice(fi, "Fuse kernels, use smaller types, keep activations small, raise the "
			   "batch only while the weights "
			   "are what is read.");
	return true;
}

static bool look_pcie_link(struct rule_run *r, const struct accelerator *a)
{
	const struct topo_device *d = users_of(r->x, a->node);
	bool slow = a->pcie_gen < a->pcie_gen_max && a->util > 10;
	struct finding *fi;

	if (isnan(a->pcie_width) || isnan(a->pcie_width_max))
		return false;
	if (a->pcie_width >= a->pcie_width_max && !slow)
		return true;
	fi = rule_fire(r, SEVERITY_WARNING, a->pcie_width < a->pcie_width_max ? 90 : 60, a->node);
	finding_subject(fi, a->node);
	if (d)
		add_users(r, fi, d);
	finding_value(r, fi, a->node, "pcie_width", a->pcie_width, COUNT, LIMIT_COUNT);
	finding_value(r, fi, a->node, "pcie_width_max", a->pcie_width_max, COUNT, LIMIT_COUNT);
	fi->title = a->pcie_width < a->pcie_width_max
			? rule_text(r, "%s has %.0f of %.0f PCIe lanes", rule_name(r, a->node),
				    a->pcie_width, a->pcie_width_max)
			: rule_text(r, "%s runs PCIe generation %.0f of %.0f while busy",
				    rule_name(r, a->node), a->pcie_gen, a->pcie_gen_max);
	fi->why = "Device and slot can do more than the link runs at.";
	finding_advice(fi, "Seat the board again, look at riser, slot and firmware settings.");
	return true;
}

/* Bytes a second of one lane, by generation, of PCI-SIG's rates without encoding. */
static double lane_bytes_s(double gen)
{
	static const double rates[] = {0, 250e6, 500e6, 985e6, 1969e6, 3938e6, 7563e6};

	return gen >= 1 && gen <= 6 ? rates[(int)gen] : NAN;
}

static bool look_pcie_use(struct rule_run *r, const struct accelerator *a)
{
	double can = lane_bytes_s(a->pcie_gen) * a->pcie_width * 2,
	       pct = a->pcie_bytes_s * 100 / can;
	enum severity s;
	struct finding *fi;

	if (isnan(pct))
		return false;
	s = rule_grade_value(r, pct, LIMIT_pcie_notice, LIMIT_pcie_warning, LIMIT_pcie_critical);
	if (s == SEVERITY_INFO)
		return true;
	fi = rule_fire(r, s, 70, a->node);
	finding_subject(fi, a->node);
	finding_value(r, fi, a->node, "use of its PCIe link", pct, PERCENT, LIMIT_pcie_warning);
	fi->title =
	    rule_text(r, "The PCIe link of %s is used to %.0f %%", rule_name(r, a->node), pct);
	fi->why = rule_text(r, "%s/s in both directions, by a short sample, of %s/s.",
			    rule_bytes(r, a->pcie_bytes_s), rule_bytes(r, can));
	finding_advice(fi, "Fewer copies between host and device, pinned memory, GPUDirect, "
			   "preprocessing on the device.");
	return true;
}

static void check_idle(struct rule_run *r)
{
	each(r, look_idle, "use of the accelerators (utilization_pct)");
}

static void check_busy(struct rule_run *r)
{
	each(r, look_busy, "use of the accelerators (utilization_pct)");
}

static void check_throttled(struct rule_run *r)
{
	each(r, look_throttled, "temperature and clocks of the accelerators");
}

static void check_health(struct rule_run *r)
{
	each(r, look_health, "health and memory errors of the accelerators");
}

static void check_memory(struct rule_run *r)
{
	each(r, look_memory, "use of the bandwidth of device memory (memory_util_pct)");
}

static void check_pcie_link(struct rule_run *r)
{
	each(r, look_pcie_link, "lanes and generation of PCIe links");
}

static void check_pcie_use(struct rule_run *r)
{
	each(r, look_pcie_use, "traffic over PCIe");
}

static void no_links(struct rule_run *r)
{
	size_t devices = 0;

	vec_for(&r->x->g->nodes, n)
		devices += (*n)->type == &gpu_type || (*n)->type == &npu_type;
	if (devices < 2 && r->x->window_ns)
		rule_clear(r, "fewer than two accelerators");
	else
		rule_unknown(r, "links between accelerators and their use", HOW_DEVICE);
}

static void check_device_links(struct rule_run *r)
{
	size_t n = 0;

	vec_for(&r->x->g->edges, dp) {
		const struct edge *d = *dp;
		struct finding *fi;

		if (d->type != &device_link_type || !HAS(device_link, d, links) ||
		    !HAS(device_link, d, active))
			continue;
		n++;
		if (GET(device_link, d, active) >= GET(device_link, d, links) ||
		    d->source > d->target)
			continue;
		fi = rule_fire(r, SEVERITY_WARNING, 90, d->source);
		finding_subject(fi, d->source);
		finding_subject(fi, d->target);
		fi->title =
		    rule_text(r, "%" PRIu64 " of %" PRIu64 " links between %s and %s are up",
			      GET(device_link, d, active), GET(device_link, d, links),
			      rule_name(r, d->source), rule_name(r, d->target));
		fi->why = "Collectives over these devices have less bandwidth than the machine is "
			  "built for.";
		finding_advice(
		    fi, "Look at nvidia-smi nvlink -s, or hccn_tool; a bridge may be loose.");
	}
	if (n)
		rule_clear(r, "%zu links between accelerators", n);
	else
		no_links(r);
}

/* Links are there; how full they are, no library that is used here tells. */
static void check_link_use(struct rule_run *r)
{
	vec_for(&r->x->g->edges, d)
		if ((*d)->type == &device_link_type)
			return rule_unknown(r, "traffic over NVLink, HCCS or XGMI",
					    "nvidia-smi nvlink -gt d, or DCGM's fields 1011 and 1012; hccn_tool -stat -g; rocm-smi");
	no_links(r);
}

#define NEEDS_DEVICE "of gpu or npu entities: the vendor's library or tool."

const struct rule rules_device[] = {
    {.id = "device-idle",
     .layer = LAYER_COMPUTE,
     .title = "An accelerator in use is idle most of the time",
     .fires = "a device with users is busy for less than `device.idle`.",
     .graded =
	 "utilization: below `device.idle-warning` a warning; a notice where it is idle "
	 "altogether, for nothing tells that "
	 "there was work. The older tool's critical level is not given for a utilization alone.",
     .needs = "utilization_pct " NEEDS_DEVICE,
     .advice = "look at what its users wait for.",
     RULE_LIMITS(LIMIT_device_idle, LIMIT_device_idle_warning, LIMIT_device_idle_critical),
     .check = check_idle},
    {.id = "device-busy",
     .layer = LAYER_COMPUTE,
     .title = "An accelerator is busy all the time",
     .fires = "a device with users is busy for more than `device.busy`.",
     .graded = "always a notice: that is what it is for.",
     .needs = "utilization_pct " NEEDS_DEVICE,
     .advice = "fewer operations, better kernels, more devices.",
     RULE_LIMITS(LIMIT_device_busy),
     .check = check_busy},
    {.id = "device-throttled",
     .layer = LAYER_COMPUTE,
     .title = "An accelerator holds its clock down",
     .fires = "the driver names a reason, or the temperature is above `device.temperature`.",
     .graded = "reason and temperature: power cap notice, heat warning, hardware slow-down or "
	       "`device.temperature-critical` "
	       "critical.",
     .needs = "throttle, temperature_c " NEEDS_DEVICE,
     .advice = "cooling and power.",
     RULE_LIMITS(LIMIT_device_temperature, LIMIT_device_temperature_critical),
     .check = check_throttled},
    {.id = "device-unhealthy",
     .layer = LAYER_COMPUTE,
     .title = "An accelerator is not healthy",
     .fires = "its driver reports another health than OK, memory errors that could not be "
	      "corrected, or that it is lost.",
     .graded = "lost: critical, else a warning.",
     .needs = "health, state, ecc_errors " NEEDS_DEVICE,
     .advice = "take it out of the job.",
     .check = check_health},
    {.id = "device-memory-bandwidth",
     .layer = LAYER_MEMORY,
     .title = "An accelerator waits for its own memory",
     .fires = "its memory is busy for more than `hbm.warning`.",
     .graded = "above `hbm.critical` with utilization below 50 % critical, above `hbm.warning` "
	       "with less than 70 % a warning, "
	       "else a notice.",
     .needs = "memory_util_pct " NEEDS_DEVICE,
     .advice = "fuse kernels, smaller types.",
     RULE_LIMITS(LIMIT_hbm_warning, LIMIT_hbm_critical),
     .check = check_memory},
    {.id = "pcie-link-reduced",
     .layer = LAYER_INTERCONNECT,
     .title = "A PCIe link runs with fewer lanes or slower than it can",
     .fires = "a device has fewer lanes than device and slot can, or a lower generation while it "
	      "is busy.",
     .graded = "always a warning.",
     .needs = "pcie_width, pcie_gen " NEEDS_DEVICE,
     .advice = "seat the board again; slot and firmware settings.",
     .check = check_pcie_link},
    {.id = "pcie-bandwidth",
     .layer = LAYER_INTERCONNECT,
     .title = "A PCIe link is full",
     .fires = "traffic of both directions is more than `pcie.notice` of what lanes and generation "
	      "carry.",
     .graded = "use of the link: `pcie.notice`, `pcie.warning`, `pcie.critical`.",
     .needs = "pcie_rx_bytes_s, pcie_tx_bytes_s " NEEDS_DEVICE,
     .advice = "fewer copies, pinned memory, GPUDirect.",
     RULE_LIMITS(LIMIT_pcie_notice, LIMIT_pcie_warning, LIMIT_pcie_critical),
     .check = check_pcie_use},
    {.id = "device-link-down",
     .layer = LAYER_INTERCONNECT,
     .title = "Links between accelerators are down",
     .fires = "two devices have fewer links up than there are (NVLink, HCCS, XGMI).",
     .graded = "always a warning.",
     .needs =
	 "device_link relations: the vendor's library or tool. How full links are is not known.",
     .advice = "nvidia-smi nvlink -s; check the bridge.",
     .check = check_device_links},
    {.id = "device-link-bandwidth",
     .layer = LAYER_INTERCONNECT,
     .title = "Links between accelerators are full",
     .fires = "never so far: how much goes over them is not read.",
     .graded = "not evaluated.",
     .needs = "traffic of NVLink, HCCS or XGMI.",
     .advice = "a library that knows the topology; less traffic.",
     .check = check_link_use},
    {0}};
