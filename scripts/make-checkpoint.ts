/**
 * Makes a checkpoint with the names, shapes, types and config of a released size, and random values:
 * `node scripts/make-checkpoint.ts SIZE FOLDER [--form hf|mlx] [--layers N] [--sparse]`.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeSized } from "../src/weights/sizes.cases.ts";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    form: { type: "string", default: "hf" },
    layers: { type: "string" },
    sparse: { type: "boolean", default: false },
  },
});
const [size, folder] = positionals;
const { form, layers, sparse } = values;
if (size === undefined || folder === undefined || (form !== "hf" && form !== "mlx")) {
  console.error(
    "node scripts/make-checkpoint.ts SIZE FOLDER [--form hf|mlx] [--layers N] [--sparse]",
  );
  process.exit(2);
}
await writeSized(resolve(folder), {
  size,
  form,
  ...(layers !== undefined && { layers: Number(layers) }),
  sparse,
});
