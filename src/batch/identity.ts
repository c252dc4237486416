/** Who made a result: of equal identities, whoever serves a request gives the same. */
export interface WorkerIdentity {
  /** Host and process; the one field that may differ between equal results. */
  readonly name: string;
  readonly model: string;
  /** The version of deltafold. */
  readonly build: string;
  /** The device's class: what computes, and how precisely. */
  readonly device: string;
  /** 16 hex digits of weights, tokenizer, template and defaults. */
  readonly weights: string;
  /** 16 hex digits of what they make of a fixed prompt. */
  readonly probe: string;
}

/** What a batch asks of workers; absent: any will do. */
export interface Demands {
  /** The whole version. */
  readonly build?: string;
  /** Part of the device's class. */
  readonly device?: string;
  /** The first digits at least. */
  readonly weights?: string;
}

/** Why a worker must leave a batch to others; null: it may serve it. */
export function unmet(demands: Demands, identity: WorkerIdentity): string | null {
  const { build, device, weights } = demands;
  const differs = (what: string, asked: string, has: string) =>
    `it asks for ${what} ${asked}, and this worker has ${has}`;
  if (build !== undefined && build !== identity.build) {
    return differs("build", build, identity.build);
  }
  if (device !== undefined && !identity.device.includes(device)) {
    return differs("device", device, identity.device);
  }
  if (weights !== undefined && !identity.weights.startsWith(weights)) {
    return differs("weights", weights, identity.weights);
  }
  return null;
}
