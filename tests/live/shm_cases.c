/* The cases of the shared-memory workload: memory by name, by descriptor, by fork, and what is none. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm.h"

#define RW (PROT_READ | PROT_WRITE)

/* Names are of the case, and kept as long as the process. */
static char *name_of(const char *before, const char *after)
{
	char *s;

	if (asprintf(&s, "%s%s-%s%s", before, run.id, run.name, after) < 0)
		die("memory");
	return s;
}

static int make_file(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		die(path);
	return fd;
}

static void must(int rc, const char *what)
{
	if (rc)
		die(what);
}

/* A file of 40 pages and some bytes, of which this process writes 7 pages. */
static void own(struct shm_fact *f, const char *path)
{
	f->size = 40 * run.page + 123;
	f->bytes = 41 * run.page;
	f->resident = 7 * run.page;
	f->fd = path ? make_file(path, f->size) : f->fd;
	f->at = map_fd(f->fd, f->bytes, RW, MAP_SHARED);
	f->mode = "rw";
	touch((void *)(uintptr_t)f->at, 7);
	/* What is on a disk may leave memory at any time. */
	if (!strcmp(f->kind, "file"))
		must(mlock(f->at, f->bytes), "mlock");
	tell(f);
}

/* Another process opens it by its name, after it was made, and reads two of those pages. */
static void read_other(struct shm_link *l, struct shm_fact *f)
{
	await(l);
	f->fd = open(l->name, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		die(l->name);
	f->size = 40 * run.page + 123;
	f->resident = 7 * run.page;
	f->bytes = 20 * run.page;
	f->at = map_fd(f->fd, f->bytes, PROT_READ, MAP_SHARED);
	f->mode = "r";
	(void)*(const volatile char *)f->at;
	(void)((const volatile char *)f->at)[run.page];
	tell(f);
}

static void posix_reader(struct shm_link *l)
{
	struct shm_fact f = {.kind = "posix", .name = l->name + strlen("/dev/shm/")};

	read_other(l, &f);
}

static int posix(void)
{
	struct shm_link l = {.name = name_of("/dev/shm/", "")};
	struct shm_fact f = {.kind = "posix", .name = l.name + strlen("/dev/shm/")};

	helper(posix_reader, &l);
	own(&f, l.name);
	done(&l);
	await(&l);
	return 0;
}

static void other_name_reader(struct shm_link *l)
{
	/* The first name seen counts, and either may be that. */
	struct shm_fact f = {.kind = "posix", .name = ""};

	read_other(l, &f);
}

static int two_names(void)
{
	struct shm_link l = {.name = name_of("/dev/shm/", "-b")};
	const char *first = name_of("/dev/shm/", "-a");
	struct shm_fact f = {.kind = "posix", .name = ""};

	helper(other_name_reader, &l);
	own(&f, first);
	must(link(first, l.name), "link");
	done(&l);
	await(&l);
	return 0;
}

static int unlinked(void)
{
	const char *path = name_of("/dev/shm/", "");
	struct shm_fact f = {.kind = "posix", .name = path + strlen("/dev/shm/"), .unlinked = true,
			     .fd = make_file(path, 40 * run.page + 123)};

	must(unlink(path), "unlink");
	own(&f, NULL);
	return 0;
}

static int folder(void)
{
	const char *dir = name_of("/dev/shm/", ""), *path = name_of("/dev/shm/", "/in it");
	struct shm_fact f = {.kind = "posix", .name = path + strlen("/dev/shm/")};

	must(mkdir(dir, 0700), "mkdir");
	own(&f, path);
	return 0;
}

static void semaphore_opener(struct shm_link *l)
{
	struct shm_fact f = {.kind = "posix", .name = name_of("sem.", ""), .bytes = run.page, .mode = "rw",
			     .size = sizeof(sem_t), .resident = run.page, .fd = -1};
	sem_t *s;

	await(l);
	s = sem_open(l->name, 0);
	if (s == SEM_FAILED)
		die("sem_open");
	sem_post(s);
	f.at = (const void *)((uintptr_t)s & ~(run.page - 1));
	tell(&f);
}

static int semaphore(void)
{
	struct shm_fact f = {.kind = "posix", .name = name_of("sem.", ""), .bytes = run.page, .mode = "rw",
			     .size = sizeof(sem_t), .resident = run.page, .fd = -1};
	struct shm_link l = {.name = name_of("/", "")};
	sem_t *s;

	helper(semaphore_opener, &l);
	s = sem_open(l.name, O_CREAT, 0600, 0);
	if (s == SEM_FAILED)
		die("sem_open");
	sem_post(s);
	f.at = (const void *)((uintptr_t)s & ~(run.page - 1));
	tell(&f);
	done(&l);
	await(&l);
	return 0;
}

/* Mounts of this process and its helpers only. */
static void own_mounts(const char *type, const char *where)
{
	must(unshare(CLONE_NEWNS), "unshare");
	must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "make mounts private");
	must(mount(type, where, type, 0, "size=16m"), "mount");
}

