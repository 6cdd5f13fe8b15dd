// A window of a branch's timeline, kept right by edits alone, with its tangle drawn beside it, newest first.

const WINDOW = 200;
const END = 2 ** 53; // behind every position
const SHOWN_MAX = 2000;
const VOID_SHOWN_MAX = 20;
const LANES_MAX = 12;
const WHO_MAX = 24;
const LANE_WIDTH = 14;
const NODE_Y = 19;
const SVG = "http://www.w3.org/2000/svg";

export class Timeline {
  /** Shows into `list`; `older` is the button that asks for more. */
  constructor(list, older) {
    this.list = list;
    this.older = older;
    this.commits = new Map(); // id -> { item, place, isVoid }
    this.rows = new Map(); // id -> { li, drawn }
    this.start = 0; // position of the first that is shown
    this.names = new Map(); // what members are called now, by id
    this.isPlanned = false;
  }

  /** Loads the window's end. Gives the cursor from which edits are to be followed. */
  async load(api, branch) {
    this.api = api;
    const path = `/branches/${encodeURIComponent(branch)}`;
    this.path = path;
    this.#forget();
    const { items, cursor } = await api.get(`${path}/timeline?before_position=${END}&limit=${WINDOW}`);
    if (this.path !== path) return cursor; // another branch was chosen meanwhile
    this.start = items.length ? items[0].position : 0;
    for (const item of items) this.commits.set(item.commit, { item, place: item.place, isVoid: false });
    await this.#loadVoid();
    this.#draw();
    return cursor;
  }

  /** Loads what stands before the window. */
  async loadOlder() {
    const count = Math.min(this.start, WINDOW);
    this.start -= count;
    await this.#loadWindow(count);
    this.#draw();
  }

  /** Calls members so from now on. */
  call(names) {
    this.names = names;
    this.#plan();
  }

  /** Follows one edit. It may have been seen already: in the window, or before a break. */
  take(edit) {
    const known = this.commits.get(edit.commit);
    const oldest = this.#oldest();
    if (edit.edit === "remove") {
      if (known) known.isVoid = true;
    } else if (known) {
      this.commits.set(edit.commit, { item: edit.item ?? known.item, place: edit.place, isVoid: false });
    } else if (edit.item && (this.start === 0 || edit.place > oldest)) {
      this.commits.set(edit.commit, { item: edit.item, place: edit.place, isVoid: false, isNew: true });
    } else if (edit.edit === "insert") {
      this.start += 1; // before the window
    }
    this.#plan();
  }

  #forget() {
    this.commits.clear();
    this.rows.clear();
    this.list.replaceChildren();
  }

  async #loadWindow(count) {
    if (!count) return;
    const { path } = this;
    const answer = await this.api.get(`${path}/timeline?after_position=${this.start - 1}&limit=${count}`);
    if (this.path !== path) return;
    for (const item of answer.items) this.commits.set(item.commit, { item, place: item.place, isVoid: false });
  }

  async #loadVoid() {
    const { path } = this;
    const { voids } = await this.api.get(`${path}/voids`).catch((error) => {
      if (error.code === "damaged") return { voids: [] }; // nobody can tell now; what stands in the timeline is known
      throw error;
    });
    const oldest = this.start ? this.#oldest() : "";
    const items = await Promise.all(
      voids.slice(-VOID_SHOWN_MAX).map((one) => this.api.get(`/commits/${one.commit}`)),
    );
    for (const item of this.path === path ? items : []) {
      if (item.place > oldest) this.commits.set(item.commit, { item, place: item.place, isVoid: true });
    }
  }

  #oldest() {
    let oldest = "~";
    for (const { place } of this.commits.values()) if (place < oldest) oldest = place;
    return oldest;
  }

  /** Draws once before the next picture, however many edits come. A hidden page draws when it is looked at. */
  #plan() {
    if (this.isPlanned) return;
    this.isPlanned = true;
    requestAnimationFrame(() => {
      this.isPlanned = false;
      this.#draw();
    });
  }

  #draw() {
    let sorted = [...this.commits.values()].sort((a, b) => (a.place < b.place ? 1 : -1));
    for (const gone of sorted.slice(SHOWN_MAX)) {
      this.commits.delete(gone.item.commit);
      this.rows.get(gone.item.commit)?.li.remove();
      this.rows.delete(gone.item.commit);
      this.start += gone.isVoid ? 0 : 1;
    }
    sorted = sorted.slice(0, SHOWN_MAX);
    const drawings = layOut(sorted.map(({ item }) => item));
    const width = LANE_WIDTH * (1 + Math.max(1, ...drawings.map((one) => one.width)));
    this.list.style.setProperty("--tangle", `${width}px`);
    let before = null;
    sorted.forEach((one, index) => {
      const row = this.#row(one);
      row.li.classList.toggle("void", one.isVoid);
      row.who.textContent = whoOf(one.item, this.names);
      row.li.classList.toggle("head", drawings[index].isHead);
      row.note.textContent = one.isVoid ? "void: its author was removed; it counts no more" : "";
      const key = JSON.stringify([drawings[index], width]);
      if (row.drawn !== key) {
        row.drawn = key;
        row.li.firstChild.replaceWith(drawLanes(drawings[index], width));
      }
      const place = before ? before.nextSibling : this.list.firstChild;
      if (place !== row.li) this.list.insertBefore(row.li, place);
      before = row.li;
    });
    this.older.hidden = this.start === 0;
  }

  #row({ item, isNew }) {
    const found = this.rows.get(item.commit);
    if (found) return found;
    const said = make("span", "said", item.text?.trim().split("\n", 1)[0] || kindOf(item));
    if (!item.text) said.classList.add("kind");
    const summary = make("summary");
    const who = make("bdi", "who");
    summary.append(who, said, make("span", "when", whenOf(item.time)));
    const note = make("p", "alarm");
    const whole = make("pre", "", item.text ?? "");
    const author = item.imported_author ?? item.origin?.author ?? item.person; // the key, since names prove nothing
    const facts = make("p", "facts", `by ${author} · rank ${item.rank} · ${item.kind}`);
    const details = make("details");
    details.append(summary, note, whole, facts, make("p", "facts id", item.commit));
    const li = make("li", isNew ? "new" : "");
    li.append(document.createElementNS(SVG, "svg"), details);
    const row = { li, note, who, drawn: "" };
    this.rows.set(item.commit, row);
    return row;
  }
}

