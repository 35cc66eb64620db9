/* The table of tools, and all that is derived from it. */
#include "mcp_tools.h"

#include <string.h>

/* Tables, a row a line. */
/* clang-format off */
#define P_FILE                                                                                     \
	{"file", MCP_P_TEXT, .doc = "Name of a file, as summary lists them; without it the newest"}
#define P_BUDGET                                                                                   \
	{"budget", MCP_P_WHOLE, .min = MCP_BUDGET_MIN, .max = MCP_BUDGET_MAX,                      \
	 .doc = "Most tokens of the answer, of 4 bytes each (default 4000)"}
#define P_LIMIT                                                                                    \
	{"limit", MCP_P_WHOLE, .min = 1, .max = 2000, .doc = "Most items; without it as many as fit"}
#define P_CURSOR                                                                                   \
	{"cursor", MCP_P_TEXT, .doc = "next_cursor of an answer to the same question: goes on there"}

#define M_FILE	 {"file", "string", true, "File that the answer is about"}
#define M_CURSOR {"next_cursor", "string", false, "There is more: ask again with this cursor"}

static const char *const kinds[] = {"entities", "edges", "flows",	  "waits", "wakes",
				    "numa",	"paths", "shared_memory", NULL};

static const struct mcp_param summary_params[] = {P_FILE, P_BUDGET, {0}};
static const struct mcp_member summary_members[] = {
	M_FILE,
	{"files", "array", true, "Files that can be asked about, the newest last: {name}"},
	{"about", "object", false, "Begin (start_ns since 1970), window_ns, intervals, complete, tool"},
	{"hosts", "array", false, "The observed hosts"},
	{"entities", "object", false, "Type to number of entities"},
	{"edges", "object", false, "Type to number of relations"},
	{"lost", "array", false, "What was lost while observing, by source and cause"},
	{"reduced", "array", false, "What could not be observed, or in a lesser way, and why"},
	{"findings_total", "integer", false, "Findings that diagnose has"},
	{"findings", "array", false, "Those that cost most time: severity, rule, title"},
	{"topology", "string", false, "Processes, ranks, patterns and data paths, as text"},
	{0}};

static const struct mcp_param query_params[] = {
	{"what", MCP_P_CHOICE, true, .choices = kinds,
	 .doc = "entities and edges of the graph; flows of data between processes; waits: what "
		"threads wait for; wakes: who ends their waits; numa: who runs away from its memory; "
		"paths of data from one entity to another; shared_memory"},
	{"type", MCP_P_TEXT, .doc = "entities, edges: only this type, such as process, thread, file"},
	{"name", MCP_P_TEXT, .doc = "entities, edges, flows: only with this text in an id or a name"},
	{"container", MCP_P_TEXT, .doc = "entities, edges, flows: only in a container with this text"},
	{"min_bytes", MCP_P_WHOLE, .max = INT64_MAX, .doc = "entities, edges, flows: only with so many bytes"},
	{"from", MCP_P_TEXT, .doc = "paths: id of an entity, such as process:4711"},
	{"to", MCP_P_TEXT, .doc = "paths: id of an entity"},
	P_FILE,
	P_LIMIT,
	P_CURSOR,
	P_BUDGET,
	{0}};
static const struct mcp_member query_members[] = {
	M_FILE,
	{"items", "array", true,
	 "Objects; members that were not measured are left out. Ids are those of explain_entity"},
	{"total", "integer", false, "Items that there are, on all pages"},
	{"there", "object", false, "paths: steps of data from one to the other, and bytes"},
	{"back", "object", false, "paths: and back"},
	{"nodes", "array", false, "numa: the NUMA nodes"},
	M_CURSOR,
	{0}};

static const struct mcp_param explain_params[] = {
	{"id", MCP_P_TEXT, true, .doc = "Id as other answers have it: process:4711, thread:4712"},
	P_FILE,
	P_LIMIT,
	P_CURSOR,
	P_BUDGET,
	{0}};
static const struct mcp_member explain_members[] = {
	M_FILE,
	{"entity", "object", true, "The entity with all that was measured of it"},
	{"counts", "object", true, "Type to number of its relations"},
	{"relations", "array", true,
	 "Its relations, those with most bytes or time first: type, other (id), name, direction"},
	{"total", "integer", true, "Relations that there are, on all pages"},
	M_CURSOR,
	{0}};

static const char *const severities[] = {"notice", "warning", "critical", NULL};
static const char *const layers[] = {"compute", "memory",	 "interconnect", "network",
				     "storage", "control plane", "data plane",	 NULL};

static const struct mcp_param hot_params[] = {
	{"process", MCP_P_TEXT, .doc = "Only threads of this process, such as process:4711"},
	P_FILE, P_LIMIT, P_CURSOR, P_BUDGET, {0}};
static const struct mcp_member hot_members[] = {
	M_FILE,
	{"demand_pct", "number", false, "Running and runnable time of all threads, of all CPUs"},
	{"threads", "array", true,
	 "Threads, hottest first: score in points, class, cause with its reason, root of its waits, shares of time"},
	{"total", "integer", true, "Threads that there are, on all pages"},
	{"not_known", "array", false, "What was not measured for any thread: {what}"},
	M_CURSOR,
	{0}};

