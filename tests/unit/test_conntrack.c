/* Lines of the kernel's connection tracking: which have rewritten addresses, and which. */
#include "unit.h"

#include <arpa/inet.h>
#include <string.h>

#include "conntrack.h"

static const char *text(const struct sock_addr_abi *a, int family)
{
	static char out[INET6_ADDRSTRLEN];

	return inet_ntop(family, a->addr, out, sizeof(out));
}

TEST(a_service_address_is_rewritten)
{
	struct conntrack t;

	assert_true(conntrack_parse("ipv4     2 tcp      6 431998 ESTABLISHED src=10.0.0.1 "
				    "dst=10.9.9.9 sport=40000 dport=80 "
				    "packets=6 bytes=1200 src=10.0.0.2 dst=10.0.0.1 sport=8080 "
				    "dport=40000 packets=5 bytes=900 "
				    "[ASSURED] mark=0 zone=0 use=2\n",
				    &t));
	assert_int_equal(t.proto, SOCK_PROTO_TCP);
	assert_string_equal(text(&t.src, AF_INET), "10.0.0.1");
	assert_int_equal(t.src.port, 40000);
	assert_string_equal(text(&t.dst, AF_INET), "10.9.9.9");
	assert_int_equal(t.dst.port, 80);
	assert_string_equal(text(&t.reply_src, AF_INET), "10.0.0.2");
	assert_int_equal(t.reply_src.port, 8080);
	assert_string_equal(text(&t.reply_dst, AF_INET), "10.0.0.1");
}

TEST(a_rewritten_port_alone_counts)
{
	struct conntrack t;

	assert_true(conntrack_parse("ipv4 2 udp 17 29 src=10.0.0.1 dst=10.0.0.2 sport=500 dport=53 "
				    "[UNREPLIED] src=10.0.0.2 "
				    "dst=10.0.0.1 sport=53 dport=1024 mark=0 use=1",
				    &t));
	assert_int_equal(t.proto, SOCK_PROTO_UDP);
	assert_int_equal(t.reply_dst.port, 1024);
}

TEST(ipv6_is_read)
{
	struct conntrack t;

	assert_true(conntrack_parse("ipv6 10 tcp 6 10 CLOSE src=fd00::1 dst=fd00::9 sport=1 "
				    "dport=2 src=fd00::2 dst=fd00::1 "
				    "sport=2 dport=1 use=1",
				    &t));
	assert_string_equal(text(&t.dst, AF_INET6), "fd00::9");
	assert_string_equal(text(&t.reply_src, AF_INET6), "fd00::2");
}

TEST(lines_without_a_change_or_a_meaning_are_passed_over)
{
	static const char *const lines[] = {
	    "",
	    "\n",
	    "ipv4 2 tcp 6 1 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 src=10.0.0.2 "
	    "dst=10.0.0.1 sport=2 dport=1",
	    "ipv4 2 icmp 1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=3 src=10.0.0.2 "
	    "dst=10.0.0.3 type=0 code=0 id=3",
	    "ipv4 2 tcp 6 1 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2",
	    "ipv4 2 tcp 6 1 ESTABLISHED src=10.0.0 dst=10.0.0.2 sport=1 dport=2 src=10.0.0.2 "
	    "dst=10.0.0.9 sport=2 dport=1",
	    "ipv4 2 tcp 6 1 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=99999 dport=2 src=10.0.0.2 "
	    "dst=10.0.0.9 sport=2 dport=1",
	    "ipv4 2 tcp 6 1 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport= dport=2 src=10.0.0.2 "
	    "dst=10.0.0.9 sport=2 dport=1",
	    "ipv4 2 tcp udp "
	    "src=1111111111111111111111111111111111111111111111111111111111111111111111111111",
	};
	struct conntrack t;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(conntrack_parse(lines[i], &t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_service_address_is_rewritten),
	    cmocka_unit_test(a_rewritten_port_alone_counts),
	    cmocka_unit_test(ipv6_is_read),
	    cmocka_unit_test(lines_without_a_change_or_a_meaning_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
