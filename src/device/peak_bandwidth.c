/* Peak bandwidth of memory, by HMAT or by DMI: see peak_bandwidth.h. */
#include "peak_bandwidth.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cleanup.h"

#define MIB (1ull << 20)

/* Documentation/admin-guide/mm/numaperf.rst. access0: from the initiators next to it. */
static uint64_t hmat_of(const struct sysroot *r, uint32_t node, const char *what)
{
	struct strbuf b = {0};
	uint64_t v = 0;

	if (sysroot_read(r, &b, "/sys/devices/system/node/node%u/access0/initiators/%s", node, what) > 0)
		v = strtoull(b.s, NULL, 10);
	strbuf_done(&b);
	return v;
}

static uint64_t hmat_bytes_s(const struct sysroot *r, uint32_t node, const char *what)
{
	uint64_t v = hmat_of(r, node, what); /* MiB/s */

	return v < UINT64_MAX / MIB / 2 ? v * MIB : 0;
}

/* Structure of type 17: lengths and offsets in bytes. */
enum {
	DMI_TYPE = 0,
	DMI_LENGTH = 1,
	DMI_DATA_WIDTH = 0xa, /* bits */
	DMI_SIZE = 0xc,	      /* 0: no module there */
	DMI_LOCATOR = 0x10,
	DMI_BANK = 0x11,
	DMI_SPEED = 0x15,	/* MT/s */
	DMI_USED_SPEED = 0x20, /* that it is run at */
	DMI_LEAST = 0x22,
};

#define DMI_MEMORY_DEVICE 17
#define DMI_END		  127

static unsigned word(const uint8_t *p, unsigned at)
{
	return p[at] | (unsigned)p[at + 1] << 8;
}

/* String @p number of a structure, from 1; "" when there is none. @p end: of the table */
static const char *dmi_string(const uint8_t *s, const uint8_t *end, unsigned number)
{
	const char *t = (const char *)s + s[DMI_LENGTH];

	while (number > 1 && t < (const char *)end && *t) {
		t += strlen(t) + 1;
		number--;
	}
	return number && t < (const char *)end ? t : "";
}

/* What stands behind one of the words: "CPU0_DIMM_A1" and "cpu" give "0…". */
static const char *behind(const char *text, const char *const *words)
{
	for (; *words; words++)
		for (const char *s = text; *s; s++) {
			size_t n = strlen(*words);

			if (strncasecmp(s, *words, n) || (s > text && isalpha((unsigned char)s[-1])))
				continue;
			s += n;
			return s + strspn(s, " _-:#");
		}
	return NULL;
}

/* A channel of a socket, and its fastest module. */
struct channel {
	unsigned socket;
	char name;
	uint64_t bytes_s;
};

/* @return false: its place is not clear */
static bool place_of(const char *bank, const char *locator, unsigned *ret_socket, char *ret_channel)
{
	static const char *const sockets[] = {"socket", "node", "cpu", "proc", "processor", "p", NULL};
	static const char *const channels[] = {"channel", "chan", "ch", NULL};
	static const char *const slots[] = {"dimm", NULL};
	const char *socket = behind(bank, sockets), *channel = behind(bank, channels);

	if (!socket || !isdigit((unsigned char)*socket))
		socket = behind(locator, sockets);
	channel = channel && isalnum((unsigned char)*channel) ? channel : behind(locator, channels);
	/* "DIMM_A1": the letter is the channel. */
	if (!channel) {
		channel = behind(locator, slots);
		if (channel && !isalpha((unsigned char)*channel))
			channel = NULL;
	}
	if (!socket || !isdigit((unsigned char)*socket) || !channel || !isalnum((unsigned char)*channel))
		return false;
	*ret_socket = (unsigned)strtoul(socket, NULL, 10);
	/* Channels beyond the ninth go by letters in every scheme that is known. */
	if (isdigit((unsigned char)channel[0]) && isdigit((unsigned char)channel[1]))
		*ret_channel = (char)('a' + (channel[0] - '0') * 10 + channel[1] - '0');
	else
		*ret_channel = (char)toupper((unsigned char)*channel);
	return *ret_socket < PEAK_SOCKETS;
}

