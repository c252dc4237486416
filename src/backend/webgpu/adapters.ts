/** How `--adapter` names an adapter. Dawn gives the first one whose name has a text, and no other. */
import { InputError } from "../../errors.ts";
import type { GpuPlatform } from "./platform.ts";

/** An adapter's place in the list, from 0. More digits are part of a name, as in RTX 4090. */
const place = /^\d{1,2}$/;

/**
 * The text to ask for an adapter by.
 * @param adapter its place in the list of all, or part of its name
 * @throws InputError for a place whose adapter isn't the first one of its name
 */
export async function textToAsk(platform: GpuPlatform, adapter: string): Promise<string> {
  const names = place.test(adapter) ? await platform.adapterNames() : [];
  if (names.length === 0) return adapter;
  const at = Number(adapter);
  const name = names[at];
  // Part of a name, as 40 of L40.
  if (name === undefined) return adapter;
  const first = firstNamed(names, name);
  if (first === at) return name;
  throw new InputError(
    `WebGPU adapter ${at} can't be told from adapter ${first} by its name, ${JSON.stringify(name)}. ` +
      "Start this where it sees that GPU alone (docs/scaling.md).",
  );
}

/** The place of the adapter that is given for a name. */
export const firstNamed = (names: readonly string[], name: string): number =>
  names.findIndex((each) => each.includes(name));

/** Places and names, for messages. */
export const listOf = (names: readonly string[]): string =>
  names.map((name, at) => `${at} ${JSON.stringify(name)}`).join(", ");
