// What is known of the selected entity: where it is, its numbers, its flows and its findings.

import type { Link } from "./data";
import { h, name } from "./dom";
import { bytes, count, percent, time, withUnit } from "./format";
import type { Box, Model } from "./model";
import { linkTo, update } from "./state";

const FLOWS_SHOWN = 12;

function go(id: string, text: string): HTMLElement {
  return h("button", { type: "button", class: "link", click: () => update({ selected: id }) }, name(text));
}

/** Links of all actors inside a box, to and from what is outside of it. */
export function linksAround(model: Model, box: Box): { link: Link; out: boolean; other: number }[] {
  const rows = new Set<number>();
  const walk = (b: Box): void => { if (b.actor >= 0) rows.add(b.actor); b.children.forEach(walk); };
  walk(box);
  if (box.thread >= 0) rows.add(model.doc.threads[box.thread].process);
  const ret: { link: Link; out: boolean; other: number }[] = [];
  for (const row of rows)
    for (const link of model.linksOf.get(row) ?? []) {
      const inFrom = rows.has(link.from), inTo = rows.has(link.to);
      if (inFrom !== inTo) ret.push({ link, out: inFrom, other: inFrom ? link.to : link.from });
    }
  return ret.sort((a, b) => (b.link.bytes ?? -1) - (a.link.bytes ?? -1));
}

function facts(model: Model, box: Box): [string, string][] {
  const a = model.actorOf(box), t = model.doc.threads[box.thread];
  const ret: [string, string][] = [];
  const put = (k: string, v: string | undefined, known: unknown): void => { if (known !== undefined && known !== null && v) ret.push([k, v]); };
  if (t) {
    put("running", `${time(t.run_ns)} (${percent(model.share(t, t.run_ns))})`, t.run_ns);
    put("runnable, no CPU", time(t.runq_ns), t.runq_ns);
    put("blocked", time(t.blocked_ns), t.blocked_ns);
    put("ended waits of others", time(t.waited_for_ns), t.waited_for_ns);
  }
  if (a) {
    put("role", `${a.role}${a.group === undefined ? "" : `, rank ${a.rank} of group ${a.group}`} (confidence ${a.role_pct} %)`, a.role);
    put("because", a.role_why, a.role_why);
    put("command", a.cmdline, a.cmdline);
    put("CPU time", time(a.cpu_ns), a.cpu_ns);
    put("memory", bytes(a.rss_bytes), a.rss_bytes);
    put("threads", count(a.threads), a.threads);
    put("data in, out", `${bytes(a.bytes_in)}, ${bytes(a.bytes_out)}`, a.bytes_in + a.bytes_out || undefined);
    put("runs on nodes", a.place?.cpu.slice(0, 4).map(([n, share]) => `${n}: ${percent(share)}`).join(", "), a.place?.cpu.length || undefined);
    put("memory on nodes", a.place?.memory.slice(0, 4).map(([n, share]) => `${n}: ${percent(share)}`).join(", "), a.place?.memory.length || undefined);
    put("CPUs allowed", a.place?.allowed, a.place?.allowed);
    put("accesses to other nodes", percent(a.place?.remote), a.place?.remote);
    put("near node", a.near, a.near);
    put("near CPUs", a.affinity, a.affinity);
  }
  return ret;
}

function fieldFacts(model: Model, box: Box): [string, string][] {
  const a = model.actorOf(box);
  const entity = a?.fields ? { fields: a.fields, units: model.doc.units[a.type ?? ""] }
    : box.kind === "numa" ? { fields: model.doc.numa.find((n) => n.id === box.id)?.fields, units: model.doc.units.numa }
    : box.kind === "container" ? { fields: model.doc.containers.find((c) => box.id.startsWith(c.id + "/"))?.fields, units: model.doc.units.container }
    : box.kind === "host" ? { fields: model.doc.hosts.find((x) => "host@" + x.ns === box.id)?.fields, units: model.doc.units.host } : undefined;
  return Object.entries(entity?.fields ?? {}).filter(([, v]) => v !== "" && v !== null)
    .map(([k, v]) => [k.replace(/_(ns|bytes|pct|khz|mw|c|bytes_s)$/, "").replace(/_/g, " "), withUnit(v, entity?.units?.[k])]);
}

function flowList(model: Model, box: Box): HTMLElement {
  const around = linksAround(model, box);
  const item = (x: { link: Link; out: boolean; other: number }): HTMLElement => h("li", {},
    h("span", { class: "tag" }, x.link.kind), x.out ? " to " : " from ", go(model.boxOfActor[x.other].id, model.actorLabel(x.other)),
    ` ${x.link.bytes === undefined ? "amount not known" : bytes(x.link.bytes)}`);
  return h("div", {}, h("h4", {}, `Flows (${around.length})`),
    around.length ? h("ul", {}, ...around.slice(0, FLOWS_SHOWN).map(item)) : h("p", {}, "none were seen"),
    around.length > FLOWS_SHOWN && h("p", { class: "note" }, `${around.length - FLOWS_SHOWN} more in the view "flows"`));
}

function pathList(model: Model, box: Box): HTMLElement | null {
  const paths = model.doc.topology.paths.filter((p) => p.actors.includes(box.id)).slice(0, 4);
  if (!paths.length) return null;
  return h("div", {}, h("h4", {}, "On the way of data"), h("ul", {}, ...paths.map((p) => h("li", {},
    ...p.actors.flatMap((id, i) => [i ? ` \u2192 ` : "", go(id, model.labelOf(id))]), p.bytes === null ? "" : `, ${bytes(p.bytes)}`))));
}

/** @param toggle opens or closes the box in the picture; null: there is nothing in it */
export function side(model: Model, box: Box, toggle: (() => void) | null, open: boolean): HTMLElement {
  const path = model.path(box);
  const found = model.findingsOf.get(box.id) ?? [];
  const list = (items: [string, string][]): HTMLElement => h("dl", { class: "facts" },
    ...items.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, h("bdi", {}, v))]));
  const fields = fieldFacts(model, box);
  return h("section", { class: "card side", "aria-live": "polite", "aria-label": "Selected entity" },
    h("h3", {}, name(box.label), h("button", { type: "button", class: "close", "aria-label": "Select nothing", click: () => update({ selected: "" }) }, "\u00d7")),
    h("p", { class: "path" }, ...path.slice(0, -1).flatMap((b) => [go(b.id, b.label), " \u25b8 "]), box.kind),
    toggle && h("button", { type: "button", click: toggle }, open ? "Close it" : `Open it (${box.children.length} inside)`),
    ...found.slice(0, 4).map((f) => h("p", { class: `finding-note ${f.severity}` }, h("span", { class: "severity" }, f.severity), " ", f.title)),
    list(facts(model, box)), flowList(model, box), pathList(model, box),
    h("p", {}, h("a", { href: linkTo("threads", box.id) }, "Threads"), " \u00b7 ", h("a", { href: linkTo("flows", box.id) }, "Flows"), " \u00b7 ", h("a", { href: linkTo("placement", box.id) }, "Placement")),
    fields.length > 0 && h("details", {}, h("summary", {}, `All ${fields.length} values`), list(fields)));
}
