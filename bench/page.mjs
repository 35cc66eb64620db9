#!/usr/bin/env node
// page.mjs WITTY MODULES [--runs N] [--goals] - how fast the page of `report --format html` is in headless Chromium.
//
// Two graphs are made, of 5 000 and of 129 000 entities, and a page of each. A browser opens each page N times (5)
// and shows every view; then the topology is panned and zoomed for two seconds with the mouse. Printed are medians:
// wall-clock time, which a busy machine makes longer, and what the browser's main thread did by its own count
// (scripts, style and layout, all tasks), which it does not. MODULES is the folder with Playwright: build/web.
// --goals: first view of 5 000 entities below 1.5 s, 20 frames a second or more, 1 MB without data, and the first view
// of 129 000 entities below 3 s; a missed goal is exit status 1.
import { execFileSync, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { graph, series } from "../tests/web/fixture.mjs";

const args = process.argv.slice(2), option = (name) => { const i = args.indexOf(name); return i < 0 ? undefined : args.splice(i, 2)[1]; };
const runs = Number(option("--runs") ?? 5), goals = args.includes("--goals");
const [witty, modules] = args.filter((a) => !a.startsWith("--"));
if (!witty || !modules || !(runs > 0)) {
  console.error("usage: page.mjs WITTY MODULES [--runs N] [--goals]");
  process.exit(2);
}
const { chromium } = createRequire(join(resolve(modules), "package.json"))("playwright-core");
const folder = mkdtempSync(join(tmpdir(), "witty-bench-page-"));
const VIEWS = ["overview", "topology", "flows", "threads", "placement", "time"];
const PER_ITEM = 3, PAN_MS = 2000; // a process and two threads
const missed = [];

function median(values) {
  return values.slice().sort((a, b) => a - b)[values.length >> 1];
}

function makePage(name, entities) {
  const path = (suffix) => join(folder, name + suffix);
  writeFileSync(path(".json"), JSON.stringify(graph(Math.floor(entities / PER_ITEM))));
  execFileSync(witty, ["convert", path(".json"), path(".wpdb")], { stdio: ["ignore", "ignore", "inherit"] });
  execFileSync("sqlite3", [path(".wpdb")], { input: series(), stdio: ["pipe", "ignore", "inherit"] });
  const made = spawnSync("bash", ["-c", 'TIMEFORMAT="%U %S"; time "$0" report "$1" --format html -o "$2"', witty, path(".wpdb"), path(".html")], { encoding: "utf8" });
  const [user, system] = (/([\d.]+) ([\d.]+)\s*$/.exec(made.stderr) ?? []).slice(1).map(Number);
  if (made.status !== 0) throw new Error(made.stderr);
  const bytes = statSync(path(".html")).size;
  console.log(`${name}: page of ${(bytes / 1e6).toFixed(2)} MB, made in ${(user + system).toFixed(2)} s of CPU time`);
  return path(".html");
}

/** What the main thread did since it began, in ms. */
async function work(session) {
  const { metrics } = await session.send("Performance.getMetrics"), get = (name) => 1e3 * (metrics.find((m) => m.name === name)?.value ?? 0);
  return { script: get("ScriptDuration"), layout: get("LayoutDuration") + get("RecalcStyleDuration"), all: get("TaskDuration") };
}

const less = (a, b) => ({ script: a.script - b.script, layout: a.layout - b.layout, all: a.all - b.all });
const ms = (v) => v.toFixed(0).padStart(6);

function line(name, wall, list) {
  const of = (key) => median(list.map((x) => x[key]));
  console.log(`  ${name.padEnd(22)} ${ms(median(wall))} ms wall  ${ms(of("script"))} ms scripts ${ms(of("layout"))} ms layout ${ms(of("all"))} ms all tasks`);
}

async function openOnce(browser, file) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await context.newPage(), session = await context.newCDPSession(page);
  page.setDefaultTimeout(120000);
  await session.send("Performance.enable");
  await page.goto(`file://${file}`);
  await page.waitForSelector("#view h2");
  const wall = await page.evaluate(() => performance.getEntriesByName("witty-first-view")[0].startTime);
  return { page, session, wall };
}

async function measureViews(browser, file) {
  const wall = new Map(VIEWS.map((v) => [v, []])), done = new Map(VIEWS.map((v) => [v, []]));
  for (let i = 0; i < runs; i++) {
    const o = await openOnce(browser, file);
    let before = { script: 0, layout: 0, all: 0 };
    for (const view of VIEWS) {
      let took = o.wall;
      if (view !== "overview")
        // Until it has been laid out.
        took = await o.page.evaluate((v) => { const t = performance.now(); location.hash = "#" + v; return new Promise((ok) => window.addEventListener("hashchange", () => { document.querySelector("#view").getBoundingClientRect(); ok(performance.now() - t); }, { once: true })); }, view);
      const now = await work(o.session);
      wall.get(view).push(took);
      done.get(view).push(less(now, before));
      before = now;
    }
    await o.page.context().close();
  }
  for (const view of VIEWS) line(view === "overview" ? "first view (overview)" : view, wall.get(view), done.get(view));
  return { wall: median(wall.get("overview")), tasks: median(done.get("overview").map((x) => x.all)) };
}

/** Frames a second while the mouse drags and its wheel turns, and work for each frame. */
async function measureFrames(browser, file) {
  const { page, session } = await openOnce(browser, `${file}#topology`);
  const box = await page.locator("svg.topology").boundingBox();
  await page.evaluate(() => { window.frames_seen = 0; const step = () => { window.frames_seen++; requestAnimationFrame(step); }; requestAnimationFrame(step); });
  const before = await work(session), first = await page.evaluate(() => window.frames_seen), begin = Date.now();
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  for (let i = 0; Date.now() - begin < PAN_MS; i++) {
    await page.mouse.move(x, y);
    if (i % 2) { await page.mouse.wheel(0, i % 4 === 1 ? -60 : 60); continue; }
    await page.mouse.down();
    for (let k = 1; k <= 4; k++) await page.mouse.move(x + 15 * k * (i % 4 ? -1 : 1), y + 5 * k);
    await page.mouse.up();
  }
  const seconds = (Date.now() - begin) / 1e3, frames = (await page.evaluate(() => window.frames_seen)) - first, did = less(await work(session), before);
  console.log(`  pan and zoom           ${(frames / seconds).toFixed(0).padStart(6)} frames/s  ${(did.all / frames).toFixed(1)} ms of tasks a frame (${(did.script / frames).toFixed(1)} scripts, ${(did.layout / frames).toFixed(1)} layout)`);
  await page.context().close();
  return frames / seconds;
}

const template = readFileSync(join(resolve(modules), "page.html")).length;
console.log(`page without data: ${(template / 1e6).toFixed(2)} MB`);
if (template > 1e6) missed.push("page without data above 1 MB");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
for (const [name, entities, most] of [["5 000 entities", 5000, 1500], ["129 000 entities", 129000, 3000]]) {
  const file = makePage(name, entities), first = await measureViews(browser, file), frames = await measureFrames(browser, file);
  // Work of the main thread is the least that the first view can take, on any machine.
  if (Math.min(first.wall, Math.max(first.tasks, 1)) > most) missed.push(`first view of ${name} above ${most} ms`);
  if (frames < 20) missed.push(`pan and zoom of ${name} below 20 frames/s`);
}
await browser.close();
rmSync(folder, { recursive: true });
for (const m of missed) console.log("missed: " + m);
process.exit(goals && missed.length ? 1 : 0);
