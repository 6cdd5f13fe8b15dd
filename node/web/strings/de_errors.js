// What a refusal of the node means, in German: by its words where there is a table of them, else by its code.

// The table of the node's words comes behind the page, which needs none of them to be drawn.
let say = (said) => said;
Promise.all([import("./said.js"), import("./de_said.js"), import("./de_said_people.js")]).then(
  ([{ speakerOf }, said, ofPeople]) => {
    say = speakerOf({ ...said.SAID, ...ofPeople.SAID });
  },
  () => {}, // they stay English
);

const MEANINGS = {
  bad_request: "So lässt sich das nicht ausführen",
  not_found: "Das gibt es hier nicht",
  ambiguous: "Das kann mehreres meinen",
  already_exists: "Den Namen gibt es schon",
  not_permitted: "Das darfst du hier nicht",
  needs_quorum: "Erst müssen andere zustimmen",
  bad_link: "Dieser Link ist unvollständig oder von anderer Art",
  expired: "Diese Einladung gilt nicht mehr",
  bad_config: "Die Einstellungen erlauben das nicht",
  not_initialised: "In diesem Ordner ist kein Ravel",
  already_running: "Ein anderes Programm benutzt diesen Ordner",
  not_running: "Ravel antwortet nicht",
  unauthorized: "Dieser Browser ist nicht angemeldet",
  token_expired: "Die Anmeldung dieses Browsers gilt nicht mehr",
  forbidden_host: "Diese Adresse darf die Seite nicht zeigen",
  forbidden_origin: "Eine andere Webseite darf das nicht verlangen",
  too_large: "Das ist zu groß",
  unknown_parent: "Etwas bezieht sich auf einen Eintrag, der noch nicht importiert ist",
  bad_input: "Diese Datei lässt sich nicht lesen",
  storage_failed: "Auf diesem Computer lässt sich nichts speichern oder lesen",
  newer_schema: "Ein neueres Ravel hat das geschrieben",
  bad_export: "Der Export ist unvollständig oder verändert",
  missing_extra: "Ein Teil von Ravel ist nicht installiert",
  mismatch: "Zwei Berechnungen stimmen nicht überein",
  incomplete: "Davon ist noch nicht alles hier",
  interrupted: "Die Übertragung wurde unterbrochen",
  feed_forked: "Eine Stelle eines Feeds wurde mehrfach benutzt",
  busy: "Ravel ist gerade ausgelastet, versuch es gleich noch einmal",
  wrong_passphrase: "Diese Passphrase ist falsch",
  locked: "Die Schlüssel sind verschlossen",
  damaged: "Hier ist etwas beschädigt",
  unhealthy: "Ein Problem hält Ravel auf",
  feed_uncertain: "Erst muss sich zeigen, ob etwas von dir fehlt",
  insufficient_scope: "Dieser Zugang erlaubt das nicht",
  last_copy: "Soweit bekannt, hat das kein anderer Computer",
  answer_lost: "Die Antwort ging verloren, vielleicht ist es geschehen",
  incompatible: "Diese Seite passt nicht zu diesem Ravel",
  key_reused: "Das wurde schon einmal anders verlangt",
  method_not_allowed: "Das kann diese Adresse nicht",
  internal: "In Ravel ist etwas schiefgegangen",
};

/** A sentence of the node; in English where the table has nothing for it. */
export const nodeSaid = (said) => say(said);

/** A refusal as people read it: what is in English stands behind the meaning of its code. A code of a newer node has none. */
export function errorSaid(code, message) {
  const said = nodeSaid(message);
  return said !== message || !MEANINGS[code] ? said : `${MEANINGS[code]} – ${message}`;
}
