// Changes of one document that follow each other in a timeline, as one row: an evening of typing makes dozens of commits.

const PAUSE_SECONDS = 4 * 3600; // between two changes of a group: what comes later is of another day's work
const DOCUMENTS = ["text", "set", "dict"];

/** The document that a commit changes, or "". */
export function documentOf(kind) {
  const name = (kind ?? "").replace(/-(snapshot|squeeze)$/, "");
  return DOCUMENTS.includes(name) ? name : "";
}

/**
 * Rows of a timeline, the newest first, as groups of one or more: `{ document, rows, key }`. `before` has the keys of the
 * groups that are shown.
 */
export function groupsOf(rows, before = new Set()) {
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
  for (const group of groups) group.key = keyOf(group.rows, before);
  return groups;
}

/** A group's key: the oldest of its commits when it was first drawn. It stays while newer and older ones join them. */
function keyOf(rows, before) {
  return (rows.find(({ item }) => before.has(item.commit)) ?? rows.at(-1)).item.commit;
}

/** Commits of groups of several, with their group's key. */
export function keysOf(groups) {
  return new Map(groups.flatMap(({ rows, key }) => (rows.length > 1 ? rows.map(({ item }) => [item.commit, key]) : [])));
}

/** Groups as the items of a drawing: each stands for its commits, and follows what any of these follow. */
export function drawnAs(groups) {
  const keys = keysOf(groups);
  return groups.map(({ rows, key: commit }) => {
    const acks = rows.flatMap(({ item }) => item.acks ?? []).map((ack) => keys.get(ack) ?? ack);
    return { commit, acks: keys.size ? [...new Set(acks)].filter((ack) => ack !== commit) : acks };
  });
}
