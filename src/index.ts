/** @module The engine, without a backend: `deltafold/node` opens one. */
export type { BackendInfo, MemoryUse } from "./backend/backend.ts";
export {
  type ChatMessage,
  type ChatRequest,
  type CompletionRequest,
  Engine,
  type EngineInfo,
  type ReplyEvent,
  type ReplyRequest,
  type ToolSpec,
} from "./engine.ts";
export {
  BackendError,
  CheckpointError,
  ContextLengthError,
  DeltafoldError,
  InputError,
  MemoryError,
  NonFiniteLogitsError,
  QueueFullError,
} from "./errors.ts";
export type { DrafterCounts, SpeculativeCounts } from "./rounds/speculative.ts";
export { type Reply, type ReplyTimings, Stream } from "./stream.ts";
