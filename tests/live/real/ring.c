/* An MPI ring of known volume: each rank sends to the next one what it then says that it sent. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TAG 7

struct ring {
	int rank, size, next, before;
	int bytes, steps;
	unsigned char *out, *in;
};

static void rest_until(const char *file)
{
	while (access(file, F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* Each message is of one value that tells its sender and step, so that a lost one is noticed. */
static unsigned char mark(int rank, int step)
{
	return (unsigned char)(rank * 31 + step);
}

static void turn(struct ring *r, int step)
{
	memset(r->out, mark(r->rank, step), (size_t)r->bytes);
	MPI_Sendrecv(r->out, r->bytes, MPI_BYTE, r->next, TAG, r->in, r->bytes, MPI_BYTE, r->before,
		     TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (r->in[0] != mark(r->before, step) || r->in[r->bytes - 1] != r->in[0]) {
		fprintf(stderr, "ring: rank %d got something else in step %d\n", r->rank, step);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* One write of one line, by the pipe that the launcher gave us for it. */
static void report(const struct ring *r)
{
	char line[256];
	int n = snprintf(
	    line, sizeof(line),
	    "{\"rank\": %d, \"pid\": %d, \"next\": %d, \"bytes\": %llu, \"messages\": %d}\n",
	    r->rank, (int)getpid(), r->next,
	    (unsigned long long)r->bytes * (unsigned long long)r->steps, r->steps);

	if (write(STDERR_FILENO, line, (size_t)n) != n)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	struct ring r;

	if (argc != 4) {
		fprintf(stderr,
			"usage: ring BYTES STEPS HOLD\n"
			"  HOLD: the ranks rest at the end, with all that is open, until this file is there\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &r.size);
	r.bytes = atoi(argv[1]);
	r.steps = atoi(argv[2]);
	r.next = (r.rank + 1) % r.size;
	r.before = (r.rank + r.size - 1) % r.size;
	r.out = malloc((size_t)r.bytes);
	r.in = malloc((size_t)r.bytes);
	if (!r.out || !r.in || r.bytes < 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int step = 0; step < r.steps; step++)
		turn(&r, step);
	report(&r);
	rest_until(argv[3]);
	free(r.out);
	free(r.in);
	MPI_Finalize();
	return 0;
}
