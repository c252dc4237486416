import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { IHorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import ts from "typescript";
import { expect, test } from "vitest";
import { WorkerCounts } from "../../src/batch/metrics.ts";
import { found, here, type Manifest, manifestsOf, podOf, readYaml } from "./kustomize.cases.ts";
import { isPublished, typeOf, validate } from "./schemas.cases.ts";

const root = join(here, "../..");
const folders = ["overlays/cpu", "overlays/gpu", "gateway", "workers"];
const all = folders.flatMap((folder) =>
  manifestsOf(folder).map((manifest) => ({ name: `${folder}: ${manifest.kind}`, manifest })),
);

test.each(all)("$name is valid", ({ manifest }) => {
  validate(manifest);
});

test("what is wrong is refused", () => {
  const { manifest } = all.find(({ name }) => name === "gateway: HTTPRoute")!;
  const wrong = { ...manifest, spec: { rules: [{ backendRefs: [{ name: 3 }] }] } };
  expect(() => validate(wrong)).toThrow("/spec/rules/0/backendRefs/0/name must be string");
  const pool = found<Manifest>("gateway", "InferencePool");
  expect(() => validate({ ...pool, spec: { ...(pool.spec as object), port: 1 } })).toThrow("port");
});

/** What the compiler says of manifests as literals of their types: of each, its fault. */
function faults(manifests: readonly Manifest[]): string[] {
  const text = manifests
    .map((manifest, index) => {
      const { module, name } = typeOf(manifest);
      const value = JSON.stringify(manifest);
      return `import type { ${name} as T${index} } from "${module}";\nexport const v${index}: T${index} = ${value};`;
    })
    .join("\n");
  const file = join(here, "manifests.gen.ts");
  const options = {
    ...{ module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
    ...{
      target: ts.ScriptTarget.ES2024,
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: [],
    },
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(name, text, rest[0]) : getSourceFile(name, ...rest);
  return ts
    .getPreEmitDiagnostics(ts.createProgram([file], options, host))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

test("no field has a name that the API doesn't know", () => {
  expect(faults(all.map(({ manifest }) => manifest).filter(isPublished))).toEqual([]);
  const { manifest } = all[0]!;
  const wrong = { ...manifest, spec: { ...(manifest.spec as object), stratgy: {} } };
  expect(faults([wrong])).toEqual([expect.stringContaining("stratgy")]);
});

test("each file is used by a kustomization", () => {
  const used = ["base", "models", ...folders].flatMap((folder) => {
    const [kustomization] = readYaml(join(folder, "kustomization.yaml")) as [
      { resources: string[]; patches?: { path: string }[] },
    ];
    const { resources, patches = [] } = kustomization;
    return ["kustomization.yaml", ...resources, ...patches.map(({ path }) => path)].map((file) =>
      join(folder, file),
    );
  });
  const files = readdirSync(here, { recursive: true, encoding: "utf8" });
  expect(used).toEqual(expect.arrayContaining(files.filter((file) => file.endsWith(".yaml"))));
});

test.each(["overlays/cpu", "overlays/gpu", "workers"])(
  "%s: pods may do no more than they need",
  (folder) => {
    const pod = podOf(folder);
    const [container] = pod.containers;
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, fsGroup: 10001 });
    expect(container!.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(pod.automountServiceAccountToken).toBe(false);
    // A service's DELTAFOLD_PORT would be taken for --port.
    expect(pod.enableServiceLinks).toBe(false);
  },
);

test("the pods' group may read the keys, and nobody else", () => {
  const keys = podOf("overlays/cpu").volumes!.find(({ name }) => name === "keys")!;
  expect(keys.secret!.defaultMode).toBe(0o440);
});

test.each(["overlays/cpu", "workers"])("%s: the pods' user is the image's", (folder) => {
  const { runAsUser, runAsGroup } = podOf(folder).securityContext!;
  const dockerfile = readFileSync(join(root, "deploy/container/Dockerfile"), "utf8");
  expect(dockerfile).toContain(`\nUSER ${runAsUser}:${runAsGroup}\n`);
});

test.each(["overlays/cpu", "workers"])("%s: pods have the time that a drain takes", (folder) => {
  const { containers, terminationGracePeriodSeconds } = podOf(folder);
  const seconds = containers[0]!.env!.filter(({ name }) => /_DRAIN_.*SECONDS$/.test(name));
  const drain = seconds.reduce((sum, { value }) => sum + Number(value), 0);
  expect(drain).toBeGreaterThan(0);
  expect(terminationGracePeriodSeconds).toBeGreaterThan(drain);
});

test("a worker is the image's command with another verb", () => {
  const dockerfile = readFileSync(join(root, "deploy/container/Dockerfile"), "utf8");
  const entrypoint: string[] = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(dockerfile)![1]!);
  const { command } = podOf("workers").containers[0]!;
  expect(command).toEqual(entrypoint.map((word) => (word === "serve" ? "worker" : word)));
});

test("probes tell loading from broken", () => {
  const { startupProbe, readinessProbe, livenessProbe } = podOf("overlays/cpu").containers[0]!;
  // Alive while it loads, ready once it has: see src/serve/stand-in.ts.
  expect(startupProbe!.httpGet!.path).toBe("/health/ready");
  expect(startupProbe!.periodSeconds! * startupProbe!.failureThreshold!).toBe(1800);
  expect(readinessProbe!.httpGet!.path).toBe("/health/ready");
  expect(livenessProbe!.httpGet!.path).toBe("/health/live");
});

test("the CPU's overlay asks for no GPU", () => {
  const gpus = ["overlays/cpu", "overlays/gpu", "workers"].map(
    (folder) => podOf(folder).containers[0]!.resources!.limits!["nvidia.com/gpu"],
  );
  expect(gpus).toEqual([undefined, 1, 1]);
});

test("the metrics that others read are there", () => {
  // As the server gave them, which the gate `http` compares.
  const served = readFileSync(join(root, "fixtures/http/metrics.txt"), "utf8");
  const files = ["base/autoscaler.yaml", "gateway/pool.yaml"];
  const text = files.map((file) => readFileSync(join(here, file), "utf8")).join();
  const names = new Set(text.match(/vllm:\w+/g));
  expect(names.size).toBe(3);
  for (const name of names) expect(served).toContain(`\n${name}{`);
  const { metric } = found<IHorizontalPodAutoscaler>("workers", "HorizontalPodAutoscaler").spec!
    .metrics![0]!.external!;
  const counts = { waiting: 5, delayed: 0, running: 0, done: 0 };
  const [[label, value]] = Object.entries(metric.selector!.matchLabels!) as [[string, string]];
  const told = new WorkerCounts().text(0, counts);
  expect(told).toContain(`\n${metric.name}{${label}="${value}"} 5\n`);
});
