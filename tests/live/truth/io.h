#pragma once

#include "net.h"

/** How a call moves data. Those of the second group only send, of the third only receive. */
enum how {
	HOW_SEND, /**< send, recv */
	HOW_RW,	  /**< write, read */
	HOW_VEC,  /**< writev, readv */
	HOW_MSG,  /**< sendmsg, recvmsg over many small pieces */
	HOW_URING,
	HOW_SQPOLL,
	HOW_SPLICE, /**< pipe to socket, socket to pipe */

	HOW_SENDFILE,
	HOW_ZEROCOPY,
	HOW_PARTIAL, /**< non-blocking over a small buffer, polls on EAGAIN */

	HOW_PEEK, /**< looks with MSG_PEEK first, then receives */
	HOW_SLOW, /**< non-blocking small reads with pauses, polls on EAGAIN */
};

/** One direction of a conversation: sizes go base, base + step, … base + 6 * step, and again. */
struct leg {
	enum how tx, rx;
	unsigned count; /**< messages at scale 1; 0: nothing goes this way */
	unsigned base, step;
};

enum { IO_MESSAGE_MAX = 1 << 20 };

unsigned leg_count(const struct act *a, const struct leg *l);
size_t leg_size(const struct leg *l, unsigned i);
uint64_t leg_total(const struct act *a, const struct leg *l);

/** Send all of a leg over a stream or seqpacket socket, and count each successful call. */
void io_send_leg(struct act *a, struct flow *f, int fd, const struct leg *l);

/** Receive all of a leg, and count each successful call. */
void io_receive_leg(struct act *a, struct flow *f, int fd, const struct leg *l);

/** Send exactly @n bytes by send(); counted. */
void io_send(struct act *a, struct flow *f, int fd, size_t n);

/** Receive exactly @n bytes by recv(); counted. */
void io_receive(struct act *a, struct flow *f, int fd, size_t n);

/** Receive until the end of the stream by recv(); counted. @return the bytes */
uint64_t io_receive_to_end(struct act *a, struct flow *f, int fd);

/** Bytes to send from: IO_MESSAGE_MAX of them. Private to the process. */
unsigned char *io_buffer(struct act *a);

/** Wait until @fd is ready for @events. */
void io_poll(struct act *a, int fd, short events);

struct uring;

/** False where the kernel has no io_uring for us, or the program was built without it. */
bool uring_works(void);

/** A ring for one request at a time. */
struct uring *uring_new(struct act *a, bool sqpoll);
void uring_free(struct uring *u);
/** As send() and recv(), through the ring. */
ssize_t uring_send(struct act *a, struct uring *u, int fd, const void *p, size_t n);
ssize_t uring_recv(struct act *a, struct uring *u, int fd, void *p, size_t n);
