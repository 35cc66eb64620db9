/* What the table of tools says, as JSON Schema. */
#include "mcp_tools.h"

static void write_type(struct json_writer *w, const struct mcp_param *p)
{
	static const char *const types[] = {"string", "integer", "string", "array"};

	json_key_str(w, "type", types[p->type]);
	if (p->type == MCP_P_WHOLE) {
		json_key_u64(w, "minimum", p->min);
		json_key_u64(w, "maximum", p->max);
	}
	if (p->type == MCP_P_WHOLES) {
		json_write_key(w, "items");
		json_write_object(w);
		json_key_str(w, "type", "integer");
		json_key_u64(w, "minimum", p->min);
		json_key_u64(w, "maximum", p->max);
		json_write_object_end(w);
		json_key_u64(w, "maxItems", MCP_WHOLES_MAX);
	}
	if (p->type == MCP_P_TEXT)
		json_key_u64(w, "maxLength", MCP_ARG_TEXT_MAX);
	if (p->type == MCP_P_CHOICE) {
		json_write_key(w, "enum");
		json_write_array(w);
		for (const char *const *c = p->choices; *c; c++)
			json_write_str(w, *c);
		json_write_array_end(w);
	}
}

static void write_input(struct json_writer *w, const struct mcp_tool *t)
{
	bool some = false;

	json_write_object(w);
	json_key_str(w, "type", "object");
	json_write_key(w, "properties");
	json_write_object(w);
	for (const struct mcp_param *p = t->params; p->name; p++) {
		json_write_key(w, p->name);
		json_write_object(w);
		write_type(w, p);
		json_key_str(w, "description", p->doc);
		json_write_object_end(w);
		some |= p->required;
	}
	json_write_object_end(w);
	if (some) {
		json_write_key(w, "required");
		json_write_array(w);
		for (const struct mcp_param *p = t->params; p->name; p++)
			if (p->required)
				json_write_str(w, p->name);
		json_write_array_end(w);
	}
	json_write_key(w, "additionalProperties");
	json_write_bool(w, false);
	json_write_object_end(w);
}

static void write_output(struct json_writer *w, const struct mcp_tool *t)
{
	json_write_object(w);
	json_key_str(w, "type", "object");
	json_write_key(w, "properties");
	json_write_object(w);
	for (const struct mcp_member *m = t->members; m->name; m++) {
		json_write_key(w, m->name);
		json_write_object(w);
		json_key_str(w, "type", m->type);
		json_key_str(w, "description", m->doc);
		json_write_object_end(w);
	}
	json_write_object_end(w);
	json_write_key(w, "required");
	json_write_array(w);
	for (const struct mcp_member *m = t->members; m->name; m++)
		if (m->required)
			json_write_str(w, m->name);
	json_write_array_end(w);
	json_write_key(w, "additionalProperties");
	json_write_bool(w, false);
	json_write_object_end(w);
}

static void write_hints(struct json_writer *w, const struct mcp_tool *t)
{
	json_write_object(w);
	json_key_str(w, "title", t->title);
	json_write_key(w, "readOnlyHint");
	json_write_bool(w, !t->writes);
	if (t->writes) {
		json_write_key(w, "destructiveHint");
		json_write_bool(w, false);
	}
	json_write_key(w, "idempotentHint");
	json_write_bool(w, !t->writes);
	json_write_key(w, "openWorldHint");
	json_write_bool(w, false);
	json_write_object_end(w);
}

void mcp_tools_write(struct json_writer *w, bool writes, bool schemas_of_output)
{
	json_write_array(w);
	for (size_t i = 0; i < n_mcp_tools; i++) {
		const struct mcp_tool *t = mcp_tools[i];

		if (t->writes && !writes)
			continue;
		json_write_object(w);
		json_key_str(w, "name", t->name);
		if (schemas_of_output)
			json_key_str(w, "title", t->title);
		json_key_str(w, "description", t->doc);
		json_write_key(w, "inputSchema");
		write_input(w, t);
		if (schemas_of_output) {
			json_write_key(w, "outputSchema");
			write_output(w, t);
		}
		json_write_key(w, "annotations");
		write_hints(w, t);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}
