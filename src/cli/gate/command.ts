import { systemClock } from "../../clock.ts";
import { InputError } from "../../errors.ts";
import { type GateReport, GateRun } from "./gate-run.ts";
import { type Gate, gates } from "./gates.ts";
import type { GateOptions } from "./options.ts";

/** Runs one gate by name, printing a line a cell where `print` is given. */
export async function runGate(
  name: string,
  options: GateOptions,
  print: ((line: string) => void) | null,
): Promise<GateReport> {
  const gate = findGate(name);
  const run = new GateRun(systemClock, options.full, ({ name: cell, ok, detail }) =>
    print?.(`${ok ? "ok  " : "FAIL"} ${cell}: ${detail}`),
  );
  const backend = await gate.run(run, options);
  return run.report(gate.name, backend);
}

function findGate(name: string): Gate {
  const gate = gates.find((known) => known.name === name);
  if (gate) return gate;
  throw new InputError(`There is no gate ${name}: ${gates.map((known) => known.name).join(", ")}.`);
}
