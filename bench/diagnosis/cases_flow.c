/* Somebody makes what somebody else uses up: over queues, pipes, sockets, message queues. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "diag.h"

#define QUEUE_ROOM 8

/* A bounded queue of threads, with one lock and two conditions. */
struct queue {
	const struct diag *d;
	pthread_mutex_t lock;
	pthread_cond_t more, room;
	unsigned filled;
	unsigned make_us, rest_us, use_us;
};

static void make(void *arg)
{
	struct queue *q = arg;
	uint64_t random = q->d->seed;

	for (;;) {
		work_us(about_us(&random, q->make_us));
		if (q->rest_us)
			rest_us(about_us(&random, q->rest_us));
		pthread_mutex_lock(&q->lock);
		while (q->filled == QUEUE_ROOM)
			pthread_cond_wait(&q->room, &q->lock);
		q->filled++;
		pthread_cond_signal(&q->more);
		pthread_mutex_unlock(&q->lock);
	}
}

static void use(void *arg)
{
	struct queue *q = arg;
	uint64_t random = q->d->seed + 1;

	for (;;) {
		pthread_mutex_lock(&q->lock);
		while (!q->filled)
			pthread_cond_wait(&q->more, &q->lock);
		q->filled--;
		pthread_cond_signal(&q->room);
		pthread_mutex_unlock(&q->lock);
		work_us(about_us(&random, q->use_us));
	}
}

static struct queue *queue_new(const struct diag *d, unsigned make_us, unsigned pause_us, unsigned use_us)
{
	struct queue *q = calloc(1, sizeof(*q));

	*q = (struct queue){.d = d, .make_us = make_us, .rest_us = pause_us, .use_us = use_us};
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->room, NULL);
	return q;
}

/* The healthy ones have a source that paces both: work comes now and then. */
static void slow_producer(const struct diag *d)
{
	struct queue *q = queue_new(d, d->healthy ? d->size / 20 : d->size, d->healthy ? d->size : 0, d->size / 20);

	start_thread("producer", NULL, make, q);
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("consumer", NULL, use, q);
}

static void slow_consumer(const struct diag *d)
{
	struct queue *q = queue_new(d, d->size / 20, d->healthy ? d->size * d->threads : d->size / 20,
				    d->healthy ? d->size / 20 : d->size);

	start_thread("consumer", NULL, use, q);
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("producer", NULL, make, q);
}

/* Two processes and a stream of blocks. */
struct stream {
	const struct diag *d;
	int in, out;
	mqd_t queue;
	size_t block;
	unsigned make_us, rest_us, use_us;
};

static void stream_send(void *arg)
{
	struct stream *s = arg;
	char *block = calloc(1, s->block);
	uint64_t random = s->d->seed;

	for (;;) {
		work_us(about_us(&random, s->make_us));
		if (s->rest_us)
			rest_us(about_us(&random, s->rest_us));
		if (s->queue != (mqd_t)-1) {
			if (mq_send(s->queue, block, s->block, 0))
				die("mq_send");
			continue;
		}
		for (size_t done = 0; done < s->block;) {
			ssize_t n = write(s->out, block + done, s->block - done);

			if (n <= 0)
				die("write");
			done += (size_t)n;
		}
	}
}

static void stream_receive(void *arg)
{
	struct stream *s = arg;
	char *block = calloc(1, s->block);
	uint64_t random = s->d->seed + 1;

	for (;;) {
		if (s->queue != (mqd_t)-1) {
			if (mq_receive(s->queue, block, s->block, NULL) < 0)
				die("mq_receive");
		} else {
			for (size_t done = 0; done < s->block;) {
				ssize_t n = read(s->in, block + done, s->block - done);

				if (n <= 0)
					die("read");
				done += (size_t)n;
			}
		}
		work_us(about_us(&random, s->use_us));
	}
}

static struct stream *stream_new(const struct diag *d, size_t block)
{
	struct stream *s = calloc(1, sizeof(*s));

	*s = (struct stream){.d = d, .block = block, .queue = (mqd_t)-1};
	return s;
}

static void stream_start(struct stream *s, const char *sender, const char *receiver)
{
	start_process(sender, NULL, stream_send, s);
	start_process(receiver, NULL, stream_receive, s);
}

static void over_pipe(struct stream *s)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		die("pipe2");
	s->in = fd[0];
	s->out = fd[1];
}

/* The receiver is slow, or both have little to do. */
static void receiver_slow(struct stream *s)
{
	const struct diag *d = s->d;

	s->make_us = d->size / 20;
	s->rest_us = d->healthy ? d->size : 0;
	s->use_us = d->healthy ? d->size / 20 : d->size;
}

