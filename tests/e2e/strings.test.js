// Texts of the page that depend on what happened.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ofRelay as germanOfRelay } from "./strings/de_relay.js";
import { ofRelay } from "./strings/en_relay.js";

const OPENED = ["branches", "joining", "node", "people"]; // texts of views that are loaded when they are opened
const FIRST = ["posts"]; // of a first visit
const saidIn = async (part) => Object.values(await import(`./strings/${part}.js`)).find((one) => typeof one === "object");
const parts = (language) => Promise.all(OPENED.map((part) => saidIn(`${language}_${part}`)));
const text = Object.assign({}, await saidIn("en"), ...(await parts("en")));
const german = Object.assign({}, await saidIn("de"), ...(await parts("de")));

const STANDING = readFileSync(new URL("./strings/en_standing.js", import.meta.url), "utf8");

test("a transfer is told with what there is, its rate and the time left, as far as these are known", () => {
  const progress = { direction: "receiving", done: 25030, total: 60001, rate: 5600, seconds_left: 130 };
  const topic = { state: "receiving", progress, stalled_because: null };
  assert.equal(text.transfer(topic), "receiving, 25030 of 60001 changes, 5600/s, 2 min left");
  const unknown = { ...progress, total: null, rate: null, seconds_left: null };
  assert.equal(text.transfer({ ...topic, progress: unknown }), "receiving, 25030 of an unknown number of changes");
  assert.equal(text.transfer({ ...topic, state: "comparing", progress: null }), "comparing");
  assert.match(text.transferred({ ...progress, seconds_left: 7500 }), /2 h 5 min left$/);
});

test("a full account has another cause for a link than for what is stored", () => {
  assert.match(ofRelay.refusedBecause("link", "account_full"), /as many computers as/);
  for (const what of ["topic", "commits", "file"]) assert.match(ofRelay.refusedBecause(what, "account_full"), /quota/);
  assert.match(ofRelay.refusedBecause("link", "used_link"), /Another computer/);
  assert.equal(ofRelay.refusedBecause("file", "new_reason"), "new_reason");
});

test("each part of a standing has its words, and one of a newer node none", () => {
  const peer = { peer: "a".repeat(52), name: "", relay: true };
  const parts = [
    { code: "secrets_missing", at: 5, people: ["Ann", "Ben", "Cid", "Dee", "Eve"] },
    { code: "of_a_newer_node" },
    { code: "in_sync", peers: [peer, { ...peer, name: "Bob" }], count: 2, at: 7 },
    { code: "unheld", count: 1000, least: true },
  ];
  assert.equal(
    text.standingSentence({ parts }, (seconds) => `time ${seconds}`),
    "Waiting for new keys since time 5: members have gone on to them, and none has handed them to this computer yet, " +
      "which Ann or Ben or 3 others have. Relay aaaaaaaaaaaa, Bob and 2 more have everything. " +
      "At least 1000 of your changes are on this computer only, as far as known.",
  );
});

test("every language has the same texts, of the same form and with the same values in them", () => {
  const formOf = (one) => {
    if (Array.isArray(one)) return one.map(formOf);
    if (typeof one === "function") return `function of ${one.length}`;
    if (one && typeof one === "object") return Object.fromEntries(Object.keys(one).sort().map((key) => [key, formOf(one[key])]));
    return typeof one;
  };
  assert.deepEqual(formOf(german), formOf(text));
  assert.deepEqual(formOf(germanOfRelay), formOf(ofRelay));
});

test("no file of a language takes the place of what another one of it says", async () => {
  for (const [language, of] of [["en", text], ["de", german]]) {
    const first = await saidIn(language);
    for (const part of FIRST) for (const [name, value] of Object.entries(await saidIn(`${language}_${part}`))) assert.equal(of[name], value, `${language}_${part} ${name}`);
    const names = [...Object.keys(first), ...(await parts(language)).flatMap(Object.keys)];
    assert.deepEqual(names.filter((one, at) => names.indexOf(one) < at), [], language);
  }
});

