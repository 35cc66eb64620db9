// Numbers for people, with their units; "not known" is never a zero.

export const UNKNOWN = "\u2013";

function scaled(v: number, units: string[], base: number): string {
  let i = 0;
  while (v >= base && i + 1 < units.length) { v /= base; i++; }
  return `${i && v < 100 ? v.toFixed(1) : Math.round(v)} ${units[i]}`;
}

export function bytes(v: number | null | undefined): string {
  return v === null || v === undefined ? UNKNOWN : scaled(v, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
}

export function rate(v: number | null | undefined): string {
  return v === null || v === undefined ? UNKNOWN : scaled(v, ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"], 1024);
}

export function count(v: number | null | undefined): string {
  if (v === null || v === undefined) return UNKNOWN;
  return v < 10000 ? String(Math.round(v * 10) / 10) : scaled(v, ["", "k", "M", "G", "T"], 1000);
}

export function time(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return UNKNOWN;
  if (ns === 0) return "0 s";
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(ns < 1e4 ? 1 : 0)} \u00b5s`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(ns < 1e7 ? 1 : 0)} ms`;
  if (ns < 120e9) return `${(ns / 1e9).toFixed(ns < 1e10 ? 2 : 1)} s`;
  return `${(ns / 60e9).toFixed(1)} min`;
}

/** A share of 0 to 1. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !isFinite(share)) return UNKNOWN;
  const pct = share * 100;
  return `${pct > 0 && pct < 10 ? pct.toFixed(1) : Math.round(pct)} %`;
}

/** A value of the registry by its unit. */
export function withUnit(v: unknown, unit: string | undefined): string {
  if (v === null || v === undefined) return UNKNOWN;
  if (typeof v !== "number") return typeof v === "object" ? JSON.stringify(v) : String(v);
  switch (unit) {
    case "bytes": return bytes(v);
    case "bytes/s": return rate(v);
    case "ns": return time(v);
    case "%": return `${v < 10 ? Math.round(v * 10) / 10 : Math.round(v)} %`;
    case "ratio": return (Math.round(v * 1000) / 1000).toString();
    case "kHz": return `${Math.round(v / 1000)} MHz`;
    case "mW": return `${(v / 1000).toFixed(1)} W`;
    case "\u00b0C": return `${Math.round(v)} \u00b0C`;
    case "count": case "pages": return count(v) + (unit === "pages" ? " pages" : "");
    default: return Number.isInteger(v) && v < 1e6 ? String(v) : Math.abs(v) >= 100 ? count(v) : String(Math.round(v * 1000) / 1000);
  }
}

export function when(ns: number): string {
  return ns ? new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC" : UNKNOWN;
}

export function plural(n: number, word: string, many = word + "s"): string {
  return `${n.toLocaleString("en")} ${n === 1 ? word : many}`;
}
