/* Counters and messages: eventfd, POSIX and System V queues, System V semaphores. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

/* eventfd: counters of the case that this process plays. */
static int counter[2], counter_object[2];

enum { ADDS = 25, ADD_THREADS = 3 };

static void counter_open(struct tcase *c, int i, int flags)
{
	counter[i] = eventfd(0, flags | EFD_CLOEXEC);
	if (counter[i] < 0)
		die("make an eventfd");
	counter_object[i] = object_of(c, counter[i]);
}

static void counter_add(struct tcase *c, int i, uint64_t n)
{
	if (write(counter[i], &n, sizeof(n)) != sizeof(n))
		die("add to an eventfd");
	did(c, counter_object[i], DIR_WRITE, sizeof(n));
}

static uint64_t counter_take(struct tcase *c, int i)
{
	uint64_t n;

	if (read(counter[i], &n, sizeof(n)) != sizeof(n))
		die("read an eventfd");
	did(c, counter_object[i], DIR_READ, sizeof(n));
	return n;
}

static void *event_thread(void *arg)
{
	for (int i = 1; i <= ADDS; i++)
		counter_add(arg, 0, i);
	return NULL;
}

static void event_adder(struct tcase *c, int role)
{
	pthread_t t[ADD_THREADS];
	uint64_t most = UINT64_MAX;

	gate(c);
	for (int i = 0; i < ADD_THREADS; i++)
		if (pthread_create(&t[i], NULL, event_thread, c))
			die("start a thread");
	for (int i = 0; i < ADD_THREADS; i++)
		pthread_join(t[i], NULL);
	must_fail(write(counter[0], &most, sizeof(most)), EINVAL, "add the impossible");
	must_fail(write(counter[0], &most, 4), EINVAL, "add half a number");
}

static void event_taker(struct tcase *c, int role)
{
	uint64_t left = ADD_THREADS * ADDS * (ADDS + 1) / 2;

	gate(c);
	while (left)
		left -= counter_take(c, 0);
}

void event_threads_run(struct tcase *c)
{
	counter_open(c, 0, 0);
	PLAY(c, {"add", event_adder}, {"take", event_taker});
}

/* Two counters between the same processes; one gives 1 with each read. */
static void many_adder(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < ADDS; i++) {
		counter_add(c, 0, 1);
		counter_add(c, 1, 2);
	}
	step_post(c, STEP_A);
}

static void many_taker(struct tcase *c, int role)
{
	uint64_t n, left = 2 * 2 * ADDS;

	gate(c);
	step_wait(c, STEP_A);
	step_wait(c, STEP_A);
	for (int i = 0; i < 2 * ADDS; i++)
		counter_take(c, 0);
	while (left)
		left -= counter_take(c, 1);
	must_fail(read(counter[0], &n, sizeof(n)), EAGAIN, "read an empty eventfd");
}

void event_many_run(struct tcase *c)
{
	counter_open(c, 0, EFD_SEMAPHORE | EFD_NONBLOCK);
	counter_open(c, 1, 0);
	PLAY(c, {"add1", many_adder}, {"add2", many_adder}, {"take", many_taker});
}

/* POSIX queues */
enum { MQ_ROUNDS = 6, MQ_BYTES = 900 };

static const char *queue_name(int i)
{
	static char name[64];

	snprintf(name, sizeof(name), "/paths-%d-%d", (int)shared->main_pid, i);
	return name;
}

static mqd_t queue_open(int i, int flags)
{
	struct mq_attr a = {.mq_maxmsg = 8, .mq_msgsize = MQ_BYTES};
	mqd_t q = mq_open(queue_name(i), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600, &a);

	if (q < 0)
		die("open a queue");
	return q;
}

static struct timespec soon(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 30;
	return t;
}

static void queue_send(struct tcase *c, mqd_t q, int object, size_t n)
{
	struct timespec t = soon();

	if (mq_timedsend(q, buf, n, n % 5, &t) < 0)
		die("send to a queue");
	did(c, object, DIR_WRITE, n);
}

static void queue_receive(struct tcase *c, mqd_t q, int object)
{
	struct timespec t = soon();
	ssize_t n = mq_timedreceive(q, buf, MQ_BYTES, NULL, &t);

	if (n < 0)
		die("receive from a queue");
	did(c, object, DIR_READ, n);
}

/* Two descriptors for one queue, one for another, and messages without a byte. */
static void mq_sender(struct tcase *c, int role)
{
	mqd_t first = queue_open(0, 0), again = queue_open(0, 0), second = queue_open(1, 0);
	int one = object_of(c, first), two = object_of(c, second);
	struct timespec past = {0};

	if (object_of(c, again) != one) {
		errno = EINVAL;
		die("one queue by two descriptors");
	}
	gate(c);
	for (int i = 0; i < MQ_ROUNDS; i++) {
		queue_send(c, first, one, 100 + i);
		queue_send(c, again, one, MQ_BYTES - i);
		queue_send(c, again, one, 0);
		queue_send(c, second, two, 10 + i);
		step_post(c, STEP_A);
		step_wait(c, STEP_B);
	}
	for (int i = 0; i < 8; i++)
		queue_send(c, second, two, 7);
	must_fail(mq_timedsend(second, buf, 7, 0, &past), ETIMEDOUT, "send to a full queue");
	must_fail(mq_send(first, buf, MQ_BYTES + 1, 0), EMSGSIZE, "send too much to a queue");
}

