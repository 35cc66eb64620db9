// The document inside the page, as src/render/render_html.c writes it. A member that is not there was not measured.

export type Fields = Record<string, unknown>;
export type Share = [node: number, share: number, amount: number];

export interface About {
  start_ns: number; window_ns: number | null; intervals: number; complete: boolean;
  tool: string | null; options: string | null;
  lost: { source: string; cause: string; count: number }[];
  status: { source: string; state: string; rung: string | null; reason: string | null }[];
  cost: { name: string; unit: string; value: number }[];
}

export interface Entity { id: string; ns: string; fields: Fields }
export interface Cpu { ns: string; cpu: number; node?: number; busy_ns?: number }
export interface Container extends Entity { name?: string }

/** Where a process ran and where its memory is. */
export interface Place {
  cpu: Share[]; memory: Share[]; allowed?: string; cosine?: number; remote?: number; mode?: string;
}

export type ActorKind = "process" | "outside" | "storage" | "device";

/** What data goes to and comes from. Rows with stands_for add up many that are too many for a page. */
export interface Actor {
  id: string; kind: ActorKind; label?: string; ns: string; numa?: number; container?: number;
  bytes_in: number; bytes_out: number; program?: string; stands_for?: number;
  pid?: number; name?: string; cmdline?: string; parent?: number; cpu_ns?: number; rss_bytes?: number;
  threads?: number; ended?: boolean; role?: string; role_pct?: number; role_why?: string; group?: number;
  rank?: number; place?: Place; type?: string; near?: string; affinity?: string; users?: number[]; fields?: Fields;
}

/** `asks`: whether the sender is the one that asks; not there: not known. */
export interface Link {
  from: number; to: number; kind: string; bytes?: number; messages?: number; waited_ns?: number; shared?: boolean; asks?: boolean;
}

export interface Wait { object?: string; cause: string; ns: number; waits?: number; longest_ns?: number }
export interface Waker { thread?: number; object?: string; cause: string; ns: number; wakeups?: number }

export interface Reason { text: string; rule?: string; advice?: string }

/** What the analysis of hot threads says of one. */
export interface Profile {
  points: number; possible: number; level: string; class: string; class_why?: string; cause: string; cause_why?: string;
  cpu_pct?: number; user_pct?: number; remote_pct?: number; reasons?: Reason[]; rules?: Reason[]; affinity?: string; switching?: string;
}

/** A thread that others wait for, and what it does meanwhile. */
export interface Root {
  thread?: number; id: string; state: string; object?: string; waiters: number; waited_ns: number; wall_ns?: number; idle: boolean;
  roles: string[];
}

export interface Role { text: string; thread?: number; id?: string }

/** Where the time goes that equal threads of one process wait. */
export interface Chain {
  text: string; threads: number[]; waited_ns: number; late_ns: number; seen_pct: number;
  parts: { ns: number; cause: string; object?: string; state: string; root_object?: string; idle: boolean; via: Role[]; root: Role }[];
}

export interface Thread {
  id: string; tid: number; name?: string; process: number; run_ns?: number; runq_ns?: number; blocked_ns?: number;
  observed_ns?: number; voluntary_switches?: number; involuntary_switches?: number; migrations?: number;
  wakeups?: number; causes?: Record<string, number>; waits?: Wait[]; wakers?: Waker[];
  cpus?: [cpu: number, ns: number][]; profile?: Profile; waited_for_ns?: number; waiters?: number;
}

export type Severity = "critical" | "warning" | "notice" | "info";

export interface Finding {
  rule: string; layer: string; severity: Severity; confidence_pct: number; root?: string; subjects: string[];
  lost_ns?: number; lost_basis?: string; title: string; why: string;
  values: { name: string; of?: string; value: number | null; unit: string; limit?: number; limit_name?: string }[];
  advice: string[]; commands: string[]; also: { rule: string; title: string; why: string }[]; expectation?: string;
}

export interface Evidence { for: string[]; against: string[]; not_seen: string[] }
export interface Pattern extends Evidence {
  pattern: string; text: string; degree: number; confidence_pct: number; declared: boolean; observed: boolean;
}
export interface Group {
  group: number; name: string; members: string[]; launcher: string | null; bytes: number; basis: string[];
  shape: { name: string; confidence_pct: number }; patterns: Pattern[];
}
export interface Problem {
  id: string; severity: Severity; confidence_pct: number; text: string; advice: string; actors: string[];
}
export interface Structure {
  main: string | null; groups: Group[]; problems: Problem[]; not_observed: string[];
  paths: { actors: string[]; steps: string[]; bytes: number | null; waited_ns: number }[];
}

/** One value for each interval. */
export interface Series { name?: string; id?: string; row?: number; values: number[] }
/** How something stood in each interval; null: not measured. */
export interface Gauge { name: string; id: string; values: (number | null)[] }
export interface Time {
  starts_ns: number[]; ends_ns: number[];
  cpu: Series[];                  // ns on CPUs by process
  threads: number[][][];          // of the first threads: running, runnable, blocked in microseconds
  flows: Series[];                // bytes sent and written, by kind
  reads: Series[];                // bytes read from files
  waits: Series[];                // ns blocked by cause
  sent: Series[]; read: Series[]; // bytes by process and kind
  moved: Series[]; busy: Series[]; // bytes, and ns with requests, of disks and interfaces
  use: Gauge[]; held: Gauge[];     // of accelerators: hundredths of a percent, and bytes of memory
}

export interface Doc {
  schema_version: number; generator: string; about: About; units: Record<string, Record<string, string>>;
  left_out: { what: string; kept: number; all: number }[]; processes_all: number; threads_all: number;
  hosts: Entity[]; numa: Entity[]; cpus: Cpu[]; containers: Container[]; actors: Actor[]; unused_devices: Actor[]; main?: number;
  links: Link[]; threads: Thread[]; roots: Root[]; chains: Chain[];
  thread_nodes: { thread: number; cpu: [node: number, amount: number][]; remote?: number }[];
  findings: Finding[]; findings_all: number; blind?: string[]; topology: Structure; time?: Time;
}

export function readDocument(): Doc {
  const text = document.getElementById("data")?.textContent ?? "";
  return JSON.parse(text) as Doc;
}
