#pragma once

/**
 * What crosses a layer when something fails: a code, what failed and why, and what to do about it.
 * Fixed size and without allocation, so that it can report that memory or disk ran out.
 * Callers pass it last and never as NULL; it is written only on failure.
 */
struct err {
	int code;	/**< -errno of the failure, 0: none */
	char msg[512];	/**< "open recording 'x.wpdb': No such file or directory", no final newline */
	char hint[256]; /**< names a flag, a file or a command; empty: none */
};

void err_clear(struct err *e);

/**
 * Record a failure as "WHAT: reason", the reason being strerror(-code).
 *
 * @param code -errno, < 0
 * @return @p code, so that callers can `return err_set(e, rc, "open '%s'", path);`
 */
__attribute__((format(printf, 3, 4))) int err_set(struct err *e, int code, const char *what, ...);

/** As err_set(), but the text is the whole message: no strerror() is appended. */
__attribute__((format(printf, 3, 4))) int err_msg(struct err *e, int code, const char *msg, ...);

/** Put "CONTEXT: " in front of the message. @return the code that @p e holds. */
__attribute__((format(printf, 2, 3))) int err_ctx(struct err *e, const char *context, ...);

/** Say what to do about it. The last hint wins. @return the code that @p e holds. */
__attribute__((format(printf, 2, 3))) int err_hint(struct err *e, const char *hint, ...);
