/* Sockets: who sends and receives how much, and what flows between processes that makes. */
#include <errno.h>
#include <string.h>

#include "collect.h"
#include "flows.h"
#include "proc_probe.h"
#include "sock_probe.h"

struct sampling {
	struct collect *c;
	struct graph *g;
	uint64_t offset_ns;
};

static void tcp_facts(struct graph *g, uint32_t endpoint, const struct sock_value *v)
{
	struct node *n = g->nodes.v[endpoint];

	if (v->sock.proto == SOCK_PROTO_TCP && v->tcp.srtt_us)
		SET(socket, n, rtt_ns, (uint64_t)v->tcp.srtt_us * 1000);
}

/* The older format's picture: a sender points to the other end's address, a receiver owns its own. */
static void thread_edges(struct sampling *x, uint32_t proc, const struct sock_sample *s)
{
	const struct sock_value *v = &s->v;
	struct graph *g = x->g;
	uint32_t thread, end;
	struct edge *d;

	thread = procs_thread(&x->c->procs, g, proc, v->task.tid, v->task.start_ns, v->comm)->index;
	if (s->dir == SOCK_SENT) {
		end = endpoint_node(g, &v->sock, true, false);
		d = graph_new_edge(g, &send_to_socket_type, thread, end);
		SET(send_to_socket, d, connection_type, graph_str(g, sock_proto_name(v->sock.proto)));
		SET(send_to_socket, d, start_time, v->first_ns + x->offset_ns);
		SET(send_to_socket, d, end_time, v->last_ns + x->offset_ns);
		SET(send_to_socket, d, data_size, v->bytes);
		SET(send_to_socket, d, packets_cnt, v->msgs);
		graph_add_edge(g, d);
		return;
	}
	end = endpoint_node(g, &v->sock, false, false);
	tcp_facts(g, end, v);
	graph_link(g, &own_type, thread, end);
	graph_link(g, &belong_type, end, thread);
	d = graph_new_edge(g, &receive_from_socket_type, end, thread);
	SET(receive_from_socket, d, connection_type, graph_str(g, sock_proto_name(v->sock.proto)));
	SET(receive_from_socket, d, start_time, v->first_ns + x->offset_ns);
	SET(receive_from_socket, d, end_time, v->last_ns + x->offset_ns);
	SET(receive_from_socket, d, data_size, v->bytes);
	SET(receive_from_socket, d, packets_cnt, v->msgs);
	graph_add_edge(g, d);
}

static int on_sample(void *ctx, const struct sock_sample *s)
{
	struct sampling *x = ctx;
	uint32_t proc;

	if (s->v.sock.proto == SOCK_PROTO_OTHER)
		return 0;
	proc = procs_get(&x->c->procs, s->v.task.tgid, s->v.task.leader_start_ns);
	procs_set_name(&x->c->procs, proc, s->v.task.tid, s->v.comm);
	flows_add(x->c->flows, proc, s);
	if (x->c->procs.v.v[proc].selected)
		thread_edges(x, proc, s);
	return 0;
}

static int on_file(void *ctx, const struct proc_file *file)
{
	struct collect *c = ctx;

	if (file->kind == PROC_FILE_SOCKET && file->sock.proto != SOCK_PROTO_OTHER)
		flows_add_holder(c->flows, procs_get(&c->procs, file->tgid, file->leader_start_ns),
				 &file->sock);
	return 0;
}

static int look_at_files(struct collect *c, struct err *e)
{
	int rc = c->proc_probe ? proc_probe_files(c->proc_probe, PROC_FILES_SOCKETS, on_file, c, e) : 0;

	return rc == -ENOTSUP ? 0 : rc;
}

/* Connections come and go between two looks; events are only drained, samples carry the facts. */
static int on_tcp_event(void *ctx, const struct sock_event *ev)
{
	(void)ctx;
	(void)ev;
	return 0;
}

int collect_sockets(struct collect *c, struct graph *g, bool last, struct err *e)
{
	struct sampling x = {c, g, realtime_offset_ns()};
	int rc;

	if (!c->sock_probe)
		return 0;
	rc = c->ticks && !flows_want_holders(c->flows) && !last ? 0 : look_at_files(c, e);
	rc = rc ?: sock_probe_events(c->sock_probe, on_tcp_event, NULL, e);
	if (rc == -ENOTSUP)
		rc = 0;
	rc = rc ?: sock_probe_read(c->sock_probe, on_sample, &x, e);
	if (!rc)
		flows_emit(c->flows, g, x.offset_ns);
	return rc;
}
