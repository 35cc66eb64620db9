/* Counters and facts of network interfaces and disks, from trees like /proc and /sys. */
#include "tree.h"

#include "block_stats.h"
#include "nic_stats.h"

TEST(counters_of_interfaces_are_read)
{
	struct nic_list l = {0};

	nic_parse("Inter-|   Receive                         |  Transmit\n"
		  " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n"
		  "    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n"
		  "eth0:18446744073709551615 7 1 3 0 0 0 0 55 6 2 4 0 0 0 0\n"
		  "broken: 1 2\n: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", &l);
	assert_int_equal(l.v.n, 2);
	assert_string_equal(l.v.v[0].name, "lo");
	assert_string_equal(l.v.v[1].name, "eth0");
	assert_true(l.v.v[1].counters[NIC_RX_BYTES] == UINT64_MAX);
	assert_int_equal(l.v.v[1].counters[NIC_RX_PACKETS], 7);
	assert_int_equal(l.v.v[1].counters[NIC_RX_ERRORS], 1);
	assert_int_equal(l.v.v[1].counters[NIC_RX_DROPS], 3);
	assert_int_equal(l.v.v[1].counters[NIC_TX_BYTES], 55);
	assert_int_equal(l.v.v[1].counters[NIC_TX_ERRORS], 2);
	assert_int_equal(l.v.v[1].counters[NIC_TX_DROPS], 4);
	vec_done(&l.v);
}

#define NIC "/sys/devices/pci0000:3a/0000:3b:00.0/net/eth0"

TEST(facts_of_an_interface_are_read)
{
	struct nic_facts f;
	struct strbuf b = {0};

	put(NIC "/address", "00:11:22:33:44:55\n");
	put(NIC "/operstate", "up\n");
	put(NIC "/speed", "100000\n");
	put(NIC "/mtu", "9000\n");
	put("/sys/devices/pci0000:3a/0000:3b:00.0/numa_node", "1\n");
	put("/sys/devices/pci0000:3a/0000:3b:00.0/msi_irqs/40", "msix\n");
	put("/sys/devices/pci0000:3a/0000:3b:00.0/msi_irqs/41", "msix\n");
	put("/proc/irq/40/effective_affinity_list", "4\n");
	put("/proc/irq/41/smp_affinity_list", "8-9\n");
	put_link(NIC "/device", "../../../0000:3b:00.0");
	put_link("/sys/class/net/eth0", "../../devices/pci0000:3a/0000:3b:00.0/net/eth0");
	assert_true(nic_facts_read(&root, "eth0", &f));
	assert_string_equal(f.mac, "00:11:22:33:44:55");
	assert_string_equal(f.state, "up");
	assert_string_equal(f.pci, "0000:3b:00.0");
	assert_true(f.speed_bytes_s == 12500000000ull);
	assert_int_equal(f.mtu, 9000);
	assert_int_equal(f.numa_node, 1);
	idrange_format(&f.irq_cpus, &b);
	assert_string_equal(b.s, "4,8-9");
	strbuf_done(&b);
	nic_facts_done(&f);
	assert_false(nic_facts_read(&root, "eth1", &f));
}

TEST(an_unknown_speed_is_not_told)
{
	struct nic_facts f;

	put("/sys/class/net/tap0/mtu", "1500\n");
	put("/sys/class/net/tap0/speed", "-1\n");
	assert_true(nic_facts_read(&root, "tap0", &f));
	assert_true(f.speed_bytes_s == 0);
	assert_int_equal(f.numa_node, -1);
	nic_facts_done(&f);
}

TEST(counters_of_disks_are_read)
{
	struct block_list l = {0};

	block_parse(" 259       0 nvme0n1 10 1 80 5 20 2 160 40 3 30 45 0 0 0 0 0 0\n"
		    "   8       1 sda1 1 0 8 1 0 0 0 0 0 1 1\n   8       2 short 1 2 3\n", &l);
	assert_int_equal(l.v.n, 2);
	assert_string_equal(l.v.v[0].name, "nvme0n1");
	assert_int_equal(l.v.v[0].major, 259);
	assert_int_equal(l.v.v[0].reads, 10);
	assert_int_equal(l.v.v[0].read_bytes, 80 * 512);
	assert_int_equal(l.v.v[0].read_ms, 5);
	assert_int_equal(l.v.v[0].writes, 20);
	assert_int_equal(l.v.v[0].written_bytes, 160 * 512);
	assert_int_equal(l.v.v[0].write_ms, 40);
	assert_int_equal(l.v.v[0].in_flight, 3);
	assert_int_equal(l.v.v[0].busy_ms, 30);
	assert_int_equal(l.v.v[0].weighted_ms, 45);
	assert_string_equal(l.v.v[1].name, "sda1");
	vec_done(&l.v);
}

#define DISK "/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1"

TEST(a_partition_has_the_facts_of_its_disk)
{
	struct block_facts f;

	put(DISK "/size", "2000\n");
	put(DISK "/dev", "259:0\n");
	put(DISK "/queue/rotational", "0\n");
	put(DISK "/queue/scheduler", "mq-deadline [none] bfq\n");
	put(DISK "/device/model", "Fast Disk 1T      \n");
	put(DISK "/nvme0n1p1/size", "100\n");
	put(DISK "/nvme0n1p1/partition", "1\n");
	put_link("/sys/dev/block/259:0", "../../devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1");
	put_link("/sys/dev/block/259:1", "../../devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1/nvme0n1p1");
	block_facts_read(&root, 259, 0, &f);
	assert_int_equal(f.size_bytes, 2000 * 512);
	assert_int_equal(f.disk_major, 0);
	assert_string_equal(f.model, "Fast Disk 1T");
	block_facts_read(&root, 259, 1, &f);
	assert_int_equal(f.size_bytes, 100 * 512);
	assert_int_equal(f.disk_major, 259);
	assert_int_equal(f.rotational, 0);
	assert_string_equal(f.scheduler, "none");
	assert_string_equal(f.model, "Fast Disk 1T");
	assert_string_equal(f.pci, "0000:00:04.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_interfaces_are_read),
		cmocka_unit_test(facts_of_an_interface_are_read),
		cmocka_unit_test(an_unknown_speed_is_not_told),
		cmocka_unit_test(counters_of_disks_are_read),
		cmocka_unit_test(a_partition_has_the_facts_of_its_disk),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