static void keep_faster(struct channel *v, size_t *n, size_t most, const struct channel *c)
{
	for (size_t i = 0; i < *n; i++)
		if (v[i].socket == c->socket && v[i].name == c->name) {
			v[i].bytes_s = c->bytes_s > v[i].bytes_s ? c->bytes_s : v[i].bytes_s;
			return;
		}
	if (*n < most)
		v[(*n)++] = *c;
}

/* @return 1: a module, 0: no module there, -1: of unknown place or speed */
static int take_module(const uint8_t *s, const uint8_t *end, struct channel *ret)
{
	unsigned width, speed;

	if (s[DMI_LENGTH] < DMI_LEAST || !word(s, DMI_SIZE))
		return 0;
	width = word(s, DMI_DATA_WIDTH);
	speed = word(s, DMI_USED_SPEED);
	if (!speed || speed == 0xffff)
		speed = word(s, DMI_SPEED);
	if (!speed || speed == 0xffff || !width || width > 1024)
		return -1;
	if (!place_of(dmi_string(s, end, s[DMI_BANK]), dmi_string(s, end, s[DMI_LOCATOR]), &ret->socket, &ret->name))
		return -1;
	ret->bytes_s = (uint64_t)speed * 1000000 * (width / 8);
	return 1;
}

int peak_from_dmi(const uint8_t *table, size_t size, struct peak_sockets *ret)
{
	struct channel channels[PEAK_SOCKETS * 16], c;
	const uint8_t *s = table, *end = table + size;
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	/* Strings end with an empty one: the table has to, as well. */
	if (size < 4 || end[-1] || end[-2])
		return -ENODATA;
	while (s + 4 <= end && s[DMI_LENGTH] >= 4 && s + s[DMI_LENGTH] + 2 <= end && s[DMI_TYPE] != DMI_END) {
		const uint8_t *next = s + s[DMI_LENGTH];
		int rc = s[DMI_TYPE] == DMI_MEMORY_DEVICE ? take_module(s, end, &c) : 0;

		if (rc < 0)
			return -ENODATA;
		if (rc)
			keep_faster(channels, &n, sizeof(channels) / sizeof(channels[0]), &c);
		while (next + 2 <= end && (next[0] || next[1]))
			next++;
		s = next + 2;
	}
	for (size_t i = 0; i < n; i++) {
		ret->n += !ret->bytes_s[channels[i].socket];
		ret->bytes_s[channels[i].socket] += channels[i].bytes_s;
	}
	return n ? 0 : -ENODATA;
}

/* The share of a node in the modules of its socket: they are spread over its nodes alike. */
static uint64_t dmi_of(const struct sysroot *r, const struct topo *t, uint32_t node)
{
	const struct topo_node *x = topo_node(t, node);
	struct peak_sockets sockets;
	struct strbuf b = {0};
	unsigned nodes = 0, at = 0;
	uint64_t v = 0;

	if (!x || x->package == TOPO_UNKNOWN || !x->memory_bytes)
		return 0;
	vec_for(&t->nodes, o) {
		/* Memory of another kind is in no such module. */
		if (o->kind && strcmp(o->kind, "DRAM"))
			return 0;
		nodes += o->package == x->package && o->memory_bytes;
	}
	if (sysroot_read(r, &b, "/sys/firmware/dmi/tables/DMI") > 0 &&
	    !peak_from_dmi((const uint8_t *)b.s, b.n, &sockets) && sockets.n == t->packages)
		/* Sockets may be counted from 1, and packages may have gaps: by rank. */
		for (unsigned i = 0; i < PEAK_SOCKETS; i++)
			if (sockets.bytes_s[i] && at++ == x->package)
				v = sockets.bytes_s[i] / nodes;
	strbuf_done(&b);
	return v;
}

void peak_bandwidth(const struct sysroot *r, const struct topo *t, uint32_t node, struct peak *ret)
{
	uint64_t in = hmat_bytes_s(r, node, "write_bandwidth"), out = hmat_bytes_s(r, node, "read_bandwidth");

	*ret = (struct peak){in > out ? in : out, "hmat"};
	if (!ret->bytes_s)
		*ret = (struct peak){dmi_of(r, t, node), "dmi"};
}

uint64_t idle_latency_ns(const struct sysroot *r, uint32_t node)
{
	uint64_t v = hmat_of(r, node, "read_latency");

	/* What is no latency of memory is a firmware's way to say that it does not know. */
	return v < 100000 ? v : 0;
}
