// How a repo stands with others, in English: the words of each part that the node answers (`StandingPart`).

import { many } from "./en_counts.js";

const PEOPLE_NAMED_MAX = 3;
const QUIET_MAX_SECONDS = 600; // from which on the node counts no further
const ID_SHOWN = 12;

export const lasting = (seconds) => {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

const some = (part, one, several) => `${part.least ? "at least " : ""}${many(part.count, one, several)}`;
const yours = (part, what) =>
  `${part.least ? "at least " : ""}${part.count} of your ${what} ${part.count === 1 ? "is" : "are"} on this computer only, as far as known`;
const are = (part) => (part.count === 1 ? "is" : "are");
/** How far a transfer is, as far as that is known. */
export const transferred = ({ done, total, rate, seconds_left }) =>
  `${done} of ${total ?? "an unknown number of"} changes${rate ? `, ${rate}/s` : ""}${seconds_left === null ? "" : `, ${lasting(seconds_left)} left`}`;

const pace = ({ rate, seconds }) => (rate ? ` (${rate} a second${seconds === undefined ? "" : `, ${lasting(seconds)} left`})` : "");

/** A peer as this user calls it, else whose it is; empty where neither is known. */
export function calledPeer({ name, owner }) {
  if (name || !owner) return name;
  if (owner.earlier && (owner.mine || owner.name)) return `${owner.mine ? "your" : `${owner.name}’s`} earlier computer`;
  if (owner.mine) return owner.device ? `your ${owner.device}` : "your other computer";
  return owner.name && owner.device ? `${owner.name}’s ${owner.device}` : owner.name;
}

function peers(part) {
  const names = (part.peers ?? []).map((one) => calledPeer(one) || `${one.relay ? "relay" : "computer"} ${one.peer.slice(0, ID_SHOWN)}`);
  const more = part.code === "in_sync" && names.length ? part.count : 0;
  if (more) names.push(`${more} more`);
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0] || "another computer";
}
const isSeveral = (part) => (part.peers ?? []).length > 1 || (part.code === "in_sync" && part.count > 0);
const have = (part) => (isSeveral(part) ? "have" : "has");

/** Some names, joined by a word, the first of many. */
function names({ people }, word) {
  const rest = people.length - PEOPLE_NAMED_MAX;
  const named = rest > 0 ? [...people.slice(0, PEOPLE_NAMED_MAX - 1), `${rest + 1} others`] : people;
  return named.join(` ${word} `);
}

function helpers(part, one, several) {
  const { length } = part.people;
  return length ? `, which ${names(part, "or")} ${length === 1 ? one : several}` : "";
}

/** Why a relay takes no more of a repo -> its words. */
const REFUSALS = {
  account_full: "your account there has used its quota",
  peer_full: "this computer has brought as much as one may",
  subnet_full: "computers of your network have brought as much as they may",
  topic_full: "the repo has as much there as one may",
  relay_full: "it is full",
  topic_forgotten: "it made room, and takes the repo again later",
  not_known: "it takes only what accounts and computers that it knows bring",
  file_too_large: "a file is larger than all that it keeps for one",
  bad_topic_signature: "you may not write there",
};

