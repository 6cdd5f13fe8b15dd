// The shapes of blocks, publications, commits and bodies (protocol.md, 1, 3, 4, 5, 7, 11 and the profiles).
// Each reader takes bytes, and throws Refused where they are not of the shape. Which code of section 1 that has is of no
// interest to a verdict, so the messages are for people.
import { decode, encode, Refused } from './msgpack.mjs';

const MAX_NUMBER = Number.MAX_SAFE_INTEGER;
const MIB = 1024 * 1024;
const MAX_COMMIT = 64 * 1024;
const MAX_BODY = 512 * 1024;
const ZEROS = '0'.repeat(64);

const need = (holds, what) => {
  if (!holds) throw new Refused(what);
};

// Parts of shapes: each is a function of a value that returns what a reader wants to have, or refuses. Ids, keys and
// signatures are returned in hex, since they are compared and used as keys of maps all the time.
const bytes = (min, max) => (v) => {
  need(v instanceof Uint8Array && v.length >= min && v.length <= max, 'bytes');
  return v;
};
const hex = (length) => (v) => bytes(length, length)(v).toString('hex');
const id = hex(32);
const key = bytes(32, 32);
const signature = bytes(64, 64);
const number = (min, max) => (v) => {
  need(typeof v === 'number' && v >= min && v <= max, 'number');
  return v;
};
const time = number(0, MAX_NUMBER);
const bool = (v) => {
  need(typeof v === 'boolean', 'boolean');
  return v;
};
const text = (min, max) => (v) => {
  need(typeof v === 'string', 'text');
  const length = [...v].length;
  need(length >= min && length <= max, 'length of a text');
  return v;
};
const orNil = (part) => (v) => (v === null ? null : part(v));
const list = (part, min, max) => (v) => {
  need(Array.isArray(v) && v.length >= min && v.length <= max, 'list');
  return v.map((item) => part(item));
};
const once = (part, max) => (v) => {
  const items = list(part, 0, max)(v);
  need(new Set(items).size === items.length, 'duplicate_ids');
  return items;
};
/** A structure: an array with one part for each name. */
const structure = (parts) => {
  const names = Object.keys(parts);
  return (v) => {
    need(Array.isArray(v) && v.length === names.length, 'structure');
    return Object.fromEntries(names.map((name, i) => [name, parts[name](v[i])]));
  };
};
const tagged = (tag, parts) => (v) => {
  need(Array.isArray(v) && v[0] === tag, 'tag');
  return structure(parts)(v.slice(1));
};

const reference = structure({ id, key });
const permission = number(1, 5);
const name = text(1, 255);
const states = structure({ mark: key, writersMark: key, sealedTopic: bytes(0, MIB) });

const block = tagged('block2', {
  children: list(id, 0, 15887),
  acks: list(id, 0, 128),
  rank: number(0, MAX_NUMBER),
  mark: (v) => {
    need(v instanceof Uint8Array && (v.length === 0 || v.length === 8), 'mark');
    return v;
  },
  ciphertext: bytes(0, MIB),
});

/** A block. */
function readBlock(encoded) {
  need(encoded.length <= MIB, 'too_large');
  const read = block(decode(encoded));
  need(read.mark.length === 8 || (read.acks.length === 0 && read.rank === 0), 'acks or a rank without a mark');
  return read;
}

const publication = tagged('publication1', {
  topic: key,
  hiddenKey: key,
  blocks: list(bytes(0, MIB), 1, 8),
  signature,
});
const bare = tagged('bare1', { topic: key, hiddenKey: key, block: bytes(0, MIB), bodyId: id, signature });

/** A publication, whole or bare, with its blocks decoded. */
export function readPublication(encoded) {
  need(encoded.length <= MIB, 'too_large');
  const value = decode(encoded);
  const isBare = Array.isArray(value) && value[0] === 'bare1';
  const read = isBare ? bare(value) : { ...publication(value), bodyId: null };
  const blocks = (isBare ? [read.block] : read.blocks).map((b) => ({ bytes: b, ...readBlock(b) }));
  need(blocks[0].mark.length === 8, 'a commit without a mark');
  return { ...read, blocks };
}

/** The topic that a publication names, also where the rest of it does not decode; null where it names none. */
export function topicOf(encoded) {
  for (const tag of ['publication1', 'bare1']) {
    const start = Buffer.concat([encode(tag), Buffer.of(0xc4, 32)]);
    const at = 1 + start.length;
    const isSo = encoded[0] > 0x90 && encoded[0] < 0xa0 && encoded.subarray(1, at).equals(start);
    if (isSo && encoded.length >= at + 32) return encoded.subarray(at, at + 32).toString('hex');
  }
  return null;
}

