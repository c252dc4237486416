import { describe, expect, it } from "vitest";
import { modelFolder } from "../../node.ts";
import { runLine } from "../io.cases.ts";

describe("show", () => {
  it("describes the embedded model in lines", async () => {
    const { code, stdout, stderr } = await runLine(["show", "nano"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^parameters {2}21\.9 M \(21889736\)$/m);
    expect(stdout).toMatch(/^matrices {4}4-bit affine, groups of 64 \(21\.9 M\)$/m);
    expect(stdout).toMatch(/^layers {6}8: 6 linear, 2 full \(LLLFLLLF\)$/m);
    expect(stdout).toMatch(/^ends at {5}ids 8176, 8178$/m);
    expect(stdout).toMatch(/^template {4}yes$/m);
  });

  it("describes it as one JSON object", async () => {
    const { stdout } = await runLine(["show", "nano", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      folder: modelFolder("nano"),
      model_type: "qwen3_5_text",
      layout: "mlx",
      shape: { vocabSize: 8192, hiddenSize: 384 },
      parameters: 21_889_736,
      eos_ids: [8176, 8178],
      context_max: 4096,
      chat_template: true,
      sampling: { temperature: 0.7, topP: 0.95, topK: 20, minP: null, repetitionPenalty: null },
    });
  });

  it("refuses a drafter, and what is no checkpoint", async () => {
    const drafter = await runLine(["show", modelFolder("models/nano-dflash2")]);
    expect(drafter.code).toBe(1);
    expect(drafter.stderr).toContain("is a DFlash2 drafter, which is no model by itself.");
    const folder = await runLine(["show", import.meta.dirname]);
    expect(folder.code).toBe(1);
    expect(folder.stderr).toMatch(/^deltafold: .*show: has no config\.json\n$/);
  });
});
