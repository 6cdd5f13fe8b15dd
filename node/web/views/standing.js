// How a repo stands with other nodes: as a sentence with a sign for the eye, and how far a transfer is.

import { when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { beside, isLive, may, persons } from "../state/node.js";
import { text } from "../strings/text.js";

/** Parts that stay until a person does something, whoever is in sync. */
const TO_DO = ["own_forks", "place_claimed", "signers_gone", "let_in", "join_refused", "ask_refused", "ask_closed", "ask_expired", "ask_failed"];
const SIGNS = { syncing: "going", waiting: "going", joining: "going", alone: "off", not_shared: "here" };

/** Parts of a standing that of a new repo say no more than that nobody else is there. */
const OF_OTHERS = ["alone", "not_shared", "unheld", "unheld_unknown", "unfetched_files"];

/** Whether a repo is new, and this user its only member: what the node does not know of others is beside the point then. */
export function isOnlyYou(repo) {
  const { state, held_at: heldAt, parts } = repo.standing;
  return ["alone", "not_shared"].includes(state) && heldAt === null && persons.value.length === 1 && may(repo, "admin") && parts.every(({ code }) => OF_OTHERS.includes(code));
}

/** Whether this user's place passed to another of its computers: nothing is wrong, and nothing new comes. */
export const isPassedOn = ({ standing }) => standing.parts.some(({ code, people }) => code === "former" && people);

/** The class of a standing's sign: style/base.css. */
export function signOf({ state, parts, held_at: heldAt, unheld }) {
  if (isPassedOn({ standing: { parts } })) return "off";
  if (["former", "cut_off", "damaged"].includes(state) || parts.some(({ code }) => TO_DO.includes(code))) return "wrong";
  if (!isLive.value || (state === "not_shared" && heldAt !== null && !unheld)) return "off"; // others have it, and are away
  return SIGNS[state] ?? (parts.some(({ code }) => code === "unfetched_files") ? "here" : "");
}

/** The sentences on a repo's standing. The id of a computer without a name leads to where one names it. */
export function Standing({ of }) {
  const parts = text.standingSentence(of, when).split(/((?:[Cc]omputer|[Rr]elay) [a-z2-7]{12}\b)/);
  return parts.map((part, index) => (index % 2 ? html`<a href=${beside("peers")}>${part}</a>` : part));
}

/** How far a transfer between nodes is, where it is known what there is. */
export function Transfer({ of }) {
  if (!of?.total) return null;
  return html`<progress class="transfer" max=${of.total} value=${of.done} aria-label=${text.transferred(of)} title=${text.transferred(of)}></progress>`;
}
