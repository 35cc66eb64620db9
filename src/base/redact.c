/*
 * Secrets out of command lines: see redact.h.
 *
 * When in doubt a value is masked: a report with a "***" too many is still a report. The text is
 * taken word by word, because a shell's script or a program that set its own title has blanks where
 * other command lines have NULs.
 */
#include "redact.h"

#include <string.h>
#include <strings.h>

#define MASK "***"

/* What the words so far say about the next one. */
struct redact {
	struct strbuf *out;
	bool secret_next; /* an option or header named a secret */
	bool is_header;	  /* it was a header: a scheme such as Bearer may come first */
	char short_option; /* of this program: -p, -a or -u stands before a secret; 0: none */
	bool is_attached;  /* and may have it in the same word: -pSECRET */
};

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static const char *find_word(const char *s, size_t n, const char *word)
{
	size_t w = strlen(word);

	for (size_t i = 0; i + w <= n; i++)
		if (!strncasecmp(s + i, word, w))
			return s + i;
	return NULL;
}

/* Whether @p word is in the name and none of @p but_not directly behind it. */
static bool names(const char *s, size_t n, const char *word, const char *but_not)
{
	const char *end = s + n, *at;

	for (; (at = find_word(s, (size_t)(end - s), word)); s = at + 1) {
		const char *behind = at + strlen(word);

		if (behind == end || !*but_not || !strchr(but_not, *behind | 0x20))
			return true;
	}
	return false;
}

