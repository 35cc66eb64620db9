/* witty-profiler doctor: what this host allows, what its absence costs, how to get it. */
#include <stdio.h>
#include <string.h>

#include "accel_worker.h"
#include "caps.h"
#include "clock.h"
#include "json.h"
#include "options.h"

/* A driver that takes longer hangs. */
#define DEVICE_NS (8 * NS_PER_SEC)

/* One source of accelerators, asked now. */
struct device_row {
	const struct accel_source *source;
	struct accel_head head;
	size_t devices;
};

static void ask_devices(struct device_row rows[ACCEL_SOURCES])
{
	struct accel_worker *workers[ACCEL_SOURCES];

	for (size_t i = 0; i < ACCEL_SOURCES; i++)
		workers[i] = accel_worker_new(accel_sources[i], DEVICE_NS);
	for (size_t i = 0; i < ACCEL_SOURCES; i++) {
		const struct accel_report *r = accel_worker_take(workers[i], DEVICE_NS + NS_PER_SEC);

		rows[i] = (struct device_row){.source = accel_sources[i], .head = *accel_worker_head(workers[i])};
		rows[i].devices = r ? r->devices.n : 0;
		accel_worker_free(workers[i]);
	}
}

static bool has_devices(const struct device_row *r)
{
	return (r->head.state == ACCEL_OK || r->head.state == ACCEL_REDUCED) && r->devices;
}

static void add_device_text(struct strbuf *b)
{
	struct device_row rows[ACCEL_SOURCES];

	ask_devices(rows);
	for (size_t i = 0; i < ACCEL_SOURCES; i++) {
		const struct device_row *r = &rows[i];
		char name[64];

		snprintf(name, sizeof(name), "device_%s", r->source->name);
		strbuf_addf(b, "%-3s %-18s %s\n", has_devices(r) ? "yes" : "no", name, r->source->gives);
		if (has_devices(r))
			strbuf_addf(b, "    %zu devices, by %s\n", r->devices, r->head.rung);
		if (r->head.why[0])
			strbuf_addf(b, "    reason: %s\n", r->head.why);
		if (!has_devices(r))
			strbuf_addf(b, "    costs:  such devices are not in the recording\n    get it: %s\n",
				    r->source->how);
	}
}

static void add_device_json(struct json_writer *w)
{
	struct device_row rows[ACCEL_SOURCES];

	ask_devices(rows);
	for (size_t i = 0; i < ACCEL_SOURCES; i++) {
		const struct device_row *r = &rows[i];
		char name[64];

		snprintf(name, sizeof(name), "device_%s", r->source->name);
		json_write_object(w);
		json_key_str(w, "name", name);
		json_write_key(w, "present");
		json_write_bool(w, has_devices(r));
		json_key_str(w, "gives", r->source->gives);
		json_key_str(w, "reason", r->head.why[0] ? r->head.why : NULL);
		json_key_str(w, "cost_of_absence", "such devices are not in the recording");
		json_key_str(w, "how_to_get", r->source->how);
		json_write_object_end(w);
	}
}

static void add_text(struct strbuf *b)
{
	for (size_t i = 0; i < ncaps; i++) {
		const char *why = "";
		bool there = cap_check(i, &why) == CAP_PRESENT;

		strbuf_addf(b, "%-3s %-18s %s\n", there ? "yes" : "no", caps[i].name, caps[i].gives);
		if (there)
			continue;
		if (why && *why)
			strbuf_addf(b, "    reason: %s\n", why);
		strbuf_addf(b, "    costs:  %s\n    get it: %s\n", caps[i].cost, caps[i].how);
	}
	add_device_text(b);
}

static void add_json(struct strbuf *b)
{
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, b, JSON_INDENT);
	json_write_array(&w);
	for (size_t i = 0; i < ncaps; i++) {
		const char *why = "";
		bool there = cap_check(i, &why) == CAP_PRESENT;

		json_write_object(&w);
		json_write_key(&w, "name");
		json_write_str(&w, caps[i].name);
		json_write_key(&w, "present");
		json_write_bool(&w, there);
		json_write_key(&w, "gives");
		json_write_str(&w, caps[i].gives);
		json_write_key(&w, "reason");
		json_write_str(&w, there || !why || !*why ? NULL : why);
		json_write_key(&w, "cost_of_absence");
		json_write_str(&w, caps[i].cost);
		json_write_key(&w, "how_to_get");
		json_write_str(&w, caps[i].how);
		json_write_object_end(&w);
	}
	add_device_json(&w);
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	strbuf_addc(b, '\n');
}

static int run(int argc, char **argv)
{
	const char *format = "text";
	const struct verb_option options[] = {{"format", 'f', OPTION_CHOICE, &format, "text or json"}, {0}};
	struct strbuf b = {0};
	struct err e;
	int first;

	if (parse_options(&verb_doctor, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first < argc)
		return usage_error(&verb_doctor, "too much: '%s'", argv[first]);
	strcmp(format, "json") ? add_text(&b) : add_json(&b);
	return end_with(0, NULL, false, &b, &e);
}

const struct verb verb_doctor = {
	.name = "doctor",
	.usage = "[--format text|json]",
	.summary = "Tell what this host allows, what its absence costs, and how to get it",
	.help = "  -f, --format FORMAT   text (default) or json\n",
	.run = run,
};
