import { openFolder } from "../../checkpoint/source-node.ts";
import { costFiles } from "../../draft/cost-store-node.ts";
import type { Engine } from "../../engine.ts";
import { drafterPlace, modelFolder, type OpenOptions } from "../../node.ts";
import { openModel } from "../../open-model.ts";
import { packageVersion } from "../../package-version-node.ts";
import type { SpillFiles } from "../../state/spill-files.ts";
import { spillFiles } from "../../state/spill-files-node.ts";
import type { GateOptions } from "./options.ts";
import { ResumeWatch } from "./resume-watch.ts";

/** Two streams at once: forks. */
const parallel = 2;
/** Nothing that is spilled is ever evicted. */
const spillBytes = 2 ** 36;

/** What engines are opened with. */
export interface ResumeSource {
  readonly model: string;
  readonly open: GateOptions["open"];
  /** What the command line says of the drafter. */
  readonly choice: OpenOptions;
}

/** What an engine remembers. */
export interface ResumeMemory {
  /** 0: nothing. */
  readonly cacheBytes: number;
  /** A folder for what is evicted; null: it is gone. */
  readonly spill: string | null;
}

/** An engine as users have it, and what it did. */
export interface ResumeEngine extends AsyncDisposable {
  readonly engine: Engine;
  readonly watch: ResumeWatch;
  /** What it warned of. */
  readonly warnings: readonly string[];
}

/** @param through what files of spilled prompts go through */
export async function openResumeEngine(
  { model, open, choice }: ResumeSource,
  { cacheBytes, spill }: ResumeMemory,
  through: (files: SpillFiles) => SpillFiles = (files) => files,
): Promise<ResumeEngine> {
  const path = modelFolder(model);
  const costs = costFiles(packageVersion());
  const watch = new ResumeWatch();
  const warnings: string[] = [];
  const parts = {
    folder: await openFolder(path),
    model,
    drafter: drafterPlace(path, choice.drafter ?? "auto"),
    costs,
    spill: spill === null ? null : { files: () => through(spillFiles(spill)), build: costs.build },
    promptCacheBytes: cacheBytes,
    openBackend: async (sizes: Parameters<typeof open>[0]) => watch.view(await open(sizes)),
  };
  const engine = await openModel(parts, {
    ...choice,
    parallel,
    spillBytes,
    onWarning: (message) => warnings.push(message),
  });
  return {
    engine,
    watch,
    warnings,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}
