import type { ProgramBuilder } from "./program.ts";
import { topkSlices } from "./topk.ts";

/** The first candidates of each draw among the first `vocabSize` tokens: of the slices of its row, then of the row. */
export async function addTopk(builder: ProgramBuilder, vocabSize: number): Promise<void> {
  const { pairs, results } = builder.places;
  const logits = builder.buffer("logits");
  const { items, slices } = topkSlices(vocabSize);
  const parameters = [vocabSize, builder.stride("logits"), slices];
  await builder.add(
    "topk_slice",
    { ITEMS: items },
    [logits, pairs],
    parameters,
    ({ draws, top }) => [top === 0 ? 0 : slices, draws, 1],
  );
  await builder.add("topk", {}, [logits, pairs, results], parameters, ({ draws, top }) => [
    top === 0 ? 0 : draws,
    1,
    1,
  ]);
}
