import type { VNode } from "preact";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import { Markdown } from "./markdown.tsx";

/** The markup of a text, without what stands around it. */
function markup(text: string): string {
  const html = renderToString(h(Markdown, { text, grows: false }) as VNode);
  return html.replace(/^<div class="markdown">(.*)<\/div>$/s, "$1");
}

/** Text as it stands in markup. */
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

/** A code block as it is drawn. */
const code = (language: string, text: string): string =>
  `<figure class="code"><figcaption><span>${language}</span>` +
  '<button type="button" class="quiet" aria-label="Copy code">Copy</button></figcaption>' +
  `<pre tabindex="0"><code>${text}</code></pre></figure>`;

test("draws what models write", () => {
  expect(markup("# A\n\ntext **b** *c* ~~d~~ `e`\nnext\n\n---\n\n> q")).toBe(
    "<h3>A</h3><p>text <strong>b</strong> <em>c</em> <del>d</del> <code>e</code><br/>next</p>" +
      "<hr/><blockquote><p>q</p></blockquote>",
  );
  expect(markup("3. a\n4. b\n   - c\n")).toBe(
    '<ol start="3"><li>a</li><li>b<ul><li>c</li></ul></li></ol>',
  );
  expect(markup("- [x] done\n- [ ] open")).toBe(
    '<ul><li><span class="task">☑ </span>done</li><li><span class="task">☐ </span>open</li></ul>',
  );
  expect(markup("| a | b |\n|---|--:|\n| `c` | d |")).toContain(
    '<tbody><tr><td class><code>c</code></td><td class="at-right">d</td></tr></tbody>',
  );
  expect(markup("####### no heading")).toBe("<p>####### no heading</p>");
  expect(markup("###### deepest")).toBe("<h6>deepest</h6>");
});

test.each([
  "__init__ and __name__",
  "*args and **kwargs, f(*args, **kwargs), g(*args)",
  "a_b_c and 2*3*4 and a*b*c",
  "<div> and </div> and <br> and <!-- x -->",
  "$x$ and $a_1 * b_1 * c$ and $\\{x\\}$ cost $5 or $10",
  "\\(x_1\\) and \\[ y_1 * z_1 * w \\] and $$a_1*b_1*c$$",
  "~5 to ~10 and a~b~c",
  "&lt;b&gt; &amp; c",
])("leaves plain words as they are: %s", (text) => {
  expect(markup(text)).toBe(`<p>${escaped(text)}</p>`);
});

test.each(["__init__", "*args", "<div>", "a_b_c", "$x$", "\\(", "[a](b)", "&amp;", "**b**"])(
  "leaves code as it is: %s",
  (text) => {
    const shown = escaped(text);
    expect(markup(`\`${text}\``)).toBe(`<p><code>${shown}</code></p>`);
    expect(markup(`\`\`\`py title\n${text}\n\n# ${text}\n\`\`\``)).toBe(
      code("py", `${shown}\n\n# ${shown}`),
    );
    // The fence is still open.
    expect(markup(`~~~\n${text}\n\n- ${text}`)).toBe(code("code", `${shown}\n\n- ${shown}`));
  },
);

test("reads no HTML", () => {
  const lines = ["<script>alert(1)</script>", '<img src=x onerror="alert(1)">', "<b>x</b>"];
  expect(markup(lines.join("\n\n"))).toBe(lines.map((line) => `<p>${escaped(line)}</p>`).join(""));
  expect(markup(`<div>\n${lines[1]}\n</div>`)).not.toContain("<img");
  expect(markup('[a](https://x.org "t\\" onclick=\\"alert(1)")')).not.toContain("onclick");
});

const linked = (href: string, text: string): string =>
  `<p><a href="${href}" target="_blank" rel="noopener noreferrer">${text}</a></p>`;

test("links lead to the web and to mail alone", () => {
  expect(markup("[a **b**](https://x.org/?q=1&r=2)")).toBe(
    linked("https://x.org/?q=1&amp;r=2", "a <strong>b</strong>"),
  );
  expect(markup("<https://x.org>")).toBe(linked("https://x.org/", "https://x.org"));
  expect(markup("me@x.org")).toBe(linked("mailto:me@x.org", "me@x.org"));
  for (const href of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "blob:https://x.org/1",
    "vbscript:x",
    "/v1/models",
    "#a",
    "//x.org",
  ]) {
    expect(markup(`[a](${href})`)).toBe(`<p>[a](${href})</p>`);
  }
  expect(markup("[a](java\nscript:alert(1))")).not.toContain("<a");
});

test("images are links, and are not fetched", () => {
  const image = "![alt text](https://x.org/a.png)";
  expect(markup(image)).toBe(linked("https://x.org/a.png", "Image: alt text"));
  expect(markup(`[${image}](https://y.org)`)).toBe(linked("https://y.org/", "Image: alt text"));
  expect(markup("![a](data:image/png;base64,AA)")).toBe("<p>![a](data:image/png;base64,AA)</p>");
});
