/* Secrets out of command lines. */
#include "redact.h"

#include <string.h>
#include <strings.h>

static bool has_word(const char *s, size_t n, const char *word)
{
	size_t w = strlen(word);

	for (size_t i = 0; i + w <= n; i++)
		if (!strncasecmp(s + i, word, w))
			return true;
	return false;
}

/* Names of options and variables: --api-key, HF_TOKEN, db.password … */
static bool is_secret_name(const char *s, size_t n)
{
	static const char *const words[] = {"token", "passw", "secret", "api-key", "api_key",
					    "apikey", "credential", "access-key", "access_key",
					    "private-key", "private_key", "auth"};
	static const char *const harmless[] = {"tokenizer", "max-token", "max_token", "num-token",
					       "num_token", "tokens", "author"};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (has_word(s, n, harmless[i]))
			return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (has_word(s, n, words[i]))
			return true;
	return false;
}

/* scheme://user:PASSWORD@host */
static bool add_url(struct strbuf *out, const char *s, size_t n)
{
	const char *scheme = memmem(s, n, "://", 3), *at, *colon;

	if (!scheme)
		return false;
	scheme += 3;
	at = memchr(scheme, '@', (size_t)(s + n - scheme));
	if (!at)
		return false;
	colon = memchr(scheme, ':', (size_t)(at - scheme));
	if (!colon)
		return false;
	strbuf_addn(out, s, (size_t)(colon + 1 - s));
	strbuf_add(out, "***");
	strbuf_addn(out, at, (size_t)(s + n - at));
	return true;
}

/* @return whether the next argument is the secret that this one names */
static bool add_masked(struct strbuf *out, const char *s, size_t n)
{
	const char *eq = memchr(s, '=', n), *colon = memchr(s, ':', n);

	if (eq && is_secret_name(s, (size_t)(eq - s))) {
		strbuf_addn(out, s, (size_t)(eq + 1 - s));
		strbuf_add(out, "***");
		return false;
	}
	if (colon && has_word(s, (size_t)(colon - s), "authorization")) {
		strbuf_addn(out, s, (size_t)(colon + 1 - s));
		strbuf_add(out, " ***");
		return false;
	}
	if (n > 3 && !strncmp(s, "sk-", 3)) {
		strbuf_add(out, "sk-***");
		return false;
	}
	if (!add_url(out, s, n))
		strbuf_addn(out, s, n);
	return !eq && n > 1 && s[0] == '-' && is_secret_name(s, n);
}

void redact_cmdline(struct strbuf *out, const char *args, size_t n, bool mask)
{
	bool secret = false;

	for (size_t at = 0; at < n;) {
		const char *s = args + at;
		size_t len = strnlen(s, n - at);

		if (at)
			strbuf_addc(out, ' ');
		if (secret && mask && !(len && s[0] == '-')) {
			strbuf_add(out, "***");
			secret = false;
		} else if (mask) {
			secret = add_masked(out, s, len);
		} else {
			strbuf_addn(out, s, len);
		}
		at += len + 1;
	}
}
