/* Tells kinds of shared memory apart by file system, device and name. */
#include "shm_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cleanup.h"

/* linux/magic.h and the file systems' own sources */
#define MAGIC_TMPFS	0x01021994u
#define MAGIC_RAMFS	0x858458f6u
#define MAGIC_HUGETLBFS 0x958458f6u
#define MAGIC_ANON	0x09041934u
#define MAGIC_SECRETMEM 0x5345434du
#define MAGIC_SOCKFS	0x534f434bu

const char *shm_kind_name(enum shm_kind k)
{
	static const char *const names[] = {
		[SHM_NONE] = "none",	   [SHM_POSIX] = "posix", [SHM_SYSV] = "sysv",
		[SHM_MEMFD] = "memfd",	   [SHM_TMPFS] = "tmpfs", [SHM_ANONYMOUS] = "anonymous",
		[SHM_FILE] = "file",	   [SHM_OTHER] = "other", [SHM_HUGETLB] = "hugetlb",
		[SHM_DMABUF] = "dmabuf",   [SHM_DEVICE] = "device",
	};

	return names[k];
}

bool shm_kind_is_shareable(enum shm_kind k)
{
	return k == SHM_POSIX || k == SHM_SYSV || k == SHM_MEMFD || k == SHM_HUGETLB || k == SHM_DMABUF;
}

static uint32_t dev_of(const struct stat *st)
{
	return (uint32_t)(major(st->st_dev) << 20 | minor(st->st_dev));
}

static uint32_t memfd_dev(unsigned flags)
{
	CLEANUP_CLOSE int fd = memfd_create("witty", MFD_CLOEXEC | flags);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? dev_of(&st) : 0;
}

void shm_mounts_find(struct shm_mounts *ret)
{
	struct stat shm, parent;

	memset(ret, 0, sizeof(*ret));
	ret->shmem = memfd_dev(0);
	/* Each size of huge pages has a mount; sizes are powers of two, 64 KiB to 16 GiB. */
	for (unsigned log2 = 16; log2 <= 34; log2++) {
		uint32_t dev = memfd_dev(MFD_HUGETLB | log2 << MAP_HUGE_SHIFT);

		if (dev)
			ret->huge[ret->nhuge++] = dev;
	}
	if (!stat("/dev/shm", &shm) && !stat("/dev", &parent) && shm.st_dev != parent.st_dev)
		ret->dev_shm = dev_of(&shm);
}

static bool is_huge(const struct shm_mounts *m, uint32_t dev)
{
	for (uint32_t i = 0; i < m->nhuge; i++)
		if (m->huge[i] == dev)
			return true;
	return false;
}

bool shm_is_internal(const struct shm_mounts *m, uint32_t dev)
{
	return dev && (dev == m->shmem || is_huge(m, dev));
}

static bool name_is(const struct proc_map *m, const char *begin)
{
	size_t n = strlen(begin);

	return m->name_bytes >= n && !memcmp(m->name, begin, n);
}

/* On a mount of the kernel's own. */
static enum shm_kind internal_kind(const struct proc_map *m, bool huge)
{
	if (name_is(m, "memfd:"))
		return SHM_MEMFD;
	if (name_is(m, "SYSV"))
		return SHM_SYSV;
	if (huge)
		return SHM_HUGETLB;
	return name_is(m, "dev/zero") ? SHM_ANONYMOUS : SHM_OTHER;
}

/* The type is not known, only what the kernel writes as path. */
static enum shm_kind kind_by_path(const char *path)
{
	if (!path || !strncmp(path, "anon_inode:", 11))
		return SHM_NONE;
	if (!strncmp(path, "/dmabuf:", 8))
		return SHM_DMABUF;
	if (!strncmp(path, "socket:[", 8))
		return SHM_OTHER;
	return strstr(path, "/dev/shm/") ? SHM_POSIX : SHM_FILE;
}

enum shm_kind shm_kind_of(const struct shm_mounts *mounts, const struct proc_map *m,
			  const char *path)
{
	if (shm_is_internal(mounts, m->dev))
		return internal_kind(m, is_huge(mounts, m->dev));
	if (S_ISCHR(m->mode) || S_ISBLK(m->mode))
		return SHM_DEVICE;
	switch (m->magic) {
	case 0:
		return kind_by_path(path);
	case MAGIC_TMPFS:
		/* Also the /dev/shm of a container or a changed root. */
		if (path ? strstr(path, "/dev/shm/") != NULL : m->dev == mounts->dev_shm)
			return SHM_POSIX;
		return SHM_TMPFS;
	case MAGIC_RAMFS:
		return SHM_TMPFS;
	case MAGIC_HUGETLBFS:
		return SHM_HUGETLB;
	case MAGIC_ANON:
		/* All of them are one inode: io_uring, perf, KVM, BPF maps. */
		return SHM_NONE;
	case SHM_MAGIC_DMABUF:
		return SHM_DMABUF;
	case MAGIC_SECRETMEM:
		return SHM_MEMFD;
	case MAGIC_SOCKFS:
		return SHM_OTHER;
	}
	return SHM_FILE;
}

/* Blanks and such are octal in mountinfo: \040. */
static void copy_unescaped(char *to, size_t size, const char *from, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n && used + 1 < size; used++) {
		if (from[i] == '\\' && i + 3 < n && from[i + 1] >= '0' && from[i + 1] <= '3') {
			to[used] = (char)strtoul((char[]){from[i + 1], from[i + 2], from[i + 3], 0}, NULL, 8);
			i += 4;
		} else {
			to[used] = from[i++];
		}
	}
	to[used] = '\0';
}

/* id parent MAJOR:MINOR root point options [tags] - TYPE SOURCE options */
static bool mount_line(const char *line, uint32_t dev, char *fs_type, char *source, size_t size)
{
	const char *s = strstr(line, " - ");
	unsigned major, minor;
	size_t n;

	if (!s || sscanf(line, "%*u %*u %u:%u", &major, &minor) != 2 || (major << 20 | minor) != dev)
		return false;
	s += 3;
	n = strcspn(s, " \n");
	copy_unescaped(fs_type, size, s, n);
	s += n;
	s += *s == ' ';
	copy_unescaped(source, size, s, strcspn(s, " \n"));
	return true;
}

static bool find_in(const char *path, uint32_t dev, char *fs_type, char *source, size_t size)
{
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	CLEANUP_FREE char *line = NULL;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0)
		if (mount_line(line, dev, fs_type, source, size))
			return true;
	return false;
}

void shm_find_mount(uint32_t pid, uint32_t dev, char *fs_type, char *source, size_t size)
{
	char path[64];

	*fs_type = *source = '\0';
	snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
	/* A process with a root of its own is not told of mounts that lie outside. */
	if (!find_in(path, dev, fs_type, source, size))
		find_in("/proc/self/mountinfo", dev, fs_type, source, size);
}
