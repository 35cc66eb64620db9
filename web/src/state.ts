// What the user is looking at: kept in the address behind '#', so that a link leads to the same view.

export type View = "overview" | "topology" | "flows" | "threads" | "placement" | "time";
export const VIEWS: View[] = ["overview", "topology", "flows", "threads", "placement", "time"];

export interface State {
  view: View;
  selected: string;           // id of a box or thread, "" for none
  query: string;
  only: boolean;              // what the query does not find is left out
  kindsOff: Set<string>;      // kinds of flows that are not shown
  minRate: number;            // bytes in the window
  container: string;          // id, "" for all
  opened: Set<string>;        // boxes whose state differs from that of the first view
  brush: [number, number] | null; // intervals, both included
}

type Listener = (state: State, changed: Set<keyof State>) => void;

const listeners: Listener[] = [];
export const state: State = fromHash(location.hash);

function fromHash(hash: string): State {
  const [view, rest] = hash.replace(/^#/, "").split("?");
  const q = new URLSearchParams(rest ?? "");
  const list = (key: string): Set<string> => new Set((q.get(key) ?? "").split("\u001f").filter(Boolean));
  const brush = /^(\d+)-(\d+)$/.exec(q.get("t") ?? "");
  return {
    view: VIEWS.includes(view as View) ? (view as View) : "overview",
    selected: q.get("sel") ?? "", query: q.get("q") ?? "", only: q.get("only") === "1", kindsOff: list("off"), minRate: Number(q.get("min")) || 0,
    container: q.get("in") ?? "", opened: list("open"),
    brush: brush ? [Number(brush[1]), Number(brush[2])] : null,
  };
}

export function toHash(st: State): string {
  const q = new URLSearchParams();
  if (st.selected) q.set("sel", st.selected);
  if (st.query) q.set("q", st.query);
  if (st.query && st.only) q.set("only", "1");
  if (st.kindsOff.size) q.set("off", [...st.kindsOff].sort().join("\u001f"));
  if (st.minRate) q.set("min", String(st.minRate));
  if (st.container) q.set("in", st.container);
  if (st.opened.size) q.set("open", [...st.opened].sort().join("\u001f"));
  if (st.brush) q.set("t", st.brush.join("-"));
  const text = q.toString();
  return "#" + st.view + (text ? "?" + text : "");
}

export function onChange(listener: Listener): void {
  listeners.push(listener);
}

function tell(changed: Set<keyof State>): void {
  for (const listener of listeners) listener(state, changed);
}

/** Change what is looked at. A change of the view can be gone back to. */
export function update(change: Partial<State>): void {
  const changed = new Set<keyof State>();
  for (const key of Object.keys(change) as (keyof State)[])
    if (state[key] !== change[key]) changed.add(key);
  if (!changed.size) return;
  Object.assign(state, change);
  const hash = toHash(state);
  if (hash !== location.hash) {
    if (changed.has("view")) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  }
  tell(changed);
}

/** Links and the buttons of the browser change the address by themselves. */
function follow(): void {
  Object.assign(state, fromHash(location.hash));
  tell(new Set(Object.keys(state) as (keyof State)[]));
}
window.addEventListener("popstate", follow);
window.addEventListener("hashchange", follow);

/** Address of a view with something selected, for links. */
export function linkTo(view: View, selected = ""): string {
  return toHash({ ...state, view, selected, query: "", only: false, opened: new Set() });
}