static void tmpfs_reader(struct shm_link *l)
{
	struct shm_fact f = {.kind = "tmpfs", .name = l->name, .which = "-two"};

	read_other(l, &f);
}

static int tmpfs(void)
{
	struct shm_link l = {.name = "/mnt/two"};
	struct shm_fact two = {.kind = "tmpfs", .name = l.name, .which = "-two"};
	struct shm_fact one = {.kind = "tmpfs", .name = "/mnt/one", .which = "-one", .absent = true};

	own_mounts("tmpfs", "/mnt");
	helper(tmpfs_reader, &l);
	own(&two, two.name);
	own(&one, one.name);
	done(&l);
	await(&l);
	return 0;
}

/* As in a container: the same name in another /dev/shm is another object. */
static int own_dev_shm(void)
{
	const char *path = name_of("/dev/shm/", "");
	struct shm_fact outer = {.kind = "posix", .name = path + strlen("/dev/shm/"), .which = "-outer"};
	struct shm_fact inner = {.kind = "posix", .name = path + strlen("/dev/shm/"), .which = "-inner"};

	own(&outer, path);
	own_mounts("tmpfs", "/dev/shm");
	inner.room = 16ul << 20;
	own(&inner, path);
	return 0;
}

static void sysv_reader(struct shm_link *l)
{
	struct shm_fact f = {.kind = "sysv", .name = l->name, .bytes = 6 * run.page, .mode = "r",
			     .size = 5 * run.page + 1, .resident = 2 * run.page, .fd = -1};

	await(l);
	if (read(l->sock, &l->id, sizeof(l->id)) != sizeof(l->id))
		die("id");
	f.inode = (unsigned long)l->id;
	f.at = shmat(l->id, NULL, SHM_RDONLY);
	if (f.at == (void *)-1)
		die("shmat");
	tell(&f);
}

static int sysv(void)
{
	key_t key = 0x57000000 | (getpid() & 0xffffff);
	struct shm_link l = {0};
	struct shm_fact f = {.kind = "sysv", .mode = "rw", .bytes = 12 * run.page, .span = 16 * run.page,
			     .size = 5 * run.page + 1, .resident = 2 * run.page, .fd = -1};
	char *room, *name;

	if (asprintf(&name, "SYSV%08x", key) < 0)
		die("memory");
	l.name = f.name = name;
	helper(sysv_reader, &l);
	l.id = shmget(key, 5 * run.page + 1, IPC_CREAT | IPC_EXCL | 0600);
	/* Twice, in a room of its own, so that what is resident can be told. */
	room = mmap(NULL, f.span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l.id < 0 || room == MAP_FAILED || shmat(l.id, room, SHM_REMAP) != room ||
	    shmat(l.id, room + 8 * run.page, SHM_REMAP) != room + 8 * run.page)
		die("shmat");
	touch(room, 2);
	touch(room + 8 * run.page, 1);
	f.at = room;
	f.inode = (unsigned long)l.id;
	tell(&f);
	done(&l);
	if (write(l.sock, &l.id, sizeof(l.id)) != sizeof(l.id))
		die("id");
	await(&l);
	/* Gone with the last of both. */
	must(shmctl(l.id, IPC_RMID, NULL), "shmctl");
	return 0;
}

