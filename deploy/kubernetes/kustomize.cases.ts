/** What kustomize makes of a folder here, as far as these folders use it. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import type { IPodSpec } from "kubernetes-models/v1/PodSpec";
import { parseAllDocuments } from "yaml";

/** The folder of all manifests, in which the paths here are. */
export const here: string = dirname(fileURLToPath(import.meta.url));

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly patches?: readonly {
    readonly path: string;
    readonly target: { readonly kind: string; readonly name: string };
  }[];
}

/** An operation of RFC 6902, the only one that is used. */
interface Addition {
  readonly op: "add";
  readonly path: string;
  readonly value: unknown;
}

/** By Kubernetes' YAML, which is 1.1: 0440 is octal there. @throws Error for what isn't YAML */
export function readYaml(file: string): unknown[] {
  return parseAllDocuments(readFileSync(join(here, file), "utf8"), { version: "1.1" }).map(
    (document) => {
      if (document.errors.length > 0) throw new Error(`${file}: ${document.errors[0]}`);
      return document.toJS();
    },
  );
}

/** The manifests of a folder here with a kustomization.yaml, patched. */
export function manifestsOf(folder: string): Manifest[] {
  const [{ resources, patches = [] }] = readYaml(join(folder, "kustomization.yaml")) as [
    Kustomization,
  ];
  const manifests = resources.flatMap((resource) => {
    const path = join(folder, resource);
    return resource.endsWith(".yaml") ? (readYaml(path) as Manifest[]) : manifestsOf(path);
  });
  for (const { path, target } of patches) {
    const patched = manifests.find(
      ({ kind, metadata }) => kind === target.kind && metadata.name === target.name,
    );
    if (!patched) throw new Error(`${folder} has no ${target.kind} ${target.name} to patch.`);
    const [additions] = readYaml(join(folder, path)) as [Addition[]];
    for (const addition of additions) add(patched, addition);
  }
  return manifests;
}

/** The one manifest of a kind. */
export const found = <T>(folder: string, kind: string): T =>
  manifestsOf(folder).find((manifest) => manifest.kind === kind) as T;

/** What a folder's deployment makes pods of. */
export const podOf = (folder: string): IPodSpec =>
  found<IDeployment>(folder, "Deployment").spec!.template.spec!;

function add(document: object, { op, path, value }: Addition): void {
  if (op !== "add") throw new Error(`The operation ${op} isn't used here.`);
  const names = path.slice(1).split("/");
  const last = names.pop()!;
  let at = document as Record<string, unknown>;
  for (const name of names) at = at[name] as Record<string, unknown>;
  if (last in at) throw new Error(`${path} is there already.`);
  at[last] = value;
}
