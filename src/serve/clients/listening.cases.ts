/** A server at a real address, for clients that know nothing but that. */
import { expect } from "vitest";
import { Listener } from "../../cli/serve/listener.ts";
import { Script, type TestServer, testServer, tokenizer } from "../engine.cases.ts";

export interface Listening extends AsyncDisposable {
  readonly server: TestServer;
  /** Of the API, as clients take it. */
  readonly baseUrl: string;
}

/** @param server the listening's own from now on */
export async function listen(server: TestServer): Promise<Listening> {
  const listener = await Listener.open("127.0.0.1", 0, server.app.fetch);
  return {
    server,
    baseUrl: `${listener.url}/v1`,
    [Symbol.asyncDispose]: async () => {
      await server.engine[Symbol.asyncDispose]();
      await listener[Symbol.asyncDispose]();
      expect(server.reported).toEqual([]);
    },
  };
}

export interface Scripted extends Listening {
  /** The next requests, one at a time, are answered by these. */
  say(...replies: readonly string[]): void;
}

export async function listenScripted(): Promise<Scripted> {
  const script = new Script();
  const listening = await listen(testServer({ logits: script.logits }));
  const end = tokenizer.idOf("<|im_end|>")!;
  return {
    ...listening,
    say: (...replies) => script.say(replies.flatMap((each) => [...tokenizer.encode(each), end])),
  };
}

/** What a model writes to call `add`. */
export const addCall = (a: number, b: number): string =>
  "<tool_call>\n<function=add>\n" +
  `<parameter=a>\n${a}\n</parameter>\n<parameter=b>\n${b}\n</parameter>\n` +
  "</function>\n</tool_call>";