static void mq_receiver(struct tcase *c, int role)
{
	mqd_t first = queue_open(0, O_NONBLOCK), second = queue_open(1, 0);
	int one = object_of(c, first), two = object_of(c, second);

	gate(c);
	for (int i = 0; i < MQ_ROUNDS; i++) {
		step_wait(c, STEP_A);
		for (int k = 0; k < 3; k++)
			queue_receive(c, first, one);
		queue_receive(c, second, two);
		must_fail(mq_receive(first, buf, MQ_BYTES, NULL), EAGAIN, "receive nothing");
		must_fail(mq_receive(first, buf, MQ_BYTES - 1, NULL), EMSGSIZE, "a small buffer");
		step_post(c, STEP_B);
	}
}

void mq_run(struct tcase *c)
{
	queue_open(0, 0);
	queue_open(1, 0);
	PLAY(c, {"tx", mq_sender}, {"rx", mq_receiver});
	mq_unlink(queue_name(0));
	mq_unlink(queue_name(1));
}

static void new_ipc_namespace(void)
{
	if (unshare(CLONE_NEWIPC) < 0)
		die("make an IPC namespace");
}

/* The same name in two IPC namespaces: two queues. */
enum { OUTSIDE_TX, OUTSIDE_RX, INSIDE_TX, INSIDE_RX };

static void mq_namespace_tx(struct tcase *c, int role)
{
	mqd_t q = queue_open(2, 0);
	int object = object_of(c, q);

	gate(c);
	for (int i = 0; i < MQ_ROUNDS; i++)
		queue_send(c, q, object, 50 + 100 * role + i);
}

static void mq_namespace_rx(struct tcase *c, int role)
{
	mqd_t q = queue_open(2, 0);
	int object = object_of(c, q);

	gate(c);
	for (int i = 0; i < MQ_ROUNDS; i++)
		queue_receive(c, q, object);
}

static void mq_inside_rx(struct tcase *c, int role)
{
	new_ipc_namespace();
	role_start(c, INSIDE_TX, mq_namespace_tx);
	mq_namespace_rx(c, role);
}

void mq_namespace_run(struct tcase *c)
{
	role_add(c, "otx", true);
	role_add(c, "orx", true);
	role_add(c, "itx", true);
	role_add(c, "irx", true);
	role_start(c, OUTSIDE_TX, mq_namespace_tx);
	role_start(c, OUTSIDE_RX, mq_namespace_rx);
	role_start(c, INSIDE_RX, mq_inside_rx);
	case_play(c, NULL);
	mq_unlink(queue_name(2));
}

/* System V queues */
struct message {
	long type;
	char text[2000];
};

enum { MSG_ROUNDS = 8, MSG_BYTES = 1200 };

static int msg_id, msg_object;

static void msg_open(struct tcase *c)
{
	msg_id = msgget(IPC_PRIVATE, 0600);
	if (msg_id < 0)
		die("make a queue");
	msg_object = object_sysv(c, OBJECT_SYSV_QUEUE, msg_id);
}

static void msg_send(struct tcase *c, long type, size_t n)
{
	struct message m = {.type = type};

	if (msgsnd(msg_id, &m, n, 0) < 0)
		die("send a message");
	did(c, msg_object, DIR_WRITE, n);
}

static void msg_take(struct tcase *c, long type, size_t size, int flags)
{
	struct message m;
	ssize_t n = msgrcv(msg_id, &m, size, type, flags);

	if (n < 0)
		die("receive a message");
	did(c, msg_object, DIR_READ, n);
}

/* In each round type 1 of full length, type 2 without a byte, type 3 that is cut. */
static void msg_sender(struct tcase *c, int role)
{
	struct message m = {.type = 0};

	gate(c);
	for (int i = 0; i < MSG_ROUNDS; i++) {
		msg_send(c, 1, MSG_BYTES + i);
		msg_send(c, 2, 0);
		msg_send(c, 3, 500);
		step_post(c, STEP_A);
		step_wait(c, STEP_B);
	}
	must_fail(msgsnd(msg_id, &m, 10, IPC_NOWAIT), EINVAL, "send a message of no type");
}

/* A look at a message takes nothing; not every kernel has it. */
static void msg_peek(void)
{
	struct message m;
	ssize_t n = msgrcv(msg_id, &m, sizeof(m.text), 0, 040000 /* MSG_COPY */ | IPC_NOWAIT);

	if (n < 0 && errno != ENOSYS)
		die("look at a message");
}

