/* Sockets: who sends and receives how much, and what flows between processes that makes. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "collect.h"
#include "connections.h"
#include "flows.h"
#include "proc_probe.h"
#include "sock_probe.h"
#include "sock_turns.h"

struct sampling {
	struct collect *c;
	struct graph *g;
	uint64_t offset_ns;
	bool looked; /* at the open files, for those that nobody was seen to use */
};

static const char *tcp_state_name(unsigned state)
{
	static const char *const names[] = {NULL,	  "ESTABLISHED", "SYN_SENT",   "SYN_RECV",
					    "FIN_WAIT1", "FIN_WAIT2",	"TIME_WAIT",  "CLOSE",
					    "CLOSE_WAIT", "LAST_ACK",	"LISTEN",     "CLOSING",
					    "NEW_SYN_RECV"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : NULL;
}

/* What the kernel knows of the connection, at the end that was seen. */
static void tcp_facts(struct sampling *x, const struct sock_facts *s, const struct sock_tcp *tcp,
		      unsigned state)
{
	/* In two steps: making the node may move the list. */
	uint32_t end = endpoint_node(x->g, s, false, false);
	struct node *n = x->g->nodes.v[end];
	uint32_t again = flows_retransmits(x->c->flows, s, tcp->total_retrans);

	if (tcp->srtt_us)
		SET(socket, n, rtt_ns, (uint64_t)tcp->srtt_us * 1000);
	if (tcp_state_name(state))
		SET(socket, n, state, graph_str(x->g, tcp_state_name(state)));
	if (state == TCP_LISTEN)
		SET(socket, n, listening, true);
	SET(socket, n, retransmits,
	    again + (HAS(socket, n, retransmits) ? GET(socket, n, retransmits) : 0));
}

/*
 * The older format's picture: a sender points to the other end's address, a receiver owns its own.
 */
static void thread_edges(struct sampling *x, uint32_t proc, const struct sock_sample *s)
{
	const struct sock_value *v = &s->v;
	struct graph *g = x->g;
	uint32_t thread, end;
	struct edge *d;

	thread = procs_thread(&x->c->procs, g, proc, v->task.tid, v->task.start_ns, v->comm)->index;
	if (v->sock.proto == SOCK_PROTO_TCP)
		tcp_facts(x, &v->sock, &v->tcp, v->tcp.state);
	if (s->dir == SOCK_SENT) {
		end = endpoint_node(g, &v->sock, true, false);
		d = graph_new_edge(g, &send_to_socket_type, thread, end);
		SET(send_to_socket, d, connection_type,
		    graph_str(g, sock_proto_name(v->sock.proto)));
		SET(send_to_socket, d, start_time, v->first_ns + x->offset_ns);
		SET(send_to_socket, d, end_time, v->last_ns + x->offset_ns);
		SET(send_to_socket, d, data_size, v->bytes);
		SET(send_to_socket, d, packets_cnt, v->msgs);
		if (s->estimated_bytes)
			SET(send_to_socket, d, estimated_bytes, s->estimated_bytes);
		graph_add_edge(g, d);
		return;
	}
	end = endpoint_node(g, &v->sock, false, false);
	graph_link(g, &own_type, thread, end);
	graph_link(g, &belong_type, end, thread);
	d = graph_new_edge(g, &receive_from_socket_type, end, thread);
	SET(receive_from_socket, d, connection_type, graph_str(g, sock_proto_name(v->sock.proto)));
	SET(receive_from_socket, d, start_time, v->first_ns + x->offset_ns);
	SET(receive_from_socket, d, end_time, v->last_ns + x->offset_ns);
	SET(receive_from_socket, d, data_size, v->bytes);
	SET(receive_from_socket, d, packets_cnt, v->msgs);
	if (s->estimated_bytes)
		SET(receive_from_socket, d, estimated_bytes, s->estimated_bytes);
	graph_add_edge(g, d);
}

/* Network namespaces that are not asked for are other hosts. */
static bool is_elsewhere(const struct collect *c, const struct sock_facts *s)
{
	return c->netns && s->family != AF_UNIX && s->netns != c->netns;
}

static int on_moved(void *ctx, const struct sock_sample *s)
{
	struct sampling *x = ctx;
	uint32_t proc;

	if (s->v.sock.proto == SOCK_PROTO_OTHER || is_elsewhere(x->c, &s->v.sock))
		return 0;
	proc = procs_get(&x->c->procs, s->v.task.tgid, s->v.task.leader_start_ns);
	procs_set_name(&x->c->procs, proc, s->v.task.tid, s->v.comm);
	flows_add(x->c->flows, proc, s);
	if (x->c->procs.v.v[proc].selected) {
		thread_edges(x, proc, s);
		connections_add(x->c, x->g, proc, s, x->offset_ns);
	}
	return 0;
}

static int on_sample(void *ctx, const struct sock_sample *s)
{
	struct sampling *x = ctx;

	if (s->what == SOCK_MOVED)
		return on_moved(ctx, s);
	sock_turns_add(x->c->sock_turns, s);
	return 0;
}

/* As /proc/net/unix shows it: "@" for the NUL that an abstract name starts with, and for any within. */
static void name_unix(struct graph *g, struct node *n, const struct proc_file *file)
{
	char text[PROC_PATH_BYTES + 2];
	size_t at = 0;

	if (!file->name_bytes)
		return;
	if (file->sock.flags & SOCK_ABSTRACT)
		text[at++] = '@';
	for (uint32_t i = 0; i < file->name_bytes; i++)
		text[at++] = file->name[i] ? file->name[i] : '@';
	text[at] = '\0';
	SET(unix_socket, n, path, graph_str(g, text));
}

/* Who accepts connections belongs to the picture before anybody connects. */
static void open_socket(struct sampling *x, uint32_t proc, const struct proc_file *file)
{
	bool listening = file->sock.flags & SOCK_LISTENING;
	const struct sock_facts *s = &file->sock;
	uint32_t end, owner;
	struct node *n;

	if (!x->c->procs.v.v[proc].selected ||
	    (!listening && (s->family != AF_UNIX || !flows_knows(x->c->flows, s))))
		return;
	end = endpoint_node(x->g, s, false, false);
	n = x->g->nodes.v[end];
	if (n->type == &unix_socket_type)
		name_unix(x->g, n, file);
	if (!listening)
		return;
	if (n->type == &unix_socket_type)
		SET(unix_socket, n, listening, true);
	else
		SET(socket, n, listening, true);
	owner = procs_thread(&x->c->procs, x->g, proc, file->tgid, file->leader_start_ns, NULL)->index;
	graph_link(x->g, &own_type, owner, end);
	graph_link(x->g, &belong_type, end, owner);
}

static int on_file(void *ctx, const struct proc_file *file)
{
	struct sampling *x = ctx;
	uint32_t proc;

	if (file->kind != PROC_FILE_SOCKET || file->sock.proto == SOCK_PROTO_OTHER || is_elsewhere(x->c, &file->sock))
		return 0;
	proc = procs_get(&x->c->procs, file->tgid, file->leader_start_ns);
	flows_add_holder(x->c->flows, proc, &file->sock);
	open_socket(x, proc, file);
	return 0;
}

int collect_open_sockets(struct collect *c, struct graph *g, struct err *e)
{
	struct sampling x = {c, g, realtime_offset_ns(), false};
	int rc = c->proc_probe ? proc_probe_files(c->proc_probe, PROC_FILES_SOCKETS, on_file, &x, e)
			       : 0;

	return rc == -ENOTSUP ? 0 : rc;
}

/* Nobody was seen to use it: whoever holds it does. */
static int on_settled(void *ctx, const struct sock_sample *s)
{
	struct sampling *x = ctx;
	struct sock_sample one = *s;
	uint32_t proc;
	struct err e;

	if (s->v.task.tid)
		return on_moved(ctx, s);
	proc = flows_holder(x->c->flows, &s->v.sock);
	if (proc == PROC_NONE && !x->looked) {
		x->looked = true;
		/* Should it fail, nobody is known. */
		collect_open_sockets(x->c, x->g, &e);
		proc = flows_holder(x->c->flows, &s->v.sock);
	}
	if (proc == PROC_NONE) {
		sock_turns_unknown(x->c->sock_turns, s->v.bytes);
		return 0;
	}
	one.v.task.tid = one.v.task.tgid = x->c->procs.v.v[proc].pid;
	one.v.task.start_ns = one.v.task.leader_start_ns = x->c->procs.v.v[proc].start_ns;
	memcpy(one.v.comm, x->c->procs.v.v[proc].name, sizeof(one.v.comm));
	return on_moved(ctx, &one);
}

/* Only connections that moved something are of interest; the others would be many. */
static int on_tcp_event(void *ctx, const struct sock_event *ev)
{
	struct sampling *x = ctx;

	if (flows_knows(x->c->flows, &ev->sock) && x->c->procs.select_all)
		tcp_facts(x, &ev->sock, &ev->tcp, ev->new_state);
	return 0;
}

static int forget(void *ctx, const struct sock_sample *s)
{
	(void)ctx;
	(void)s;
	return 0;
}

void collect_sockets_begin(struct collect *c)
{
	struct err e;

	if (!c->sock_probe)
		return;
	/* Should it fail, the first interval tells, as it then fails too. */
	sock_probe_read(c->sock_probe, forget, NULL, &e);
	c->sock_turns = sock_turns_new(c);
	/* Likewise: those connections are met when a period of turns begins. */
	sock_turns_begin(c, &e);
}

int collect_sockets(struct collect *c, struct graph *g, bool last, struct err *e)
{
	struct sampling x = {c, g, realtime_offset_ns(), false};
	int rc = 0;

	if (!c->sock_probe)
		return 0;
	if (!c->ticks || last || c->sweeping || flows_want_holders(c->flows)) {
		flows_look(c->flows);
		rc = collect_open_sockets(c, g, e);
	}
	rc = rc ?: sock_probe_read(c->sock_probe, on_sample, &x, e);
	rc = rc ?: sock_turns_settle(c, on_settled, &x, e);
	rc = rc ?: sock_probe_events(c->sock_probe, on_tcp_event, &x, e);
	if (!rc && (last || (c->goes_on && connections_due(c))))
		connections_look(c, g);
	return rc == -ENOTSUP ? 0 : rc;
}
