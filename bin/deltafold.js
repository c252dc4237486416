#!/usr/bin/env node
// Written so that any Node that knows modules can parse it: old ones get a sentence, not a
// SyntaxError. The program is dist/cli/main.js, which `npm run build` makes of src/cli/main.ts.

const [major, minor] = process.versions.node.split(".").map(Number);

function fail(message) {
  console.error(`deltafold: ${message}`);
  process.exitCode = 1;
}

/** Whether it is the program itself that could not be found. */
function isUnbuilt(error) {
  return error.code === "ERR_MODULE_NOT_FOUND" && /dist[\\/]cli[\\/]main\.js'/.test(error.message);
}

if (major < 22 || (major === 22 && minor < 18)) {
  fail(`needs Node 22.18 or newer, and this is Node ${process.versions.node}.`);
} else {
  import("../dist/cli/main.js").catch((error) => {
    if (!isUnbuilt(error)) throw error;
    fail("dist/ is not built: run `npm run build`.");
  });
}
