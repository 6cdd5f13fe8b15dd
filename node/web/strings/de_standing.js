// How a repo stands with others, in German: as en_standing.js.

import { many } from "./de_counts.js";

const PEOPLE_NAMED_MAX = 3;
const QUIET_MAX_SECONDS = 600; // from which on the node counts no further
const ID_SHOWN = 12;

export const lasting = (seconds) => {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

const some = (part, one, several) => `${part.least ? "mindestens " : ""}${many(part.count, one, several)}`;
/** How far a transfer is, as far as that is known. */
export const transferred = ({ done, total, rate, seconds_left }) =>
  `${done} von ${total ?? "unbekannt vielen"} Änderungen${rate ? `, ${rate}/s` : ""}${seconds_left === null ? "" : `, noch ${lasting(seconds_left)}`}`;

const pace = ({ rate, seconds }) => (rate ? ` (${rate} je Sekunde${seconds === undefined ? "" : `, noch ${lasting(seconds)}`})` : "");

/** A peer as this user calls it, else whose it is; empty where neither is known. */
export function calledPeer({ name, owner }) {
  if (name || !owner) return name;
  if (owner.earlier && (owner.mine || owner.name)) return owner.mine ? "dein früherer Computer" : `früherer Computer von ${owner.name}`;
  if (owner.mine) return owner.device ? `dein Gerät ${owner.device}` : "dein anderer Computer";
  return owner.name && owner.device ? `${owner.device} von ${owner.name}` : owner.name;
}

function peers(part) {
  const names = (part.peers ?? []).map((one) => calledPeer(one) || `${one.relay ? "Relay" : "Computer"} ${one.peer.slice(0, ID_SHOWN)}`);
  const more = part.code === "in_sync" && names.length ? part.count : 0;
  if (more) names.push(`${more} weitere`);
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} und ${names.at(-1)}` : names[0] || "ein anderer Computer";
}
const toPeers = (part) => peers(part).replaceAll("ein anderer C", "einem anderen C").replaceAll("dein G", "deinem G").replaceAll("dein früherer", "deinem früheren").replaceAll("früherer C", "früherem C");
const isSeveral = (part) => (part.peers ?? []).length > 1 || (part.code === "in_sync" && part.count > 0);
const have = (part) => (isSeveral(part) ? "haben" : "hat");

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
  not_known: "es nimmt nur, was Konten und bekannte Computer bringen",
  file_too_large: "eine Datei ist größer als alles, was es für einen aufhebt",
  bad_topic_signature: "du darfst dort nicht schreiben",
};

/** Code of a part -> its words; `since` is " seit TIME", or nothing. */
const WORDS = {
  membership_damaged: () => "wer Mitglied ist, lässt sich nicht sagen: Teile der Mitgliedschaft sind hier beschädigt",
  ask_sending: () => "Bitte um Aufnahme: Sie geht hinaus, sobald ein Computer des Links erreicht wird",
  ask_waiting: (one) => `${one.people[0]} um Aufnahme gebeten, die Antwort steht aus; Wörter: ${one.reason}`,
  ask_accepted: () => "aufgenommen: Das Repo ist noch nicht gekommen",
  ask_refused: (one) => `${one.people[0]} hat die Bitte abgelehnt`,
  ask_closed: () => "der Link wurde beendet und niemand hat geantwortet; bitte um einen neuen",
  ask_expired: () => "der Link ist abgelaufen und niemand hat geantwortet; bitte um einen neuen",
  ask_failed: (one) => `mit diesem Link kannst du um nichts bitten: ${one.reason}`,
  joining: () => "Beitritt: Die Mitgliedschaft ist noch nicht gekommen",
  secrets_missing: (one, since) =>
    `wartet auf Schlüssel${since}: Die Mitglieder haben neue, und niemand hat sie diesem Computer bisher gegeben${helpers(one, "kann es")}`,
  excluded: (_, since) => `du bist${since} kein Mitglied mehr, und was andere seither schreiben, ist nicht für diesen Computer`,
  former: ({ people }) => people?.length
    ? `dein Platz ist an ${people[0]} übergegangen: Was hier ist, bleibt, und dieser Computer schreibt nicht mehr`
    : "du bist kein Mitglied mehr und liest, was mit dir geteilt wurde",
  link_ended: (_, since) =>
    `hierher kommt${since} nichts Neues: Das Repo hat durch einen Ausschluss oder eine Erneuerung neue Schlüssel, und dein Link öffnet nichts Neueres; bitte ein Mitglied um einen neuen`,
  join_refused: (one) => `deine Einladung wurde abgelehnt (${one.reason})`,
  reading: () => "liest das Repo, ohne Mitglied zu sein",
  reading_branches: () => "liest einzelne Zweige, ohne Mitglied zu sein",
  causes_missing: (one) => `${some(one, "Änderung wartet", "Änderungen warten")} auf frühere, die nicht hier sind${helpers(one, "hat sie")}`,
  waiting: () => "wartet auf etwas, das nicht hier ist",
  epoch_due: () => "die Mitglieder haben sich geändert: Neue Schlüssel kommen mit dem nächsten Beitrag, oder in Minuten von selbst",
  uncertain: (one) => `du kannst noch nicht schreiben: Andere werden nach dem gefragt, was du früher geschrieben hast (${one.reason})`,
  vouched: (one, _, time) => `neueste Beiträge, wie ${one.people[0]} sie hatte (${time})`,
  false_voucher: (one) => `der Link von ${one.people[0]} nennt Beiträge, die hier nicht zählen`,
  false_checkpoint: (one) => `andere Mitglieder, als aus dem folgen, was hier ist, unterschrieben von ${names(one, "und")}`,
  place_claimed: (one) =>
    `${names({ people: one.people.slice(1) }, "und")} beanspruchen je den Platz von ${one.people[0]}, jemand hat den Schlüssel kopiert: Frag ${one.people[0]} persönlich, welche Id stimmt, und lass einen Admin die anderen ausschließen`,
  signers_gone: (one) => `${names(one, "und")} ${one.people.length === 1 ? "kann" : "können"} nichts mehr zustimmen: Leg unter Zustimmungen neu fest, wer zustimmt`,
  let_in: ({ people, reason }) => `Freunde haben diesen Computer als deinen hereingelassen${people.length
    ? `; für einen eigenen Platz bitte ${names({ people }, "oder")}, deine Id unter Personen hinzuzufügen (${reason.split(" ").at(-2)})`
    : reason
      ? `; für einen eigenen Platz füg deine Id unter Personen selbst hinzu (${reason.split(" ").at(-2)})`
      : ", und niemand kann dir mehr einen eigenen Platz geben; mach eine eigene Kopie des Repos"}`,
  own_forks: (one) => `zwei Kopien von Ravel haben deinen Schlüssel benutzt, an ${some(one, "Stelle", "Stellen")}`,
  unread: (one) => `${some(one, "Änderung", "Änderungen")} in einem neueren Format, das dieses Ravel nicht zeigt`,
  damaged: (one) => `${some(one, "Änderung", "Änderungen")} hier beschädigt und bei anderen erbeten`,
  in_sync: (one) => `${peers(one)} ${have(one)} alles`,
  own_comments: () => "was du kommentierst; andere bekommen jeden Kommentar mit dem, wozu er gehört, sobald er angenommen ist",
  alone: () => "niemand sonst ist verbunden",
  held: (one, _, time) => `${peers(one)} ${isSeveral(one) ? "hatten" : "hatte"} alles: ${time}`,
  not_shared: (one) =>
    one.count === undefined
      ? "niemand, der verbunden ist, hat dieses Repo"
      : `${some(one, "anderer Computer ist", "andere Computer sind")} verbunden${one.foreign ? ` (${one.foreign} mit einer anderen Version von Ravel)` : ""}, und keiner hat dieses Repo`,
  syncing: () => "anderen oder diesem Computer fehlt noch etwas",
  refused: (one) => `${peers(one)} ${isSeveral(one) ? "nehmen" : "nimmt"} nicht mehr davon: ${REFUSALS[one.reason] ?? one.reason}`,
  comparing: (one) => `vergleicht mit ${toPeers(one)}`,
  behind: (one) => `${some(one, "Änderung kommt", "Änderungen kommen")} noch von ${toPeers(one)}${pace(one)}`,
  behind_quiet: (one) =>
    `${some(one, "Änderung fehlt", "Änderungen fehlen")} noch von ${toPeers(one)}; nichts gekommen seit ${one.seconds >= QUIET_MAX_SECONDS ? "mehr als " : ""}${lasting(one.seconds)}`,
  follows_parts: (one) => `niemand mit allem davon ist verbunden: ${peers(one)} ${have(one)} nur Teile, oder das Repo, wie es war, bevor sich die Mitglieder änderten`,
  keeps_parts: (one) => `${peers(one)} ${isSeveral(one) ? "wissen" : "weiß"} von allem, ${have(one)} aber ${one.count ? `nur die Inhalte von ${some(one, "Zweig", "Zweigen")}` : "nicht alle Inhalte"}`,
  keeps_recent: (one) => `${peers(one)} ${isSeveral(one) ? "wissen" : "weiß"} von allem, ${have(one)} aber nur Beiträge von ${some(one, "Tag", "Tagen")}`,
  older_not_kept: (one) => `Beiträge und Dateien, die älter als ${some(one, "Tag", "Tage")} sind, müssen nicht hier sein und kommen beim Öffnen`,
  not_kept: (one) => `Inhalte von ${some(one, "Zweig", "Zweigen")} werden hier nicht behalten und kommen beim Öffnen`,
  topics_waiting: (one) => `${some(one, "Teil davon wartet", "Teile davon warten")} auf den Vergleich mit ${toPeers(one)}`,
  sending: (one) => `${some(one, "Änderung ist", "Änderungen sind")} auf dem Weg zu ${toPeers(one)}${pace(one)}`,
  stalled: (one, since) => {
    const isSilent = one.reason !== "takes_nothing";
    const uncounted = isSilent ? "vergleicht mit" : "Änderungen auf dem Weg zu";
    const what = one.count === undefined ? uncounted : `${some(one, "Änderung", "Änderungen")} auf dem Weg zu`;
    return `${what} ${toPeers(one)}, ${isSilent ? "von dort kein Lebenszeichen" : "von dort keine Bestätigung"}${since}`;
  },
  unheld_unknown: () => "von niemandem sonst ist bekannt, dass er hat, was du schreibst",
  unheld: (one) => `${some(one, "Änderung", "Änderungen")} von dir nur auf diesem Computer, soweit bekannt`,
  unfetched_files: (one) => `${some(one, "Datei", "Dateien")} von dir nur auf diesem Computer, soweit bekannt`,
  guests: (one) => `mindestens ${many(one.count, "Leser ist", "Leser sind")} verbunden, ohne Mitglied zu sein`,
  requests: (one) => `${some(one, "Person bittet", "Personen bitten")} um Aufnahme`,
};

/** The sentences of a standing. `when` gives a time in words. A code of a newer node is left out. */
export const standingSentence = ({ parts }, when) =>
  parts
    .filter((one) => one.code in WORDS)
    .map((one) => {
      const time = one.at === undefined || one.at === null ? "" : when(one.at);
      const said = WORDS[one.code](one, time && ` seit ${time}`, time);
      return said[0].toUpperCase() + said.slice(1);
    })
    .join(". ");
