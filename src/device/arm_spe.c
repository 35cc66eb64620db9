/* Reads packets of Arm's Statistical Profiling Extension: see arm_spe.h. */
#include "arm_spe.h"

#include <stdlib.h>
#include <string.h>

enum packet_kind {
	PACKET_BAD,
	PACKET_CUT, /* more bytes are needed */
	PACKET_PAD,
	PACKET_END,
	PACKET_TIMESTAMP,
	PACKET_EVENTS,
	PACKET_SOURCE,
	PACKET_CONTEXT,
	PACKET_OP,
	PACKET_ADDRESS,
	PACKET_COUNTER,
};

struct packet {
	enum packet_kind kind;
	unsigned index;
	size_t size; /* with its header */
	uint64_t payload;
};

/* Headers and which of their bits say so; bits 5:4 are the payload's size, as a power of two. */
static const struct {
	uint8_t mask, value, index_mask;
	enum packet_kind kind;
} headers[] = {
    {0xff, 0x00, 0, PACKET_PAD},       {0xff, 0x01, 0, PACKET_END},
    {0xff, 0x71, 0, PACKET_TIMESTAMP}, {0xcf, 0x42, 0, PACKET_EVENTS},
    {0xcf, 0x43, 0, PACKET_SOURCE},    {0xfc, 0x64, 3, PACKET_CONTEXT},
    {0xfc, 0x48, 3, PACKET_OP},        {0xf8, 0xb0, 7, PACKET_ADDRESS},
    {0xf8, 0x98, 7, PACKET_COUNTER},
};

/* Alignment: up to the next multiple of a power of two, from where the packet begins. */
static struct packet alignment(uint8_t header, size_t left, size_t offset)
{
	size_t to = (size_t)2 << (header & 0xf), size = to - (offset & (to - 1));

	return (struct packet){.kind = size > left ? PACKET_CUT : PACKET_PAD, .size = size};
}

static struct packet read_packet(const uint8_t *p, size_t left, size_t offset)
{
	struct packet x = {.kind = PACKET_BAD, .size = 1};
	size_t at = 0, payload;
	uint8_t h = p[0];

	/* Two bytes of header: more bits of the index, of addresses and counters. */
	if ((h & 0xf0) == 0x20) {
		if (left < 2)
			return (struct packet){.kind = PACKET_CUT};
		if (!p[1])
			return alignment(h, left, offset);
		if ((h & 0xfc) != 0x20 || ((p[1] & 0xf8) != 0xb0 && (p[1] & 0xf8) != 0x98))
			return x;
		x.index = (h & 3U) << 3;
		h = p[++at];
	}
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		if ((h & headers[i].mask) != headers[i].value)
			continue;
		x.kind = headers[i].kind;
		x.index |= h & headers[i].index_mask;
		break;
	}
	if (x.kind == PACKET_BAD || x.kind == PACKET_PAD || x.kind == PACKET_END)
		return x;
	payload = (size_t)1 << (h >> 4 & 3);
	x.size = at + 1 + payload;
	if (x.size > left)
		return (struct packet){.kind = PACKET_CUT};
	for (size_t i = payload; i-- > 0;)
		x.payload = x.payload << 8 | p[at + 1 + i];
	return x;
}

/* Bit 55 says which half of the address space it is; the byte above it is a tag, or exception level
 * and state. */
static uint64_t virtual_address(uint64_t payload)
{
	uint64_t low = payload & 0x00ffffffffffffffULL;

	return low >> 55 ? low | 0xff00000000000000ULL : low;
}

static unsigned take_address(struct spe_record *r, const struct packet *p)
{
	switch (p->index) {
	case 0:
		r->pc = virtual_address(p->payload);
		return SPE_HAS_PC;
	case 2:
		r->data_virtual = virtual_address(p->payload);
		return SPE_HAS_VIRTUAL;
	case 3:
		r->data_physical = p->payload & 0x00ffffffffffffffULL;
		return SPE_HAS_PHYSICAL;
	default:
		return SPE_HAS_OTHER;
	}
}

