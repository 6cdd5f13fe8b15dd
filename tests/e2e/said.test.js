// Sentences of the node in German: as the command line fills them (tests/unit/node/runtime/test_language.py).

import assert from "node:assert/strict";
import { test } from "node:test";
import { SAID } from "./strings/de_said.js";
import { speakerOf } from "./strings/said.js";

const say = speakerOf(SAID);

test("a sentence is said with its values", () => {
  const said = {
    "no repo is called 'x'; did you mean 'y'?": "Repo namens 'x' gibt es hier nicht; meinst du 'y'?",
    "file 2, a.png: a file has at most 5 bytes": "Datei 2, a.png: eine Datei hat höchstens 5 Bytes",
    "a backup is being made; there is no folder /a. b/c": "eine Sicherung läuft schon; einen Ordner /a. b/c gibt es nicht",
    "damaged, and asked of peers: 3 commits, 1 block of files": "beschädigt, und bei Peers erbeten: 3 Commits, 1 Block von Dateien",
    "{0}": "{0}",
    "what no table has stays as it is": "what no table has stays as it is",
  };
  for (const [english, meant] of Object.entries(said)) assert.equal(say(english), meant);
});