static void sysv_in(struct shm_link *l)
{
	struct shm_fact f = {.kind = "sysv", .name = "SYSV00000000", .bytes = run.page, .mode = "rw",
			     .size = 100, .resident = run.page, .fd = -1, .which = l->name};
	void *p;

	must(unshare(CLONE_NEWIPC), "unshare");
	l->id = shmget(IPC_PRIVATE, 100, 0600);
	p = shmat(l->id, NULL, 0);
	if (l->id < 0 || p == (void *)-1)
		die("shmat");
	touch(p, 1);
	f.at = p;
	f.inode = (unsigned long)l->id;
	tell(&f);
}

/* Both have the same id. */
static int sysv_namespaces(void)
{
	struct shm_link a = {.name = "-a"}, b = {.name = "-b"};

	helper(sysv_in, &a);
	await(&a);
	helper(sysv_in, &b);
	await(&b);
	return 0;
}

static void map_passed(struct shm_link *l)
{
	struct shm_fact f = {.kind = "memfd", .name = l->name, .bytes = 20 * run.page, .mode = "r",
			     .size = 40 * run.page + 123, .resident = 7 * run.page};

	f.fd = receive_fd(l);
	f.at = map_fd(f.fd, f.bytes, PROT_READ, MAP_SHARED);
	(void)*(const volatile char *)f.at;
	tell(&f);
}

static struct shm_fact forked_fact;

static void keep_forked(struct shm_link *l)
{
	tell(&forked_fact);
}

/* By fork, by duplicating the descriptor, and passed to a process that was there before. */
static int memfd(void)
{
	struct shm_link passed = {.name = "memfd:wi\"tty\n(deleted) (deleted)"}, forked = {0};
	struct shm_fact f = {.kind = "memfd", .name = passed.name};

	helper(map_passed, &passed);
	f.fd = memfd_create(f.name + strlen("memfd:"), MFD_CLOEXEC);
	must(f.fd < 0 || ftruncate(f.fd, (off_t)(40 * run.page + 123)), "memfd");
	f.fd = dup(f.fd);
	own(&f, NULL);
	forked_fact = f;
	helper(keep_forked, &forked);
	await(&forked);
	send_fd(&passed, dup(f.fd));
	await(&passed);
	return 0;
}

static int memfd_same_name(void)
{
	struct shm_fact a = {.kind = "memfd", .name = "memfd:same", .which = "-a"}, b = a;
	struct shm_fact none = {.kind = "memfd", .name = "memfd:private", .which = "-private", .absent = true,
				.mode = "", .bytes = run.page};

	b.which = "-b";
	a.fd = memfd_create("same", 0);
	b.fd = memfd_create("same", 0);
	must(ftruncate(a.fd, (off_t)(40 * run.page + 123)), "memfd");
	must(ftruncate(b.fd, (off_t)(40 * run.page + 123)), "memfd");
	own(&a, NULL);
	own(&b, NULL);
	none.fd = memfd_create("private", 0);
	must(ftruncate(none.fd, (off_t)run.page), "memfd");
	none.at = map_fd(none.fd, run.page, RW, MAP_PRIVATE);
	tell(&none);
	return 0;
}

/* A mapping that is handed on by fork() alone; the mapper and a child of it. */
static void by_fork(const char *kind, int fd, int flags, size_t bytes, size_t touched)
{
	struct shm_link l = {0};
	char *at = map_fd(fd, bytes, RW, MAP_SHARED | flags);

	for (size_t i = 0; i < touched; i += run.page)
		((volatile char *)at)[i] = 1;
	forked_fact = (struct shm_fact){.kind = kind, .name = "", .mode = "rw", .bytes = bytes, .at = at,
					.size = bytes, .resident = touched, .fd = -1};
	helper(keep_forked, &l);
	await(&l);
	tell(&forked_fact);
}

static int anonymous(void)
{
	by_fork("anonymous", -1, MAP_ANONYMOUS, 30 * run.page, 5 * run.page);
	return 0;
}

static int dev_zero(void)
{
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	must(fd < 0, "/dev/zero");
	by_fork("anonymous", fd, 0, 9 * run.page, 9 * run.page);
	return 0;
}

/* Nobody else has it. */
static int anonymous_alone(void)
{
	struct shm_fact f = {.kind = "anonymous", .name = "", .mode = "rw", .bytes = run.page, .fd = -1,
			     .absent = true};

	f.at = map_fd(-1, run.page, RW, MAP_SHARED | MAP_ANONYMOUS);
	tell(&f);
	return 0;
}

