/** What names another manifest, or a part of one: schemas don't look whether it is there. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import type { IHorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import type { INetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import type { IPodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import type { IService } from "kubernetes-models/v1/Service";
import { expect, test } from "vitest";
import { found, here, type Manifest, podOf } from "./kustomize.cases.ts";

const servers = ["overlays/cpu", "overlays/gpu"];
const all = [...servers, "workers"];

interface InferencePool {
  readonly metadata: Manifest["metadata"];
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly targetPorts: readonly { readonly number: number }[];
  };
}

const dockerfile = readFileSync(join(here, "../container/Dockerfile"), "utf8");

const labelsOf = (folder: string) =>
  found<IDeployment>(folder, "Deployment").spec!.template.metadata!.labels;
const policyOf = (folder: string) => found<INetworkPolicy>(folder, "NetworkPolicy").spec!;

test.each(all)("%s: selectors select the pods", (folder) => {
  expect(found<IDeployment>(folder, "Deployment").spec!.selector.matchLabels).toEqual(
    labelsOf(folder),
  );
  expect(policyOf(folder).podSelector!.matchLabels).toEqual(labelsOf(folder));
});

test("workers get no requests of a server", () => {
  expect(labelsOf("workers")).not.toEqual(labelsOf("overlays/gpu"));
});

test.each(servers)("%s: what sends requests selects the pods, and names their port", (folder) => {
  const budget = found<IPodDisruptionBudget>(folder, "PodDisruptionBudget").spec!;
  const service = found<IService>(folder, "Service").spec!;
  const pool = found<InferencePool>("gateway", "InferencePool").spec;
  for (const selector of [
    budget.selector!.matchLabels,
    service.selector,
    pool.selector.matchLabels,
  ]) {
    expect(selector).toEqual(labelsOf(folder));
  }
  const [port] = podOf(folder).containers[0]!.ports!;
  expect(service.ports![0]!.targetPort).toBe(port!.name);
  expect(pool.targetPorts).toEqual([{ number: port!.containerPort }]);
});

test("the route leads to the pool", () => {
  const { metadata } = found<InferencePool>("gateway", "InferencePool");
  const route = found<{ spec: { rules: { backendRefs: { name: string }[] }[] } }>(
    "gateway",
    "HTTPRoute",
  );
  expect(route.spec.rules[0]!.backendRefs[0]!.name).toBe(metadata.name);
});

test.each(all)("%s: the autoscaler scales the deployment", (folder) => {
  const { metadata } = found<IDeployment>(folder, "Deployment");
  const { scaleTargetRef } = found<IHorizontalPodAutoscaler>(folder, "HorizontalPodAutoscaler")
    .spec!;
  const deployment = { apiVersion: "apps/v1", kind: "Deployment", name: metadata!.name };
  expect(scaleTargetRef).toEqual(deployment);
});

test.each(all)("%s: probes and the policy name the port", (folder) => {
  const { startupProbe, readinessProbe, livenessProbe, ports, env } = podOf(folder).containers[0]!;
  const probes = [startupProbe, readinessProbe, livenessProbe].filter((probe) => probe);
  const named = probes.map((probe) => probe!.httpGet!.port);
  named.push(policyOf(folder).ingress![0]!.ports![0]!.port!);
  expect(new Set(named)).toEqual(new Set([ports![0]!.name]));
  // A server listens at its default.
  const told = env!.find(({ name }) => name === "DELTAFOLD_METRICS_PORT")?.value;
  expect(Number(told ?? 8080)).toBe(ports![0]!.containerPort);
});

test.each(all)("%s: what is mounted is there, where the image looks for it", (folder) => {
  const pod = podOf(folder);
  const [container] = pod.containers;
  const volumes = new Map(pod.volumes!.map((volume) => [volume.name, volume]));
  const claim = found<Manifest>(folder, "PersistentVolumeClaim").metadata.name;
  expect(volumes.get("models")!.persistentVolumeClaim!.claimName).toBe(claim);
  const mounts = container!.volumeMounts!;
  expect(new Set(mounts.map(({ name }) => name))).toEqual(new Set(volumes.keys()));
  const at = (path: string) => mounts.find(({ mountPath }) => mountPath === path)?.name;
  const env = (name: string) => new RegExp(`^ENV ${name}=(.*)$`, "m").exec(dockerfile)![1]!;
  expect(at(env("HF_HOME"))).toBe("models");
  expect(at(env("XDG_CACHE_HOME"))).toBeDefined();
  const keys = container!.env!.find(({ name }) => name === "DELTAFOLD_API_KEY_FILE");
  expect(keys !== undefined).toBe(servers.includes(folder));
  if (keys) expect(at(dirname(keys.value!))).toBe("keys");
});
