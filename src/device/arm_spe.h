#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem_answer.h"
#include "sysroot.h"

/*
 * Records of Arm's Statistical Profiling Extension: one for each sampled operation, made of packets
 * in any order, the last of which is an end or a timestamp. Arm Architecture Reference Manual (DDI
 * 0487), chapter "Statistical Profiling Extension sample record specification".
 */

/** Bits of the events packet. */
#define SPE_L1D_ACCESS (1ULL << 2)
#define SPE_L1D_REFILL (1ULL << 3)
#define SPE_LLC_ACCESS (1ULL << 8)
#define SPE_LLC_REFILL (1ULL << 9)
#define SPE_REMOTE_ACCESS                                                                          \
	(1ULL << 10) /**< of another socket; what the bits from 8 on mean is optional */

/** What there is of a record. */
enum spe_part {
	SPE_HAS_PC = 1 << 0,
	SPE_HAS_VIRTUAL = 1 << 1,
	SPE_HAS_PHYSICAL = 1 << 2,
	SPE_HAS_EVENTS = 1 << 3,
	SPE_HAS_OP = 1 << 4,
	SPE_HAS_SOURCE = 1 << 5,
	SPE_HAS_CONTEXT = 1 << 6,
	SPE_HAS_LATENCY = 1 << 7,
	SPE_HAS_ISSUE = 1 << 8,
	SPE_HAS_OTHER = 1 << 9, /**< packets that are not kept: branch targets, other counters */
};

enum spe_op { SPE_OTHER, SPE_LOAD, SPE_STORE, SPE_BRANCH };

struct spe_record {
	unsigned has; /**< enum spe_part; what is not there is 0 */
	enum spe_op op;
	uint32_t context; /**< CONTEXTIDR: the tid, where the kernel has CONFIG_PID_IN_CONTEXTIDR */
	uint16_t source;  /**< who answered, in codes of the implementation */
	uint16_t latency; /**< cycles from dispatch to the end */
	uint16_t issue;	  /**< part of them until it was issued: it waited for operands, not for memory */
	uint64_t events;
	uint64_t pc;
	uint64_t data_virtual, data_physical; /**< without tags and states */
};

struct spe_counts {
	uint64_t records;     /**< whole ones, which were handed over */
	uint64_t bad_packets; /**< places with what is no packet: what is in doubt around them is
				 dropped */
	uint64_t cut;         /**< records that the data ended in */
};

/**
 * Go through packets. Data begins with a record.
 *
 * @param offset of @p buf in the buffer that the CPU wrote, which alignment packets are relative to
 */
void spe_decode(const uint8_t *buf, size_t size, size_t offset,
		void (*cb)(void *ctx, const struct spe_record *r), void *ctx,
		struct spe_counts *counts);

/** Whose codes the data source packets have. */
enum spe_codes {
	SPE_CODES_UNKNOWN, /**< only events are looked at */
	SPE_CODES_NEOVERSE,
	SPE_CODES_HIP12, /**< HiSilicon's; those of earlier Kunpeng are not public */
	SPE_CODES_AMPEREONE,
};

/** @param midr main id register of the CPU; 0: not known */
enum spe_codes spe_codes_of(uint64_t midr);

/** The main id register of a CPU as /sys tells it, or 0. */
uint64_t spe_midr(const struct sysroot *r, uint32_t cpu);

/**
 * Who answered.
 *
 * @param last_level whether this machine's events tell of the last level of cache at all: where
 * they do not, those that no other socket answered cannot be told from hits in caches, and no share
 * can be made
 */
enum mem_answer spe_answer_of(const struct spe_record *r, enum spe_codes codes, bool last_level);

/** Cycles that memory took to answer; 0: not told. */
uint32_t spe_cycles_of(const struct spe_record *r);
