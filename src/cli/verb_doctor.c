/* witty-profiler doctor: what this host allows, what its absence costs, how to get it. */
#include <getopt.h>
#include <string.h>

#include "caps.h"
#include "json.h"
#include "verb.h"

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
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	strbuf_addc(b, '\n');
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {{"format", required_argument, NULL, 'f'}, {0}};
	struct strbuf b = {0};
	bool json = false;
	struct err e;
	int opt, rc;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "f:", options, NULL)) != -1) {
		if (opt != 'f' || (strcmp(optarg, "json") && strcmp(optarg, "text")))
			return usage_error(&verb_doctor, "wrong option '%s'", argv[optind - 1]);
		json = !strcmp(optarg, "json");
	}
	if (optind < argc)
		return usage_error(&verb_doctor, "too much: '%s'", argv[optind]);
	json ? add_json(&b) : add_text(&b);
	rc = write_output(NULL, false, &b, &e);
	strbuf_done(&b);
	return rc < 0 ? fail(&e) : EXIT_DONE;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.usage = "[--format text|json]",
	.summary = "Tell what this host allows, what its absence costs, and how to get it",
	.help = "  -f, --format FORMAT   text (default) or json\n",
	.run = run,
};
