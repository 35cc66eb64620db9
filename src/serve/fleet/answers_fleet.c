/* The hosts of a fleet: who publishes, and what came of it. */
#include <stdlib.h>

#include "analyzer.h"
#include "answers.h"
#include "json.h"
#include "server.h"

static void answer_fleet(struct server *s, const struct request *r, struct reply *a)
{
	struct strbuf hosts = {0};
	struct analyzer_counts k;
	struct fleet_counts c;
	struct json_writer w;
	struct err e;

	(void)r;
	if (!s->fleet) {
		reply_error(a, 404, "this server observes one host: `fleet` serves many");
		return;
	}
	if (fleet_list(s->fleet, &hosts, &e) < 0) {
		reply_error(a, 503, "%s", e.msg);
		strbuf_done(&hosts);
		return;
	}
	fleet_get(s->fleet, &c);
	analyzer_get(s->analyzer, &k);
	json_writer_init_strbuf(&w, &a->body, 0);
	json_write_object(&w);
	json_write_key(&w, "connected");
	json_write_bool(&w, c.connected);
	json_key_str(&w, "failure", c.failure[0] ? c.failure : NULL);
	json_key_u64(&w, "fetched", c.fetched);
	json_key_u64(&w, "taken", c.taken);
	json_key_u64(&w, "duplicates", c.duplicates);
	json_key_u64(&w, "refused", c.refused);
	json_key_u64(&w, "failures", c.failures);
	json_write_key(&w, "pending");
	if (c.pending == UINT64_MAX)
		json_write_null(&w);
	else
		json_write_u64(&w, c.pending);
	json_key_u64(&w, "lag_ns", c.lag_ns);
	json_key_u64(&w, "graph_ns", c.world_ns);
	json_key_u64(&w, "analyses", k.analyses);
	json_key_u64(&w, "analysis_ns", k.last_ns);
	json_key_u64(&w, "analysed_end_ns", k.newest_ns);
	json_key_u64(&w, "analysed_anew", k.hosts_looked);
	json_key_u64(&w, "in_graph", c.hosts);
	json_key_u64(&w, "silent", c.stale);
	json_key_u64(&w, "joined", c.joined);
	json_write_key(&w, "hosts");
	json_write_raw(&w, hosts.s, hosts.n);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
	strbuf_done(&hosts);
}

const struct route route_fleet = {"GET", "/api/v1/fleet", "Hosts that publish to this fleet, with what came and what is missing",
				  RIGHT_READ, false, "application/json",
				  "{\"type\":\"object\",\"required\":[\"connected\",\"hosts\"]}",
				  .answer = answer_fleet};
