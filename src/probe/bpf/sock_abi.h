#pragma once

#include "task_abi.h"

enum sock_dir { SOCK_SENT = 0, SOCK_RECEIVED = 1 };

/** How TCP is watched. */
enum sock_watch {
	SOCK_WATCH_ALL = 0,
	SOCK_WATCH_IN_TURNS = 1, /**< a period of turns, in a look */
	SOCK_WATCH_NOT = 2,	 /**< between two looks */
};

/** What a record is about; its `dir` is enum sock_dir | enum sock_what << 1. */
enum sock_what {
	SOCK_MOVED = 0, /**< what a thread moved, by its calls */
	/** likewise, of a socket whose total is told: part of that, and nothing beside it */
	SOCK_SEEN = 1,
	SOCK_TOTAL = 2, /**< all that went through a socket, whoever moved it; no messages are counted */
};

/**
 * What the bytes travel on; 0 is none of these (netlink, packet, vsock …): never counted as flow.
 */
enum sock_proto {
	SOCK_PROTO_OTHER = 0,
	SOCK_PROTO_TCP = 1,
	SOCK_PROTO_UDP = 2,
	SOCK_PROTO_UNIX_STREAM = 3,
	SOCK_PROTO_UNIX_DGRAM = 4,
	SOCK_PROTO_UNIX_SEQPACKET = 5,
	SOCK_PROTO_INET_OTHER = 6, /**< raw IP, SCTP, MPTCP, … */
	SOCK_PROTO_N
};

enum sock_flag {
	SOCK_ID_IS_ADDRESS = 1 << 0, /**< sk_id is the kernel's address, not the socket cookie */
	SOCK_PEER_UNKNOWN = 1 << 1,  /**< the other end of these messages could not be learned */
	/** the peer was named by the message, not by the connection */
	SOCK_PEER_MESSAGE = 1 << 2,
	SOCK_LISTENING = 1 << 3,
	/** an AF_INET6 socket that talks IPv4; `family` says AF_INET */
	SOCK_V4_MAPPED = 1 << 4,
	SOCK_CONNECTED = 1 << 5,
	/** unix: `path` is an abstract name (without its leading NUL) */
	SOCK_ABSTRACT = 1 << 6,
	SOCK_PEER_ID_ADDRESS = 1 << 7, /**< as SOCK_ID_IS_ADDRESS, of peer_id */
};

/** An internet endpoint. IPv4 (also v4-mapped IPv6) fills the first four bytes of addr. */
struct sock_addr_abi {
	__u8 addr[16]; /**< network byte order; all zero: any, or not bound */
	__u16 port;    /**< host byte order, 0: none */
	__u16 pad;
};

/** The state of a TCP connection as of the last call or reading. Wrapping counters are raw. */
struct sock_tcp {
	__u64 bytes_acked;    /**< sent and acknowledged by the peer, since the connection began */
	__u64 bytes_received; /**< taken in from the network, since the connection began */
	__u32 srtt_us;	      /**< smoothed round trip time, µs, 0: none yet */
	__u32 total_retrans;  /**< segments sent again, since the connection began */
	__u32 write_seq;      /**< end of what the program has written (wraps) */
	__u32 snd_nxt;	      /**< end of what was sent (wraps) */
	__u32 snd_una;	      /**< end of what was acknowledged (wraps) */
	__u32 rcv_nxt;	      /**< end of what has arrived in order (wraps) */
	__u32 copied_seq;     /**< end of what the program has taken, splice included (wraps) */
	__u8 state;	      /**< TCP_ESTABLISHED … of <netinet/tcp.h> */
	__u8 pad[3];
};

/**
 * Facts of a socket that every record about it carries.
 *
 * netns is the inode number of the socket's network namespace (/proc/PID/ns/net), ino the socket's
 * (the NUMBER of "socket:[NUMBER]" in /proc/PID/fd), 0 when no file is open on it yet. sk_id is the
 * socket cookie (SO_COOKIE), unique while the host is up.
 */
struct sock_facts {
	__u64 sk_id;
	__u64 peer_id; /**< unix: sk_id of the other end, 0: none or unknown */
	__u64 ino;
	__u64 peer_ino; /**< unix: ino of the other end, 0: none, unknown or not accepted yet */
	__u32 netns;
	__u16 family;	/**< AF_INET, AF_INET6, AF_UNIX; v4-mapped sockets say AF_INET */
	__u8 proto;	/**< enum sock_proto */
	__u8 type;	/**< SOCK_STREAM … of <sys/socket.h> */
	__u32 flags;	/**< SOCK_… of enum sock_flag */
	__u32 protocol; /**< IPPROTO_… */
	struct sock_addr_abi local;
	struct sock_addr_abi remote; /**< all zero with SOCK_PEER_UNKNOWN */
};

/**
 * Who moved bytes through which connection, in which direction: for the sockets that keep their
 * peer, and are told apart by their cookies. Short, because it is looked up for every message.
 */
struct stream_key {
	__u64 sk_id;
	__u64 start_ns;
	__u32 tid;
	__u32 dir; /**< enum sock_dir | enum sock_what << 1 */
};

/** Who moved bytes through which socket, in which direction, with which peer: all other sockets. */
struct sock_key {
	__u64 sk_id;
	__u64 peer_id;
	__u64 start_ns;
	__u32 tid;
	__u8 dir;   /**< enum sock_dir */
	__u8 known; /**< 1: `remote`/`peer_id` come from the message, 2: the message had none */
	__u16 port;
	__u8 addr[16];
	__u64 ino; /**< 0 unless sk_id is an address: the next socket may have the same one */
};

/**
 * Moved during one interval. Times are CLOCK_BOOTTIME, the last one as of the last timer tick. SOCK_TOTAL: what moved did
 * so between the two; the thread is one that closed the socket, all zero: none did.
 */
struct sock_value {
	__u64 bytes;
	__u64 msgs; /**< calls that moved something; a zero-length datagram counts, EOF does not */
	__u64 first_ns, last_ns;
	__u64 tick; /**< jiffies at last_ns */
	struct task_ident task;
	struct sock_facts sock;
	struct sock_tcp tcp; /**< zero unless proto is TCP; as of last_ns */
	char comm[TASK_COMM_BYTES];
};

/** What the iterator over the tallies kept beside the sockets hands over. */
struct sock_tally_record {
	__u64 dir; /**< enum sock_dir | enum sock_what << 1 */
	struct sock_value v;
};

/** A TCP connection was opened, started to listen, or ended. */
struct sock_event {
	__u64 time_ns; /**< CLOCK_BOOTTIME */
	struct sock_facts sock;
	struct sock_tcp tcp;
	__u8 old_state, new_state; /**< TCP_… */
	__u8 active;		   /**< opened by connect(); 0: accepted, or not known */
	__u8 pad[5];
};

_Static_assert(sizeof(struct sock_addr_abi) == 20, "ABI");
_Static_assert(sizeof(struct sock_tcp) == 48, "ABI");
_Static_assert(sizeof(struct sock_facts) == 88, "ABI");
_Static_assert(sizeof(struct sock_key) == 56, "ABI");
_Static_assert(sizeof(struct sock_value) == 32 + 24 + 88 + 48 + 16 + 8, "ABI");
_Static_assert(sizeof(struct stream_key) == 24, "ABI");
_Static_assert(sizeof(struct sock_event) == 8 + 88 + 48 + 8, "ABI");
