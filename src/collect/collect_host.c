/* The host itself: what it is, and how busy its CPUs were. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collect.h"
#include "idrange.h"

static void first_line(char *s, size_t size, const char *path)
{
	FILE *f = fopen(path, "re");

	s[0] = '\0';
	if (!f)
		return;
	if (fgets(s, (int)size, f))
		s[strcspn(s, "\n")] = '\0';
	fclose(f);
}

static void os_name(char *s, size_t size)
{
	char line[256];
	FILE *f = fopen("/etc/os-release", "re");

	s[0] = '\0';
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "PRETTY_NAME=", 12)) {
			snprintf(s, size, "%s", line + 12 + (line[12] == '"'));
			s[strcspn(s, "\"\n")] = '\0';
		}
	if (f)
		fclose(f);
}

static void set_memory(struct node *n)
{
	char line[160];
	unsigned long long kib;
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu", &kib) == 1)
			SET(host, n, memory_bytes, kib * 1024);
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			SET(host, n, memory_available_bytes, kib * 1024);
		if (sscanf(line, "Cached: %llu", &kib) == 1)
			SET(host, n, page_cache_bytes, kib * 1024);
		if (sscanf(line, "Dirty: %llu", &kib) == 1)
			SET(host, n, dirty_bytes, kib * 1024);
		if (sscanf(line, "Writeback: %llu", &kib) == 1)
			SET(host, n, writeback_bytes, kib * 1024);
	}
	if (f)
		fclose(f);
}

/* Time of one CPU in interrupts since the last interval. */
static void set_irq_time(struct collect *c, struct graph *g, unsigned id, const uint64_t now[2])
{
	bool known = id < c->irq_ns.n;
	struct node *n;

	while (c->irq_ns.n <= id)
		vec_push(&c->irq_ns, ((struct irq_time){{0}}));
	if (c->ticks && known && now[0] >= c->irq_ns.v[id].ns[0] && now[1] >= c->irq_ns.v[id].ns[1]) {
		n = graph_new_node(g, &cpu_type);
		SET(cpu, n, cpu_id, id);
		SET(cpu, n, irq_ns, now[0] - c->irq_ns.v[id].ns[0]);
		SET(cpu, n, softirq_ns, now[1] - c->irq_ns.v[id].ns[1]);
		graph_add_node(g, n);
	}
	memcpy(c->irq_ns.v[id].ns, now, sizeof(c->irq_ns.v[id].ns));
}

/* user nice system idle iowait irq softirq steal, in ticks since boot */
static void set_cpu_time(struct collect *c, struct graph *g, struct node *n)
{
	uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK), now[4] = {0};
	unsigned long long t[8], v;
	char line[512];
	unsigned id;
	FILE *f = fopen("/proc/stat", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "cpu  %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2],
			   &t[3], &t[4], &t[5], &t[6], &t[7]) == 8) {
			now[0] = (t[0] + t[1] + t[2] + t[5] + t[6] + t[7]) * tick_ns;
			now[1] = (t[3] + t[4]) * tick_ns;
		}
		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %llu %llu", &id, &t[5], &t[6]) == 3 && id <= IDRANGE_MAX)
			set_irq_time(c, g, id, (uint64_t[2]){t[5] * tick_ns, t[6] * tick_ns});
		if (sscanf(line, "ctxt %llu", &v) == 1)
			now[2] = v;
		if (sscanf(line, "processes %llu", &v) == 1)
			now[3] = v;
	}
	if (f)
		fclose(f);
	if (c->ticks && now[0] >= c->host_cpu[0] && now[1] >= c->host_cpu[1]) {
		SET(host, n, cpu_busy_ns, now[0] - c->host_cpu[0]);
		SET(host, n, cpu_idle_ns, now[1] - c->host_cpu[1]);
		SET(host, n, context_switches, now[2] - c->host_cpu[2]);
		SET(host, n, forks, now[3] - c->host_cpu[3]);
	}
	memcpy(c->host_cpu, now, sizeof(now));
}

/* What stays as it is while the host runs. */
static void set_facts(struct collect *c, struct graph *g, struct node *n, const struct utsname *u)
{
	char text[256];

	SET(host, n, kernel, graph_str(g, u->release));
	if (c->o.host_id)
		SET(host, n, host_id, graph_str(g, c->o.host_id));
	SET(host, n, arch, graph_str(g, u->machine));
	first_line(text, sizeof(text), "/etc/machine-id");
	if (text[0])
		SET(host, n, machine_id, graph_str(g, text));
	first_line(text, sizeof(text), "/proc/sys/kernel/random/boot_id");
	if (text[0])
		SET(host, n, boot_id, graph_str(g, text));
	os_name(text, sizeof(text));
	if (text[0])
		SET(host, n, os, graph_str(g, text));
	SET(host, n, cpus, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
}

void collect_host(struct collect *c, struct graph *g)
{
	struct node *n = graph_new_node(g, &host_type);
	struct utsname u;
	double load;
	FILE *f;

	uname(&u);
	SET(host, n, hostname, graph_str(g, u.nodename));
	if (!c->ticks)
		set_facts(c, g, n, &u);
	set_memory(n);
	f = fopen("/proc/loadavg", "re");
	if (f && fscanf(f, "%lf", &load) == 1)
		SET(host, n, load1, load);
	if (f)
		fclose(f);
	set_cpu_time(c, g, n);
	graph_add_node(g, n);
}
