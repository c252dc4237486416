import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { backendCases } from "../backend.cases.ts";
import { draftCases } from "../drafts.cases.ts";
import { ReferenceBackend } from "./reference.ts";

const weights = randomWeights(tinyShape(), { seed: 3, bits: 4, groupSize: 32 });

backendCases({
  name: "reference",
  open: (sizes) => ReferenceBackend.open({ ...sizes, weights, taps: [] }),
  openChanged: (sizes, change) =>
    ReferenceBackend.open({ ...sizes, weights: change(weights), taps: [] }),
});

draftCases({ name: "reference", open: (options) => ReferenceBackend.open(options) });