/* Names of options and variables: --api-key, HF_TOKEN, db.password; not --max-tokens, --tokenizer. */
static bool is_secret_name(const char *s, size_t n)
{
	static const char *const words[] = {
		"passw",      "passphrase", "secret",	   "credential",  "apikey",
		"api-key",    "api_key",    "access-key",  "access_key",  "accesskey",
		"private-key", "private_key", "authorization", "cookie",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (find_word(s, n, words[i]))
			return true;
	return names(s, n, "token", "is") || names(s, n, "auth", "o");
}

static void add(const struct redact *r, const char *s, const char *end)
{
	strbuf_addn(r->out, s, (size_t)(end - s));
}

/* "scheme://user:PASSWORD@host": the password, or NULL. @param ret_end of it */
static const char *url_password(const char *s, const char *end, const char **ret_end)
{
	const char *host = memmem(s, (size_t)(end - s), "://", 3), *slash, *at, *colon;

	if (!host)
		return NULL;
	host += 3;
	slash = memchr(host, '/', (size_t)(end - host));
	at = memrchr(host, '@', (size_t)((slash ? slash : end) - host));
	colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
	*ret_end = at;
	return colon ? colon + 1 : NULL;
}

/* A token that its form gives away. @return the length of its public prefix, 0: none here */
static size_t token_prefix(const char *s, const char *end)
{
	static const struct {
		const char *prefix;
		size_t min; /* characters behind it */
	} forms[] = {
		{"sk-", 1},	    {"hf_", 16},    {"ghp_", 16},  {"gho_", 16}, {"ghs_", 16},
		{"github_pat_", 16}, {"glpat-", 16}, {"xoxb-", 16}, {"AKIA", 16}, {"eyJ", 32},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t n = strlen(forms[i].prefix), len = 0;

		if ((size_t)(end - s) < n || memcmp(s, forms[i].prefix, n))
			continue;
		while (s + n + len < end &&
		       (is_word_char(s[n + len]) || strchr("-_.", s[n + len])))
			len++;
		if (len >= forms[i].min)
			return n;
	}
	return 0;
}

/* A word without a named secret: passwords in URLs and tokens by their form. */
static void add_plain(const struct redact *r, const char *s, const char *end)
{
	const char *pw_end, *pw = url_password(s, end, &pw_end);

	if (pw) {
		add(r, s, pw);
		strbuf_add(r->out, MASK);
		s = pw_end;
	}
	for (const char *at = s; at < end; at++) {
		size_t n = at > s && is_word_char(at[-1]) ? 0 : token_prefix(at, end);

		if (!n)
			continue;
		add(r, s, at + n);
		strbuf_add(r->out, MASK);
		return;
	}
	add(r, s, end);
}

/* '=', or ':' that is not the one of "://". */
static bool is_separator(const char *at, const char *end)
{
	return *at == '=' || (*at == ':' && (end - at < 3 || memcmp(at, "://", 3)));
}

/* The value in "--token=V", "TOKEN=V", "?a=b&token=V", "{"api_key":"V"}", or NULL. */
static const char *secret_value(const char *s, const char *end)
{
	for (const char *at = s; at < end; at++)
		if (is_separator(at, end) && is_secret_name(s, (size_t)(at - s)))
			return at + 1;
	return NULL;
}

static bool is_scheme(const char *s, size_t n)
{
	static const char *const schemes[] = {"bearer", "basic", "token", "digest", "negotiate"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strlen(schemes[i]) == n && !strncasecmp(s, schemes[i], n))
			return true;
	return false;
}

/* "-p", "-pSECRET", "-a" … of programs that are known to mean a password by it. */
static bool add_short_option(struct redact *r, const char *s, const char *end)
{
	if (!r->short_option || end - s < 2 || s[0] != '-' || s[1] != r->short_option)
		return false;
	add(r, s, s + 2);
	if (end - s == 2)
		r->secret_next = !r->is_attached;
	else
		strbuf_add(r->out, MASK);
	return true;
}

/* A word with a name that speaks of a secret, whose value starts at @p value. */
static bool add_named(struct redact *r, const char *s, const char *value, const char *end)
{
	bool is_header = value[-1] == ':';
	bool has_scheme = is_header && is_scheme(value, (size_t)(end - value));

	/* In front of the name there may be a URL with a password of its own. */
	add_plain(r, s, value);
	r->is_header = r->secret_next = has_scheme || (is_header && value == end);
	if (has_scheme)
		add(r, value, end);
	else if (value < end)
		strbuf_add(r->out, MASK);
	return !has_scheme && value < end;
}

/* @return whether a secret was masked, to which the rest of the argument may belong */
static bool add_word(struct redact *r, const char *s, const char *end)
{
	const char *value;

	if (r->secret_next && r->is_header && is_scheme(s, (size_t)(end - s))) {
		add(r, s, end);
		return false;
	}
	if (r->secret_next && (end - s < 2 || memcmp(s, "--", 2))) {
		strbuf_add(r->out, MASK);
		r->secret_next = r->is_header = false;
		return true;
	}
	r->secret_next = r->is_header = false;
	if (add_short_option(r, s, end))
		return false;
	value = secret_value(s, end);
	if (value)
		return add_named(r, s, value, end);
	add_plain(r, s, end);
	r->secret_next = s[0] == '-' && is_secret_name(s, (size_t)(end - s));
	return false;
}

static void know_program(struct redact *r, const char *s, size_t n)
{
	static const struct {
		const char *name;
		char option;
		bool is_attached; /* "-p SECRET" is something else: it asks */
	} programs[] = {
		{"mysql", 'p', true},	{"mariadb", 'p', true}, {"sshpass", 'p', false},
		{"redis-cli", 'a', false}, {"curl", 'u', false},
	};
	const char *blank = memchr(s, ' ', n), *slash, *name;

	n = blank ? (size_t)(blank - s) : n;
	slash = memrchr(s, '/', n);
	name = slash ? slash + 1 : s;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if ((size_t)(s + n - name) >= strlen(programs[i].name) &&
		    !memcmp(name, programs[i].name, strlen(programs[i].name))) {
			r->short_option = programs[i].option;
			r->is_attached = programs[i].is_attached;
		}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

/* One argument; with @p is_all it is the whole command line, with blanks between its words. */
static void add_argument(struct redact *r, const char *s, const char *end, bool is_all)
{
	bool first = true;

	while (s < end) {
		const char *word = s;
		bool was_header = r->is_header;

		while (s < end && !is_blank(*s))
			s++;
		if (s > word) {
			if (!first)
				strbuf_addc(r->out, ' ');
			/* The value of an option may hold blanks; in a joined line nobody can tell. */
			if (add_word(r, word, s) && (first || was_header) && !is_all)
				return;
			first = false;
		}
		s += s < end;
	}
}

void redact_cmdline(struct strbuf *out, const char *args, size_t n, bool mask)
{
	struct redact r = {.out = out};
	bool is_all = !memchr(args, '\0', n ? n - 1 : 0);

	for (size_t at = 0; at < n;) {
		const char *s = args + at;
		size_t len = strnlen(s, n - at);

		if (at)
			strbuf_addc(out, ' ');
		if (!at)
			know_program(&r, s, len);
		if (mask)
			add_argument(&r, s, s + len, is_all);
		else
			strbuf_addn(out, s, len);
		at += len + 1;
	}
}