static void disk_reader(struct shm_link *l)
{
	struct shm_fact f = {.kind = "file", .name = l->name, .overlaid = l->id};

	read_other(l, &f);
}

static int disk(void)
{
	char *begin;
	struct shm_link l = {0};
	struct shm_fact f = {.kind = "file"}, one = {.kind = "file", .which = "-one", .absent = true};

	if (!run.disk)
		return 77;
	if (asprintf(&begin, "%s/", run.disk) < 0)
		die("memory");
	/* A name as the kernel marks a removed file, which this is not. */
	l.name = f.name = name_of(begin, "\n\\012 (deleted)");
	one.name = name_of(begin, "-one");
	helper(disk_reader, &l);
	own(&f, f.name);
	own(&one, one.name);
	done(&l);
	await(&l);
	return 0;
}

/* The kernel maps the file below; the program, and /proc, name the overlay's. */
static int overlay(void)
{
	struct shm_link l = {.name = "/mnt/above", .id = true};
	struct shm_fact f = {.kind = "file", .name = l.name, .overlaid = true};
	char *base, options[1024];

	if (!run.disk)
		return 77;
	if (asprintf(&base, "%s/%s-overlay", run.disk, run.id) < 0)
		die("memory");
	snprintf(options, sizeof(options), "%s-l", base);
	must(mkdir(options, 0700), "mkdir");
	snprintf(options, sizeof(options), "%s-u", base);
	must(mkdir(options, 0700), "mkdir");
	snprintf(options, sizeof(options), "%s-w", base);
	must(mkdir(options, 0700), "mkdir");
	snprintf(options, sizeof(options), "lowerdir=%s-l,upperdir=%s-u,workdir=%s-w", base, base, base);
	must(unshare(CLONE_NEWNS), "unshare");
	must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "make mounts private");
	/* Not every file system can lie below. */
	if (mount("overlay", "/mnt", "overlay", 0, options))
		return 77;
	helper(disk_reader, &l);
	own(&f, l.name);
	done(&l);
	await(&l);
	return 0;
}

static void both_read(struct shm_link *l)
{
	struct shm_fact f = {.kind = "file", .name = l->name, .mode = "r", .bytes = 3 * run.page,
			     .size = 3 * run.page, .resident = 3 * run.page};

	f.fd = open(l->name, O_RDONLY | O_CLOEXEC);
	f.at = map_fd(f.fd, f.bytes, PROT_READ, MAP_SHARED);
	must(mlock(f.at, f.bytes), "mlock");
	tell(&f);
}

static int disk_read_only(void)
{
	struct shm_link a = {0}, b;
	char *begin, zeros[3 * 65536] = {0};
	int fd;

	if (!run.disk)
		return 77;
	if (asprintf(&begin, "%s/", run.disk) < 0)
		die("memory");
	a.name = name_of(begin, "");
	fd = make_file(a.name, 0);
	must(write(fd, zeros, 3 * run.page) != (ssize_t)(3 * run.page), "write");
	b = a;
	helper(both_read, &a);
	await(&a);
	helper(both_read, &b);
	await(&b);
	/* Copy-on-write, as of a library: no sharing. */
	map_fd(fd, run.page, RW, MAP_PRIVATE);
	return 0;
}

static void write_only(struct shm_link *l)
{
	struct shm_fact f = {.kind = "memfd", .name = "memfd:modes", .mode = "w", .bytes = run.page, .fd = l->fd,
			     .size = 4 * run.page};

	f.at = map_fd(l->fd, run.page, PROT_WRITE, MAP_SHARED);
	tell(&f);
}

static void no_access(struct shm_link *l)
{
	struct shm_fact f = {.kind = "memfd", .name = "memfd:modes", .mode = "none", .bytes = run.page,
			     .fd = l->fd, .size = 4 * run.page};

	f.at = map_fd(l->fd, run.page, PROT_NONE, MAP_SHARED);
	tell(&f);
}

static int modes(void)
{
	struct shm_link w = {.fd = memfd_create("modes", 0)}, n = w;

	must(ftruncate(w.fd, (off_t)(4 * run.page)), "memfd");
	helper(write_only, &w);
	await(&w);
	helper(no_access, &n);
	await(&n);
	return 0;
}

