/** More marks in a row than any script writes. */
const crowd = /\p{M}{64}/u;
/** Such marks with the character that they are on, which may bring some of its own. */
const crowds = /\P{M}?\p{M}{64,}/gu;

/**
 * A text in Unicode's composed form (NFC). The engine's own `normalize` moves marks past each other
 * one by one, which takes minutes for 500,000 of them: where there are many, they are brought into
 * order before.
 */
export function compose(text: string): string {
  return (crowd.test(text) ? text.replace(crowds, inOrder) : text).normalize("NFC");
}

/** The same text decomposed, with the marks of each character in canonical order (Unicode 3.11, D109). */
function inOrder(marked: string): string {
  const decomposed = new Map(
    Array.from(new Set(marked), (letter) => [letter, [...letter.normalize("NFD")]] as const),
  );
  const classes = combiningClasses(new Set([...decomposed.values()].flat()));
  let text = "";
  /** Since the latest letter without a class: the marks of each class, as they came. */
  let marks: string[] = [];
  for (const letter of marked) {
    for (const part of decomposed.get(letter)!) {
      const combining = classes.get(part);
      if (combining === undefined) {
        text += marks.join("") + part;
        marks = [];
      } else marks[combining] = (marks[combining] ?? "") + part;
    }
  }
  return text + marks.join("");
}

/**
 * Numbers for the combining classes of those letters that have one, ascending with them. JavaScript
 * doesn't tell the classes; `normalize` swaps two marks where the first has the higher one.
 */
function combiningClasses(letters: ReadonlySet<string>): ReadonlyMap<string, number> {
  const swaps = (a: string, b: string) => (a + b).normalize("NFD") === b + a && a !== b;
  // Of all classes, U+0345 has the highest and U+0334 the lowest.
  const combines = (letter: string) => swaps("\u0345", letter) || swaps(letter, "\u0334");
  const marks = [...letters].filter(combines);
  marks.sort((a, b) => Number(swaps(a, b)) - Number(swaps(b, a)));
  const classes = new Map<string, number>();
  let latest = 0;
  for (const [index, mark] of marks.entries()) {
    if (index > 0 && swaps(mark, marks[index - 1]!)) latest++;
    classes.set(mark, latest);
  }
  return classes;
}
