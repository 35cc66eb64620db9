/* Devices by the kernel's own interfaces, names of device files, and which process a driver means. */
#include "tree.h"

#include "dev_holders.h"
#include "drm_sysfs.h"

TEST(names_of_device_files_tell_the_device)
{
	uint32_t minor;

	assert_int_equal(dev_family("/dev/nvidia7", &minor), DEV_NVIDIA);
	assert_int_equal(minor, 7);
	assert_int_equal(dev_family("/dev/nvidiactl", &minor), DEV_NVIDIA_ALL);
	assert_int_equal(dev_family("/dev/nvidia-uvm", &minor), DEV_NVIDIA_ALL);
	assert_int_equal(dev_family("/dev/nvidia7x", &minor), DEV_NONE);
	assert_int_equal(dev_family("/dev/davinci12", &minor), DEV_ASCEND);
	assert_int_equal(minor, 12);
	assert_int_equal(dev_family("/dev/davinci_manager", &minor), DEV_ASCEND_ALL);
	assert_int_equal(dev_family("/dev/dri/renderD128", &minor), DEV_RENDER);
	assert_int_equal(minor, 128);
	assert_int_equal(dev_family("/dev/infiniband/uverbs0", &minor), DEV_RDMA);
	assert_int_equal(dev_family("/dev/null", &minor), DEV_NONE);
}

TEST(addresses_are_written_one_way)
{
	char pci[20];

	accel_pci(pci, "00000000:3B:00.0");
	assert_string_equal(pci, "0000:3b:00.0");
	accel_pci(pci, "c1:00.1");
	assert_string_equal(pci, "0000:c1:00.1");
	accel_pci(pci, "OK");
	assert_string_equal(pci, "");
}

#define GPU(n) "/sys/devices/pci0000:00/0000:0" n ":00.0"

TEST(devices_links_and_lanes_are_read)
{
	struct accel_report r = {0};
	const struct accel *d;
	uint32_t minor;

	put(GPU("3") "/vendor", "0x1002\n");
	put(GPU("3") "/device", "0x74a1\n");
	put(GPU("3") "/gpu_busy_percent", "42\n");
	put(GPU("3") "/mem_info_vram_total", "206158430208\n");
	put(GPU("3") "/mem_info_vram_used", "1048576\n");
	put(GPU("3") "/current_link_speed", "16.0 GT/s PCIe\n");
	put(GPU("3") "/max_link_speed", "32.0 GT/s PCIe\n");
	put(GPU("3") "/current_link_width", "8\n");
	put(GPU("3") "/max_link_width", "16\n");
	put(GPU("3") "/hwmon/hwmon4/power1_average", "150000000\n");
	put(GPU("3") "/hwmon/hwmon4/temp1_input", "45000\n");
	put(GPU("4") "/vendor", "0x1002\n");
	put(GPU("5") "/vendor", "0x10de\n");
	put_link("/sys/class/drm/renderD128/device", "../../../devices/pci0000:00/0000:03:00.0");
	put_link("/sys/class/drm/renderD129/device", "../../../devices/pci0000:00/0000:04:00.0");
	put_link("/sys/class/drm/renderD130/device", "../../../devices/pci0000:00/0000:05:00.0");
	put("/sys/class/kfd/kfd/topology/nodes/0/properties", "simd_count 0\n");
	put("/sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 4\nlocation_id 768\ndomain 0\n");
	put("/sys/class/kfd/kfd/topology/nodes/2/properties", "simd_count 4\nlocation_id 1024\ndomain 0\n");
	put("/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\n");
	put("/sys/class/kfd/kfd/topology/nodes/1/io_links/1/properties", "type 11\nnode_from 1\nnode_to 2\n");
	put("/sys/class/accel/accel0/device/vendor", "0x8086\n");
	put("/sys/class/drm/card1/device/drm/renderD128/dev", "");
	drm_devices_read(&root, &r);
	kfd_links_read(&root, &r);
	assert_int_equal(r.devices.n, 3);
	assert_false(r.devices.v[0].accel_class);
	assert_true(r.devices.v[2].accel_class);
	assert_int_equal(r.devices.v[2].minor, 0);
	assert_int_equal(dev_file_family(&root, "/dev/dri/card1", &minor), DEV_RENDER);
	assert_int_equal(minor, 128);
	assert_int_equal(dev_file_family(&root, "/dev/dri/card7", &minor), DEV_RENDER);
	assert_int_equal(minor, 7);
	d = &r.devices.v[0];
	assert_string_equal(d->pci, "0000:03:00.0");
	assert_int_equal(d->minor, 128);
	assert_true(d->facts[ACCEL_UTIL_PCT] == 42);
	assert_true(d->facts[ACCEL_MEM_TOTAL_BYTES] == 206158430208.0);
	assert_true(d->facts[ACCEL_PCIE_GEN] == 4 && d->facts[ACCEL_PCIE_GEN_MAX] == 5);
	assert_true(d->facts[ACCEL_PCIE_WIDTH] == 8 && d->facts[ACCEL_PCIE_WIDTH_MAX] == 16);
	assert_true(d->facts[ACCEL_POWER_MW] == 150000);
	assert_true(d->facts[ACCEL_TEMPERATURE_C] == 45);
	assert_false(accel_has(&r.devices.v[1], ACCEL_UTIL_PCT));
	assert_int_equal(r.links.n, 1);
	assert_int_equal(r.links.v[0].device, 0);
	assert_int_equal(r.links.v[0].peer_device, 1);
	assert_string_equal(r.links.v[0].kind, "XGMI");
	accel_report_done(&r);
}

TEST(clients_of_devices_are_read)
{
	struct drm_client c;

	assert_true(drm_fdinfo_parse("pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t25\n"
				     "drm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t77 KiB\n"
				     "drm-resident-vram:\t2048 KiB\ndrm-engine-gfx:\t1000 ns\ndrm-engine-compute:\t500 ns\n"
				     "drm-engine-capacity-compute:\t4\n", &c));
	assert_int_equal(c.id, 25);
	assert_string_equal(c.pci, "0000:03:00.0");
	assert_int_equal(c.memory_bytes, 2048 << 10);
	assert_int_equal(c.engine_ns, 1500);
	assert_false(drm_fdinfo_parse("pos:\t0\nflags:\t02\n", &c));
}

TEST(holders_are_found_by_their_links)
{
	struct dev_holders h;

	put("/proc/41/status", "");
	put("/proc/42/status", "");
	put("/proc/self/status", "");
	put_link("/proc/42/fd/3", "/dev/nvidia1");
	put_link("/proc/42/fd/4", "/dev/nvidia1");
	put_link("/proc/42/fd/5", "/dev/null");
	put_link("/proc/41/fd/0", "/dev/davinci0");
	dev_holders_read(&root, NULL, 0, &h);
	assert_int_equal(h.v.n, 2);
	assert_int_equal(h.v.v[0].pid, 41);
	assert_int_equal(h.v.v[0].family, DEV_ASCEND);
	assert_int_equal(h.v.v[1].pid, 42);
	assert_int_equal(h.v.v[1].minor, 1);
	assert_int_equal(h.v.v[1].opened, 2);
	dev_holders_done(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_device_files_tell_the_device),
		cmocka_unit_test(addresses_are_written_one_way),
		cmocka_unit_test(devices_links_and_lanes_are_read),
		cmocka_unit_test(clients_of_devices_are_read),
		cmocka_unit_test(holders_are_found_by_their_links),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