static const struct mcp_param diagnose_params[] = {
	{"severity", MCP_P_CHOICE, .choices = severities, .doc = "Only findings of this severity or above"},
	{"layer", MCP_P_CHOICE, .choices = layers, .doc = "Only findings of this layer"},
	{"about", MCP_P_TEXT, .doc = "Only findings with this id as root or subject, or of its process"},
	P_FILE, P_LIMIT, P_CURSOR, P_BUDGET, {0}};
static const struct mcp_member diagnose_members[] = {
	M_FILE,
	{"counts", "object", true, "Findings by severity"},
	{"findings", "array", true,
	 "Most time lost first: id (for evidence), rule, severity, title, why, root (who causes it), subjects (who "
	 "suffers), lost_ns"},
	{"total", "integer", true, "Findings that there are, on all pages"},
	{"not_evaluated", "array", false, "Rules whose input is missing: they are not fine, but unknown"},
	M_CURSOR,
	{0}};

static const struct mcp_param evidence_params[] = {
	{"finding", MCP_P_TEXT, true, .doc = "Id of a finding, as diagnose has it"}, P_FILE, P_BUDGET, {0}};
static const struct mcp_member evidence_members[] = {
	M_FILE,
	{"finding", "object", true, "All of it: measured values with units and limits, advice, commands, expectation"},
	{"root_relations", "array", false, "Relations of the root, the largest first: waits, wake-ups, flows"},
	{"subject_waits", "array", false, "What who suffers waited for, and who ended it"},
	{0}};

static const struct mcp_param diff_params[] = {
	{"before", MCP_P_TEXT, true, .doc = "Name of a file, as summary lists them"},
	{"after", MCP_P_TEXT, true, .doc = "Name of the other one"},
	P_BUDGET,
	{0}};
static const struct mcp_member diff_members[] = {
	{"before", "string", true, "The first file"},
	{"after", "string", true, "The second one"},
	{"findings", "array", true, "Findings with their fate: new, worse, better, gone, same"},
	{"threads", "array", true, "Threads whose use of CPU changed by more than chance"},
	{"flows", "array", true, "Flows, likewise"},
	{0}};

static const struct mcp_param record_params[] = {
	{"duration_s", MCP_P_WHOLE, true, .min = 1, .max = 600, .doc = "Seconds to observe"},
	{"pids", MCP_P_WHOLES, .min = 1, .max = UINT32_MAX,
	 .doc = "Only these processes, their descendants, and who talks to them; without it the whole host"},
	{0}};
static const struct mcp_member record_members[] = {
	{"file", "string", true, "Name of the new file, for the other tools"},
	{"window_ns", "integer", true, "Time that was observed"},
	{"entities", "integer", true, "Entities in it"},
	{"relations", "integer", true, "Relations in it"},
	{0}};

/* In the order in which they are listed. */
static const struct mcp_tool summary_tool = {
	"summary", "What a recording holds",
	"Start here: what was observed, where and for how long, what could not be, and how data moves "
	"through the host.",
	summary_params, summary_members, .run = mcp_summary};
static const struct mcp_tool query_tool = {
	"query", "Lists from the graph",
	"Entities, relations, flows, waits and paths of a recording, the most important first, with "
	"filters and pages.",
	query_params, query_members, .run = mcp_query};
static const struct mcp_tool explain_tool = {
	"explain_entity", "One entity and its relations",
	"All that is known of a process, thread, socket, file, device …: its fields and its relations, "
	"the largest first.",
	explain_params, explain_members, .run = mcp_explain};

static const struct mcp_tool hot_tool = {
	"hot_threads", "Busy and delayed threads",
	"Threads with score, class and cause: who computes, who waits for a CPU, for whom, and away from its memory.",
	hot_params, hot_members, .run = mcp_hot};
static const struct mcp_tool diagnose_tool = {
	"diagnose", "What holds the system back",
	"Findings of the rules, those that cost most time first, each with the root that causes it. Ask evidence for the "
	"numbers and the advice.",
	diagnose_params, diagnose_members, .run = mcp_diagnose};
static const struct mcp_tool evidence_tool = {
	"evidence", "All about one finding",
	"Measured values with their limits, advice and commands of a finding, and the waits that lead to its root.",
	evidence_params, evidence_members, .run = mcp_evidence};
static const struct mcp_tool diff_tool = {
	"diff", "What changed between two recordings",
	"Findings that are new or gone, threads and flows that changed by more than chance.", diff_params,
	diff_members, .run = mcp_diff};
static const struct mcp_tool record_tool = {
	"record", "Observe this host",
	"Record this host for some seconds into a new file, which the other tools then know. Changes nothing "
	"of what it observes.",
	record_params, record_members, .writes = true};

const struct mcp_tool *const mcp_tools[] = {
	&summary_tool, &diagnose_tool, &evidence_tool, &hot_tool,
	&explain_tool, &query_tool,    &diff_tool,     &record_tool};
const size_t n_mcp_tools = sizeof(mcp_tools) / sizeof(mcp_tools[0]);

/* clang-format on */

const struct mcp_tool *mcp_tool_find(const char *name)
{
	for (size_t i = 0; i < n_mcp_tools; i++)
		if (!strcmp(mcp_tools[i]->name, name))
			return mcp_tools[i];
	return NULL;
}