/**
 * Lanes for items in falling order, effects before causes: each waits in a lane for the first of its acks, and in
 * further lanes for the others. Gives for each item its own lane and lines as [from, to]: `above` end at it, `below`
 * begin at it, `past` lead by.
 */
export function layOut(items) {
  const lanes = []; // the commit that each waits for, or null
  return items.map(({ commit, acks }) => {
    const waiting = lanes.flatMap((awaited, lane) => (awaited === commit ? [lane] : []));
    const past = lanes.flatMap((awaited, lane) => (awaited && awaited !== commit ? [[lane, lane]] : []));
    const own = waiting.length ? waiting[0] : freeLane(lanes);
    for (const lane of waiting) lanes[lane] = null;
    lanes[own] = null;
    const below = acks.map((ack) => {
      let lane = lanes.indexOf(ack);
      if (lane < 0) lane = lanes[own] ? freeLane(lanes) : own;
      lanes[lane] = ack;
      return [own, lane];
    });
    const above = waiting.map((lane) => [lane, own]);
    const width = Math.min(1 + Math.max(own, ...[...above, ...past, ...below].flat()), LANES_MAX);
    return { own, above, past, below, width, isHead: !waiting.length };
  });
}

function freeLane(lanes) {
  const free = lanes.findIndex((awaited) => !awaited);
  return free < 0 ? lanes.push(null) - 1 : free;
}

function drawLanes({ own, above, past, below }, width) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("width", width);
  svg.setAttribute("aria-hidden", "true");
  const line = ([from, to], y1, y2, colour) => {
    const drawn = document.createElementNS(SVG, "line");
    const points = { x1: middle(from), y1, x2: middle(to), y2, class: `lane${colour % 6}` };
    for (const [name, value] of Object.entries(points)) drawn.setAttribute(name, value);
    svg.append(drawn);
  };
  for (const ends of past) line(ends, 0, "100%", ends[0]);
  for (const ends of above) line(ends, 0, NODE_Y, ends[0]);
  for (const ends of below) line(ends, NODE_Y, "100%", ends[1]);
  const node = document.createElementNS(SVG, "circle");
  const shape = { cx: middle(own), cy: NODE_Y, r: 4.5, class: `lane${own % 6}` };
  for (const [name, value] of Object.entries(shape)) node.setAttribute(name, value);
  svg.append(node);
  return svg;
}

function middle(lane) {
  return LANE_WIDTH * (Math.min(lane, LANES_MAX - 1) + 0.9);
}

function kindOf(item) {
  if (item.damaged) return `${item.kind}, damaged here`;
  if (item.erased) return `${item.kind}, erased`;
  if (item.unreadable) return `${item.kind}, unreadable`;
  return item.files?.length ? `files: ${item.files.join(", ")}` : item.kind;
}

/** Who is shown as the author. What an importer says of one is marked: it must not pass for a member's name. */
function whoOf(item, names) {
  if (item.imported_author) return `${cut(item.imported_author)} (imported)`;
  const { author, author_name: name } = item.origin ?? item;
  return cut(names.get(author) || name || (item.origin ? author : item.person).slice(0, 12));
}

/** A name that fits a row. What tells look-alikes apart stands at its end, and stays. */
function cut(name) {
  const mark = / \[[a-z2-7]+\]$/.exec(name)?.[0] ?? "";
  const plain = [...name.slice(0, name.length - mark.length)];
  return (plain.length > WHO_MAX ? `${plain.slice(0, WHO_MAX - 1).join("")}…` : plain.join("")) + mark;
}

function whenOf(seconds) {
  const date = new Date(seconds * 1000); // authors may assert any number
  return Number.isNaN(date.getTime()) ? "?" : date.toISOString().slice(0, 16).replace("T", " ");
}

/** An element with a class and a text. Texts are never markup. */
export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}
