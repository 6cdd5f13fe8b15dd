// A kanban board that a group keeps in a JSON document: everyone moves cards, offline too, and all boards end alike.
//
// Any web server can hand out this page. It calls the node of the machine that the browser runs on, with a token that was
// made for the page's origin: docs/apps/browser.md explains it.

import { RavelError, connect } from "../../clients/js/ravel.js";

// Lists under names that all copies of the page know: a board that two begin apart is one board.
const COLUMNS = [
  { key: "todo", title: "To do" },
  { key: "doing", title: "Doing" },
  { key: "done", title: "Done" },
];
const find = (id) => document.getElementById(id);
let stopFollowing = new AbortController();

/** Shows texts of others as text, never as HTML. */
function element(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, more);
}

/** Runs what a person asked for, and says what went wrong, and what to do next. */
async function attempt(work) {
  find("message").textContent = "";
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RavelError)) throw error;
    find("message").textContent = `${error.message}. ${error.advice}`;
  }
}

function button(text, work) {
  return element("button", text, { onclick: () => attempt(work) });
}

/** A card with its votes, and buttons that move it to the columns beside its own. */
function cardOf(board, card, at) {
  const shown = element("article", `${card.title} (${card.votes ?? 0}) `);
  shown.append(button("Vote", () => board.add("votes", 1, { item: card.$id })));
  for (const [beside, arrow] of [[COLUMNS[at - 1], "<"], [COLUMNS[at + 1], ">"]]) {
    if (beside) shown.append(button(arrow, () => board.move(card.$id, [beside.key])));
  }
  shown.append(button("Remove", () => board.remove([], { item: card.$id })));
  return shown;
}

function columnOf(board, { key, title }, at, cards) {
  const shown = document.createElement("section");
  const add = document.createElement("form");
  const label = element("label", "New card ");
  label.append(element("input", "", { name: "title", required: true }));
  add.append(label, element("button", "Add"));
  add.onsubmit = onForm((card) => board.insert(key, card));
  shown.append(element("h2", title), ...cards.map((card) => cardOf(board, card, at)), add);
  return shown;
}

/** Where several moved one card, or wrote one field, at the same time, the document says so. */
function show(board, { value, conflict_count: conflicts }) {
  const shown = COLUMNS.map((column, at) => columnOf(board, column, at, value[column.key] ?? []));
  find("columns").replaceChildren(...shown);
  find("message").textContent = conflicts ? `${conflicts} changes were made at the same time as others` : "";
}

/** The boards of the branch, with their open cards: what a query finds, live. */
async function followBoards(ravel, branch) {
  for await (const { documents } of ravel.documents(branch, { prefix: "board" }).live()) {
    const open = ({ value }) => (value.todo?.length ?? 0) + (value.doing?.length ?? 0);
    const shown = documents.map((one) =>
      button(`${one.name}: ${open(one)} open`, () => followBoard(ravel, branch, one.name)),
    );
    find("boards").replaceChildren(...shown);
  }
}

async function followBoard(ravel, branch, name) {
  const board = ravel.document(branch, name);
  stopFollowing.abort();
  const { signal } = (stopFollowing = new AbortController());
  try {
    for await (const state of board.live({ signal })) show(board, state);
  } catch (error) {
    if (!signal.aborted) throw error; // else another board is shown
  }
}

async function open({ url, branch, token, board }) {
  const ravel = connect({ url, token });
  await ravel.document(branch, board).read(); // refused here, where the form is still shown
  find("connect").hidden = true;
  await Promise.all([followBoard(ravel, branch, board), followBoards(ravel, branch)]);
}

function onForm(work) {
  return (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    attempt(() => work(values));
  };
}

find("connect").onsubmit = onForm(open);
