/* Nodes of pipes, queues, files and the like, the same whoever makes them. */
#include "objects.h"

#include <stdio.h>

const char *object_dev_str(struct graph *g, uint32_t dev)
{
	char text[32];

	snprintf(text, sizeof(text), "%u:%u", dev >> 20, dev & 0xfffff);
	return graph_str(g, text);
}

struct node *object_pipe(struct graph *g, uint64_t ino, uint32_t dev)
{
	struct node *n = graph_new_node(g, &pipe_inode_type);

	SET(pipe_inode, n, inode, ino);
	if (dev)
		SET(pipe_inode, n, dev, object_dev_str(g, dev));
	return graph_add_node(g, n);
}

struct node *object_eventfd(struct graph *g, uint64_t id, uint32_t generation)
{
	struct node *n = graph_new_node(g, &eventfd_type);

	SET(eventfd, n, eventfd_id, id);
	if (generation)
		SET(eventfd, n, generation, generation);
	return graph_add_node(g, n);
}

struct node *object_posix_queue(struct graph *g, uint64_t ino, uint32_t ipcns)
{
	struct node *n = graph_new_node(g, &posix_queue_type);

	SET(posix_queue, n, inode, ino);
	SET(posix_queue, n, ipcns, ipcns);
	return graph_add_node(g, n);
}

struct node *object_sysv_queue(struct graph *g, uint64_t msqid, uint32_t ipcns)
{
	struct node *n = graph_new_node(g, &sysv_queue_type);

	SET(sysv_queue, n, msqid, msqid);
	SET(sysv_queue, n, ipcns, ipcns);
	return graph_add_node(g, n);
}

struct node *object_sysv_sem(struct graph *g, uint64_t semid, uint32_t ipcns)
{
	struct node *n = graph_new_node(g, &sysv_sem_type);

	SET(sysv_sem, n, semid, semid);
	SET(sysv_sem, n, ipcns, ipcns);
	return graph_add_node(g, n);
}

struct node *object_file(struct graph *g, uint64_t ino, uint32_t dev)
{
	struct node *n = graph_new_node(g, &file_type);

	SET(file, n, dev, object_dev_str(g, ino ? dev : 0));
	SET(file, n, inode, ino);
	return graph_add_node(g, n);
}

struct node *object_block_device(struct graph *g, uint32_t dev)
{
	struct node *n = graph_new_node(g, &block_device_type);

	SET(block_device, n, dev, object_dev_str(g, dev));
	return graph_add_node(g, n);
}
