#pragma once

#include "err.h"

/* Debug messages by topic: `WITTY_DEBUG=graph,probe` or `all`, to standard error. */
#define LOG_TOPICS(X)                                                                              \
	X(COLLECT, "collect")                                                                      \
	X(DEVICE, "device")                                                                        \
	X(GRAPH, "graph")                                                                          \
	X(PROBE, "probe")                                                                          \
	X(SERVE, "serve")                                                                          \
	X(SESSION, "session")                                                                      \
	X(STORE, "store")

enum log_topic {
#define X(id, name) LOG_##id,
	LOG_TOPICS(X)
#undef X
	LOG_TOPIC_COUNT
};

/** Bit per topic that is on; written by log_init() only. */
extern unsigned log_on;

/**
 * Turn on the topics of @p spec, names joined by commas.
 *
 * @param spec NULL or empty: none
 * @return 0, or -EINVAL for an unknown name, the known ones in the hint; nothing is changed then
 */
int log_init(const char *spec, struct err *e);

/** `log_debug(GRAPH, "merged %zu nodes", n)`; arguments are evaluated only when the topic is on. */
#define log_debug(topic, ...)                                                                      \
	do {                                                                                       \
		if (__builtin_expect(log_on & 1U << LOG_##topic, 0))                               \
			log_print(LOG_##topic, __VA_ARGS__);                                       \
	} while (0)

/** One line, "graph: …", on standard error; errno is kept. */
__attribute__((format(printf, 2, 3))) void log_print(enum log_topic topic, const char *fmt, ...);
