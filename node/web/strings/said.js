// Sentences of the node in another language: a table of English ones with holes ({0}), and what they are there.

/** Returns a function that says a sentence of the node by a table; what the table has not stays as it is. */
export function speakerOf(table) {
  const known = Object.entries(table)
    .map(([english, meant]) => ({ pieces: english.split(/\{\d\}/), meant }))
    .sort((one, other) => lengthOf(other) - lengthOf(one)); // the one that says most fits best
  /** `isOne`: no value has a sentence's end. */
  const whole = (said, isOne) => {
    for (const { pieces, meant } of known) {
      const values = valuesIn(said, pieces);
      if (!values || (isOne && values.some((one) => SENTENCE_END.test(one)))) continue;
      return meant.replace(/\{(\d)(\*?)\}/g, (_, at, isSaid) => (isSaid ? say(values[at]) : values[at]));
    }
    return null;
  };
  const part = (said) => {
    const bare = said.replace(/[.;]+$/, "");
    const found = said.endsWith(";") ? null : whole(said, true); // no sentence of the table has that mark
    return found ?? (whole(bare, true) ?? bare) + said.slice(bare.length);
  };
  /** Of a text that is not in the table as a whole, each sentence is looked for, and then each part of a list. */
  const say = (said) => {
    for (const parts of [[said], said.split(SENTENCE_END)]) {
      const spoken = parts.map(part).join(" ");
      if (spoken !== said) return spoken;
    }
    return whole(said, false) ?? said.split(", ").map(part).join(", ");
  };
  return say;
}

const SENTENCE_END = /(?<=;) |(?<=\.) (?=[A-Z`])/;
const lengthOf = ({ pieces }) => pieces.join("").length;

/** The values in the holes between pieces of a text, or null where it has others. Linear in the text. */
function valuesIn(said, pieces) {
  const [first, ...others] = pieces;
  if (!others.length) return said === first ? [] : null;
  const last = others.pop();
  if (!said.startsWith(first) || !said.endsWith(last)) return null;
  const values = [];
  let from = first.length;
  for (const piece of others) {
    const to = said.indexOf(piece, from + 1);
    if (to < 0) return null;
    values.push(said.slice(from, to));
    from = to + piece.length;
  }
  const end = said.length - last.length;
  return end > from ? [...values, said.slice(from, end)] : null;
}
