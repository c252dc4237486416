/** The schemas that manifests are held to. */
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute";
import { Ajv, type AnySchema } from "ajv";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { PersistentVolumeClaim } from "kubernetes-models/v1/PersistentVolumeClaim";
import { Service } from "kubernetes-models/v1/Service";
import type { Manifest } from "./kustomize.cases.ts";

/** Published as JSON schemas, and as types of the same: what the former allow beyond the latter is a typo. */
const models = {
  "apps/v1/Deployment": Deployment,
  "autoscaling/v2/HorizontalPodAutoscaler": HorizontalPodAutoscaler,
  "gateway.networking.k8s.io/v1/HTTPRoute": HTTPRoute,
  "networking.k8s.io/v1/NetworkPolicy": NetworkPolicy,
  "policy/v1/PodDisruptionBudget": PodDisruptionBudget,
  "v1/PersistentVolumeClaim": PersistentVolumeClaim,
  "v1/Service": Service,
};

const name = { type: "string", minLength: 1, maxLength: 253 };
const port = {
  type: "object",
  properties: { number: { type: "integer", minimum: 1, maximum: 65535 } },
  required: ["number"],
  additionalProperties: false,
};

/**
 * Of no package: written from the reference of the Gateway API Inference Extension, for the fields that
 * are used here. It proves less than a published one.
 */
const inferencePool: AnySchema = {
  type: "object",
  properties: {
    selector: {
      type: "object",
      properties: {
        matchLabels: {
          type: "object",
          additionalProperties: { type: "string", maxLength: 63 },
          minProperties: 1,
        },
      },
      required: ["matchLabels"],
      additionalProperties: false,
    },
    targetPorts: { type: "array", items: port, minItems: 1, maxItems: 8 },
    endpointPickerRef: {
      type: "object",
      properties: { name, port, failureMode: { enum: ["FailOpen", "FailClose"] } },
      // The reference demands the port where the kind is Service, which it is unless given.
      required: ["name", "port"],
      additionalProperties: false,
    },
  },
  required: ["selector", "targetPorts", "endpointPickerRef"],
  additionalProperties: false,
};

const isInferencePool = new Ajv().compile(inferencePool);

/** @throws Error that says where a manifest isn't as its schema wants it */
export function validate(manifest: Manifest): void {
  const id = idOf(manifest);
  if (id === "inference.networking.k8s.io/v1/InferencePool") {
    if (!isInferencePool(manifest.spec)) throw new Error(JSON.stringify(isInferencePool.errors));
    return;
  }
  const Model = (models as Record<string, new (data: never) => { validate(): void }>)[id];
  if (!Model) throw new Error(`There is no schema for ${id}.`);
  new Model(manifest as never).validate();
}

/** Whether it has a published schema. */
export const isPublished = (manifest: Manifest): boolean => idOf(manifest) in models;

/** A module that names, as a type, what a manifest may have. */
export function typeOf(manifest: Manifest): { readonly module: string; readonly name: string } {
  const id = idOf(manifest);
  const owner = id.startsWith("gateway.") ? "@kubernetes-models/gateway-api" : "kubernetes-models";
  return { module: `${owner}/${id}`, name: `I${manifest.kind}` };
}

const idOf = ({ apiVersion, kind }: Manifest): string => `${apiVersion}/${kind}`;
