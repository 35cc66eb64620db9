// Starts the page: tabs, theme, and one view at a time.

import { readDocument } from "./data";
import { clear, h } from "./dom";
import { exportTools } from "./export";
import { FlowsView } from "./flows";
import { when } from "./format";
import { Model } from "./model";
import { OverviewView } from "./overview";
import { PlacementView } from "./placement";
import { linkTo, onChange, state, update, View, VIEWS } from "./state";
import { ThreadsView } from "./threads";
import { TimeView } from "./time";
import { TopologyView } from "./topology";

/** A view is made when it is first looked at, and told when what it shows has changed. */
export interface ViewPart {
  readonly element: HTMLElement;
  refresh(changed: Set<string>): void;
}

const TITLES: Record<View, string> = {
  overview: "Overview", topology: "Topology", flows: "Flows", threads: "Threads", placement: "Placement", time: "Time",
};

function make(view: View, model: Model): ViewPart {
  switch (view) {
    case "overview": return new OverviewView(model);
    case "topology": return new TopologyView(model);
    case "flows": return new FlowsView(model);
    case "threads": return new ThreadsView(model);
    case "placement": return new PlacementView(model);
    case "time": return new TimeView(model);
  }
}

function setTheme(theme: string): void {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("witty-theme", theme); } catch { /* files may have no storage */ }
}

function themeButton(): HTMLElement {
  const dark = (): boolean => document.documentElement.dataset.theme === "dark" ||
    (document.documentElement.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  try { document.documentElement.dataset.theme = localStorage.getItem("witty-theme") ?? "auto"; } catch { /* as above */ }
  return h("button", { type: "button", id: "theme", click: () => setTheme(dark() ? "light" : "dark") }, "Dark / light");
}

async function copyLink(button: HTMLButtonElement): Promise<void> {
  let done = true;
  try { await navigator.clipboard.writeText(location.href); } catch { done = false; }
  button.textContent = done ? "Copied" : "Copy it from the address bar";
  setTimeout(() => { button.textContent = "Copy link"; }, 2500);
}

/** What the interval chosen in the view "time" is, wherever one is. */
function brushNote(model: Model): HTMLElement {
  const note = h("p", { id: "brush-note", role: "status" });
  const draw = (): void => {
    clear(note);
    note.hidden = !state.brush;
    if (!state.brush || !model.doc.time) return;
    const [a, b] = state.brush;
    const { starts_ns, ends_ns } = model.doc.time;
    const t0 = starts_ns[0];
    note.append(`Only ${((starts_ns[a] - t0) / 1e9).toFixed(1)} s to ${((ends_ns[b] - t0) / 1e9).toFixed(1)} s of the window is shown; flows are split by what their senders sent in it. `,
      h("button", { type: "button", click: () => update({ brush: null }) }, "Show all"));
  };
  onChange(draw);
  draw();
  return note;
}

function start(): void {
  const app = document.getElementById("app") as HTMLElement;
  const doc = readDocument();
  const model = new Model(doc);
  const parts = new Map<View, ViewPart>();
  const main = h("main", { id: "view", tabindex: -1 });
  const tabs = new Map<View, HTMLAnchorElement>();
  const nav = h("nav", { "aria-label": "Views" }, ...VIEWS.map((view) => {
    const a = h("a", { href: "#" + view, click: (e) => { e.preventDefault(); update({ view }); } }, TITLES[view]);
    tabs.set(view, a);
    return a;
  }));
  const host = doc.hosts.map((x) => String(x.fields.hostname)).join(", ") || "imported graph";
  const copy: HTMLButtonElement = h("button", { type: "button", id: "copy-link", click: () => void copyLink(copy) }, "Copy link");
  const top = h("header", {}, h("a", { class: "skip", href: "#view", click: (e) => { e.preventDefault(); main.focus(); } }, "Skip to the view"),
    h("h1", {}, "witty-profiler ", h("bdi", { class: "host" }, host)),
    doc.about.start_ns > 0 && h("span", { class: "when" }, when(doc.about.start_ns)), nav,
    h("div", { class: "tools" }, ...exportTools(() => main), copy, themeButton()));

  const show = (changed: Set<string>): void => {
    let part = parts.get(state.view);
    if (!part) {
      part = make(state.view, model);
      parts.set(state.view, part);
    } else {
      part.refresh(changed);
    }
    if (main.firstElementChild !== part.element) main.replaceChildren(part.element);
    for (const [view, tab] of tabs) {
      tab.href = linkTo(view, state.selected);
      if (view === state.view) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    document.title = `${TITLES[state.view]} \u2013 ${host} \u2013 witty-profiler`;
  };
  app.replaceChildren(top, brushNote(model), main, h("footer", {}, doc.generator));
  onChange((_, changed) => show(changed as Set<string>));
  show(new Set());
  performance.mark("witty-first-view");
}

start();