static unsigned take_op(struct spe_record *r, const struct packet *p)
{
	/* Class in the index; of accesses, bit 0 of the payload is set for a store. */
	r->op = p->index == 1   ? (p->payload & 1 ? SPE_STORE : SPE_LOAD)
		: p->index == 2 ? SPE_BRANCH
				: SPE_OTHER;
	return SPE_HAS_OP;
}

/* @return the part that it was, or 0 for a packet that no record has twice */
static unsigned take(struct spe_record *r, const struct packet *p)
{
	unsigned part = SPE_HAS_OTHER;
	struct spe_record was = *r;

	switch (p->kind) {
	case PACKET_ADDRESS:
		part = take_address(r, p);
		break;
	case PACKET_EVENTS:
		part = SPE_HAS_EVENTS;
		r->events = p->payload;
		break;
	case PACKET_SOURCE:
		part = SPE_HAS_SOURCE;
		r->source = (uint16_t)p->payload;
		break;
	case PACKET_OP:
		part = take_op(r, p);
		break;
	case PACKET_COUNTER:
		if (p->index > 1)
			break;
		part = p->index ? SPE_HAS_ISSUE : SPE_HAS_LATENCY;
		*(p->index ? &r->issue : &r->latency) = (uint16_t)p->payload;
		break;
	case PACKET_CONTEXT: /* of EL1, or of EL2 where the kernel runs there; with both, the last
			      */
		r->has |= SPE_HAS_CONTEXT;
		r->context = (uint32_t)p->payload;
		break;
	default:
		break;
	}
	if (part != SPE_HAS_OTHER && was.has & part) {
		*r = was;
		return 0;
	}
	r->has |= part;
	return part;
}

void spe_decode(const uint8_t *buf, size_t size, size_t offset,
		void (*cb)(void *ctx, const struct spe_record *r), void *ctx,
		struct spe_counts *counts)
{
	struct spe_record r = {0};
	/* This record has something that is no packet; an end was found after one, which may be a
	 * part of another. */
	bool in_doubt = false, is_found = false;
	size_t at = 0;

	while (at < size) {
		struct packet p = read_packet(buf + at, size - at, offset + at);

		if (p.kind == PACKET_CUT)
			break;
		at += p.size;
		if (p.kind == PACKET_PAD)
			continue;
		if (p.kind == PACKET_END || p.kind == PACKET_TIMESTAMP) {
			/* Each record has the address of its instruction, in most CPUs at first. */
			is_found = in_doubt || (is_found && !(r.has & SPE_HAS_PC));
			if (!is_found && r.has) {
				counts->records++;
				cb(ctx, &r);
			}
			r = (struct spe_record){0};
			in_doubt = false;
			continue;
		}
		if ((p.kind == PACKET_BAD || !take(&r, &p)) && !in_doubt) {
			counts->bad_packets += !is_found; /* else it is the same trouble */
			in_doubt = true;
		}
	}
	counts->cut += at < size || r.has || in_doubt;
}

