/**
 * Builds `dist` when the package is installed from its folder, or packed. npm links a folder into another project
 * without what the folder itself needs, so that is installed first where it is missing.
 */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const compiler = join(here, "node_modules", "typescript", "bin", "tsc");

function run(...command) {
  execFileSync(process.execPath, command, { cwd: here, stdio: ["ignore", "inherit", "inherit"] });
}

if (!existsSync(compiler)) {
  const npm = process.env.npm_execpath;
  if (npm === undefined) throw new Error("run this by npm: npm run prepare");
  // Without scripts, or this one would run again.
  run(npm, "ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", here);
}
run(compiler, "--project", here);
