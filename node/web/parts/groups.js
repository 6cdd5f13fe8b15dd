// Commits that people see as one row: changes of one document that follow each other, and a message with its files.

const PAUSE_SECONDS = 4 * 3600; // between two changes of a group: what comes later is of another day's work
const MESSAGE_SECONDS = 60; // between a message's files, and between these and its words
const DOCUMENTS = ["text", "set", "dict", "json"];

/** The document that a commit changes, or "". JSON is of apps: no view of the page shows it. Which one a merge carried over is not said. */
export function documentOf({ kind, text, files, edits, deletes, deleted, hidden_by: hider }) {
  if (kind === "carried") return text || files?.length || edits || deletes || deleted || hider ? "" : kind;
  const name = (kind ?? "").replace(/-(snapshot|squeeze)$/, "");
  return DOCUMENTS.includes(name) ? name : "";
}

/** Whether a view of the page shows such a document. */
export function hasPanel(document) {
  return Boolean(document) && document !== "json" && document !== "carried";
}

/**
 * Rows of a timeline, the newest first, as groups of one or more: `{ document, rows, main, key }`. `main` is the row that
 * speaks for the group. `before` has the keys of the groups that are shown.
 */
export function groupsOf(rows, before = new Set()) {
  const groups = [];
  const naming = new Map(); // commit that added files of a post -> the post's group, which comes first: it is newer
  for (const row of rows) {
    const { item } = row;
    const message = naming.get(item.commit);
    if (message) {
      message.rows.push(row);
      continue;
    }
    const isPlain = !row.isVoid && !item.damaged && !item.erased && !item.unreadable;
    const document = isPlain ? documentOf(item) : "";
    const last = groups.at(-1);
    if (last && (document ? isNextChange(last, item, document) : isPlain && isOfMessage(last, item))) last.rows.push(row);
    else groups.push({ document, rows: [row], main: row });
    for (const { commit } of item.attachments ?? []) naming.set(commit, groups.at(-1));
  }
  for (const group of groups) group.key = keyOf(group.rows, before);
  return groups;
}

function isNextChange(group, item, document) {
  return group.document === document && group.main.item.document === item.document && Math.abs(group.rows.at(-1).item.time - item.time) <= PAUSE_SECONDS;
}

/** Whether files came just before the words or the files of a group, of the same author, and no post names its own. */
function isOfMessage(group, item) {
  const [main, oldest] = [group.main, group.rows.at(-1).item];
  if (item.kind !== "files" || !item.files?.length || group.document || main.isVoid || main.item.attachments) return false;
  const isMessage = main.item.kind === "files" ? main.item.files?.length : main.item.kind === "post" && !main.item.edits && !main.item.deletes;
  const isPlain = !main.item.damaged && !main.item.erased && !main.item.unreadable && !main.item.deleted && !main.item.hidden_by;
  return isMessage && isPlain && oldest.author === item.author && Math.abs(oldest.time - item.time) <= MESSAGE_SECONDS;
}

/** The files of a message, as its post names them, else as its commits added them: `{ commit, name, file, size }`. */
export function filesOf({ item }, rows) {
  if (item.attachments) return item.attachments.flatMap(({ commit, files }) => files.map((one) => ({ ...one, commit })));
  const adding = rows.toReversed().filter((row) => row.item.files?.length && !row.isVoid);
  return adding.flatMap((row) => row.item.files.map((name, index) => ({ commit: row.item.commit, name, file: row.item.files_added?.[index] ?? name })));
}

/** A group's key: the oldest of its commits when it was first drawn. It stays while newer and older ones join them. */
function keyOf(rows, before) {
  return (rows.find(({ item }) => before.has(item.commit)) ?? rows.at(-1)).item.commit;
}

/** Commits of groups of several, with their group's key. */
export function keysOf(groups) {
  return new Map(groups.flatMap(({ rows, key }) => (rows.length > 1 ? rows.map(({ item }) => [item.commit, key]) : [])));
}

const PEOPLE_MAX = 3; // of a thread, whose faces are shown: those who answered last

/** First post of each thread -> its replies among these rows, the newest first: `{ count, last, people, key }`. */
export function threadsOf(rows) {
  const found = new Map();
  for (const { item, isVoid } of rows) {
    const first = item.reply_to?.thread;
    if (!first || isVoid || item.edits || item.deletes || item.deleted || item.hidden_by) continue;
    if (!found.has(first)) found.set(first, { count: 0, last: item, people: [], key: "" });
    const thread = found.get(first);
    thread.count += 1;
    thread.key = `${thread.count} ${thread.last.commit}`; // another one when anything of it is
    const id = item.origin?.author ?? item.person ?? item.author;
    if (thread.people.length < PEOPLE_MAX && !thread.people.some((one) => one.id === id)) thread.people.push({ id, name: item.origin?.author_name ?? item.author_name ?? "" });
  }
  return found;
}
