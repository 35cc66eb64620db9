#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the cases of the shared-memory workload have in common. */

struct shm_run {
	const char *name; /**< of the case */
	char id[64];	  /**< begins the names of whatever is made */
	char *disk;	  /**< a folder on a file system that is not memory; NULL: there is none */
	size_t page;	  /**< bytes */
	int truth;	  /**< file that facts go to, one JSON object a line */
	int hold;	  /**< says POLLHUP when all shall end */
};
extern struct shm_run run;

/** One process and one object. */
struct shm_fact {
	const char *which; /**< tells objects of one case apart; NULL: it has one */
	const char *kind, *name, *mode;
	size_t bytes;	   /**< mapped */
	size_t span;	   /**< bytes of address space that hold all mappings; 0: as bytes */
	const void *at;	   /**< NULL: not mapped by this process */
	size_t size, resident; /**< of the object */
	int fd;		   /**< tells device and inode; -1: the inode is given, or 0: not known */
	unsigned long inode;
	const char *wakes; /**< "from": this process ends waits of the one that is "to"; NULL: neither */
	size_t room; /**< of its file system, which holds nothing else; 0: not known */
	bool absent; /**< must not be listed */
	bool unlinked;
	bool overlaid; /**< before v6.8 /proc shows the file below: device and inode are what it shows */
};

/** The other end of a helper. */
struct shm_link {
	int sock;
	int fd;		  /**< inherited */
	const char *name; /**< what to open */
	int id;
};

struct shm_case {
	const char *name;
	int (*fn)(void); /**< @return 0, or 77 when this machine has not what it needs */
};
extern const struct shm_case shm_cases[];
extern const size_t nshm_cases;

__attribute__((noreturn)) void die(const char *what);
void tell(const struct shm_fact *f);
void *map_fd(int fd, size_t bytes, int prot, int flags);
void touch(void *p, size_t pages); /**< write to the first pages */
/** Run @p fn in a process that shares nothing mapped by the caller later. */
pid_t helper(void (*fn)(struct shm_link *), struct shm_link *l);
void done(struct shm_link *l);
void await(struct shm_link *l);
void send_fd(struct shm_link *l, int fd);
int receive_fd(struct shm_link *l);
