/* Data that the kernel moves between descriptors: splice, tee, vmsplice, sendfile. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

/* Two pipes and a file of the case that this process plays. */
static int in[2], in_object, out[2], out_object, file, file_object;

enum { CHUNK = 9000, ROUNDS = 10, TOTAL = CHUNK * ROUNDS };
enum { WRITER, SPLICER, READER }; /* roles */

static int open_pipe(struct tcase *c, int *ends)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("make a pipe");
	return object_of(c, ends[0]);
}

static void open_pipes(struct tcase *c)
{
	in_object = open_pipe(c, in);
	out_object = open_pipe(c, out);
}

static void in_writer(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < ROUNDS; i++)
		put(c, in_object, in[1], CHUNK);
}

static void in_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, in_object, in[0], TOTAL, 5000);
}

static void out_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, out_object, out[0], TOTAL, 7000);
}

/* From pipe to pipe, never through the memory of the process in the middle. */
static void pipes_splicer(struct tcase *c, int role)
{
	size_t left = TOTAL;

	gate(c);
	while (left) {
		ssize_t r = splice(in[0], NULL, out[1], NULL, left < 4000 ? left : 4000, 0);

		if (r <= 0)
			die("splice between pipes");
		did(c, in_object, DIR_READ, r);
		did(c, out_object, DIR_WRITE, r);
		left -= r;
	}
	must_fail(splice(in[0], NULL, out[1], NULL, 100, SPLICE_F_NONBLOCK), EAGAIN,
		  "splice from an empty pipe");
}

void splice_pipes_run(struct tcase *c)
{
	open_pipes(c);
	PLAY(c, {"w", in_writer}, {"s", pipes_splicer}, {"r", out_reader});
}

/* From a file into one pipe, out of another into the file. */
static void file_splicer(struct tcase *c, int role)
{
	loff_t from = 0, to = TOTAL;

	gate(c);
	while (from < TOTAL) {
		ssize_t r = splice(file, &from, out[1], NULL, TOTAL - from, 0);

		if (r <= 0)
			die("splice from a file");
		did(c, file_object, DIR_READ, r);
		did(c, out_object, DIR_WRITE, r);
	}
	while (to < 2 * TOTAL) {
		ssize_t r = splice(in[0], NULL, file, &to, 2 * TOTAL - to, 0);

		if (r <= 0)
			die("splice to a file");
		did(c, in_object, DIR_READ, r);
		did(c, file_object, DIR_WRITE, r);
	}
}

void splice_file_run(struct tcase *c)
{
	open_pipes(c);
	file = file_with("spliced", TOTAL);
	file_object = object_of(c, file);
	PLAY(c, {"w", in_writer}, {"s", file_splicer}, {"r", out_reader});
}

/* Out of a pipe into a socket. */
static void socket_splicer(struct tcase *c, int role)
{
	int fd = sock_connect(c, c->plan, 0);
	size_t left = TOTAL;

	gate(c);
	while (left) {
		ssize_t r = splice(in[0], NULL, fd, NULL, left, 0);

		if (r <= 0)
			die("splice to a socket");
		did(c, in_object, DIR_READ, r);
		flow_sent(&c->flows[0], r);
		left -= r;
	}
}

static void socket_reader(struct tcase *c, int role)
{
	int fd = sock_accept(sock_bind(c, c->plan, 0));

	gate(c);
	recv_exactly(&c->flows[0], fd, TOTAL, 6000);
}

static void splice_socket(struct tcase *c, enum transport over)
{
	c->plan = over;
	in_object = open_pipe(c, in);
	flow_add(c, SPLICER, READER, transport_kind(over));
	PLAY(c, {"w", in_writer}, {"s", socket_splicer}, {"r", socket_reader});
}

void splice_tcp_run(struct tcase *c)
{
	splice_socket(c, OVER_TCP4);
}

void splice_unix_run(struct tcase *c)
{
	splice_socket(c, OVER_UNIX);
}

/* Out of a socket into a pipe, by a process that calls no other receiving function. */
static void drain_sender(struct tcase *c, int role)
{
	int fd = sock_connect(c, c->plan, 0);

	gate(c);
	for (int i = 0; i < ROUNDS; i++)
		send_all(&c->flows[0], fd, buf, CHUNK);
}

static void drain_splicer(struct tcase *c, int role)
{
	int fd = sock_accept(sock_bind(c, c->plan, 0));
	size_t left = TOTAL;

	gate(c);
	while (left) {
		ssize_t r = splice(fd, NULL, out[1], NULL, left < CHUNK ? left : CHUNK, 0);

		if (r <= 0)
			die("splice from a socket");
		flow_received(&c->flows[0], r);
		did(c, out_object, DIR_WRITE, r);
		left -= r;
	}
}

static void drain_socket(struct tcase *c, enum transport over)
{
	c->plan = over;
	out_object = open_pipe(c, out);
	flow_add(c, WRITER, SPLICER, transport_kind(over))->blind_receive = true;
	PLAY(c, {"w", drain_sender}, {"s", drain_splicer}, {"r", out_reader});
}

void drain_tcp_run(struct tcase *c)
{
	drain_socket(c, OVER_TCP4);
}

void drain_unix_run(struct tcase *c)
{
	drain_socket(c, OVER_UNIX);
}

