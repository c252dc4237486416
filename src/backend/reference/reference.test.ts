import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { backendCases } from "../backend.cases.ts";
import { withNanToken } from "../broken.cases.ts";
import { draftCases } from "../drafts.cases.ts";
import { ReferenceBackend } from "./reference.ts";

const weights = randomWeights(tinyShape(), { seed: 3, bits: 4, groupSize: 32 });

backendCases({
  name: "reference",
  open: (sizes) => ReferenceBackend.open({ ...sizes, weights, taps: [] }),
  openBroken: (sizes) =>
    ReferenceBackend.open({ ...sizes, weights: withNanToken(weights), taps: [] }),
});

draftCases({ name: "reference", open: (options) => ReferenceBackend.open(options) });
