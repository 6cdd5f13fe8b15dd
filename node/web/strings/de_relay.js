// German texts of the view of a relay, which come with it: as en_relay.js.

import { many } from "./de_counts.js";

const fullFirst = { quota: "Ihr Platz (relay.size_max)", disk: "Die Platte" };
const refusedWhat = { topic: "versiegelte Kopie", commits: "Ladung Änderungen", file: "Datei", circuit: "Durchleitung", link: "Link für ein Konto" };
const severalOf = { topic: "versiegelte Kopien", commits: "Ladungen Änderungen", file: "Dateien", circuit: "Durchleitungen", link: "Links für Konten" };
const refusedTo = { account: "von Konten", partner: "von befreundeten Relays", known: "von bekannten Computern", stranger: "von Fremden" };
const refusedBecause = {
  account_full: "Das Konto hat seinen Platz verbraucht. Gib ihm mehr, oder lass seine Leute löschen.",
  peer_full: "Der Computer hat gebracht, so viel einer darf: relay.peer_size_max, peer_topics_max oder peer_circuits_max.",
  subnet_full: "Fremde eines Subnetzes haben gebracht, so viel sie dürfen: relay.subnet_size_max oder subnet_topics_max.",
  topic_full: "Die Kopie hat, so viel eine darf: relay.topic_size_max.",
  relay_full: "Nichts mehr lässt sich entfernen, um Platz zu schaffen: relay.size_max oder circuits_max.",
  topic_forgotten: "Die Kopie wurde entfernt, um Platz zu schaffen. Mitglieder bringen sie wieder.",
  not_known: "Nur Konten und bekannte Computer dürfen: relay.accept.",
  day_used: "Der Computer hat seine Bytes für heute verbraucht: relay.circuit_day_max.",
  not_taken: "Der andere Computer hatte so viele Durchleitungen, wie er annimmt.",
  unknown_link: "Diesen Link gibt es nicht: Er wurde mit seinem Konto beendet, oder er ist von einem anderen Relay.",
  used_link: "Ein anderer Computer hat den Link benutzt. Jeder braucht einen eigenen.",
  expired_link: "Der Link ist abgelaufen. Lade noch einmal ein.",
  bad_topic_signature: "Das ist von niemandem, der in das Repo schreibt.",
  file_too_large: "Die Datei allein hat mehr Bytes, als einer bringen darf: der Platz des Kontos, oder relay.topic_size_max, peer_size_max, subnet_size_max.",
  bad_file: "Die Datei war größer als angekündigt, oder keine Datei.",
  incomplete: "Der Computer ging, bevor die Datei ganz da war. Beim nächsten Mal geht es weiter.",
  bare: "Der Inhalt wurde getilgt, und Neue könnten ihn von hier nicht lesen.",
};
const linkRefusedBecause = {
  account_full: "Das Konto hat so viele Computer, wie eines haben darf. Lade diesen in ein Konto mit anderem Namen ein.",
};

export const ofRelay = {
  relayAbout: "Dieser Computer hebt versiegelte Kopien für andere auf, die er nicht lesen kann, und leitet ihre Verbindungen weiter.",
  noRelay: "Dieser Computer hebt nichts für andere auf. Unter Einstellungen lässt es sich anschalten.",
  relayTitle: "Für andere aufgehoben",
  forecast: (growth, free, days, first) =>
    `${growth} kamen in der letzten Woche am Tag. ${free} sind auf der Platte frei. ` +
    (days === null ? "Das reicht für Jahre." : days === 0 ? `${fullFirst[first]} ist heute voll.` : `${fullFirst[first]} ist in ${many(days, "Tag", "Tagen")} voll.`),
  accepts: { true: "Auch Computer ohne Konto dürfen Kopien bringen.", false: "Nur Konten und bekannte Computer dürfen Kopien bringen." },
  promisedTooMuch: (promised, most) => `Alle Konten haben zusammen ${promised} zugesagt bekommen, und das Relay hebt höchstens ${most} auf.`,
  blocksDamaged: (count) => `${many(count, "Block", "Blöcke")} aufgehobener Dateien beschädigt. Sieh nach der Platte, dann führe ravel fsck aus.`,
  circuitsNow: (open, most, passed, rate) => `${open} von ${many(most, "Durchleitung", "Durchleitungen")} offen · ${passed} seit dem Start · ${rate}/s jetzt`,
  noCircuits: "Durchleitungen sind aus (relay.circuits).",
  accounts: "Konten",
  noAccounts: "Noch keine Konten. Lade unten die erste Person ein.",
  moreAccounts: (count) => `${many(count, "weiteres Konto", "weitere Konten")}: ravel relay accounts nennt sie.`,
  nodesOf: (nodes, connected, links) =>
    [`${many(nodes, "Computer", "Computer")}, ${connected} verbunden`, ...(links ? [many(links, "unbenutzter Link", "unbenutzte Links")] : [])].join(" · "),
  quotaUsed: (used, quota) => `${used} von ${quota}`,
  circuitsToday: (open, passed) => `${many(open, "Durchleitung", "Durchleitungen")} offen · ${passed} heute`,
  inviteAccount: "Eine Person einladen",
  inviteAccountAbout: "Ein Link gibt einem Computer das Konto, einmal. Für den nächsten Computer einer Person oder anderen Platz nimm denselben Namen noch einmal.",
  accountName: "Name des Kontos",
  quota: "Platz",
  unit: "Einheit",
  linkDays: "Tage, bis der Link abläuft",
  accountLink: (name, until) => `Schick das an ${name}. Es gilt für einen Computer, bis ${until}. Dort: Verbindungen auf der Seite, oder ravel relay join -`,
  quotaChanged: (name) => `Der Platz von ${name} ist geändert.`,
  revokeAccount: (name) => `Das Konto ${name} beenden`,
  revokeAccountQuestion: (name) => `${name} beenden? Seine Computer sind wieder Fremde. Was sie brachten, bleibt, bis der Platz fehlt.`,
  accountRevoked: (name) => `Das Konto ${name} ist beendet.`,
  visitorsTitle: "Wer es benutzt",
  visitorColumns: ["Computer", "Verbunden", "Aufgehoben", "Durchleitungen · Menge"],
  visitorKinds: { account: "Konten", partner: "Befreundete Relays", known: "Andere bekannte Computer", stranger: "Fremde" },
  refusedTitle: "Abgelehnt seit dem Start",
  refusedNothing: "Nichts wurde abgelehnt.",
  refusedThing: (what, kind, count) => `${many(count, refusedWhat[what], severalOf[what])} · ${refusedTo[kind]}`,
  refusedBecause: (what, reason) => (what === "link" && linkRefusedBecause[reason]) || refusedBecause[reason] || reason,
  refusedLast: (time) => `zuletzt ${time}`,
  allowedPeers: "Bekannte Computer ohne Konto",
  allowAbout: "Ein Computer, den du erlaubst, hat keinen eigenen Platz: Die Grenzen für einen gelten.",
  noTopics: "Noch ist nichts für andere aufgehoben.",
  pin: "Anheften",
  unpin: "Lösen",
  allow: "Erlauben",
  deny: "Verbieten",
};
