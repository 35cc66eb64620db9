/*
 * Fuzz target of the messages of the Model Context Protocol: no line may crash the reader or the
 * check of arguments, and what is made of it stays within its limits.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "mcp_lean.h"
#include "mcp_rpc.h"
#include "mcp_tools.h"

static void try_tools(const struct strbuf *arguments)
{
	for (size_t i = 0; i < n_mcp_tools; i++) {
		struct mcp_answer answer = {0};
		struct mcp_call c = {.tool = mcp_tools[i], .answer = &answer};
		struct err e;

		mcp_args_read(&c, arguments, &e);
		mcp_args_done(&c);
	}
}

static void on_message(void *ctx, struct mcp_message *m)
{
	static const char *const arguments[] = {"arguments", NULL};
	static const char *const version[] = {"_meta", "io.modelcontextprotocol/protocolVersion",
					      NULL};
	struct strbuf raw = {0};

	(void)ctx;
	if (m->error && !m->why)
		abort();
	mcp_find_text(&m->params, version, &raw);
	if (mcp_find(&m->params, arguments, &raw))
		try_tools(&raw);
	try_tools(&m->params);
	strbuf_done(&raw);
	mcp_message_done(m);
}

static void check_lean(const char *text, size_t n)
{
	struct strbuf b = {0};

	mcp_lean_within(text, n, 256, &b);
	if (b.n > 256)
		abort();
	for (size_t i = 0; i < b.n; i++)
		if ((unsigned char)b.s[i] < 0x20)
			abort();
	strbuf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	uint64_t after;
	char *copy;

	mcp_parse(text, size, on_message, NULL);
	check_lean(text, size);
	copy = malloc(size + 1);
	if (size)
		memcpy(copy, text, size);
	copy[size] = '\0';
	if (!mcp_cursor_read(copy, 7, &after) && after > UINT32_MAX)
		abort();
	free(copy);
	return 0;
}