enum spe_codes spe_codes_of(uint64_t midr)
{
	/* Implementer in bits 31:24, part in 15:4. Their manuals and Linux' perf tool have the
	 * codes. */
	static const struct {
		uint32_t implementer, part;
		enum spe_codes codes;
	} known[] = {
	    {0x41, 0xd0c, SPE_CODES_NEOVERSE}, /* N1 */
	    {0x41, 0xd49, SPE_CODES_NEOVERSE}, /* N2 */
	    {0x41, 0xd40, SPE_CODES_NEOVERSE}, /* V1 */
	    {0x41, 0xd4f, SPE_CODES_NEOVERSE}, /* V2 */
	    {0x48, 0xd06, SPE_CODES_HIP12},    {0xc0, 0xac4, SPE_CODES_AMPEREONE},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((midr >> 24 & 0xff) == known[i].implementer &&
		    (midr >> 4 & 0xfff) == known[i].part)
			return known[i].codes;
	return SPE_CODES_UNKNOWN;
}

uint64_t spe_midr(const struct sysroot *r, uint32_t cpu)
{
	struct strbuf b = {0};
	uint64_t ret = 0;

	if (sysroot_read(r, &b, "/sys/devices/system/cpu/cpu%u/regs/identification/midr_el1", cpu) >
	    0)
		ret = strtoull(b.s, NULL, 16);
	strbuf_done(&b);
	return ret;
}

static enum mem_answer of_neoverse(uint16_t source)
{
	switch (source) {
	case 0x0: /* L1 */
	case 0x8: /* L2 */
	case 0x9: /* another core */
	case 0xa: /* its cluster */
	case 0xb: /* system cache */
	case 0xc: /* another cluster of the chip */
		return MEM_OWN;
	case 0xd: /* another chip */
		return MEM_REMOTE;
	case 0xe:
		return MEM_LOCAL;
	default:
		return MEM_UNKNOWN;
	}
}

static enum mem_answer of_hip12(uint16_t source)
{
	switch (source) {
	case 0:
	case 1: /* another CPU */
	case 2:
	case 3: /* L3 */
	case 4:
	case 5: /* another cluster */
	case 16:
	case 17: /* L2 */
	case 18: /* L1 */
		return MEM_OWN;
	case 6:
	case 7: /* a cache of another socket */
	case 9:
		return MEM_REMOTE;
	case 8:
		return MEM_LOCAL;
	default: /* 13: a device */
		return MEM_UNKNOWN;
	}
}

static enum mem_answer of_ampereone(uint16_t source)
{
	switch (source) {
	case 0x3: /* system cache */
	case 0x8: /* L1 */
	case 0x9: /* L2 */
		return MEM_OWN;
	case 0x5:
		return MEM_REMOTE;
	case 0x7:
		return MEM_LOCAL;
	default: /* 0: a cache of the chip, or a device */
		return MEM_UNKNOWN;
	}
}

static enum mem_answer of_source(const struct spe_record *r, enum spe_codes codes)
{
	/* Neoverse, and AmpereOne like it, tell the source of loads only. */
	if (!(r->has & SPE_HAS_SOURCE) || (r->op == SPE_STORE && codes != SPE_CODES_HIP12))
		return MEM_UNKNOWN;
	switch (codes) {
	case SPE_CODES_NEOVERSE:
		return of_neoverse(r->source);
	case SPE_CODES_HIP12:
		return of_hip12(r->source);
	case SPE_CODES_AMPEREONE:
		return of_ampereone(r->source);
	default:
		return MEM_UNKNOWN;
	}
}

static enum mem_answer of_events(uint64_t events, bool last_level)
{
	if (events & SPE_REMOTE_ACCESS)
		return last_level ? MEM_REMOTE : MEM_UNKNOWN;
	if (events & SPE_LLC_REFILL)
		return MEM_LOCAL;
	if (events & SPE_LLC_ACCESS ||
	    (events & (SPE_L1D_ACCESS | SPE_L1D_REFILL)) == SPE_L1D_ACCESS)
		return MEM_OWN;
	return MEM_UNKNOWN;
}

enum mem_answer spe_answer_of(const struct spe_record *r, enum spe_codes codes, bool last_level)
{
	enum mem_answer a;

	if (r->op != SPE_LOAD && r->op != SPE_STORE)
		return MEM_UNKNOWN;
	a = of_source(r, codes);
	if (a == MEM_UNKNOWN)
		return of_events(r->events, last_level);
	/* "DRAM" may be that of another socket. */
	return a == MEM_LOCAL && r->events & SPE_REMOTE_ACCESS ? MEM_REMOTE : a;
}

uint32_t spe_cycles_of(const struct spe_record *r)
{
	const unsigned both = SPE_HAS_LATENCY | SPE_HAS_ISSUE;

	return (r->has & both) == both && r->latency > r->issue ? (uint32_t)(r->latency - r->issue) : 0;
}