/** The feed sequence that the lipmaa link of a commit names (protocol.md, 4). */
function lipmaa(sequence) {
  const n = BigInt(sequence);
  const s = (k) => (3n ** BigInt(k) - 1n) / 2n;
  let k = 0;
  while (s(k + 1) <= n) k++;
  if (s(k) === n) return Number(n - 3n ** BigInt(k - 1));
  let x = n;
  let d;
  do {
    d = s(k);
    x %= d;
    k--;
  } while (x !== 0n);
  return Number(n - d);
}

const kindOfTangle = (v) => {
  need(typeof v === 'string' && v.length <= 32 && /^[a-z][a-z0-9-]*$/.test(v) && !v.includes('\n'), 'kind of a tangle');
  return v;
};
const commit = tagged('commit2', {
  links: structure({
    deps: once(id, 128), ndeps: once(id, 128), files: once(id, 128), nfiles: once(id, 128), lipmaa: orNil(id),
  }),
  content: structure({
    author: id,
    branch: id,
    epoch: id,
    byWriter: bool,
    whole: bool,
    sequence: number(1, MAX_NUMBER),
    previous: orNil(id),
    tangles: list(structure({ kind: kindOfTangle, root: id, previous: once(id, 128) }), 0, 16),
    timestamp: time,
    metadata: bytes(0, 4096),
    body: reference,
    fileKeys: list(bytes(0, 32), 0, 128),
  }),
  signature,
});

/** Whether the plaintext of a commit is of another version of the format than the known one. */
export function isOtherVersion(plaintext) {
  // Only the tag is read: of what follows nothing is known.
  try {
    const tag = readTag(plaintext);
    return tag !== 'commit2' && /^commit[0-9]{1,4}$/.test(tag);
  } catch {
    return false;
  }
}

/** A commit's plaintext, and the values of it over which its signature is. */
export function readCommit(plaintext) {
  need(plaintext.length <= MAX_COMMIT, 'too_large');
  const value = decode(plaintext);
  const { links, content, signature: signed } = commit(value);
  const apart = (a, b) => a.every((x) => !b.includes(x));
  need(apart(links.deps, links.ndeps) && apart(links.files, links.nfiles), 'duplicate_ids');
  need(content.tangles.every((t, i) => i === 0 || content.tangles[i - 1].kind < t.kind), 'tangles are not sorted');
  need(content.fileKeys.length === links.files.length, 'keys_do_not_match');
  need(content.fileKeys.every((k) => k.length === 0 || k.length === 32), 'keys_do_not_match');
  need((content.previous === null) === (content.sequence === 1), 'bad_feed_link');
  need((links.lipmaa === null) === (lipmaa(content.sequence) === content.sequence - 1), 'bad_lipmaa_link');
  return { ...content, ...links, signature: signed, signedParts: [value[1], value[2]], saysRoot: content.branch === ZEROS };
}

const SAID = ['post1', 'imported1', 'set1', 'set-squeeze1', 'dict1', 'dict-squeeze1', 'json1', 'json-squeeze1', 'text1'];

const UNNAMED = ['post1', 'imported1'];

/** 1 to 128 bytes without controls, whose segments are not empty, `.` or `..`. */
function namesADocument(name) {
  if (typeof name !== 'string' || Buffer.byteLength(name) > 128) return false;
  return !/[\u0000-\u001f\u007f-\u009f]/.test(name) && !name.split('/').some((part) => ['', '.', '..'].includes(part));
}

/** The kind that metadata says of the body, or null where it means nothing. */
export function saidKind(metadata) {
  try {
    const value = decode(metadata);
    if (!Array.isArray(value) || !SAID.includes(value[1])) return null;
    if (value[0] === 'kind1' && value.length === 2) return value[1];
    if (value[0] !== 'kind2' || value.length !== 3 || UNNAMED.includes(value[1])) return null;
    return namesADocument(value[2]) ? value[1] : null;
  } catch {
    return null;
  }
}

