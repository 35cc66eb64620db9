/* What command lines and environments say about the kind of parallelism. */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "json.h"
#include "topology_parts.h"

enum dimension {
	TENSOR,
	PIPELINE,
	DATA_PARALLEL,
	EXPERT,
	CONTEXT,
	PROCESSES,
	NODES,
	SERVERS,
	WORKERS
};

/* Options with a number behind them: "--tensor-parallel-size 4", "--tensor-parallel-size=4". */
static const struct {
	const char *name;
	enum dimension dim;
	const char *
	    only; /**< short ones mean this only where this word is on the line; NULL: everywhere */
} numbers[] = {
	{"--tensor-parallel-size", TENSOR, NULL},
	{"--tensor-model-parallel-size", TENSOR, NULL},
	{"--tp-size", TENSOR, NULL},
	{"--tp", TENSOR, "sglang"},
	{"-tp", TENSOR, "vllm"},
	{"--autotp-size", TENSOR, NULL},
	{"--pipeline-parallel-size", PIPELINE, NULL},
	{"--pipeline-model-parallel-size", PIPELINE, NULL},
	{"--pp-size", PIPELINE, NULL},
	{"-pp", PIPELINE, "vllm"},
	{"--pipeline-stages", PIPELINE, NULL},
	{"--data-parallel-size", DATA_PARALLEL, NULL},
	{"--dp-size", DATA_PARALLEL, NULL},
	{"-dp", DATA_PARALLEL, "vllm"},
	{"--dp", DATA_PARALLEL, "sglang"},
	{"--expert-model-parallel-size", EXPERT, NULL},
	{"--expert-parallel-size", EXPERT, NULL},
	{"--ep-size", EXPERT, NULL},
	{"--ep", EXPERT, "sglang"},
	{"--context-parallel-size", CONTEXT, NULL},
	{"--nproc-per-node", PROCESSES, NULL},
	{"--num-gpus", PROCESSES, "deepspeed"},
	{"--local-worker-num", PROCESSES, NULL},
	{"--worker-num", PROCESSES, "msrun"},
	{"-np", PROCESSES, "mpirun"},
	{"-n", PROCESSES, "mpirun"},
	{"-np", PROCESSES, "mpiexec"},
	{"-n", PROCESSES, "mpiexec"},
	{"-np", PROCESSES, "horovodrun"},
	{"--nnodes", NODES, NULL},
	{"--num-nodes", NODES, "deepspeed"},
	{"--num-servers", SERVERS, NULL},
	{"--num-workers", WORKERS, NULL},
	{"--num-ps", SERVERS, NULL},
};

/* A word of the command line that names a framework; the first that fits counts. */
static const struct {
	const char *word, *framework;
} frameworks[] = {
	{"vllm", "vLLM"},
	{"sglang", "SGLang"},
	{"mindspeed", "MindSpeed"},
	{"megatron", "Megatron"},
	{"pretrain_gpt", "Megatron"},
	{"deepspeed", "DeepSpeed"},
	{"torchrun", "torchrun"},
	{"torch.distributed", "torchrun"},
	{"msrun", "MindSpore"},
	{"horovodrun", "Horovod"},
	{"mpirun", "MPI"},
	{"mpiexec", "MPI"},
	{"ray::", "Ray"},
	{"raylet", "Ray"},
	{"ray start", "Ray"},
	{"dmlc_", "ps-lite"},
};

static unsigned *dimension_of(struct topo_declared *d, enum dimension dim)
{
	unsigned *all[] = {&d->tensor,    &d->pipeline, &d->data,    &d->expert, &d->context,
			   &d->processes, &d->nodes,    &d->servers, &d->workers};

	return all[dim];
}

/* Underscores and hyphens are one: frameworks use both. */
static bool same_option(const char *word, size_t n, const char *option)
{
	for (size_t i = 0; i < n; i++)
		if ((word[i] == '_' ? '-' : word[i]) != option[i] || !option[i])
			return false;
	return !option[n];
}

static void say(struct topology *t, struct topo_declared *d, const char *words, size_t n)
{
	d->text = d->text ? topo_text(t, "%s %.*s", d->text, (int)n, words)
			  : topo_text(t, "%.*s", (int)n, words);
}

/* One word of the line. @return whether it is an option that counts */
static bool read_option(struct topology *t, struct topo_declared *d, const char *line,
			const char *word)
{
	size_t n, value_at;
	char *end;
	unsigned long v;

	/* Most of a compiler's or a Java machine's many words end here. */
	if (!word[1] || !strchr("-_dntp", word[1]))
		return false;
	n = strcspn(word, " =");
	value_at = word[n] ? n + 1 : n;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!same_option(word, n, numbers[i].name) ||
		    (numbers[i].only && !strstr(line, numbers[i].only)))
			continue;
		v = strtoul(word + value_at, &end, 10);
		if (end == word + value_at || !v || v > 1u << 20)
			return false;
		*dimension_of(d, numbers[i].dim) = (unsigned)v;
		if (numbers[i].dim != WORKERS)
			say(t, d, word, (size_t)(end - word));
		return true;
	}
	return false;
}

static bool read_line(struct topology *t, struct topo_declared *d, const char *line)
{
	bool found = false;

	for (size_t i = 0; !d->framework && i < sizeof(frameworks) / sizeof(frameworks[0]); i++)
		if (strstr(line, frameworks[i].word))
			d->framework = frameworks[i].framework;
	for (const char *w = line; *w; w += strcspn(w, " "), w += strspn(w, " "))
		if (*w == '-')
			found |= read_option(t, d, line, w);
	if (d->framework && !strcmp(d->framework, "vLLM") &&
	    strstr(line, "--enable-expert-parallel") && !d->expert)
		d->expert = d->tensor ? d->tensor : 1;
	/* Disaggregated serving: who fills the cache and who reads it. */
	if (strstr(line, "kv_producer") || strstr(line, "--disaggregation-mode prefill"))
		d->part = "prefill";
	else if (strstr(line, "kv_consumer") || strstr(line, "--disaggregation-mode decode"))
		d->part = "decode";
	return found || d->part;
}