const MADE = /\b(nodes?|peers?|commits?|heads?|epochs?|topics?|daemons?|Knoten|Commits?|Köpfe|Epochen?)\b/i;
// What stands under "For experts", what people may type for a command, and a setting or a file by its name.
const FOR_EXPERTS = ["commits", "heads", "commitsTitle", "topics", "rates", "peers", "importAbout"];

test("words of makers stand for experts alone", () => {
  const found = [];
  for (const language of ["en", "de"]) {
    for (const part of ["", "_branches", "_joining", "_node", "_people", "_posts", "_relay", "_standing"]) {
      const lines = readFileSync(new URL(`./strings/${language}${part}.js`, import.meta.url), "utf8").split("\n");
      for (const line of lines) {
        if (/^(\/\/|import|\s*\/\*\*)/.test(line) || FOR_EXPERTS.some((key) => new RegExp(`^\\s*(const )?${key}\\b`).test(line))) continue;
        const said = (line.replace(/\$\{[^}]*\}/g, "").match(/"[^"]*"|`[^`]*`/g) ?? []).filter((one) => MADE.test(one.replace(/\b[a-z]+[._]\w+/g, "")));
        found.push(...said);
      }
    }
  }
  assert.deepEqual(found, []);
});

test("a member whose place passed on reads where it went", () => {
  const passedOn = { parts: [{ code: "former", people: ["Pocket"] }] };
  assert.match(text.standingSentence(passedOn, String), /^Your place has passed to Pocket: what is here stays/);
  assert.match(text.standingSentence({ parts: [{ code: "former" }] }, String), /not a member any more/);
});

test("a standing has words in every language for each code", () => {
  const when = (seconds) => `time ${seconds}`;
  const peer = { peer: "a".repeat(52), name: "Bob", relay: false };
  const all = { people: ["Ann"], peers: [peer], count: 2, at: 7, reason: "because", seconds: 60, rate: null };
  const codes = [...STANDING.matchAll(/^ {2}(\w+): \(/gm)].map((one) => one[1]);
  assert.ok(codes.length > 30);
  for (const code of codes) {
    const standing = { parts: [{ code, ...all }] };
    for (const one of [text, german]) assert.ok(one.standingSentence(standing, when).length > 5, code);
    assert.notEqual(german.standingSentence(standing, when), text.standingSentence(standing, when), code);
  }
});

test("why a relay takes no more of a repo is said in words, and a reason of a newer one as it came", () => {
  const peer = { peer: "a".repeat(52), name: "Bob", relay: true };
  const said = (one, reason) => one.standingSentence({ parts: [{ code: "refused", peers: [peer], reason }] }, String);
  for (const one of [text, german]) {
    for (const reason of ["account_full", "peer_full", "subnet_full", "topic_full", "relay_full", "topic_forgotten", "not_known", "file_too_large"])
      assert.ok(!said(one, reason).includes(reason), reason);
    assert.ok(said(one, "of_a_newer_relay").includes("of_a_newer_relay"));
  }
});

test("a device of one's own is named in German in the case that the sentence asks for", () => {
  const own = { peer: "a".repeat(52), name: "", relay: false, owner: { mine: true, device: "Desk" } };
  const said = (code, peers) => german.standingSentence({ parts: [{ code, peers, count: 0 }] }, () => "heute");
  assert.match(said("comparing", [own]), /mit deinem Gerät Desk/);
  assert.match(said("comparing", [{ ...own, owner: { mine: true, device: "" } }]), /mit deinem anderen Computer/);
  assert.match(said("in_sync", [own]), /dein Gerät Desk hat alles/i);
  const earlier = { earlier: true, mine: true, name: "Ann", device: "" };
  assert.match(said("comparing", [{ ...own, owner: earlier }]), /mit deinem früheren Computer/);
  assert.match(said("comparing", [{ ...own, owner: { ...earlier, mine: false } }]), /mit früherem Computer von Ann/);
  assert.equal(text.calledPeer({ ...own, owner: { ...earlier, mine: false } }), "Ann’s earlier computer");
});
