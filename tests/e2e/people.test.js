// A person with two computers, as the page knows them from the members of a repo.

import assert from "node:assert/strict";
import { test } from "node:test";

const storage = { getItem: () => null, setItem: () => {}, removeItem: () => {} };
Object.assign(globalThis, {
  location: { protocol: "http:", origin: "http://127.0.0.1:7475", hash: "" },
  localStorage: storage,
  sessionStorage: storage,
  addEventListener: () => {},
});
const { Face } = await import("./parts/face.js");
const { short, withNames } = await import("./parts/format.js");
const { threadsOf } = await import("./parts/groups.js");
const { nodesOf } = await import("./parts/markdown.js");
const { isMine, members, personOf, persons, status } = await import("./state/node.js");

const [LAPTOP, PHONE, BEN] = ["a", "b", "c"].map((letter) => letter.repeat(52));
const member = (user, person, name) => ({ user, person, name });
status.value = { user: PHONE };
members.value = [member(LAPTOP, LAPTOP, "Ann"), member(PHONE, LAPTOP, "Ann"), member(BEN, BEN, "Ben")];

test("what any computer of this person wrote is one's own, and nothing else is", () => {
  assert.deepEqual([LAPTOP, PHONE, BEN].map(isMine), [true, true, false]);
  assert.deepEqual(persons.value.map((one) => one.map(({ user }) => user)), [[LAPTOP, PHONE], [BEN]]);
  assert.equal(personOf("of another repo"), "of another repo");
});

test("without the members one's own is what this computer wrote", () => {
  const known = members.value;
  members.value = null;
  assert.deepEqual([LAPTOP, PHONE].map(isMine), [false, true]);
  status.value = null;
  assert.deepEqual([undefined, PHONE].map(isMine), [false, false]);
  [members.value, status.value] = [known, { user: PHONE }];
});

test("a mention of another computer of this person is one of this person", () => {
  const mentions = [LAPTOP, BEN].map((user) => ({ user, name: "x" }));
  const said = JSON.stringify(nodesOf(`@${LAPTOP} and @${BEN}`, 0, "row", mentions));
  assert.deepEqual([said.match(/"mention mine"/g).length, said.match(/"mention"/g).length], [1, 1]);
});

test("all computers of a person have one face", () => {
  const colors = [LAPTOP, PHONE, BEN].map((id) => Face({ id, name: "Ann" }).props.class);
  assert.equal(colors[0], colors[1]);
  assert.notEqual(colors[0], colors[2]);
  members.value = members.value.map((one) => (one.person === LAPTOP ? { ...one, color: 12 } : one));
  assert.match(Face({ id: PHONE, name: "Ann" }).props.class, /p9/, "as it was stated");
  const reply = (commit, author) => ({ item: { commit, author, person: personOf(author), author_name: "", time: 0, reply_to: { commit: "p", thread: "p" } } });
  const { people } = threadsOf([reply("r3", LAPTOP), reply("r2", PHONE), reply("r1", BEN)]).get("p");
  assert.deepEqual(people.map(({ id }) => id), [LAPTOP, BEN]);
});

test("a name stands as it is in place of an id, whatever it is", () => {
  const mentions = [{ user: LAPTOP, name: "$'$&$`" }, { user: PHONE, name: "" }];
  assert.equal(withNames({ text: `@${LAPTOP} and @${PHONE}: hello`, mentions }), `@$'$&$\` and @${short(PHONE)}: hello`);
  assert.equal(withNames({ text: null }), "");
});