static bool read_variable(struct topology *t, struct topo_declared *d, const char *key,
			  const char *value)
{
	static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
					    "RANK_ID"};
	static const char *const worlds[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
					     "RANK_SIZE", "MS_WORKER_NUM"};
	static const char *const devices[] = {"CUDA_VISIBLE_DEVICES",   "ASCEND_RT_VISIBLE_DEVICES",
					      "ASCEND_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
					      "ROCR_VISIBLE_DEVICES",   "NVIDIA_VISIBLE_DEVICES"};
	unsigned v = (unsigned)strtoul(value, NULL, 10);

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		if (!strcmp(key, ranks[i]) && *value >= '0' && *value <= '9') {
			d->rank = v;
			return d->has_rank = d->is_job = true;
		}
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++)
		if (!strcmp(key, worlds[i]) && v && v <= 1u << 20) {
			d->world = v;
			return true;
		}
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (!strcmp(key, devices[i]) && *value)
			return d->is_job = true;
	if (!strcmp(key, "LOCAL_RANK")) {
		d->local_rank = v;
		d->is_job = true;
	} else if (!strcmp(key, "DMLC_NUM_SERVER") || !strcmp(key, "MS_SERVER_NUM")) {
		d->servers = v;
	} else if (!strcmp(key, "MASTER_ADDR")) {
		d->master = topo_text(t, "%.200s", value);
		d->is_job = true;
	} else if (!strcmp(key, "DMLC_ROLE") || !strcmp(key, "MS_ROLE")) {
		d->part = strstr(value, "erver") || strstr(value, "PSERVER")  ? "server"
			  : strstr(value, "orker") || strstr(value, "WORKER") ? "worker"
									      : "scheduler";
	} else {
		return false;
	}
	return true;
}

static bool read_environment(struct topology *t, struct topo_declared *d, const char *json)
{
	CLEANUP(cleanup_json_reader)
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "environment", NULL);
	bool found = false;
	struct err e;
	int token = json_next(r, &e);

	if (token != JSON_OBJECT)
		return false;
	while ((token = json_next(r, &e)) == JSON_KEY) {
		const char *key = topo_text(t, "%.60s", json_text(r, NULL));

		token = json_next(r, &e);
		if (token == JSON_STRING)
			found |= read_variable(t, d, key, json_text(r, NULL));
		else if (token < 0 || json_skip(r, token, &e) < 0)
			break;
	}
	return found;
}

/* What starts a job has the job's words in its own line; it says nothing of itself. */
static bool is_wrapper(const struct topo_actor *a)
{
	static const char *const names[] = {
	    "bash", "sh",     "dash",    "-c",      "timeout", "env",       "nohup",  "numactl",
	    "sudo", "nice",   "taskset", "strace",  "time",    "stdbuf",    "setsid", "chrt",
	    "ssh",  "docker", "podman",  "kubectl", "tini",    "dumb-init", "xargs",  "tee"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(a->program, names[i]))
			return true;
	return a->role == ROLE_SHELL;
}

void topo_add_declared(struct topology *t)
{
	for (uint32_t i = 0; i < t->n_processes; i++) {
		const struct node *n = t->g->nodes.v[t->actors.v[i].node];
		const char *line = topo_str(n, process_f_cmdline),
			   *env = topo_str(n, process_f_environment);
		struct topo_declared d = {.actor = i};
		bool found = line && !is_wrapper(&t->actors.v[i]) && read_line(t, &d, line);

		found |= env && read_environment(t, &d, env);
		if (found || d.framework)
			vec_push(&t->declared, d);
	}
}

const struct topo_declared *topo_declared_of(const struct topology *t, uint32_t actor)
{
	for (; actor != TOPO_NONE; actor = t->actors.v[actor].parent) {
		size_t low = 0, high = t->declared.n;

		while (low < high) {
			size_t mid = (low + high) / 2;

			if (t->declared.v[mid].actor < actor)
				low = mid + 1;
			else
				high = mid;
		}
		if (low < t->declared.n && t->declared.v[low].actor == actor)
			return &t->declared.v[low];
	}
	return NULL;
}

static void take(unsigned *to, unsigned from)
{
	if (!*to)
		*to = from;
}

void topo_declared_around(struct topology *t, uint32_t actor, struct topo_declared *ret)
{
	const struct topo_declared *d;

	memset(ret, 0, sizeof(*ret));
	ret->actor = TOPO_NONE;
	for (; (d = topo_declared_of(t, actor)) != NULL; actor = t->actors.v[d->actor].parent) {
		take(&ret->tensor, d->tensor);
		take(&ret->pipeline, d->pipeline);
		take(&ret->data, d->data);
		take(&ret->expert, d->expert);
		take(&ret->context, d->context);
		take(&ret->processes, d->processes);
		take(&ret->nodes, d->nodes);
		take(&ret->world, d->world);
		take(&ret->servers, d->servers);
		ret->framework = ret->framework ? ret->framework : d->framework;
		ret->part = ret->part ? ret->part : d->part;
		if (d->text) {
			ret->actor = d->actor;
			if (!ret->text || !strstr(ret->text, d->text))
				ret->text = ret->text ? topo_text(t, "%s; %s", ret->text, d->text)
						      : d->text;
		} else if (ret->actor == TOPO_NONE) {
			ret->actor = d->actor;
		}
	}
}
