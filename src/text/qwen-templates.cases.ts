/**
 * Templates that behave as those of Qwen3.5, 3.6 and 3.8 do (../shared/spec/model.md, 6.4), with words of
 * their own and the constructs that those are written with.
 */
export type TemplateVersion = "3.5" | "3.6" | "3.8";

const text = `
{%- macro text_of(content) %}
    {%- if content is string %}
        {{- content }}
    {%- elif content is iterable and content is not mapping %}
        {%- for part in content %}
            {{- part.text if 'text' in part else raise_exception('Only text is read.') }}
        {%- endfor %}
    {%- elif content is not none and content is not undefined %}
        {{- raise_exception('Content of another kind.') }}
    {%- endif %}
{%- endmacro %}`;

const effort = `
{%- set note = namespace(text='') %}
{%- if enable_thinking is undefined or enable_thinking is true %}
    {%- set level = reasoning_effort | default('xhigh') %}
    {%- if level not in ('low', 'medium', 'xhigh') %}
        {{- raise_exception('No such effort: ' ~ level) }}
    {%- elif level != 'medium' %}
        {%- set note.text = 'Effort: ' ~ level ~ '.' %}
    {%- endif %}
{%- endif %}`;

const system = `
{%- set head = namespace(parts=[]) %}
{%- if note is defined and note.text %}
    {%- set head.parts = head.parts + [note.text] %}
{%- endif %}
{%- if tools and tools is iterable and tools is not mapping %}
    {%- set listed = namespace(lines=['# Functions', '<tools>']) %}
    {%- for tool in tools %}
        {%- set listed.lines = listed.lines + [tool | tojson] %}
    {%- endfor %}
    {%- set head.parts = head.parts + [listed.lines | join('\\n') + '\\n</tools>', 'Call them so.'] %}
{%- endif %}
{%- if messages[0].role == 'system' %}
    {%- set head.parts = head.parts + [text_of(messages[0].content) | trim] %}
{%- endif %}
{%- if head.parts %}
    {{- '<|im_start|>system\\n' + head.parts | join('\\n\\n') + '<|im_end|>\\n' }}
{%- endif %}`;

const lastQuery = `
{%- set last = namespace(query=-1) %}
{%- for message in messages[::-1] %}
    {%- if last.query < 0 and message.role == "user" %}
        {%- set asked = text_of(message.content) | trim %}
        {%- if not (asked.startswith('<tool_response>') and asked.endswith('</tool_response>')) %}
            {%- set last.query = messages | length - 1 - loop.index0 %}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if last.query < 0 %}
    {{- raise_exception('Nobody asked anything.') }}
{%- endif %}`;

const cutReasoning = `
        {%- if '</think>' in said and message.reasoning_content is not string %}
            {%- set thought = said.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set said = said.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}`;

const values = {
  "3.5":
    "value | tojson | safe if value is mapping or (value is sequence and value is not string) " +
    "else value | string",
  "3.6": "value | string if value is string else value | tojson | safe",
  "3.8": "value | string if value is string else value | tojson | safe",
};

const reasoningKept = {
  "3.5": "loop.index0 > last.query",
  "3.6": "(preserve_thinking is defined and preserve_thinking is true) or loop.index0 > last.query",
  "3.8": "preserve_thinking is undefined or preserve_thinking is true or loop.index0 > last.query",
};

const assistant = (version: TemplateVersion): string => `
        {%- set thought = message.reasoning_content if message.reasoning_content is string else '' %}
        ${version === "3.8" ? "" : cutReasoning}
        {{- '<|im_start|>assistant\\n' }}
        {%- if ${reasoningKept[version]} %}
            {{- '<think>\\n' + thought | trim + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- said }}
        {%- for tool_call in message.tool_calls or [] %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- ('\\n\\n' if said | trim else '') if loop.first else '\\n' }}
            {{- '<tool_call>\\n<function=' + tool_call.name + '>\\n' }}
            {%- for key, value in tool_call.arguments | items %}
                {{- '<parameter=' + key + '>\\n' }}
                {%- set value = ${values[version]} %}
                {{- value }}
                {{- '\\n</parameter>\\n' }}
            {%- endfor %}
            {{- '</function>\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}`;

const turns = (version: TemplateVersion): string => `
{%- for message in messages %}
    {%- set said = text_of(message.content) | trim %}
    {%- if message.role == "system" %}
        {%- if not loop.first %}
            {{- raise_exception('A system message must come first.') }}
        {%- endif %}
    {%- elif message.role == "user" %}
        {{- '<|im_start|>user\\n' + said + '<|im_end|>\\n' }}
    {%- elif message.role == "assistant" %}
${assistant(version)}
    {%- elif message.role == "tool" %}
        {%- if loop.previtem and loop.previtem.role != "tool" %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + said + '\\n</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != "tool" %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- else %}
        {{- raise_exception('No such role: ' + message.role) }}
    {%- endif %}
{%- endfor %}`;

const reply = (thinks: string): string => `
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if ${thinks} %}
        {{- '<think>\\n' }}
    {%- else %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
`;

/** @param size of the small models, none thinks unless it is asked to */
export function qwenTemplate(version: TemplateVersion, size: "small" | "large" = "large"): string {
  const asked = "enable_thinking is defined and enable_thinking is true";
  const thinks =
    size === "small" ? asked : "enable_thinking is undefined or enable_thinking is true";
  const start = version === "3.8" ? text + effort : text;
  return start + system + lastQuery + turns(version) + reply(thinks);
}
