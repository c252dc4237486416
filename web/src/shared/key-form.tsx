import type { VNode } from "preact";
import { useId, useState } from "preact/hooks";
import type { Connection } from "./connection.ts";

/** Asks for the server's API key, which stays in this browser. */
export function KeyForm({ connection }: { connection: Connection }): VNode {
  const id = useId();
  const [key, setKey] = useState(connection.key);
  return (
    <form
      class="key-form"
      onSubmit={(event) => {
        event.preventDefault();
        connection.useKey(key);
      }}
    >
      <label for={id}>API key</label>
      <input
        id={id}
        type="password"
        autocomplete="off"
        aria-describedby={`${id}-help`}
        value={key}
        onInput={({ currentTarget }) => setKey(currentTarget.value)}
      />
      <button type="submit">Use</button>
      <p id={`${id}-help`} class="help">
        {connection.wantsKey.value ? "The server wants a key. " : ""}It is kept in this browser
        only.
      </p>
    </form>
  );
}
