#!/usr/bin/env node
// Starts the `ripple` of the package that npm installed for this platform.
"use strict";
const { spawn } = require("node:child_process");
const { name, version, optionalDependencies } = require("./package.json");

const platform = `${name}-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${platform}/ripple`);
} catch {
  const known = platform in optionalDependencies;
  const platforms = Object.keys(optionalDependencies).map((each) => each.slice(name.length + 1));
  console.error(
    known
      ? `ripple: the package ${platform} is missing: install it too, in version ${version} and without --omit=optional. On Linux it needs glibc, so not Alpine`
      : `ripple: there is no binary for ${process.platform}-${process.arch}, only for ${platforms.join(", ")}`,
  );
  console.error("        On another platform, build it from the repository: cargo install --locked --path tools/cli");
  process.exit(2);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`ripple: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  signals.forEach((each) => process.removeAllListeners(each));
  process.kill(process.pid, signal);
});
