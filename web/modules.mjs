// modules.mjs PACKAGE LOCK FOLDER STAMP runtime|all - put the packages of the lock file into FOLDER/node_modules,
// unless those of the same lock file are there already.
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [pkg, lock, folder, stamp, what] = process.argv.slice(2);
const wanted = createHash("sha256").update(readFileSync(pkg)).update(readFileSync(lock)).update(what).digest("hex");
const done = join(folder, "node_modules", ".of-lock-file");

if (!existsSync(done) || readFileSync(done, "utf8") !== wanted) {
  mkdirSync(folder, { recursive: true });
  copyFileSync(pkg, join(folder, "package.json"));
  copyFileSync(lock, join(folder, "package-lock.json"));
  copyFileSync(join(dirname(pkg), ".npmrc"), join(folder, ".npmrc"));
  const args = ["ci", "--prefer-offline", "--loglevel=error"];
  if (what === "runtime") args.push("--omit=dev");
  const npm = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
  if (npm.status !== 0) {
    console.error("error: npm could not fetch what the page is built with; is the network there?");
    console.error("hint: meson configure -Dweb=disabled builds the program without 'report --format html'");
    process.exit(1);
  }
  writeFileSync(done, wanted);
}
writeFileSync(stamp, wanted + "\n");