/* Both map a semaphore of their own making; one posts, the other waits, as long as the program runs. */
static sem_t *map_semaphore(struct shm_link *l)
{
	struct shm_fact f = {.kind = "posix", .name = l->name + strlen("/dev/shm/"), .mode = "rw",
			     .bytes = run.page, .size = run.page, .resident = run.page};
	sem_t *s;

	await(l);
	f.fd = open(l->name, O_RDWR | O_CLOEXEC);
	if (f.fd < 0)
		die(l->name);
	f.at = s = map_fd(f.fd, f.bytes, RW, MAP_SHARED);
	f.wakes = l->id ? "to" : "from";
	if (l->id)
		sem_init(s + 1, 1, 0);
	touch(s, 1);
	tell(&f);
	done(l);
	return s + 1;
}

static void waits(struct shm_link *l)
{
	sem_t *s = map_semaphore(l);

	for (;;)
		sem_wait(s);
}

static void posts(struct shm_link *l)
{
	sem_t *s = map_semaphore(l);

	for (;;) {
		usleep(10000);
		sem_post(s);
	}
}

static int wakes(void)
{
	struct shm_link to = {.name = name_of("/dev/shm/", ""), .id = 1}, from = {.name = to.name};

	helper(waits, &to);
	helper(posts, &from);
	make_file(to.name, run.page);
	done(&to);
	await(&to);
	done(&from);
	await(&from);
	return 0;
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Threads map what their process maps: once. */
static int threads(void)
{
	struct shm_fact f = {.kind = "memfd", .name = "memfd:threads", .fd = memfd_create("threads", 0)};
	pthread_t t;

	must(ftruncate(f.fd, (off_t)(40 * run.page + 123)), "memfd");
	own(&f, NULL);
	for (int i = 0; i < 4; i++)
		must(pthread_create(&t, NULL, wait_for_ever, NULL), "pthread_create");
	return 0;
}

/* Rings of perf, io_uring and the like are all one inode, and not shared. */
static int ring(void)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(a),
				    .config = PERF_COUNT_SW_DUMMY};
	struct shm_fact f = {.kind = "", .name = "", .mode = "rw", .bytes = 3 * run.page, .absent = true};
	struct shm_link l = {0};

	f.fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (f.fd < 0)
		return 77;
	f.at = map_fd(f.fd, f.bytes, RW, MAP_SHARED);
	f.fd = -1;
	forked_fact = f;
	helper(keep_forked, &l);
	await(&l);
	tell(&f);
	return 0;
}

static void device_reader(struct shm_link *l)
{
	struct shm_fact f = {.kind = "device", .name = "/dev/mem", .mode = "r", .bytes = 2 * run.page,
			     .fd = l->fd};

	/* The firmware's code, which may be read also where all else is closed. */
	f.at = mmap(NULL, f.bytes, PROT_READ, MAP_SHARED, l->fd, 0xf0000);
	if (f.at == MAP_FAILED)
		die("mmap");
	f.at = NULL;
	tell(&f);
}

static int device(void)
{
	struct shm_link a = {.fd = open("/dev/mem", O_RDONLY | O_CLOEXEC)}, b = a;
	void *p = mmap(NULL, run.page, PROT_READ, MAP_SHARED, a.fd, 0xf0000);

	if (a.fd < 0 || p == MAP_FAILED)
		return 77;
	munmap(p, run.page);
	helper(device_reader, &a);
	await(&a);
	helper(device_reader, &b);
	await(&b);
	return 0;
}

#define HUGE_BYTES (2ul << 20)

static bool has_huge_pages(void)
{
	void *p = mmap(NULL, HUGE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, HUGE_BYTES);
	return true;
}

static int huge_anonymous(void)
{
	if (!has_huge_pages())
		return 77;
	by_fork("hugetlb", -1, MAP_ANONYMOUS | MAP_HUGETLB, HUGE_BYTES, HUGE_BYTES);
	return 0;
}

