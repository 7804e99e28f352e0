#!/usr/bin/env node
// Runs the program of the package for this platform with the same arguments and streams.
"use strict";

const { spawnSync } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "sightline.exe" : "sightline";

/** Returns the packages that may contain the program, best first. */
function packages() {
  const names = [`sightline-${platform}`];
  if (process.platform === "linux") {
    names.push(`sightline-${platform}-musl`);
    // Static programs also run with glibc, but not the other way round.
    if (!process.report.getReport().header.glibcVersionRuntime) {
      names.shift();
    }
  }
  return names;
}

function find() {
  for (const name of packages()) {
    try {
      return require.resolve(`${name}/bin/${program}`);
    } catch {
      // Not installed.
    }
  }
  console.error(
    `sightline: cannot find the program for ${platform}: none of ${packages().join(", ")} is installed. ` +
      "Install without --omit=optional, or build Sightline from source.",
  );
  process.exit(3);
}

const { status, signal, error } = spawnSync(find(), process.argv.slice(2), { stdio: "inherit" });
if (error) {
  console.error(`sightline: cannot start the program: ${error.message}`);
  process.exit(3);
}
if (signal) {
  process.kill(process.pid, signal);
}
process.exit(status ?? 3);
