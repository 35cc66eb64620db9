/* Command lines without their secrets: see redact.h. */
#include "unit.h"

#include "redact.h"

#include <string.h>

static void check(const char *args, size_t n, bool mask, const char *want)
{
	struct strbuf out = {0};

	redact_cmdline(&out, args, n, mask);
	assert_string_equal(strbuf_str(&out), want);
	strbuf_done(&out);
}

/* @p args with NULs between the arguments; the literal's own NUL ends the last one, as in /proc. */
#define MASKED(args, want) check(args, sizeof(args), true, want)

TEST(values_of_options_and_variables_are_masked)
{
	MASKED("vllm\0serve\0--api-key\0abc\0--port\0" "80", "vllm serve --api-key *** --port 80");
	MASKED("vllm\0--api-key=abc def\0x", "vllm --api-key=*** x");
	MASKED("env\0HF_TOKEN=hf_x\0OPENAI_API_KEY=sk-abc", "env HF_TOKEN=*** OPENAI_API_KEY=***");
	MASKED("x\0--secret\0a b c\0z", "x --secret *** z");
	MASKED("x\0--auth-token\0tok\0--author\0bob", "x --auth-token *** --author bob");
	MASKED("x\0{\"api_key\":\"v\",\"b\":1}", "x {\"api_key\":***");
}

TEST(names_that_only_look_alike_are_kept)
{
	MASKED("python\0--tokenizer\0/m/llama\0--max-tokens\0" "100",
	       "python --tokenizer /m/llama --max-tokens 100");
	MASKED("x\0--max_num_batched_tokens=4096", "x --max_num_batched_tokens=4096");
	MASKED("task-runner\0disk-12", "task-runner disk-12");
}

TEST(headers_are_masked_up_to_the_end_of_the_argument)
{
	MASKED("curl\0-H\0Authorization: Bearer abc.def\0-v", "curl -H Authorization: Bearer *** -v");
	MASKED("x\0-H\0Proxy-Authorization: Basic Zm9v", "x -H Proxy-Authorization: Basic ***");
	MASKED("x\0-H\0authorization: abc def\0y", "x -H authorization: *** y");
	MASKED("x\0-H\0Authorization:Bearer abc\0y", "x -H Authorization:Bearer *** y");
	MASKED("x\0--header=X-Api-Key: abc\0y", "x --header=X-Api-Key: *** y");
	MASKED("x\0-H\0Cookie: session=abc; b=c\0y", "x -H Cookie: *** y");
	MASKED("curl -H Authorization: Bearer abc -v", "curl -H Authorization: Bearer *** -v");
	MASKED("curl -H Authorization:Bearer abc -v", "curl -H Authorization:Bearer *** -v");
}

TEST(passwords_in_urls_are_masked)
{
	MASKED("psql\0postgres://u:p%40w@h:5/db", "psql postgres://u:***@h:5/db");
	MASKED("x\0redis://:pw@h:1/0", "x redis://:***@h:1/0");
	MASKED("x\0https://u:p@ss@h/a", "x https://u:***@h/a");
	MASKED("x\0http://u:p@h/x?token=q&b=1\0y", "x http://u:***@h/x?token=*** y");
	MASKED("x\0http://h:80/a@b", "x http://h:80/a@b");
}

TEST(tokens_are_known_by_their_form)
{
	MASKED("prog\0sk-proj-123", "prog sk-***");
	MASKED("prog\0ghp_0123456789abcdefXYZ", "prog ghp_***");
}

TEST(short_options_are_secrets_of_some_programs_only)
{
	MASKED("/usr/bin/redis-cli\0-a\0pw\0ping", "/usr/bin/redis-cli -a *** ping");
	MASKED("mysql\0-psecret\0-h\0db", "mysql -p*** -h db");
	MASKED("ssh\0-p\0" "22\0h", "ssh -p 22 h");
}

TEST(nothing_is_masked_unless_asked_for)
{
	static const char args[] = "x\0--token\0abc";

	check(args, sizeof(args), false, "x --token abc");
	check("", 0, true, "");
}

/* Whatever the bytes are, a secret of a known form of option does not come through. */
TEST(a_secret_survives_no_surroundings)
{
	static const char noise[] = "a-=:/@ \0'\"{,?&";
	uint64_t seed = 7;

	for (int round = 0; round < 20000; round++) {
		struct strbuf line = {0}, out = {0};
		size_t n = unit_random(&seed) % 12;

		strbuf_add(&line, "x");
		strbuf_addc(&line, '\0');
		while (n--)
			strbuf_addc(&line, noise[unit_random(&seed) % (sizeof(noise) - 1)]);
		strbuf_addn(&line, "\0--password\0QXZ\0TOKEN=QXZ\0Authorization: Bearer QXZ", 52);
		redact_cmdline(&out, line.s, line.n, true);
		assert_null(strstr(strbuf_str(&out), "QXZ"));
		strbuf_done(&line);
		strbuf_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_options_and_variables_are_masked),
		cmocka_unit_test(names_that_only_look_alike_are_kept),
		cmocka_unit_test(headers_are_masked_up_to_the_end_of_the_argument),
		cmocka_unit_test(passwords_in_urls_are_masked),
		cmocka_unit_test(tokens_are_known_by_their_form),
		cmocka_unit_test(short_options_are_secrets_of_some_programs_only),
		cmocka_unit_test(nothing_is_masked_unless_asked_for),
		cmocka_unit_test(a_secret_survives_no_surroundings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
