/*
 * The JSON reader against jansson: on a corpus and on thousands of mutations of it, both accept a
 * document or both refuse it, and what was read has the same value.
 *
 * Intended differences, each of them checked to be the reason: jansson refuses numbers that do not
 * fit its types, NUL in a member name, and a byte order mark; all three are valid or allowed. And it
 * overlooks a NUL byte behind a number, which is valid nowhere.
 */
#include "unit.h"

#include <string.h>

#include "json.h"
#include "oracle.h"

static const char *const corpus[] = {
	"{\"nodes\":[{\"entity_type\":\"ProcessEntity\",\"pid\":4711,\"load\":0.25}],\"edges\":[]}",
	"[1,-2,3.25,1e3,-0.5E-2,true,false,null,\"text\",{},[]]",
	"\"\\u0041\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
	"{\n  \"a\": {\n    \"b\": [\n      1,\n      2\n    ]\n  },\n  \"c\": \"\"\n}\n",
	"  [ [ [ [ ] ] ] , { \"k\" : [ 0 , 0.0 , 10 ] } ]  ",
	"\xef\xbb\xbf{\"bom\": true}",
	"{\"k\":{\"k\":{\"k\":[[[[\"deep\",null]]]]}}}",
	"123456789",
	"\"plain text that is long enough to cross a window of sixteen bytes\"",
};

/* What a mutation puts in: bytes that mean something to a parser. */
static const char *const pieces[] = {
	"\"",	 "\\",	"{",	"}",	    "[",	    "]",	":",	"\xff",	"\xed\xa0\x80",
	",",	 "0",	"-",	"1e",	    ".",	    "\\u",	"\\ud8", "\n",	"\x01",
	"true",	 "nul", " ",	"\xc3",	    "\xe2\x82\xac", "\\u0000",	"/",	"\t",	"99999999999",
};

static size_t mutate(char *text, size_t n, size_t cap, uint64_t *seed)
{
	size_t at = n ? unit_random(seed) % n : 0;
	const char *piece = pieces[unit_random(seed) % (sizeof(pieces) / sizeof(pieces[0]))];
	size_t len = strlen(piece), cut;

	switch (unit_random(seed) % 5) {
	case 0: /* insert */
		if (n + len > cap)
			return n;
		memmove(text + at + len, text + at, n - at);
		memcpy(text + at, piece, len);
		return n + len;
	case 1: /* replace */
		if (at + len > n)
			return n;
		memcpy(text + at, piece, len);
		return n;
	case 2: /* remove */
		cut = unit_random(seed) % 3 + 1;
		if (at + cut > n)
			return n;
		memmove(text + at, text + at + cut, n - at - cut);
		return n - cut;
	case 3: /* flip a bit */
		if (n)
			text[at] = (char)(text[at] ^ (1 << unit_random(seed) % 8));
		return n;
	default: /* truncate, now and then */
		return unit_random(seed) % 8 ? n : at;
	}
}

/* @return 0 and the document in compact form, or < 0 */
static int ours(const char *text, size_t n, size_t window, struct strbuf *out, struct err *e)
{
	struct json_limits l = {.depth = 64, .string_bytes = 4096, .window_bytes = window};
	struct json_reader *r = json_reader_new_mem(text, n, "FILE", &l);
	int rc = json_next(r, e);

	if (rc >= 0)
		rc = json_copy(r, rc, out, e);
	if (rc >= 0)
		rc = json_next(r, e);
	json_reader_free(r);
	return rc;
}

static int compare(const char *text, size_t n)
{
	struct strbuf out = {0}, small = {0};
	struct err e = {0};
	char reason[200];
	int rc = ours(text, n, 0, &out, &e), rc_small = ours(text, n, 16, &small, &e);
	enum verdict want = oracle_reads(text, n, reason, sizeof(reason));

	assert_int_equal(rc, rc_small);
	if (memchr(text, 0, n)) {
		assert_true(rc < 0);
		want = REFUSED;
	}
	if (rc < 0 && want == ACCEPTED)
		fail_msg("only jansson accepts '%.*s': %s", (int)n, text, e.msg);
	if (rc >= 0 && want == REFUSED)
		fail_msg("only jansson refuses '%.*s': %s", (int)n, text, reason);
	if (rc >= 0) {
		assert_string_equal(strbuf_str(&out), strbuf_str(&small));
		if (want == ACCEPTED)
			assert_true(oracle_equal(text, n, out.s, out.n));
	}
	strbuf_done(&out);
	strbuf_done(&small);
	return rc;
}

TEST(the_corpus_is_valid_for_both)
{
	for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++)
		assert_int_equal(compare(corpus[i], strlen(corpus[i])), 0);
}

TEST(mutations_are_accepted_or_refused_by_both)
{
	uint64_t seed = 42;
	int accepted = 0, refused = 0;

	for (int round = 0; round < 20000; round++) {
		const char *from = corpus[round % (int)(sizeof(corpus) / sizeof(corpus[0]))];
		size_t n = strlen(from);
		char text[512];

		memcpy(text, from, n);
		for (uint64_t k = unit_random(&seed) % 4 + 1; k; k--)
			n = mutate(text, n, sizeof(text), &seed);
		if (compare(text, n) < 0)
			refused++;
		else
			accepted++;
	}
	/* A comparison in which nearly all go one way would compare little. */
	assert_in_range(accepted, 2000, 18000);
	assert_in_range(refused, 2000, 18000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_corpus_is_valid_for_both),
		cmocka_unit_test(mutations_are_accepted_or_refused_by_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
