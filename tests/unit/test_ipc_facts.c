/* What is asked of the kernel about queues, semaphores and file systems. */
#include "unit.h"

#include <unistd.h>

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "collect_ipc.h"

#define KEY 0x57495459 /* one that nobody else has */

static uint32_t ipcns(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/ipc", &st), 0);
	return (uint32_t)st.st_ino;
}

static uint32_t kernel_dev(const struct stat *st)
{
	return major(st->st_dev) << 20 | minor(st->st_dev);
}

TEST(a_queue_tells_its_key_and_what_waits_in_it)
{
	static const struct {
		long type;
		char text[40];
	} message = {.type = 1};
	struct ipc_facts *f = ipc_facts_new();
	const struct ipc_sysv *s;
	int id = msgget(KEY, IPC_CREAT | 0600);

	assert_true(id >= 0);
	s = ipc_facts_sysv(f, false, (uint64_t)id, ipcns());
	assert_non_null(s);
	assert_int_equal(s->key, KEY);
	assert_int_equal(s->amount, 0);
	assert_int_equal(msgsnd(id, &message, sizeof(message.text), 0), 0);
	/* Within an interval it is asked once. */
	assert_int_equal(ipc_facts_sysv(f, false, (uint64_t)id, ipcns())->amount, 0);
	ipc_facts_outdated(f);
	assert_int_equal(ipc_facts_sysv(f, false, (uint64_t)id, ipcns())->amount, 40);
	msgctl(id, IPC_RMID, NULL);
	ipc_facts_outdated(f);
	assert_null(ipc_facts_sysv(f, false, (uint64_t)id, ipcns()));
	ipc_facts_free(f);
}

TEST(a_set_of_semaphores_tells_how_many_it_has)
{
	struct ipc_facts *f = ipc_facts_new();
	int id = semget(IPC_PRIVATE, 7, 0600);
	const struct ipc_sysv *s;

	assert_true(id >= 0);
	s = ipc_facts_sysv(f, true, (uint64_t)id, ipcns());
	assert_non_null(s);
	assert_int_equal(s->key, 0);
	assert_int_equal(s->amount, 7);
	semctl(id, 0, IPC_RMID);
	ipc_facts_free(f);
}

TEST(of_another_namespace_nothing_is_known)
{
	struct ipc_facts *f = ipc_facts_new();
	int id = semget(IPC_PRIVATE, 1, 0600);

	assert_true(id >= 0);
	assert_null(ipc_facts_sysv(f, true, (uint64_t)id, ipcns() + 1));
	semctl(id, 0, IPC_RMID);
	ipc_facts_free(f);
}

TEST(file_systems_are_told_by_device)
{
	struct ipc_facts *f = ipc_facts_new();
	int fd = memfd_create("facts", 0);
	struct stat st;

	assert_int_equal(stat("/proc/self", &st), 0);
	assert_string_equal(ipc_facts_fs_type(f, kernel_dev(&st), (uint32_t)getpid()), "proc");
	assert_int_equal(fstat(fd, &st), 0);
	assert_string_equal(ipc_facts_fs_type(f, kernel_dev(&st), (uint32_t)getpid()), "tmpfs");
	assert_null(ipc_facts_fs_type(f, 0xfff << 20, (uint32_t)getpid()));
	close(fd);
	ipc_facts_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_tells_its_key_and_what_waits_in_it),
		cmocka_unit_test(a_set_of_semaphores_tells_how_many_it_has),
		cmocka_unit_test(of_another_namespace_nothing_is_known),
		cmocka_unit_test(file_systems_are_told_by_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