static int huge_memfd(void)
{
	struct shm_fact f = {.kind = "memfd", .name = "memfd:huge", .mode = "rw", .bytes = HUGE_BYTES,
			     .size = HUGE_BYTES, .resident = HUGE_BYTES};
	void *p;

	if (!has_huge_pages())
		return 77;
	f.fd = memfd_create("huge", MFD_HUGETLB);
	must(f.fd < 0 || ftruncate(f.fd, HUGE_BYTES), "memfd");
	f.at = p = map_fd(f.fd, f.bytes, RW, MAP_SHARED);
	touch(p, 1);
	tell(&f);
	return 0;
}

static int huge_sysv(void)
{
	struct shm_fact f = {.kind = "sysv", .name = "SYSV00000000", .mode = "rw", .bytes = HUGE_BYTES,
			     .size = HUGE_BYTES, .resident = HUGE_BYTES, .fd = -1};
	void *p;
	int id;

	if (!has_huge_pages())
		return 77;
	id = shmget(IPC_PRIVATE, HUGE_BYTES, SHM_HUGETLB | 0600);
	p = shmat(id, NULL, 0);
	must(id < 0 || p == (void *)-1, "shmat");
	must(shmctl(id, IPC_RMID, NULL), "shmctl");
	touch(p, 1);
	f.at = p;
	f.inode = (unsigned long)id;
	tell(&f);
	return 0;
}

static int huge_file(void)
{
	struct shm_fact f = {.kind = "hugetlb", .name = "/mnt/SYSV00000000", .mode = "rw", .bytes = HUGE_BYTES,
			     .size = HUGE_BYTES, .resident = HUGE_BYTES};
	void *p;

	if (!has_huge_pages())
		return 77;
	own_mounts("hugetlbfs", "/mnt");
	f.fd = make_file(f.name, HUGE_BYTES);
	f.at = p = map_fd(f.fd, f.bytes, RW, MAP_SHARED);
	touch(p, 1);
	tell(&f);
	return 0;
}

/* linux/udmabuf.h */
struct dmabuf_create {
	uint32_t memfd, flags;
	uint64_t offset, size;
};

/* A descriptor is enough: a device may use the memory. */
static void hold_passed(struct shm_link *l)
{
	struct shm_fact f = {.kind = "dmabuf", .name = "", .mode = "rw", .size = 4 * run.page};

	f.fd = receive_fd(l);
	tell(&f);
}

static int dmabuf(void)
{
	struct shm_link l = {0};
	struct shm_fact f = {.kind = "dmabuf", .name = "", .mode = "rw", .bytes = 4 * run.page,
			     .size = 4 * run.page};
	struct dmabuf_create c = {.flags = 1, .size = 4 * run.page};
	int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (maker < 0)
		return 77;
	helper(hold_passed, &l);
	fd = memfd_create("behind", MFD_ALLOW_SEALING);
	must(ftruncate(fd, (off_t)c.size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "memfd");
	c.memfd = (uint32_t)fd;
	f.fd = ioctl(maker, _IOW('u', 0x42, struct dmabuf_create), &c);
	must(f.fd < 0, "udmabuf");
	f.at = map_fd(f.fd, f.bytes, RW, MAP_SHARED);
	tell(&f);
	send_fd(&l, f.fd);
	await(&l);
	return 0;
}

const struct shm_case shm_cases[] = {
	{"posix", posix},
	{"two_names", two_names},
	{"unlinked", unlinked},
	{"folder", folder},
	{"semaphore", semaphore},
	{"tmpfs", tmpfs},
	{"own_dev_shm", own_dev_shm},
	{"sysv", sysv},
	{"sysv_namespaces", sysv_namespaces},
	{"memfd", memfd},
	{"memfd_same_name", memfd_same_name},
	{"anonymous", anonymous},
	{"dev_zero", dev_zero},
	{"anonymous_alone", anonymous_alone},
	{"disk", disk},
	{"overlay", overlay},
	{"disk_read_only", disk_read_only},
	{"modes", modes},
	{"threads", threads},
	{"wakes", wakes},
	{"ring", ring},
	{"device", device},
	{"huge_anonymous", huge_anonymous},
	{"huge_memfd", huge_memfd},
	{"huge_sysv", huge_sysv},
	{"huge_file", huge_file},
	{"dmabuf", dmabuf},
};
const size_t nshm_cases = sizeof(shm_cases) / sizeof(shm_cases[0]);
