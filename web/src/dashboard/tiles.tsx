import type { VNode } from "preact";
import type { Health } from "../api/server.ts";
import { absent, bytesText, countText, figureText, percentText } from "../shared/format.ts";
import type { Reading } from "./readings.ts";

interface FiguresProps {
  readonly latest: Reading | null;
  readonly health: Health | null;
}

/** The figures of the moment. */
export function Tiles({ latest, health }: FiguresProps): VNode {
  const { entries, bytes_max: bytesMax } = health?.prompt_cache ?? {};
  const cache = `${countText(entries)} prompts, at most ${bytesText(bytesMax)}`;
  const slots = `${countText(latest?.running)} of ${countText(latest?.slots)}`;
  return (
    <dl class="tiles">
      <Tile
        name="Replies"
        value={figureText(latest?.replyTokensPerSecond)}
        note="tokens a second"
      />
      <Tile
        name="Prompts"
        value={figureText(latest?.promptTokensPerSecond)}
        note="tokens a second"
      />
      <Tile name="Slots in use" value={slots} note="requests that run" />
      <Tile name="Waiting" value={countText(latest?.waiting)} note="requests in the queue" />
      <Tile
        name="Drafts kept"
        value={percentText(latest?.acceptedShare)}
        note="of those proposed"
      />
      <Tile name="Tokens a round" value={figureText(latest?.tokensPerRound)} note="all replies" />
      <Tile
        name="Keys and values"
        value={percentText(latest?.kvShare)}
        note="of their pages in use"
      />
      <Tile name="Prompt cache" value={bytesText(latest?.promptCacheBytes)} note={cache} />
    </dl>
  );
}

function Tile({ name, value, note }: { name: string; value: string; note: string }): VNode {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>
        {value}
        <span class="help">{note}</span>
      </dd>
    </div>
  );
}

const memoryNames: readonly (readonly [field: string, name: string])[] = [
  ["weight_bytes", "Weights"],
  ["state_bytes", "States"],
  ["kv_bytes", "Keys and values"],
  ["workspace_bytes", "Workspace"],
  ["total_bytes", "Together"],
];

/** What was taken when the model was opened, and what the process has. */
export function Memory({ latest, health }: FiguresProps): VNode {
  const rows = memoryNames.map(([field, name]) => [name, health?.memory?.[field]] as const);
  return (
    <section class="memory" aria-labelledby="memory-title">
      <h2 id="memory-title">Memory by part</h2>
      <dl>
        {[...rows, ["Process", latest?.residentBytes] as const].map(([name, bytes]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{bytes === undefined ? absent : bytesText(bytes)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
