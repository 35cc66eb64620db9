/* sendfile() and splice() to and from sockets. */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { FILE_UP = 250001, FILE_DOWN = 70003, PIPE_CHUNK = 16000, PIPE_ROUNDS = 12 };

static int file_of(size_t n)
{
	int fd = memfd_create("truth-file", MFD_CLOEXEC);

	if (fd < 0 || write(fd, buf, n) != (ssize_t)n)
		die("write a file");
	return fd;
}

static void send_file(struct flow *f, int fd, size_t n, size_t chunk)
{
	int file = file_of(n);

	for (uint32_t i = 0; i < shared->scale; i++) {
		off_t at = 0;

		while ((size_t)at < n) {
			ssize_t r = sendfile(fd, file, &at, chunk);

			if (r <= 0)
				die("sendfile");
			flow_sent(f, r);
		}
	}
	close(file);
}

void sendfile_client(struct tcase *c, int fd)
{
	send_file(&c->flows[UP], fd, FILE_UP, 30000);
	recv_exactly(&c->flows[DOWN], fd, (size_t)FILE_DOWN * shared->scale, 5000);
}

void sendfile_server(struct tcase *c, int fd)
{
	recv_exactly(&c->flows[UP], fd, (size_t)FILE_UP * shared->scale, 9999);
	send_file(&c->flows[DOWN], fd, FILE_DOWN, FILE_DOWN);
}

static size_t pipe_total(void)
{
	return (size_t)PIPE_CHUNK * PIPE_ROUNDS * shared->scale;
}

void splice_client(struct tcase *c, int fd)
{
	int p[2];

	if (pipe(p) < 0)
		die("pipe");
	for (unsigned i = 0; i < PIPE_ROUNDS * shared->scale; i++) {
		if (write(p[1], buf, PIPE_CHUNK) != PIPE_CHUNK)
			die("write to a pipe");
		for (size_t left = PIPE_CHUNK; left;) {
			ssize_t r = splice(p[0], NULL, fd, NULL, left, SPLICE_F_MOVE);

			if (r <= 0)
				die("splice to a socket");
			flow_sent(&c->flows[UP], r);
			left -= r;
		}
	}
	recv_exactly(&c->flows[DOWN], fd, message_sum(9), 2000);
}

void splice_server(struct tcase *c, int fd)
{
	recv_exactly(&c->flows[UP], fd, pipe_total(), 4096);
	send_messages(&c->flows[DOWN], fd, 9);
}

void blind_client(struct tcase *c, int fd)
{
	for (size_t left = pipe_total(); left; left -= PIPE_CHUNK)
		send_all(&c->flows[UP], fd, buf, PIPE_CHUNK);
	recv_exactly(&c->flows[DOWN], fd, message_sum(9), 2000);
}

/* The receiver whose bytes no receive hook sees. */
void blind_server(struct tcase *c, int fd)
{
	int p[2];

	if (pipe(p) < 0)
		die("pipe");
	for (size_t left = pipe_total(); left;) {
		size_t want = left < PIPE_CHUNK ? left : PIPE_CHUNK;
		ssize_t r = splice(fd, NULL, p[1], NULL, want, SPLICE_F_MOVE);

		if (r <= 0)
			die("splice from a socket");
		flow_received(&c->flows[UP], r);
		left -= r;
		for (ssize_t drained = 0; drained < r;) {
			ssize_t got = read(p[0], buf, r - drained);

			if (got <= 0)
				die("read from a pipe");
			drained += got;
		}
	}
	send_messages(&c->flows[DOWN], fd, 9);
}
