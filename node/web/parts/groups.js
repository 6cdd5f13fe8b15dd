// Changes of one document that follow each other in a timeline, as one row: an evening of typing makes dozens of commits.

const PAUSE_SECONDS = 4 * 3600; // between two changes of a group: what comes later is of another day's work
const DOCUMENTS = ["text", "set", "dict"];

/** The document that a commit changes, or "". */
export function documentOf(kind) {
  const name = (kind ?? "").replace(/-(snapshot|squeeze)$/, "");
  return DOCUMENTS.includes(name) ? name : "";
}

/** Rows of a timeline, the newest first, as groups of one or more: `{ document, rows }`. */
export function groupsOf(rows) {
  const groups = [];
  for (const row of rows) {
    const { item } = row;
    const isPlain = !row.isVoid && !item.damaged && !item.erased && !item.unreadable;
    const document = isPlain ? documentOf(item.kind) : "";
    const last = groups.at(-1);
    const isNext = document && last?.document === document && Math.abs(last.rows.at(-1).item.time - item.time) <= PAUSE_SECONDS;
    if (isNext) last.rows.push(row);
    else groups.push({ document, rows: [row] });
  }
  return groups;
}

/** What a group is called by: its oldest commit, which stays so while newer ones come. */
export function keyOf(group) {
  return group.rows.at(-1).item.commit;
}

/** Groups as the items of a drawing: each stands for its commits, and follows what any of these follow. */
export function drawnAs(groups) {
  const keys = new Map();
  for (const group of groups) if (group.rows.length > 1) for (const { item } of group.rows) keys.set(item.commit, keyOf(group));
  return groups.map((group) => {
    const commit = keyOf(group);
    const acks = group.rows.flatMap(({ item }) => item.acks ?? []).map((ack) => keys.get(ack) ?? ack);
    return { commit, acks: keys.size ? [...new Set(acks)].filter((ack) => ack !== commit) : acks };
  });
}