enum { STEP_COPIED = STEP_D + 1 };

/* Copies into a second pipe; the data stays in the first, and its reader gets it. */
static void tee_copier(struct tcase *c, int role)
{
	ssize_t r;

	gate(c);
	for (int i = 0; i < ROUNDS; i++) {
		step_wait(c, STEP_A);
		/* It begins at the start of what the pipe has, so all of it at once. */
		r = tee(in[0], out[1], CHUNK, 0);
		if (r != CHUNK)
			die("tee of %d bytes, and not of %zd", CHUNK, r);
		did(c, out_object, DIR_WRITE, r);
		step_post(c, STEP_B);
		step_wait(c, STEP_C);
		/* A pipe that is not empty may take a part only, and a second tee begins anew. */
		step_wait(c, STEP_COPIED);
	}
}

static void tee_copy_reader(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < ROUNDS; i++) {
		take(c, out_object, out[0], CHUNK, 7000);
		step_post(c, STEP_COPIED);
	}
}

static void tee_writer(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < ROUNDS; i++) {
		put(c, in_object, in[1], CHUNK);
		step_post(c, STEP_A);
		step_wait(c, STEP_D);
	}
}

static void tee_reader(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < ROUNDS; i++) {
		step_wait(c, STEP_B);
		take(c, in_object, in[0], CHUNK, 2500);
		step_post(c, STEP_C);
		step_post(c, STEP_D);
	}
}

void tee_run(struct tcase *c)
{
	open_pipes(c);
	PLAY(c, {"w", tee_writer}, {"tee", tee_copier}, {"r", tee_reader}, {"copy", tee_copy_reader});
}

/* Pages of memory into a pipe, given away or not; a pipe into memory. */
static void map_writer(struct tcase *c, int role)
{
	size_t left = TOTAL;

	gate(c);
	while (left) {
		struct iovec v[2] = {{buf + left, 4096}, {buf, left < CHUNK ? left : CHUNK}};
		ssize_t r = vmsplice(in[1], v + (left < 2 * CHUNK), left < 2 * CHUNK ? 1 : 2,
				     left % 2 ? SPLICE_F_GIFT : 0);

		/* A page that is used in part takes a place of a whole one: often it is a part. */
		if (r <= 0)
			die("vmsplice to a pipe");
		did(c, in_object, DIR_WRITE, r);
		left -= r;
	}
}

static void map_reader(struct tcase *c, int role)
{
	size_t half = TOTAL / 2, left = TOTAL - half;

	gate(c);
	take(c, in_object, in[0], half, 5000);
	while (left) {
		struct iovec v = {buf, left < 3000 ? left : 3000};
		ssize_t r = vmsplice(in[0], &v, 1, 0);

		if (r <= 0)
			die("vmsplice from a pipe");
		did(c, in_object, DIR_READ, r);
		left -= r;
	}
}

void vmsplice_run(struct tcase *c)
{
	in_object = open_pipe(c, in);
	PLAY(c, {"w", map_writer}, {"r", map_reader});
}

/* sendfile() to a socket, to a pipe, to another file. */
static void file_sender(struct tcase *c, int role)
{
	int fd = sock_connect(c, c->plan, 0);
	off_t at = 0;

	gate(c);
	while (at < TOTAL) {
		ssize_t r = sendfile(fd, file, &at, 20000);

		if (r <= 0)
			die("sendfile to a socket");
		did(c, file_object, DIR_READ, r);
		flow_sent(&c->flows[0], r);
	}
}

static void file_receiver(struct tcase *c, int role)
{
	int fd = sock_accept(sock_bind(c, c->plan, 0));

	gate(c);
	recv_exactly(&c->flows[0], fd, TOTAL, 6000);
}

static void sendfile_socket(struct tcase *c, enum transport over)
{
	c->plan = over;
	file = file_with(over == OVER_TCP4 ? "sent-tcp" : "sent-unix", TOTAL);
	file_object = object_of(c, file);
	flow_add(c, 0, 1, transport_kind(over));
	PLAY(c, {"s", file_sender}, {"r", file_receiver});
}

void sendfile_tcp_run(struct tcase *c)
{
	sendfile_socket(c, OVER_TCP4);
}

void sendfile_unix_run(struct tcase *c)
{
	sendfile_socket(c, OVER_UNIX);
}

static void pipe_sender(struct tcase *c, int role)
{
	off_t at = 0;
	int other;

	gate(c);
	while (at < TOTAL) {
		ssize_t r = sendfile(in[1], file, &at, 20000);

		if (r <= 0)
			die("sendfile to a pipe");
		did(c, file_object, DIR_READ, r);
		did(c, in_object, DIR_WRITE, r);
	}
	other = file_with("sent-copy", 0);
	at = 100;
	if (sendfile(other, file, &at, CHUNK) != CHUNK)
		die("sendfile to a file");
	did(c, file_object, DIR_READ, CHUNK);
	did(c, object_of(c, other), DIR_WRITE, CHUNK);
}

void sendfile_pipe_run(struct tcase *c)
{
	in_object = open_pipe(c, in);
	file = file_with("sent-pipe", TOTAL);
	file_object = object_of(c, file);
	PLAY(c, {"s", pipe_sender}, {"r", in_reader});
}
