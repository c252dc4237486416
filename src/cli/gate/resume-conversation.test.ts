import { expect, test } from "vitest";
import { ScriptedConversation } from "./resume-conversation.ts";
import type { Claim, ScriptWriter } from "./resume-script.ts";

const before = [1, 2, 3];
const instead = [
  [1, 2, 3, 4],
  [1, 2, 3, 5],
];

/** What is said to be known of the results that come behind a reply to turn 10, which calls by the script alone. */
async function othersAfter(content: string, city: string): Promise<Claim["others"]> {
  const toolCalls = [{ name: "get_weather", arguments: JSON.stringify({ city }) }];
  const claims: Claim[] = [];
  const writer = {
    otherwise: () => instead,
    write: async (request: object, claim: Claim) => {
      claims.push(claim);
      return { request, promptIds: before, reply: { content, toolCalls } };
    },
  };
  await new ScriptedConversation(writer as unknown as ScriptWriter).turn(10);
  return claims[1]!.others;
}

test.each([
  ["", "Lima", instead],
  ["", "Rome", [before]],
  ["Yes.", "Lima", [before]],
])("a reply of %j and a call for %s", async (content, city, others) => {
  expect(await othersAfter(content, city)).toEqual(others);
});
