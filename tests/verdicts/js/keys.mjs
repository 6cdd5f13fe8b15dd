// The derivations of protocol.md, 2.
import { hash, keyedHash, deriveKey } from './blake3.mjs';
import { edPublic, xPublic, xShared, xOfPublic, xPrivateOfSeed } from './curve.mjs';
import { encode } from './msgpack.mjs';
import { unseal } from './seal.mjs';

export { hash, keyedHash };

/** derive(context, material) of the document. */
function derive(words, ...material) {
  return deriveKey(`ravel 2026-11 ${words}`, Buffer.concat(material));
}

/** The exclusive or of two byte strings of one length. */
export function xor(a, b) {
  return Buffer.from(a.map((byte, i) => byte ^ b[i]));
}

/** Everything that follows from an epoch's key in a repo. */
class EpochKeys {
  constructor(key, repo) {
    this.key = key;
    this.repo = repo;
    this.readKey = derive('epoch key to epoch read key v1', key);
    this.convergence = derive('epoch key to convergence secret v1', key);
    this.cipherKey = derive('epoch key to epoch cipher key v1', key);
    this.topicSeed = derive('epoch key and repo to epoch topic seed v1', key, repo);
    this.topic = edPublic(this.topicSeed);
    this.sealingKey = derive('epoch key and repo to sealing key v1', key, repo);
    this.mark = xPublic(this.sealingKey);
    this.boxes = new Map();
  }

  /** The mark of a branch in this epoch. */
  branchMark(branch) {
    const secret = derive('epoch key and branch to branch secret v1', this.key, branch);
    return derive('branch secret to branch mark v1', secret).subarray(0, 8);
  }

  /** The writers' topic that an init seals under this epoch's key, or null. */
  openTopic(sealed) {
    const topic = unseal(this.cipherKey, sealed, Buffer.concat([Buffer.from('topic'), this.repo, this.mark]));
    return topic && topic.length === 32 ? topic : null;
  }

  /** The bytes that an init seals as its keys, or null. */
  openKeys(sealed) {
    return unseal(this.cipherKey, sealed, Buffer.concat([Buffer.from('keys'), this.repo, this.mark]));
  }

  /** The box of a user, for its prekey or (null) its own key. */
  box(user, prekey) {
    const name = user.toString('hex') + (prekey?.toString('hex') ?? '');
    if (!this.boxes.has(name)) {
      const shared = xShared(this.sealingKey, prekey ?? xOfPublic(user));
      this.boxes.set(name, xor(this.key, boxPad(shared, this.mark, user)));
    }
    return this.boxes.get(name);
  }
}

/** Whether a key gives no shared point zero: with any private key, which are all multiples of the cofactor. */
export const isPrekey = (key) => xShared(Buffer.alloc(32), key) !== null;

const epochs = new Map();

/** The EpochKeys of a key in a repo; each is derived once. */
export function epochKeys(key, repo) {
  const name = Buffer.concat([key, repo]).toString('latin1');
  if (!epochs.has(name)) {
    if (epochs.size > 20000) epochs.clear();
    epochs.set(name, new EpochKeys(key, repo));
  }
  return epochs.get(name);
}

const boxPad = (shared, mark, user) => derive('shared point, mark and user to box v1', shared, mark, user);

/** What the user of a seed takes out of its box, given the mark; null where that gives the shared point zero. */
export function unbox(seed, user, mark, box) {
  const shared = xShared(xPrivateOfSeed(seed), mark);
  return shared && xor(box, boxPad(shared, mark, user));
}

export const commitKeyPad = (readKey, topic, commit) => keyedHash(readKey, Buffer.concat([topic, commit]));
export const commitDigest = (acks, rank, mark, links, content) =>
  derive('commit signature v1', encode([acks, rank, mark, links, content]));
/** Of an init; a council, if it states one, stands at the end. */
export const repoDigest = (repo, name, owners, council = []) => derive(
  'repo certificate signature v1', encode([repo, name, owners, ...council]),
);
export const publicationDigest = (topic, hiddenKey, blockIds) =>
  derive('publication signature v1', encode([topic, hiddenKey, blockIds]));
export const recoveryDigest = (repo, naming, user, permission) =>
  derive('recovery grant signature v1', encode([repo, naming, user, permission]));
export const invitationDigest = (repo, user) => derive('invitation proof signature v1', encode([repo, user]));
export const membersDigest = (repo, statement) => derive('repo and statement to members digest v1', repo, statement);
