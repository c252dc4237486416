import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import ts from "typescript";
import { expect, test } from "vitest";
import { type Manifest, manifestsOf, readYaml } from "./kustomize.cases.ts";
import { isPublished, typeOf, validate } from "./schemas.cases.ts";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const folders = ["overlays/cpu", "overlays/gpu", "gateway"];
const all = folders.flatMap((folder) =>
  manifestsOf(join(here, folder)).map((manifest) => ({
    name: `${folder}: ${manifest.kind}`,
    manifest,
  })),
);

const found = <T>(folder: string, kind: string): T =>
  manifestsOf(join(here, folder)).find((manifest) => manifest.kind === kind) as T;
const podOf = (folder: string) => found<IDeployment>(folder, "Deployment").spec!.template.spec!;

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
  const used = ["base", ...folders].flatMap((folder) => {
    const [kustomization] = readYaml(join(here, folder, "kustomization.yaml")) as [
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

test.each(["overlays/cpu", "overlays/gpu"])("%s: pods may do no more than they need", (folder) => {
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
  const keys = pod.volumes!.find(({ name }) => name === "keys")!;
  expect(keys.secret!.defaultMode).toBe(0o440);
});

test("the pods' user is the image's", () => {
  const { runAsUser, runAsGroup } = podOf("overlays/cpu").securityContext!;
  const dockerfile = readFileSync(join(root, "deploy/container/Dockerfile"), "utf8");
  expect(dockerfile).toContain(`\nUSER ${runAsUser}:${runAsGroup}\n`);
});

test("pods have the time that a drain takes", () => {
  const { containers, terminationGracePeriodSeconds } = podOf("overlays/cpu");
  const env = new Map(containers[0]!.env!.map(({ name, value }) => [name, Number(value)]));
  const drain = env.get("DELTAFOLD_DRAIN_DELAY_SECONDS")! + env.get("DELTAFOLD_DRAIN_SECONDS")!;
  expect(terminationGracePeriodSeconds).toBeGreaterThan(drain);
});

test("probes tell loading from broken", () => {
  const { startupProbe, readinessProbe, livenessProbe } = podOf("overlays/cpu").containers[0]!;
  // Alive while it loads, ready once it has: see src/serve/stand-in.ts.
  expect(startupProbe!.httpGet!.path).toBe("/health/ready");
  expect(startupProbe!.periodSeconds! * startupProbe!.failureThreshold!).toBe(1800);
  expect(readinessProbe!.httpGet!.path).toBe("/health/ready");
  expect(livenessProbe!.httpGet!.path).toBe("/health/live");
});

test("only the GPU's overlay asks for one", () => {
  const gpus = ["overlays/cpu", "overlays/gpu"].map(
    (folder) => podOf(folder).containers[0]!.resources!.limits!["nvidia.com/gpu"],
  );
  expect(gpus).toEqual([undefined, 1]);
});

test("the metrics that others read are there", () => {
  // As the server gave them, which the gate `http` compares.
  const served = readFileSync(join(root, "fixtures/http/metrics.txt"), "utf8");
  const files = ["base/autoscaler.yaml", "gateway/pool.yaml"];
  const text = files.map((file) => readFileSync(join(here, file), "utf8")).join();
  const names = new Set(text.match(/vllm:\w+/g));
  expect(names.size).toBe(3);
  for (const name of names) expect(served).toContain(`\n${name}{`);
});
