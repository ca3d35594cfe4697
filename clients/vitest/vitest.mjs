// Vitest with a running Ripple, as a `globalSetup`. The manifest is ripple.toml, or the variable RIPPLE_CONFIG.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const ripple = process.env.RIPPLE ?? "ripple";
// It runs against the service and ends when its input is closed, so `dev` ends with Vitest, even if Vitest is killed.
const client = "console.log(JSON.stringify(process.env)); process.stdin.resume()";

export default async function setup() {
  process.env.RIPPLE_CONFIG ??= "ripple.toml";
  const dev = spawn(ripple, ["dev", "--", process.execPath, "-e", client]);
  const ended = once(dev, "exit").catch((error) => {
    throw new Error(`cannot start ${ripple} (${error.code}): install it, or name it in the variable RIPPLE`);
  });
  const lines = [];
  createInterface(dev.stderr).on("line", (line) => lines.splice(0, lines.push(line) - 40));
  const failed = async () => new Error(`${ripple} dev ended with ${(await ended)[0]}:\n${lines.join("\n")}`);
  const variables = await Promise.race([once(createInterface(dev.stdout), "line"), ended.then(() => [])]);
  if (!variables[0]) throw await failed();
  Object.assign(process.env, JSON.parse(variables[0]));
  return async () => {
    dev.stdin.end();
    if ((await ended)[0] !== 0) throw await failed();
  };
}

/** Call it after writes: it returns when Ripple has handled everything that was written before. */
export const settled = () => execFileSync(ripple, ["wait", "--timeout", "60"], { stdio: ["ignore", "ignore", "inherit"] });
