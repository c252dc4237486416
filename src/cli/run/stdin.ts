import { InputError } from "../../errors.ts";
import type { InputStream } from "../io.ts";

/** All of standard input, without the line end that `echo` and editors put last. */
export async function readText(stdin: InputStream): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  try {
    for await (const chunk of stdin) {
      text += decoder.decode(typeof chunk === "string" ? Buffer.from(chunk) : chunk, {
        stream: true,
      });
    }
    text += decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new InputError("The prompt on standard input is not UTF-8 text.");
  }
  return text.replace(/\r?\n$/, "");
}
