/*
 * More connections at once than a recorder can read in one go: all stay open, and each carries data
 * before each of its looks; most of them both ways, so that what is to be read of one may be cut in
 * two.
 */
#include "truth.h"

enum { CONNECTIONS = 400, ROUNDS = 3, ONE_WAY = 7 /* one of so many */ };

static void many_client(struct tcase *c, int role)
{
	int fds[CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = sock_connect(c, OVER_TCP4, 0);
	gate(c);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CONNECTIONS; i++) {
			send_all(&c->flows[UP], fds[i], buf, message_len(i));
			if (i % ONE_WAY)
				recv_exactly(&c->flows[DOWN], fds[i], message_len(i + 1),
					     BUF_BYTES);
		}
		if (round + 1 < ROUNDS)
			await_look();
	}
}

static void many_server(struct tcase *c, int role)
{
	int listener = sock_bind(c, OVER_TCP4, 0);
	int fds[CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = sock_accept(listener);
	gate(c);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < CONNECTIONS; i++) {
			recv_exactly(&c->flows[UP], fds[i], message_len(i), BUF_BYTES);
			if (i % ONE_WAY)
				send_all(&c->flows[DOWN], fds[i], buf, message_len(i + 1));
		}
}

void many_run(struct tcase *c)
{
	role_add(c, "cli", true);
	role_add(c, "srv", true);
	flow_add(c, CLI, SRV, KIND_TCP);
	flow_add(c, SRV, CLI, KIND_TCP);
	role_start(c, SRV, many_server);
	role_start(c, CLI, many_client);
	case_play(c, NULL);
}