static void msg_receiver(struct tcase *c, int role)
{
	struct message m;

	gate(c);
	for (int i = 0; i < MSG_ROUNDS; i++) {
		step_wait(c, STEP_A);
		msg_peek();
		msg_take(c, 3, 200, MSG_NOERROR);
		msg_take(c, 2, sizeof(m.text), IPC_NOWAIT);
		must_fail(msgrcv(msg_id, &m, 10, 1, 0), E2BIG,
			  "receive a message that is too long");
		must_fail(msgrcv(msg_id, &m, sizeof(m.text), 9, IPC_NOWAIT), ENOMSG,
			  "receive a type that nobody sent");
		msg_take(c, -2, sizeof(m.text), 0);
		step_post(c, STEP_B);
	}
}

void msg_run(struct tcase *c)
{
	msg_open(c);
	PLAY(c, {"tx", msg_sender}, {"rx", msg_receiver});
	msgctl(msg_id, IPC_RMID, NULL);
}

/* The first queue of each new namespace has the same identifier. */
enum { NS_BYTES = 100 };

static void msg_namespace_tx(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < MSG_ROUNDS; i++)
		msg_send(c, 1, NS_BYTES * role + i);
}

static void msg_namespace_rx(struct tcase *c, int role)
{
	new_ipc_namespace();
	msg_open(c);
	role_start(c, role + 1, msg_namespace_tx);
	gate(c);
	for (int i = 0; i < MSG_ROUNDS; i++)
		msg_take(c, 0, sizeof(((struct message *)0)->text), 0);
}

void msg_namespace_run(struct tcase *c)
{
	role_add(c, "arx", true);
	role_add(c, "atx", true);
	role_add(c, "brx", true);
	role_add(c, "btx", true);
	role_start(c, 0, msg_namespace_rx);
	role_start(c, 2, msg_namespace_rx);
	case_play(c, NULL);
	if (ledgers[c->index].objects[0].id != ledgers[c->index].objects[1].id) {
		errno = EINVAL;
		die("one identifier in two namespaces");
	}
}

/* Semaphores: several operations with one call, all of which count. */
enum { SEM_ROUNDS = 9 };

static int sem_id, sem_object;

static void sem_did(struct tcase *c, struct sembuf *op, size_t n)
{
	const struct timespec t = {30, 0};

	if (semtimedop(sem_id, op, n, &t) < 0)
		die("a semaphore operation");
	for (size_t i = 0; i < n; i++)
		did(c, sem_object,
		    op[i].sem_op > 0   ? DIR_WRITE
		    : op[i].sem_op < 0 ? DIR_READ
				       : DIR_ZERO,
		    0);
}

static void sem_giver(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < SEM_ROUNDS; i++) {
		/* 2 is never used: it is zero. 1 is what the other gave back. */
		struct sembuf op[] = {{2, 0, 0}, {1, -1, 0}, {0, 2, 0}, {3, 1, 0}};

		sem_did(c, op, 4);
	}
}

static void sem_taker(struct tcase *c, int role)
{
	const struct timespec brief = {0, 1000000};
	struct sembuf never = {2, -1, 0}, at_once = {2, -1, IPC_NOWAIT};

	gate(c);
	for (int i = 0; i < SEM_ROUNDS; i++) {
		struct sembuf take_two[] = {{0, -1, 0}, {0, -1, SEM_UNDO}, {2, 0, 0}};
		struct sembuf give = {1, 1, 0};

		sem_did(c, take_two, 3);
		if (semop(sem_id, &give, 1) < 0)
			die("give back");
		did(c, sem_object, DIR_WRITE, 0);
	}
	must_fail(semop(sem_id, &at_once, 1), EAGAIN, "take what is not there");
	must_fail(semtimedop(sem_id, &never, 1, &brief), EAGAIN, "wait in vain");
}

void sem_run(struct tcase *c)
{
	sem_id = semget(IPC_PRIVATE, 4, 0600);
	if (sem_id < 0 || semctl(sem_id, 1, SETVAL, 1) < 0)
		die("make semaphores");
	sem_object = object_sysv(c, OBJECT_SYSV_SEM, sem_id);
	PLAY(c, {"give", sem_giver}, {"take", sem_taker});
	semctl(sem_id, 0, IPC_RMID);
}

/* As many operations with one call as there may be: half of them give, half take. */
enum { LOTS = 100 };

static void sem_lots_player(struct tcase *c, int role)
{
	struct sembuf op[LOTS];

	gate(c);
	for (int i = 0; i < LOTS; i++)
		op[i] = (struct sembuf){i / 2 % 4, i % 2 ? -1 : 1, 0};
	sem_did(c, op, LOTS);
}

void sem_lots_run(struct tcase *c)
{
	sem_id = semget(IPC_PRIVATE, 4, 0600);
	if (sem_id < 0)
		die("make semaphores");
	sem_object = object_sysv(c, OBJECT_SYSV_SEM, sem_id);
	PLAY(c, {"s", sem_lots_player});
	semctl(sem_id, 0, IPC_RMID);
}
