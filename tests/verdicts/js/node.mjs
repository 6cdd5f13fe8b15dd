// What one node comes to: publications are opened and judged (protocol.md, 6 and 7), keys are taken (5), and the result is
// said in the form of the README.
import { Epochs, isInit } from './epochs.mjs';
import {
  commitDigest, commitKeyPad, epochKeys, hash, keyedHash, publicationDigest, unbox, xor,
} from './keys.mjs';
import { edPublic, verify } from './curve.mjs';
import { PERMISSIONS, View, isFounding as isFoundingBody, isRemovalOfAnother } from './membership.mjs';
import { Refused } from './msgpack.mjs';
import {
  checkContent, checkFounding, checkOperation, isStillApproved, leastOfContent, needOf, opensItsPast,
} from './rules.mjs';
import { chacha20 } from './seal.mjs';
import {
  boxesIn, isOtherVersion, readBody, readCommit, readGivenKeys, readPublication, saidKind, topicOf,
} from './shapes.mjs';
import { judgeCheckpoints } from './statement.mjs';

const bin = (hex) => Buffer.from(hex, 'hex');
const dropped = (reason) => ({ dropped: reason });
const NO_MARK = Buffer.alloc(8);
const ZEROS = '0'.repeat(64);

/** Tries a reader: its value, or null where it refuses, or where there is nothing to read. */
function attempt(read, bytes) {
  try {
    return bytes && read(bytes);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

/** A publication as it was received: its topic, and its value where it decodes. Nothing here depends on a node. */
function receive(text) {
  const encoded = Buffer.from(text, 'base64');
  const topic = topicOf(encoded);
  const value = attempt(readPublication, encoded);
  if (!value) return { topic, value };
  for (const block of value.blocks) block.id = hash(block.bytes).toString('hex');
  const ids = value.blocks.map((block) => bin(block.id));
  if (value.bodyId) ids.push(bin(value.bodyId));
  value.isSigned = () => verify(value.topic, publicationDigest(value.topic, value.hiddenKey, ids), value.signature);
  value.heads = new Map();
  return { topic, value };
}

/** What a publication's commit is when it is opened on a channel: { key, plaintext, content, isUnread }. */
function openHead(value, channel) {
  if (!value.heads.has(channel.name)) {
    const head = value.blocks[0];
    const key = xor(value.hiddenKey, commitKeyPad(channel.keys.readKey, value.topic, bin(head.id)));
    const plaintext = chacha20(key, head.ciphertext);
    const content = attempt(readCommit, plaintext);
    value.heads.set(channel.name, { key, plaintext, content, isUnread: isOtherVersion(plaintext) });
  }
  return value.heads.get(channel.name);
}

class Node {
  /**
   * `wrong` has the keys, as `epoch key`, that an init has proven wrong: a claim may come before the init. `received`
   * remembers what was made of each publication, for the next order in which they come.
   */
  constructor(history, received, wrong) {
    this.repoId = history.repo;
    this.repo = bin(history.repo);
    this.initId = history.init;
    this.seed = bin(history.user_seed);
    this.user = edPublic(this.seed);
    this.wrong = wrong;
    this.held = new Map(); // of each epoch the keys that are held or claimed, by their hex
    this.commits = new Map(); // all that could be opened
    this.operations = new Map(); // the accepted ones of the root branch
    this.publications = history.publications.map((text) => {
      if (!received.has(text)) received.set(text, receive(text));
      return { ...received.get(text), outcomes: new Map() }; // outcomes by channel
    });
    for (const [epoch, key] of history.keys) this.addKey(epoch, bin(key));
  }

  // --- keys (protocol.md, 5, "Taking keys") ---

  /** Takes a key of an epoch; says whether it is new. */
  addKey(epoch, key) {
    const name = key.toString('hex');
    if (!this.held.has(epoch)) this.held.set(epoch, new Map());
    if (this.wrong.has(`${epoch} ${name}`) || this.held.get(epoch).has(name)) return false;
    this.held.get(epoch).set(name, epochKeys(key, this.repo));
    return true;
  }

  /** The init of an epoch, if it is here, whatever becomes of it. */
  initOf(epoch) {
    const commit = this.commits.get(epoch);
    if (!commit?.isSigned || !commit.isRoot || !isInit(commit.body)) return null;
    return isFoundingBody(commit.body) === (epoch === this.initId) ? commit : null;
  }

  /** The keys of an epoch that count, or are claims yet. */
  keysOf(epoch) {
    const keys = [...(this.held.get(epoch)?.values() ?? [])];
    const init = this.initOf(epoch);
    return init ? keys.filter((k) => k.mark.equals(init.body.states.mark)) : keys;
  }

  /** The keys of the epoch that an init starts, if they are held and give the mark that it states. */
  keysOfInit(commit) {
    return this.keysOf(commit.id).find((k) => k.mark.equals(commit.body.states.mark)) ?? null;
  }

  /** Takes what root branch commits give, before they are judged or after. Says whether there was anything new. */
  takeKeys() {
    let isNew = false;
    for (const commit of this.commits.values()) {
      if (!commit.isSigned || !commit.isRoot) continue;
      const take = (epoch, key) => {
        if (key) isNew = this.addKey(epoch, key) || isNew;
      };
      const { kind } = commit.body;
      if (kind === 'epoch-init3') this.takeFromInit(commit, take);
      if (kind === 'epoch-open1') commit.body.epochs.forEach((o) => take(o.epoch, o.key));
      if (kind === 'epoch-hand1') {
        for (const box of commit.body.boxes) {
          if (bin(box.user).equals(this.user)) take(commit.body.epoch, this.openBox(box.box, commit.body.mark));
        }
      }
    }
    return isNew;
  }

  /** Takes the keys that an init gives, or tries its boxes. */
  takeFromInit(commit, take) {
    const keys = this.keysOfInit(commit);
    if (keys) {
      const sealed = keys.openKeys(commit.sealedKeys);
      for (const given of attempt(readGivenKeys, sealed) ?? []) take(given.epoch, given.key);
    } else {
      for (const box of boxesIn(commit.boxObject)) take(commit.id, this.openBox(box, commit.body.states.mark));
    }
  }

  /** What this user takes out of a box, if it gives the mark. */
  openBox(box, mark) {
    const key = unbox(this.seed, this.user, mark, box);
    return key && epochKeys(key, this.repo).mark.equals(mark) ? key : null;
  }

  /** The channels that the node follows, by topic: { name, epoch, keys, writers }. */
  channels() {
    const channels = new Map();
    const follow = (topic, epoch, keys, writers) => {
      const channel = { name: `${epoch} ${keys.key.toString('hex')} ${writers}`, epoch, keys, writers };
      const name = topic.toString('hex');
      channels.set(name, [...(channels.get(name) ?? []), channel]);
    };
    for (const epoch of this.held.keys()) {
      for (const keys of this.keysOf(epoch)) {
        follow(keys.topic, epoch, keys, false);
        const init = this.operations.get(epoch);
        const topic = init?.states && keys.openTopic(init.states.sealedTopic);
        if (topic) follow(topic, epoch, keys, true);
      }
    }
    return channels;
  }

  // --- opening (protocol.md, 6, first table, and 7) ---

  /** Opens all publications on the channels followed now. Says whether something new came. */
  openAll() {
    const before = this.commits.size;
    const channels = this.channels();
    for (const { topic, value, outcomes } of this.publications) {
      for (const channel of (value && channels.get(topic)) ?? []) {
        if (!outcomes.has(channel.name)) outcomes.set(channel.name, this.open(value, channel));
      }
    }
    return this.commits.size > before;
  }

  /** What becomes of a publication on a channel: { dropped: reason }, or {} where its commit is kept. */
  open(value, channel) {
    if (!value.isSigned()) return dropped('bad_topic_signature');
    const head = value.blocks[0];
    const opened = openHead(value, channel);
    const { key, plaintext } = opened;
    const opensWith = (keys) => keyedHash(keys.convergence, plaintext).equals(key);
    // E6: the blocks of an init on its epoch's own topic are made with the secret of the epoch that it names.
    const isOwnInit = head.id === channel.epoch;
    const isForeignInit = isOwnInit && head.id !== this.initId;
    const keys = isForeignInit ? this.keysByInit(value, opened.content, channel.keys, opensWith) : channel.keys;
    if (!keys || !opensWith(keys)) return dropped('wrong_key');

    const commit = this.commits.get(head.id) ?? this.describe(head, opened);
    commit.channels.add(channel);
    if (commit.isUnread) return this.keep(commit);
    const isOneBlock = head.children.length === 0 && new Set(head.acks).size === head.acks.length;
    if (!commit.content || !isOneBlock) return this.keep(commit, 'bad_commit');
    // V1 comes here already: a commit that names another epoch has no mark or body that could be judged.
    const named = head.id === this.initId ? ZEROS : channel.epoch;
    if (!isForeignInit && commit.content.epoch !== named) return dropped('other_epoch');
    const mark = commit.content.saysRoot ? NO_MARK : keys.branchMark(bin(commit.content.branch));
    if (!mark.equals(head.mark)) return this.keep(commit, 'bad_mark');

    const faultOfBlocks = this.takeBlocks(commit, value, keys);
    if (faultOfBlocks) return dropped(faultOfBlocks);
    if (commit.codes.size > 0) return this.keep(commit);
    const digest = commitDigest(head.acks.map(bin), head.rank, head.mark, ...commit.content.signedParts);
    if (!verify(bin(commit.content.author), digest, commit.content.signature)) return this.keep(commit, 'bad_signature');
    // V1: an init that came by the epoch that it starts belongs on that epoch's own topic.
    if ((!isOwnInit && commit.content.byWriter) !== channel.writers) return dropped('other_epoch');
    commit.isSigned = true;
    return this.keep(commit);
  }

  /** Keeps a commit, rejected for good where there is a code. */
  keep(commit, code = null) {
    if (code) commit.codes.add(code);
    if (commit.codes.size > 0) commit.status = 'rejected';
    this.commits.set(commit.id, commit);
    return {};
  }

  /** E6: of the keys that an init gives, the first of the epoch that it names, if it opens it; else null. */
  keysByInit(value, content, startedKeys, opensWith) {
    if (!content || content.branch !== this.repoId) return null;
    const read = ({ id, key }) => {
      const block = value.blocks.find((b) => b.id === id);
      return block ? chacha20(key, block.ciphertext) : null;
    };
    const body = attempt(readBody, read(content.body));
    if (body?.kind !== 'epoch-init3') return null;
    const sealed = read(body.keys);
    const given = attempt(readGivenKeys, sealed && startedKeys.openKeys(sealed)) ?? [];
    const first = given.find((g) => g.epoch === content.epoch);
    return first && opensWith(epochKeys(first.key, this.repo)) ? epochKeys(first.key, this.repo) : null;
  }

  /** A commit as its block and its plaintext say. */
  describe(head, { content, isUnread }) {
    const branch = content?.saysRoot ? head.id : content?.branch;
    const isRoot = branch === this.repoId;
    return {
      id: head.id,
      acks: head.acks,
      rank: head.rank,
      content,
      branch,
      isRoot,
      isUnread,
      said: content && !isRoot ? saidKind(content.metadata) : null,
      group: content?.tangles.find((tangle) => tangle.kind === 'group') ?? null,
      body: null,
      isSigned: false, // by its author, and nothing was wrong with it when it was opened
      codes: new Set(),
      status: 'pending',
      channels: new Set(),
    };
  }

  /** Reads the body and an init's objects. Returns why the publication is dropped, or null; codes go to the commit. */
  takeBlocks(commit, value, keys) {
    const reference = commit.content.body;
    const behind = value.blocks.slice(1).map((block) => block.id);
    if (value.bodyId) {
      if (!commit.said) return 'bare';
      return value.bodyId === reference.id ? null : 'missing_body';
    }
    if (!behind.includes(reference.id)) return 'missing_body';
    const wanted = new Set([reference.id]);
    if (!commit.said) {
      commit.body = attempt(readBody, openObject(value, reference, keys));
      if (!commit.body) {
        // What else it should name is not known then, so nothing is surplus.
        commit.codes.add('bad_body');
        return null;
      }
      // In another branch such a body means nothing, so it names nothing.
      if (commit.isRoot && commit.body.kind === 'epoch-init3') {
        const { boxes, writersBoxes, keys: given } = commit.body;
        [boxes, writersBoxes, given].forEach((object) => wanted.add(object.id));
        if (![...wanted].every((id) => behind.includes(id))) return 'missing_body';
        commit.boxObject = openObject(value, boxes, keys);
        commit.writersBoxObject = openObject(value, writersBoxes, keys);
        commit.sealedKeys = openObject(value, given, keys);
      }
    }
    if (behind.length > wanted.size) return 'surplus_blocks';
    if (commit.boxObject === null || commit.writersBoxObject === null || commit.sealedKeys === null) {
      commit.codes.add('bad_body');
    }
    return null;
  }

  // --- judging (protocol.md, 6, second table) ---

  /** Judges all that waits, until nothing changes. Says whether anything did. */
  judgeAll() {
    let changed = false;
    for (let again = true; again;) {
      again = false;
      for (const commit of this.commits.values()) {
        if (commit.status !== 'pending' || commit.isUnread) continue;
        this.judge(commit);
        if (commit.status !== 'pending') again = changed = true;
      }
    }
    return changed;
  }

  /** Judges one commit that waits. */
  judge(commit) {
    const reject = (codes) => {
      for (const code of codes) commit.codes.add(code);
      commit.status = 'rejected';
    };
    const isFirst = commit.id === this.initId || commit.content.saysRoot;
    const causes = [...commit.acks, ...(commit.isRoot ? [] : commit.group?.previous ?? [])];
    const found = this.shapeCodes(commit, isFirst);
    if (causes.some((id) => this.commits.get(id)?.status === 'rejected')) found.push('rejected_cause'); // V4
    if (found.length > 0) return reject(found);
    if (!causes.every((id) => this.commits.get(id)?.status === 'accepted')) return undefined;

    this.follow(commit);
    const structure = this.structureCodes(commit, isFirst);
    if (structure.length > 0) return reject(structure);
    const adds = (op) => op.kind === 'branch-add2' && op.branch === commit.branch;
    if (isFirst && !commit.isRoot && ![...this.operations.values()].some(adds)) return undefined;

    const codes = commit.isRoot ? this.judgeOperation(commit) : this.judgeContent(commit);
    if (codes === null) return undefined;
    if (codes.size > 0) return reject(codes);
    commit.status = 'accepted';
    if (commit.isRoot) this.operations.set(commit.id, commit.operation);
    return undefined;
  }

  /** V2, V8, V3: what a commit's own header says. */
  shapeCodes(commit, isFirst) {
    const { content, group, body } = commit;
    const found = [];
    if ((commit.acks.length === 0) !== isFirst) found.push('second_root');
    const files = body?.kind === 'files1' ? body : body?.carried?.kind === 'files1' ? body.carried : null;
    if (files && (files.added.length !== content.files.length || content.files.length + content.nfiles.length === 0)) {
      found.push('bad_files');
    }
    const isPlaced = group !== null && group.root === this.initId && group.previous.length > 0;
    if (commit.isRoot ? group !== null : !isPlaced) found.push('bad_group_place');
    return found;
  }

  /** The past of a commit whose causes are accepted: `past` in its branch, `rootPast` in the root branch. */
  follow(commit) {
    const past = (ids) => new Set(ids.flatMap((id) => [id, ...this.commits.get(id).past]));
    commit.past ??= past(commit.acks);
    commit.rootPast ??= commit.isRoot ? commit.past : past(commit.group.previous.filter((id) => this.operations.has(id)));
  }

  /** V6, V10, V2, V11: acks, rank, place, branch and epoch. */
  structureCodes(commit, isFirst) {
    const { content, group, rootPast } = commit;
    const acked = commit.acks.map((id) => this.commits.get(id));
    const found = [];
    if (acked.some((ack) => ack.branch !== commit.branch)) found.push('ack_of_other_branch');
    if (acked.some((ack) => ack.acks.some((id) => commit.acks.includes(id)))) found.push('implied_ack');
    if (commit.rank !== Math.max(0, ...acked.map((ack) => ack.rank + 1))) found.push('bad_rank');
    if (!commit.isRoot) {
      const follows = acked.every((ack) => (ack.isRoot ? [] : ack.group.previous).every((id) => rootPast.has(id)));
      if (!follows || !group.previous.every((id) => this.operations.has(id))) found.push('bad_group_place');
      const adds = (op) => op?.kind === 'branch-add2' && op.branch === commit.branch;
      if (!isFirst && ![...rootPast].some((id) => adds(this.operations.get(id)))) found.push('unknown_branch');
    }
    const started = rootPast.has(content.epoch) && isInit(this.operations.get(content.epoch));
    if (commit.id !== this.initId && !started) found.push('unknown_epoch');
    return found;
  }

  /** E3, V7 and V12 of a root branch commit: codes, or null where it waits. */
  judgeOperation(commit) {
    const { content, body } = commit;
    const isFounding = commit.id === this.initId;
    const op = {
      ...body,
      id: commit.id,
      author: content.author,
      rank: commit.rank,
      past: commit.past,
      publishedIn: isFounding ? null : content.epoch,
      byWriter: content.byWriter,
      timestamp: content.timestamp,
      boxObject: commit.boxObject,
      writersBoxObject: commit.writersBoxObject,
      sealedKeys: commit.sealedKeys,
    };
    const view = new View(this.operations, commit.past);
    op.pastView = view;
    const starts = isFounding ? isFoundingBody(body) : body.kind === 'epoch-init3';
    const keysOfInit = starts ? this.keysOfInit(commit) : null;
    if (starts && !keysOfInit) return null;
    op.need = needOf(op, view);
    commit.operation = op;
    const context = {
      repo: this.repo, repoId: this.repoId, keysOfInit, keysOf: (epoch) => this.keysOfInit(this.commits.get(epoch)),
    };
    if (isFounding) return checkFounding(op, context);
    const codes = checkOperation(op, view, context);
    if (codes.size === 0 && !opensItsPast(content.epoch, view, op)) codes.add('closed_epoch');
    return codes;
  }

  /** V7 and V12 of a content commit. */
  judgeContent(commit) {
    const view = new View(this.operations, commit.rootPast);
    commit.rootView = view;
    commit.kind = commit.said ?? commit.body.kind;
    const { branch, acks, kind, content: { author } } = commit;
    const codes = checkContent({ ...commit.body, author, kind, branch, acks }, view);
    if (codes.size === 0 && !opensItsPast(commit.content.epoch, view)) codes.add('closed_epoch');
    return codes;
  }

  /** Opens, judges and takes keys until nothing changes. */
  settle() {
    while (this.openAll() | this.judgeAll() | this.takeKeys());
  }

  /** Keys, as `epoch key`, that are proven wrong though something was opened with them alone. */
  provenWrong() {
    const wrong = new Set();
    for (const commit of this.commits.values()) {
      const stays = [...commit.channels].some((c) => this.keysOf(c.epoch).includes(c.keys));
      if (!stays) commit.channels.forEach((c) => wrong.add(`${c.epoch} ${c.keys.key.toString('hex')}`));
    }
    return wrong;
  }

  // --- what is void (N), and the result ---

  /** The accepted content commits of a branch. */
  contentOf(branch) {
    return [...this.commits.values()].filter((c) => c.status === 'accepted' && !c.isRoot && c.branch === branch);
  }

  /** Whether an end of a removed member's feed names a content commit (N2). */
  isNamedByEnd(commit, end, member) {
    if (commit.branch !== end.branch || commit.content.author !== member) return false;
    const feed = this.contentOf(end.branch).filter((c) => c.content.author === member);
    const last = feed.find((c) => c.id === end.commit && c.content.sequence === end.sequence);
    if (last) {
      for (let at = last; at;) {
        if (at === commit) return true;
        const { previous, sequence } = at.content;
        at = feed.find((c) => c.id === previous && c.content.sequence === sequence - 1);
      }
      return false;
    }
    const upTo = feed.filter((c) => c.content.sequence <= end.sequence);
    const forked = new Set(upTo.map((c) => c.content.sequence)).size < upTo.length;
    return !forked && upTo.includes(commit);
  }

  /** N1 to N4. */
  isVoid(commit, all) {
    const op = {
      id: commit.id,
      past: commit.rootPast,
      isNamedBy: (removal) => isRemovalOfAnother(removal)
        && removal.feeds.some((end) => this.isNamedByEnd(commit, end, removal.user)),
    };
    const { author } = commit.content;
    if (commit.kind === 'checkpoint1') {
      const named = { proposal: commit.body.proposal };
      if (!isStillApproved(named, commit.rootView, all)) return true;
    }
    const rights = all.rights(author, commit.rootPast, leastOfContent(commit.kind));
    if (rights.some((right) => all.holds(author, right, op))) return false;
    return !all.of('adopt1').some((adoption) => adoption.branch === commit.branch
      && adoption.commits.includes(commit.id) && all.counts(adoption));
  }

  /** The timeline of a branch, of commits that are not void, in canonical order. */
  timeline(commits) {
    const checkpoints = commits.filter((c) => c.kind === 'checkpoint1' && !c.isRoot);
    const heads = (checkpoint) => [...checkpoint.acks].sort().join();
    const passed = (commit) => {
      const others = checkpoints.filter((k) => k !== commit && !k.past.has(commit.id)
        && !(checkpoints.includes(commit) && heads(k) === heads(commit)));
      return new Set(others.map(heads)).size;
    };
    const places = commits.map((commit) => ({ commit, passed: passed(commit) }));
    places.sort((a, b) => a.passed - b.passed || a.commit.rank - b.commit.rank || (a.commit.id < b.commit.id ? -1 : 1));
    return places.map(({ commit }) => commit.id);
  }

  /** The result, in the form of the README. */
  result() {
    const accepted = [...this.commits.values()].filter((c) => c.status === 'accepted');
    const all = new View(this.operations, new Set(this.operations.keys()));
    const voids = new Set(accepted.filter((c) => !c.isRoot && this.isVoid(c, all)));
    const commits = {};
    for (const commit of [...this.commits.values()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
      commits[commit.id] = { is: voids.has(commit) ? 'void' : commit.status };
      if (commit.status === 'rejected') commits[commit.id].codes = [...commit.codes].sort();
    }
    const branches = {};
    const branchIds = new Set(accepted.map((c) => c.branch));
    for (const branch of branchIds) {
      const timeline = this.timeline(accepted.filter((c) => c.branch === branch && !voids.has(c)));
      branches[branch] = { timeline, digest: hash(Buffer.concat(timeline.map(bin))).toString('hex') };
    }
    const members = Object.fromEntries([...all.members()].map(([user, p]) => [user, PERMISSIONS[p]]));
    const checkpoints = judgeCheckpoints(all, this.repo);
    return {
      commits, dropped: this.countDropped(), members, epochs: this.epochs(all), branches,
      ...(Object.keys(checkpoints).length > 0 && { checkpoints }),
    };
  }

  /** The part of the result about epochs. */
  epochs(all) {
    if (all.operations.length === 0) return { counting: [], tips: [], clean: [], held: [], written_in: null };
    const epochs = new Epochs(all);
    const ids = (inits) => inits.map((init) => init.id).sort();
    return {
      counting: ids(epochs.counting()),
      tips: ids(epochs.tips()),
      clean: ids(epochs.clean()),
      held: ids(epochs.inits),
      written_in: epochs.writtenIn(),
    };
  }

  /** How many publications are dropped, by what the node holds in the end. */
  countDropped() {
    const channels = this.channels();
    const isDropped = ({ topic, value, outcomes }) => {
      const followed = channels.get(topic) ?? [];
      return followed.length > 0 && (!value || followed.every((channel) => outcomes.get(channel.name).dropped));
    };
    return this.publications.filter(isDropped).length;
  }
}

/** The plaintext of an object of one block in a publication; null where it does not open or is no such object. */
function openObject(value, { id, key }, keys) {
  const block = value.blocks.find((b) => b.id === id);
  if (!block || block.children.length || block.mark.length) return null;
  const plaintext = chacha20(key, block.ciphertext);
  return keyedHash(keys.convergence, plaintext).equals(key) ? plaintext : null;
}

/** What a node comes to that gets these publications. */
export function judgeHistory(history, received = new Map()) {
  const wrong = new Set();
  for (;;) {
    const node = new Node(history, received, wrong);
    node.settle();
    const proven = node.provenWrong();
    if (proven.size === 0) return node.result();
    // What had been opened by a wrong key is not opened by who was told that first: begin again without them.
    proven.forEach((name) => wrong.add(name));
  }
}
