/** What the server says about itself. */
import type { Engine, EngineInfo } from "../engine.ts";

/** Whether it can serve. @param reasons whether they are told */
export function healthStatus({ condition }: Engine, reasons: boolean): object {
  const { status, error } = condition;
  return { status, ...(reasons && error && { reason: error.message }) };
}

export function health(engine: Engine): object {
  const { model, contextTokens, backend, promptCacheBytes } = engine.info;
  const { entries, bytes } = engine.cached;
  const { weightBytes, stateBytes, kvBytes, workspaceBytes } = backend.memory;
  return {
    ...healthStatus(engine, true),
    model,
    context_length: contextTokens,
    backend: { name: backend.name, device: backend.device, arithmetic: backend.arithmetic },
    memory: {
      weight_bytes: weightBytes,
      state_bytes: stateBytes,
      kv_bytes: kvBytes,
      workspace_bytes: workspaceBytes,
      total_bytes: weightBytes + stateBytes + kvBytes + workspaceBytes,
    },
    requests: engine.counts,
    // Requests that may run at once.
    slots: backend.slots,
    prompt_cache: { entries, bytes, bytes_max: promptCacheBytes },
  };
}

/** @param created seconds since 1970 */
export function modelCard({ model, contextTokens, backend }: EngineInfo, created: number): object {
  return {
    id: model,
    object: "model",
    created,
    owned_by: "deltafold",
    context_length: contextTokens,
    // vLLM's name for it.
    max_model_len: contextTokens,
    // llama.cpp's.
    meta: {
      n_ctx: contextTokens,
      n_ctx_train: backend.shape.contextMax,
      n_vocab: backend.shape.vocabSize,
      n_embd: backend.shape.hiddenSize,
      size: backend.memory.weightBytes,
    },
  };
}