/** Code of a part -> its words; `since` is " since TIME", or nothing. */
const WORDS = {
  membership_damaged: () => "who is a member cannot be told: parts of the membership are damaged here",
  ask_sending: () => "asking to join: the request goes out when a computer of the link is met",
  ask_waiting: (one) => `asked ${one.people[0]} to be let in, and waiting for an answer; code: ${one.reason}`,
  ask_accepted: () => "let in: the repo has not come yet",
  ask_refused: (one) => `${one.people[0]} refused the request`,
  ask_closed: () => "the link was ended and nobody answered; ask for a new one",
  ask_expired: () => "the link has expired and nobody answered; ask for a new one",
  ask_failed: (one) => `the link lets you ask nothing: ${one.reason}`,
  joining: () => "joining: the membership has not come yet",
  secrets_missing: (one, since) =>
    `waiting for new keys${since}: members have gone on to them, and none has handed them to this computer yet${helpers(one, "has", "have")}`,
  excluded: (_, since) => `you are not a member any more${since}, and what others write from then on is not for this computer`,
  former: ({ people }) => people?.length
    ? `your place has passed to ${people[0]}: what is here stays, and this computer writes no more`
    : "you are not a member any more, and read what was shared with you",
  link_ended: (_, since) =>
    `nothing new comes here${since}: the repo got new keys by an exclusion or a renewal, and your link opens nothing newer; ask a member for a new one`,
  join_refused: (one) => `your invitation was refused (${one.reason})`,
  reading: () => "reading the repo without being a member",
  reading_branches: () => "reading single branches without being a member",
  causes_missing: (one) =>
    `${some(one, "change")} ${one.count === 1 ? "waits" : "wait"} for earlier ones that are not here${helpers(one, "has", "have")}`,
  waiting: () => "waiting for what is not here",
  epoch_due: () => "the members have changed: new keys come with the next post, or by themselves within minutes",
  uncertain: (one) => `you cannot write yet: others are asked for what you wrote before (${one.reason})`,
  vouched: (one, _, time) => `newest posts as ${one.people[0]} had them on ${time}`,
  false_voucher: (one) => `the link of ${one.people[0]} names posts that do not count here`,
  false_checkpoint: (one) => `${names(one, "and")} signed other members than follow from what is here`,
  place_claimed: (one) =>
    `${names({ people: one.people.slice(1) }, "and")} each claim the place of ${one.people[0]}, whose key was copied: ask ${one.people[0]} in person which id is right, and have an admin exclude the others`,
  signers_gone: (one) => `${names(one, "and")} can agree to nothing any more: set who has to agree anew, under Approvals`,
  let_in: ({ people, reason }) => `friends let this computer in as yours${people.length
    ? `; for a place of your own, ask ${names({ people }, "or")} to add you by your id under People (${reason.split(" ").at(-2)})`
    : reason
      ? `; for a place of your own, add your own id under People (${reason.split(" ").at(-2)})`
      : ", and nobody who is left can give you a place of your own; make your own copy of the repo"}`,
  own_forks: (one) => `two copies of Ravel used your key, in ${some(one, "place")}`,
  unread: (one) => `${some(one, "change")} ${are(one)} of a newer format, which this Ravel does not show`,
  damaged: (one) => `${some(one, "change")} ${are(one)} damaged here, and asked of others`,
  in_sync: (one) => `${peers(one)} ${have(one)} everything`,
  own_comments: () => "what you comment; others get each comment with what it is about, once it is accepted",
  alone: () => "nobody else is connected",
  held: (one, _, time) => `${peers(one)} had everything at ${time}`,
  not_shared: (one) =>
    one.count === undefined
      ? "nobody who is connected has this repo"
      : `${some(one, "other computer")} ${are(one)} connected${one.foreign ? ` (${one.foreign} of another version of Ravel)` : ""}, and none has this repo`,
  syncing: () => "others do not have everything yet, or this computer has not",
  refused: (one) => `${peers(one)} ${isSeveral(one) ? "take" : "takes"} no more of it: ${REFUSALS[one.reason] ?? one.reason}`,
  comparing: (one) => `comparing with ${peers(one)}`,
  behind: (one) => `${some(one, "change")} ${are(one)} to come from ${peers(one)}${pace(one)}`,
  behind_quiet: (one) =>
    `${some(one, "change")} ${are(one)} to come from ${peers(one)}, of which none has come for ${one.seconds >= QUIET_MAX_SECONDS ? "more than " : ""}${lasting(one.seconds)}`,
  follows_parts: (one) => `nobody who follows all of it is connected: ${peers(one)} ${have(one)} parts of it, or the repo as before its members changed`,
  keeps_parts: (one) => `${peers(one)} ${isSeveral(one) ? "know" : "knows"} of everything, and ${one.count ? `keeps contents of ${some(one, "branch", "branches")} alone` : "has not all contents"}`,
  keeps_recent: (one) => `${peers(one)} ${isSeveral(one) ? "know" : "knows"} of everything, and ${isSeveral(one) ? "keep" : "keeps"} posts of ${some(one, "day")}`,
  older_not_kept: (one) => `posts and files older than ${some(one, "day")} need not be here, and come when you open them`,
  not_kept: (one) => `contents of ${some(one, "branch", "branches")} are not kept here, and come when you open them`,
  topics_waiting: (one) => `${some(one, "part")} of it ${one.count === 1 ? "waits" : "wait"} to be compared with ${peers(one)}`,
  sending: (one) => `${some(one, "change")} ${are(one)} on the way to ${peers(one)}${pace(one)}`,
  stalled: (one, since) => {
    const isSilent = one.reason !== "takes_nothing";
    const uncounted = isSilent ? "comparing with" : "changes are to go to";
    const what = one.count === undefined ? uncounted : `${some(one, "change")} ${are(one)} to go to`;
    return `${what} ${peers(one)}, ${isSilent ? "of which nothing has been heard" : "which has confirmed none"}${since}`;
  },
  unheld_unknown: () => "nobody else is known to have what you wrote",
  unheld: (one) => yours(one, "changes"),
  unfetched_files: (one) => yours(one, "files"),
  guests: (one) => `at least ${many(one.count, "reader")} who ${are(one)} no member ${are(one)} connected`,
  requests: (one) => `${some(one, "person", "people")} ${one.count === 1 ? "asks" : "ask"} to be let in`,
};

/** The sentences of a standing. `when` gives a time in words. A code of a newer node is left out. */
export const standingSentence = ({ parts }, when) =>
  parts
    .filter((one) => one.code in WORDS)
    .map((one) => {
      const time = one.at === undefined || one.at === null ? "" : when(one.at);
      const said = WORDS[one.code](one, time && ` since ${time}`, time);
      return said[0].toUpperCase() + said.slice(1);
    })
    .join(". ");
