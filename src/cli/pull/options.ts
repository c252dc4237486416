import { Argument, Option } from "commander";
import { InputError } from "../../errors.ts";
import { type HubName, parseHubName } from "../../hub/names.ts";
import { embeddedModel } from "../../node.ts";

/** The flag of commands that ask before they do what takes long or can't be undone. */
export interface YesFlags {
  readonly yes?: true;
}

/** @param what is done without asking */
export const yesOption = (what: string): Option =>
  new Option("-y, --yes", `${what} without asking`);

/** Of commands that pull a model of the hub where it isn't in the cache. */
export const pulledArgument = (): Argument =>
  new Argument("[model]", "an embedded model, a folder, or a model of the hub: ORG/NAME").default(
    embeddedModel,
  );

/** @throws InputError where a text is no name of a model on the hub */
export function hubName(text: string): HubName {
  const name = parseHubName(text);
  if (name) return name;
  throw new InputError(
    `${JSON.stringify(text)} is no model of the hub: those are called ORG/NAME, or ORG/NAME@REVISION.`,
  );
}