static void sender_slow(struct stream *s)
{
	const struct diag *d = s->d;

	s->make_us = d->healthy ? d->size / 20 : d->size;
	s->rest_us = d->healthy ? d->size : 0;
	s->use_us = d->size / 20;
}

static void pipe_full(const struct diag *d)
{
	struct stream *s = stream_new(d, 65536);

	over_pipe(s);
	receiver_slow(s);
	stream_start(s, "sender", "receiver");
}

static void pipe_empty(const struct diag *d)
{
	struct stream *s = stream_new(d, 65536);

	over_pipe(s);
	sender_slow(s);
	stream_start(s, "loader", "trainer");
}

static void socket_full(const struct diag *d)
{
	struct stream *s = stream_new(d, 262144);
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		die("socketpair");
	s->in = fd[0];
	s->out = fd[1];
	receiver_slow(s);
	stream_start(s, "sender", "receiver");
}

static void mqueue_full(const struct diag *d)
{
	struct stream *s = stream_new(d, 1024);
	struct mq_attr a = {.mq_maxmsg = 8, .mq_msgsize = 1024};
	char name[64];

	snprintf(name, sizeof(name), "/witty-diag-%d", getpid());
	s->queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &a);
	if (s->queue == (mqd_t)-1)
		die("mq_open");
	mq_unlink(name);
	receiver_slow(s);
	stream_start(s, "sender", "receiver");
}

/* A loader that hands over each row by itself, or a batch of them. */
static void tiny(const struct diag *d)
{
	struct stream *s = stream_new(d, d->healthy ? 65536 : 16);

	over_pipe(s);
	s->make_us = d->healthy ? d->size / 20 : 3;
	s->rest_us = d->healthy ? d->size : 0;
	s->use_us = d->healthy ? d->size / 20 : 1;
	stream_start(s, "loader", "trainer");
}

/* Clients ask a front end, which asks a back end: one request at a time. */
struct request {
	int fd[DIAG_THREADS_MAX + 1][2]; /* the last one: to the back end */
	const struct diag *d;
};

struct asker {
	struct request *r;
	unsigned number;
};

static bool pass(int fd, bool out)
{
	char b[64] = {0};

	return (out ? write(fd, b, sizeof(b)) : read(fd, b, sizeof(b))) == sizeof(b);
}

static void back(void *arg)
{
	struct request *r = arg;
	int fd = r->fd[r->d->threads][0];
	uint64_t random = r->d->seed;

	while (pass(fd, false)) {
		work_us(about_us(&random, r->d->healthy ? r->d->size / 20 : r->d->size));
		pass(fd, true);
	}
}

static void front(void *arg)
{
	struct request *r = arg;
	unsigned n = r->d->threads;

	for (unsigned i = 0;; i = (i + 1) % n) {
		if (!pass(r->fd[i][0], false))
			die("front");
		work_us(100);
		if (!pass(r->fd[n][1], true) || !pass(r->fd[n][1], false) || !pass(r->fd[i][0], true))
			die("front");
	}
}

static void ask(void *arg)
{
	struct asker *a = arg;
	const struct diag *d = a->r->d;
	int fd = a->r->fd[a->number][1];
	uint64_t random = d->seed + a->number;

	while (pass(fd, true) && pass(fd, false))
		rest_us(about_us(&random, d->healthy ? d->size * d->threads : 500));
}

static void upstream(const struct diag *d)
{
	struct request *r = calloc(1, sizeof(*r));

	r->d = d;
	for (unsigned i = 0; i <= d->threads; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, r->fd[i]))
			die("socketpair");
	start_process("back", NULL, back, r);
	start_process("front", NULL, front, r);
	for (unsigned i = 0; i < d->threads; i++) {
		struct asker *a = calloc(1, sizeof(*a));

		*a = (struct asker){r, i};
		start_process("client", NULL, ask, a);
	}
}

const struct diag_case flow_cases[] = {
	{"slow-producer", "threads wait for a queue to be filled", slow_producer},
	{"slow-consumer", "threads wait for a queue to have room", slow_consumer},
	{"pipe-full", "a process reads a pipe too slowly", pipe_full},
	{"pipe-empty", "a process waits for a loader that computes", pipe_empty},
	{"socket-full", "a process reads a socket too slowly", socket_full},
	{"mqueue-full", "a process reads a message queue too slowly", mqueue_full},
	{"tiny", "a loader hands over a few bytes at a time", tiny},
	{"upstream", "clients wait for a front end that waits for a back end", upstream},
	{0},
};