// The bodies of the core and those of profiles that are shaped or ruled. Free ones are like unknown ones (but see below).
const MAX_FRIENDS = 15;
const item = text(0, 1024);
const dictKey = text(0, 1024);
const entry = structure({ key: dictKey, value: text(0, 256 * 1024) });
const replaced = list(structure({ name: id, operations: list(number(0, 2047), 0, 2048) }), 0, 2048);
const update = bytes(1, 384 * 1024);
const replaces = list(id, 0, 2048);
const keeps = orNil(permission);
const commits = (max) => list(id, 1, max);
const founding = { name, owners: list(id, 1, 64), certificate: signature, states };
const BODIES = {
  init2: founding,
  init3: { ...founding, council: number(2, 64) },
  'branch-add2': { branch: id, name, root: reference },
  'branch-link1': { branch: id },
  invite1: { key, permission, uses: number(1, 10000), expiresAt: time },
  join1: { invitation: id, proof: signature },
  grant2: { user: id, permission },
  'device-grant1': { user: id, permission },
  move1: { user: id, credential: id },
  'recovery-friends1': { friends: list(id, 0, MAX_FRIENDS), threshold: number(0, MAX_FRIENDS) },
  'recovery-grant1': {
    naming: id, user: id, permission, signatures: list(structure({ friend: id, signature }), 0, MAX_FRIENDS),
  },
  remove1: {
    user: id,
    keeps,
    feeds: list(structure({ branch: id, sequence: number(1, MAX_NUMBER), commit: id }), 0, 4096),
  },
  revoke1: { invitation: id },
  adopt1: { branch: id, commits: commits(1024) },
  'epoch-init3': { states, boxes: reference, writersBoxes: reference, keys: reference },
  'epoch-open1': { epochs: list(structure({ epoch: id, key }), 1, 2048) },
  'epoch-hand1': {
    epoch: id,
    mark: key,
    writersMark: key,
    boxes: list(structure({ user: id, box: key, writersBox: orNil(key) }), 1, 1500),
  },
  prekey1: { key },
  'branch-root1': {},
  post1: { text: text(0, 256 * 1024) },
  // names
  'branch-edit1': { branch: id, name: orNil(name), archived: orNil(bool) },
  tag1: { name, branch: id, commit: orNil(id) },
  // documents, compaction
  set1: { added: list(item, 0, 1024), deleted: list(item, 0, 1024), replaces: replaced },
  dict1: { put: list(entry, 0, 256), erased: list(dictKey, 0, 256), replaces: replaced },
  text1: { update, replaces },
  'text-snapshot1': { updates: list(structure({ commit: id, update, replaces }), 1, 2048) },
  'set-squeeze1': {
    first: item, end: orNil(item), operations: list(structure({ commit: id, items: list(item, 1, 1024) }), 0, 8192),
  },
  'dict-squeeze1': {
    first: dictKey,
    end: orNil(dictKey),
    operations: list(structure({ commit: id, entries: list(entry, 1, 256) }), 0, 8192),
  },
  compaction1: { givenUp: list(id, 0, 1024) },
  // files, forks, imports
  files1: { added: list(structure({ name, size: number(0, 2 ** 40) }), 0, 128) },
  fork1: { origin: id, commits: commits(128) },
  carried1: { branch: id, commit: id, author: key, time, body: bytes(0, MAX_BODY) },
  merge1: { branch: id, commits: commits(128) },
  imported1: {
    source: text(1, 255), author: text(0, 255), time: number(-MAX_NUMBER, MAX_NUMBER), text: text(0, 256 * 1024),
  },
  // quorum, inbox
  quorum1: { signers: list(id, 1, 64), threshold: number(1, 64), removals: bool },
  'propose-checkpoint1': { branch: id, commits: commits(128) },
  'propose-removal1': { user: id, keeps },
  approve1: { proposal: id },
  checkpoint1: { proposal: id },
  offer1: { branch: id, pulls: bool, note: text(0, 1000), link: bytes(0, 16384) },
  answer1: { offer: id, accepts: bool },
};
const SHAPES = new Map(Object.entries(BODIES).map(([tag, parts]) => [tag, tagged(tag, parts)]));
// Free bodies of which something is read. One that is malformed is like one of an unknown kind.
const FREE = new Map([['members-checkpoint1', tagged('members-checkpoint1', { digest: id })]]);
const READ_WHERE_CARRIED = ['post1', 'imported1', 'files1', 'set1', 'dict1', 'text1'];

/** The tag of a structure, read in its shortest form alone, whatever follows. */
function readTag(encoded) {
  need(encoded.length >= 2 && encoded[0] > 0x90 && encoded[0] < 0xa0, 'no fixarray');
  need(encoded[1] > 0xa0 && encoded[1] < 0xc0, 'no fixstr');
  return decode(encoded.subarray(1, 2 + (encoded[1] & 31)));
}

/** A body: { kind, ...fields }; of an unknown kind the kind alone. */
export function readBody(encoded) {
  need(encoded.length <= MAX_BODY, 'too_large');
  const kind = readTag(encoded);
  if (!SHAPES.has(kind)) return { kind, ...readFree(kind, encoded) };
  const body = { kind, ...SHAPES.get(kind)(decode(encoded)) };
  if (kind === 'carried1') {
    const inner = readTag(body.body);
    // The list does not grow, so that nodes of all versions judge alike.
    body.carried = READ_WHERE_CARRIED.includes(inner) ? readBody(body.body) : { kind: inner };
  }
  return body;
}

/** The fields of a free body; none where it does not decode, or nothing is read of its kind. */
function readFree(kind, encoded) {
  try {
    return FREE.get(kind)?.(decode(encoded));
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

/** The boxes in an object of boxes; what is left at its end is none. */
export function boxesIn(bytes) {
  return Array.from({ length: Math.floor(bytes.length / 32) }, (_, i) => bytes.subarray(32 * i, 32 * i + 32));
}

const givenKeys = structure({ keys: list(structure({ epoch: id, key }), 0, 2048) });

/** The keys that an init gives, once they are unsealed. */
export function readGivenKeys(plaintext) {
  return givenKeys(decode(plaintext)).keys;
}
