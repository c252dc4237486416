import type { VNode } from "preact";
import { useId, useState } from "preact/hooks";
import {
  faultOfTools,
  type NumberRule,
  numberRules,
  readNumber,
  type Settings,
} from "../conversation/settings.ts";
import type { Chats } from "./chats.ts";

/** The settings of the open conversation. */
export function SettingsFields({ chats }: { chats: Chats }): VNode {
  const { settings } = chats.open.value;
  const set = (changes: Partial<Settings>) =>
    chats.setSettings({ ...chats.open.value.settings, ...changes });
  return (
    <div class="fields">
      <p class="help">They hold for this conversation, and for those that you begin.</p>
      <TextField
        label="System prompt"
        text={settings.systemPrompt}
        help="what the model is told before everything else"
        fault={() => null}
        set={(systemPrompt) => set({ systemPrompt })}
      />
      {numberRules.map((rule) => (
        <NumberField
          key={rule.name}
          rule={rule}
          value={settings[rule.name]}
          set={(value) => set({ [rule.name]: value })}
        />
      ))}
      <ThinkingField thinking={settings.thinking} set={(thinking) => set({ thinking })} />
      <label class="check">
        <input
          type="checkbox"
          checked={settings.drafts}
          onChange={({ currentTarget: { checked } }) => set({ drafts: checked })}
        />
        Drafts <span class="help">faster, and the same tokens</span>
      </label>
      <TextField
        label="Tools"
        text={settings.tools}
        help="a JSON list of functions that the model may call"
        fault={faultOfTools}
        set={(tools) => set({ tools })}
      />
    </div>
  );
}

interface NumberProps {
  readonly rule: NumberRule;
  readonly value: number | null;
  readonly set: (value: number | null) => void;
}

/** What can't be taken is kept as it was typed, and changes nothing. */
function NumberField({ rule, value, set }: NumberProps): VNode {
  const id = useId();
  const [typed, setTyped] = useState(value === null ? "" : String(value));
  const read = readNumber(rule, typed);
  const fault = typeof read === "string" ? read : null;
  return (
    <div class="field">
      <label for={id}>{rule.label}</label>
      <input
        id={id}
        inputMode={rule.whole ? "numeric" : "decimal"}
        placeholder={rule.name === "seed" ? "drawn" : "server's"}
        aria-describedby={`${id}-help`}
        aria-invalid={fault !== null}
        value={typed}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value);
          const next = readNumber(rule, currentTarget.value);
          if (typeof next !== "string") set(next);
        }}
      />
      <Help id={id} help={rule.help} fault={fault} />
    </div>
  );
}

interface TextProps {
  readonly label: string;
  readonly text: string;
  readonly help: string;
  readonly fault: (text: string) => string | null;
  readonly set: (text: string) => void;
}

function TextField({ label, text, help, fault, set }: TextProps): VNode {
  const id = useId();
  const [typed, setTyped] = useState(text);
  const found = fault(typed);
  return (
    <div class="field wide">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={3}
        aria-describedby={`${id}-help`}
        aria-invalid={found !== null}
        value={typed}
        onInput={({ currentTarget: { value } }) => {
          setTyped(value);
          if (fault(value) === null) set(value);
        }}
      />
      <Help id={id} help={help} fault={found} />
    </div>
  );
}

function Help({ id, help, fault }: { id: string; help: string; fault: string | null }): VNode {
  return (
    <p id={`${id}-help`} class={fault === null ? "help" : "help fault"}>
      {fault ?? help}
    </p>
  );
}

const thinkingChoices = [
  ["", "As the model is made"],
  ["true", "On"],
  ["false", "Off"],
] as const;

interface ThinkingProps {
  readonly thinking: boolean | null;
  readonly set: (thinking: boolean | null) => void;
}

function ThinkingField({ thinking, set }: ThinkingProps): VNode {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Thinking</label>
      <select
        id={id}
        value={thinking === null ? "" : String(thinking)}
        onChange={({ currentTarget: { value } }) => set(value === "" ? null : value === "true")}
      >
        {thinkingChoices.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}
