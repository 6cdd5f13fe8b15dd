// How a repo stands with others, in German: as en_standing.js.

import { many } from "./de_node.js";

const PEOPLE_NAMED_MAX = 3;
const QUIET_MAX_SECONDS = 600; // from which on the node counts no further
const ID_SHOWN = 12;

export const lasting = (seconds) => {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

const some = (part, one, several) => `${part.least ? "mindestens " : ""}${many(part.count, one, several)}`;
const pace = ({ rate, seconds }) => (rate ? ` (${rate} je Sekunde${seconds === undefined ? "" : `, noch ${lasting(seconds)}`})` : "");

/** A peer as this user calls it, else whose it is; empty where neither is known. */
export function calledPeer({ name, owner }) {
  if (name || !owner) return name;
  if (owner.mine) return owner.device ? `dein Gerät ${owner.device}` : "dein anderer Computer";
  return owner.name && owner.device ? `${owner.device} von ${owner.name}` : owner.name;
}

function peers(part) {
  const names = (part.peers ?? []).map((one) => calledPeer(one) || `${one.relay ? "Relay" : "Peer"} ${one.peer.slice(0, ID_SHOWN)}`);
  const more = part.code === "in_sync" && names.length ? part.count : 0;
  return `${names.join(", ") || "einem Peer"}${more ? ` und ${more} weiteren` : ""}`;
}

/** Some names, joined by a word, the first of many. */
function names({ people }, word) {
  const rest = people.length - PEOPLE_NAMED_MAX;
  const named = rest > 0 ? [...people.slice(0, PEOPLE_NAMED_MAX - 1), `${rest + 1} andere`] : people;
  return named.join(` ${word} `);
}

function helpers(part, verb) {
  return part.people.length ? `; ${names(part, "oder")} ${verb}` : "";
}

/** Why a relay takes no more of a repo -> its words. */
const REFUSALS = {
  account_full: "dein Konto dort hat seinen Platz verbraucht",
  peer_full: "dieser Computer hat so viel gebracht, wie einer darf",
  subnet_full: "Computer deines Netzes haben so viel gebracht, wie sie dürfen",
  topic_full: "das Repo hat dort so viel, wie eines darf",
  relay_full: "es ist voll",
  topic_forgotten: "es hat Platz gemacht und nimmt das Repo später wieder",
  not_known: "es nimmt nur, was Konten und bekannte Peers bringen",
  bad_topic_signature: "du darfst dort nicht schreiben",
};

/** Code of a part -> its words; `since` is " seit TIME", or nothing. */
const WORDS = {
  membership_damaged: () => "wer Mitglied ist, lässt sich nicht sagen: Commits der Mitgliedschaft sind hier beschädigt",
  ask_sending: () => "Bitte um Aufnahme: Sie geht hinaus, sobald ein Knoten des Links erreicht wird",
  ask_waiting: (one) => `${one.people[0]} um Aufnahme gebeten, die Antwort steht aus; Wörter: ${one.reason}`,
  ask_accepted: () => "aufgenommen: Das Repo ist noch nicht gekommen",
  ask_refused: (one) => `${one.people[0]} hat die Bitte abgelehnt`,
  ask_closed: () => "der Link wurde beendet und niemand hat geantwortet; bitte um einen neuen",
  ask_expired: () => "der Link ist abgelaufen und niemand hat geantwortet; bitte um einen neuen",
  ask_failed: (one) => `mit diesem Link kannst du um nichts bitten: ${one.reason}`,
  joining: () => "Beitritt: Die Mitgliedschaft ist noch nicht gekommen",
  secrets_missing: (one, since) =>
    `wartet auf Schlüssel${since}: Die Mitglieder haben neue, und niemand hat sie diesem Knoten bisher gegeben${helpers(one, "kann es")}`,
  excluded: (_, since) => `abgeschnitten${since}: Du bist kein Mitglied mehr, und was Mitglieder seither schreiben, ist nicht für diesen Knoten`,
  former: () => "du bist kein Mitglied mehr und liest, was mit dir geteilt wurde",
  link_ended: (_, since) =>
    `abgeschnitten${since}: Das Repo hat durch einen Ausschluss oder eine Erneuerung neue Schlüssel, und dein Link öffnet nichts Neueres; bitte ein Mitglied um einen neuen`,
  join_refused: (one) => `deine Einladung wurde abgelehnt (${one.reason})`,
  reading: () => "liest das Repo, ohne Mitglied zu sein",
  reading_branches: () => "liest einzelne Zweige, ohne Mitglied zu sein",
  causes_missing: (one) => `${some(one, "Commit wartet", "Commits warten")} auf frühere, die nicht hier sind${helpers(one, "hat sie")}`,
  waiting: () => "wartet auf etwas, das nicht hier ist",
  epoch_due: (one) => `neue Schlüssel stehen an, weil sich die Mitglieder geändert haben${helpers(one, "macht sie")}`,
  uncertain: (one) => `du kannst noch nicht schreiben: Peers werden nach deinen Commits gefragt (${one.reason})`,
  vouched: (one, _, time) => `neueste Beiträge, wie ${one.people[0]} sie hatte (${time})`,
  false_voucher: (one) => `der Link von ${one.people[0]} nennt Beiträge, die hier abgelehnt wurden`,
  false_checkpoint: (one) => `andere Mitglieder, als aus dem folgen, was hier ist, unterschrieben von ${names(one, "und")}`,
  own_forks: (one) => `${some(one, "Stelle", "Stellen")} deines Feeds doppelt benutzt`,
  unread: (one) => `${some(one, "Commit", "Commits")} in einem neueren Format, das dieses Ravel nicht zeigt`,
  damaged: (one) => `${some(one, "Commit", "Commits")} hier beschädigt und bei Peers erbeten`,
  in_sync: (one, since) => `gleichauf mit ${peers(one)}${since}`,
  alone: () => "kein Peer ist verbunden",
  held: (one, _, time) => `vollständig bei ${peers(one)}: ${time}`,
  not_shared: (one) =>
    one.count === undefined
      ? "kein verbundener Peer folgt ihm"
      : `${some(one, "Peer ist", "Peers sind")} verbunden${one.foreign ? ` (${one.foreign} mit einer anderen Version von Ravel)` : ""}, und keiner folgt diesem Repo`,
  syncing: () => "noch nicht gleichauf",
  refused: (one) => `mehr davon wird abgelehnt, bei ${peers(one)}: ${REFUSALS[one.reason] ?? one.reason}`,
  comparing: (one) => `vergleicht mit ${peers(one)}`,
  behind: (one) => `${some(one, "Commit", "Commits")} im Rückstand, Nachschub von ${peers(one)}${pace(one)}`,
  behind_quiet: (one) =>
    `${some(one, "Commit", "Commits")} im Rückstand gegenüber ${peers(one)}; nichts gekommen seit ${one.seconds >= QUIET_MAX_SECONDS ? "mehr als " : ""}${lasting(one.seconds)}`,
  follows_parts: (one) => `bei ${peers(one)} nur Teile davon, oder das Repo, wie es vor einem Ausschluss war`,
  keeps_parts: (one) => `bei ${peers(one)} alle Commits, aber ${one.count ? `nur die Inhalte von ${some(one, "Zweig", "Zweigen")}` : "nicht alle Inhalte"}`,
  not_kept: (one) => `Inhalte von ${some(one, "Zweig", "Zweigen")} werden hier nicht behalten und kommen beim Öffnen`,
  topics_waiting: (one) => `${some(one, "Topic wartet", "Topics warten")} auf den Vergleich mit ${peers(one)}`,
  sending: (one) => `sendet ${some(one, "Commit", "Commits")} zu ${peers(one)}${pace(one)}`,
  stalled: (one, since) => {
    const isSilent = one.reason !== "takes_nothing";
    const uncounted = isSilent ? "vergleicht mit" : "Commits auf dem Weg zu";
    const what = one.count === undefined ? uncounted : `${some(one, "Commit", "Commits")} auf dem Weg zu`;
    return `${what} ${peers(one)}, ${isSilent ? "von dort kein Lebenszeichen" : "von dort keine Bestätigung"}${since}`;
  },
  unheld_unknown: () => "von keinem anderen Computer ist bekannt, dass er hat, was du schreibst",
  unheld: (one) => `${some(one, "Commit", "Commits")} von dir nur auf diesem Computer, soweit bekannt`,
  unfetched_files: (one) => `${some(one, "Datei", "Dateien")} von dir nur auf diesem Computer, soweit bekannt`,
  guests: (one) => `mindestens ${many(one.count, "Leser ist", "Leser sind")} verbunden, ohne Mitglied zu sein`,
  requests: (one) => `${some(one, "Person bittet", "Personen bitten")} um Aufnahme`,
};

/** The sentence of a standing. `when` gives a time in words. A code of a newer node is left out. */
export const standingSentence = ({ parts }, when) =>
  parts
    .filter((one) => one.code in WORDS)
    .map((one) => {
      const time = one.at === undefined || one.at === null ? "" : when(one.at);
      return WORDS[one.code](one, time && ` seit ${time}`, time);
    })
    .join("; ");
