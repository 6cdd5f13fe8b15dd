// Rules M, E2 and E4: what a commit may do, judged by its own past (V7 and V12 of protocol.md, 6).
import { isPublicKey, verify } from './curve.mjs';
import { Epochs, MAX_BOXES, isDue, isInit, prekeyOf, unusedPrekeys, writersOf } from './epochs.mjs';
import { epochKeys, invitationDigest, isPrekey, recoveryDigest, repoDigest } from './keys.mjs';
import {
  ADMIN, MANAGE, OWNER, READ, WRITE, isDeviceGrant, isFounding, isLeave, isRemovalOfAnother, isSenior, leaves,
} from './membership.mjs';
import { Refused } from './msgpack.mjs';
import { readGivenKeys } from './shapes.mjs';

const bin = (hex) => Buffer.from(hex, 'hex');

const MOST_DEVICE_GRANTS = 64; // of an author, ever
const MOST_DEVICES = 15; // that hold a right by these
const MOST_MOVES = 16; // by which one credential is passed on

const NEEDS = {
  init2: 0,
  init3: 0,
  'branch-add2': MANAGE,
  'branch-edit1': MANAGE,
  tag1: MANAGE,
  'branch-link1': WRITE,
  invite1: ADMIN,
  join1: 0,
  revoke1: ADMIN,
  adopt1: ADMIN,
  'epoch-hand1': WRITE,
  'epoch-open1': WRITE,
  prekey1: READ,
  move1: READ,
  'recovery-friends1': READ,
  offer1: READ,
  quorum1: OWNER,
  approve1: READ,
};

/** What an operation needs: the permission that M names for it, by its own past. */
export function needOf(op, view) {
  switch (op.kind) {
    case 'grant2': return Math.max(ADMIN, op.permission);
    case 'device-grant1': return op.permission;
    case 'recovery-grant1': return op.permission;
    case 'remove1': return isLeave(op) ? 0 : view.isDeviceRemoval(op) ? READ : ADMIN;
    case 'epoch-init3': return isDue(view) ? WRITE : ADMIN;
    case 'answer1': return isWithdrawal(op, view) ? 0 : ADMIN;
    default: return NEEDS[op.kind] ?? WRITE; // M5
  }
}

/** Whether an answer withdraws an offer of its own author. */
function isWithdrawal(op, view) {
  const offer = inPast(op.offer, view, ['offer1']);
  return offer !== null && offer.author === op.author && !op.accepts;
}

/** The operation of an id, where it is in the past and of one of some kinds; else null. */
function inPast(id, view, kinds) {
  const op = view.set.has(id) ? view.all.get(id) : null;
  return op && kinds.includes(op.kind) ? op : null;
}

const isAdded = (branch, view) => view.of('branch-add2').some((op) => op.branch === branch);
const ascending = (ids) => ids.every((id, i) => i === 0 || ids[i - 1] < id);

// What M asks of each kind beyond the permission. Each returns the codes of what is broken.
const CHECKS = {
  // M2
  'branch-add2': (op, view, { repoId }) => [
    (op.branch === repoId || isAdded(op.branch, view)) && 'branch_exists',
    op.branch !== op.root.id && 'bad_branch',
  ],
  'branch-link1': (op, view, { repoId }) => [(op.branch === repoId || !isAdded(op.branch, view)) && 'bad_branch'],
  // M3
  invite1: (op) => [op.permission > WRITE && 'not_permitted'],
  // M4
  join1: (op, view, { repo }) => {
    const invitation = inPast(op.invitation, view, ['invite1']);
    if (!invitation || !view.counts(invitation)) return ['unknown_invitation'];
    const revoked = view.of('revoke1').some((r) => r.invitation === invitation.id && view.counts(r));
    const joined = new Set(view.of('join1').filter((j) => j.invitation === invitation.id && view.counts(j))
      .map((j) => j.author));
    const removedSince = view.removalsOf(op.author).some((r) => (isLeave(r) || view.counts(r)) && !invitation.past.has(r.id));
    return [
      revoked && 'invitation_revoked',
      !verify(invitation.key, invitationDigest(repo, bin(op.author)), op.proof) && 'bad_proof',
      op.timestamp >= invitation.expiresAt && 'invitation_expired',
      !joined.has(op.author) && joined.size >= invitation.uses && 'invitation_used',
      removedSince && 'not_permitted',
    ];
  },
  // M6
  grant2: (op, view) => [
    !isPublicKey(bin(op.user)) && 'bad_user',
    holdsDirectly(op.user, op.permission, view) && 'already_holds',
  ],
  // M17
  'device-grant1': (op, view) => deviceGrant(op, view),
  // M18
  move1: (op, view) => {
    const held = view.heldRights(op.author).find((right) => right.credential.id === op.credential)?.credential;
    const own = view.ownDeviceGrants(op.author);
    const ofDevice = view.heldRights(op.user);
    const right = held && !isDeviceGrant(held) && (held.steps ?? 0) <= MOST_MOVES - 1 && op.user !== op.author
      && ofDevice.length > 0 && ofDevice.every(({ credential }) => own.has(credential));
    return [!right && 'bad_move'];
  },
  // M19
  'recovery-friends1': (op) => {
    const count = op.friends.length;
    const enough = count === 0 ? op.threshold === 0 : 2 * op.threshold > count && op.threshold <= count;
    const right = ascending(op.friends) && op.friends.every((friend) => isPublicKey(bin(friend)))
      && !op.friends.includes(op.author) && enough;
    return [!right && 'bad_recovery'];
  },
  // M20
  'recovery-grant1': (op, view, { repo }) => {
    const naming = inPast(op.naming, view, ['recovery-friends1']);
    if (!naming) return ['bad_recovery'];
    const isReplaced = view.of('recovery-friends1').some((other) => other.author === naming.author
      && other.past.has(naming.id));
    const isUsed = view.of('recovery-grant1').some((other) => other.naming === naming.id && other.user === op.user);
    const friends = op.signatures.map((one) => one.friend);
    const digest = recoveryDigest(repo, bin(naming.id), bin(op.user), op.permission);
    // A naming of nobody lets nobody in.
    const isSigned = friends.length >= Math.max(naming.threshold, 1) && ascending(friends)
      && friends.every((friend) => naming.friends.includes(friend))
      && op.signatures.every(({ friend, signature }) => verify(bin(friend), digest, signature));
    return [(isReplaced || isUsed || !isSigned) && 'bad_recovery', ...deviceGrant(op, view)];
  },
  // M7
  remove1: (op, view) => {
    const taken = isLeave(op)
      ? view.heldRights(op.user).filter((right) => right.permission > leaves(op))
      : view.toTake(op);
    const branches = op.feeds.map((end) => end.branch);
    return [
      taken.length === 0 && 'nothing_to_remove',
      new Set(branches).size < branches.length && 'bad_feed_ends',
      ...(isRemovalOfAnother(op) ? removalOfAnother(op, view, taken) : []),
    ];
  },
  // M8
  revoke1: (op, view) => [!inPast(op.invitation, view, ['invite1']) && 'unknown_invitation'],
  // M9
  'epoch-init3': (op, view, { keysOfInit, repo }) => [!isInitRight(op, view, keysOfInit, repo) && 'bad_epoch'],
  // M10
  'epoch-hand1': (op, view, { keysOf }) => {
    const init = new Epochs(view).init(op.epoch);
    if (!init || !init.states.mark.equals(op.mark) || !init.states.writersMark.equals(op.writersMark)) return ['bad_epoch'];
    const isRight = ascending(op.boxes.map((box) => box.user)) && op.boxes.every((box) => {
      const permission = view.permission(box.user);
      const right = () => keysOf(op.epoch).box(bin(box.user), prekeyOf(view, box.user)); // of members alone: they have keys
      return permission >= (box.writersBox ? WRITE : READ) && right().equals(box.box);
    });
    return [!isRight && 'bad_epoch'];
  },
  // M11
  'epoch-open1': (op, view, { repo }) => {
    const right = ascending(op.epochs.map((o) => o.epoch)) && op.epochs.every((o) => givesMark(o, view, repo));
    return [!right && 'bad_epoch'];
  },
  // M12
  offer1: (op, view, { repoId }) => [(op.branch === repoId || !isAdded(op.branch, view)) && 'bad_branch'],
  answer1: (op, view) => [!inPast(op.offer, view, ['offer1']) && 'unknown_offer'],
  // M13
  quorum1: (op, view) => {
    const right = ascending(op.signers) && op.signers.every((s) => view.permission(s) > 0)
      && op.threshold <= op.signers.length;
    return [!right && 'bad_quorum'];
  },
  // M14
  approve1: (op, view) => {
    const known = inPast(op.proposal, view, ['propose-checkpoint1', 'propose-removal1']);
    const named = view.quorumsInForce().some((quorum) => quorum.signers.includes(op.author))
      || (known?.kind === 'propose-removal1' && view.councilSigners().has(op.author));
    return [!known && 'unknown_proposal', !named && 'not_permitted'];
  },
  // M16
  prekey1: (op, view) => [(!isPrekey(op.key) || unusedPrekeys(view, op.author) >= 4) && 'bad_prekey'],
};

/** Whether a user holds a permission by a credential that is no device grant. */
const holdsDirectly = (user, permission, view) => view.heldRights(user).some((right) => right.permission >= permission
  && !isDeviceGrant(right.credential));

/** M17, and of a recovery grant what M20 takes from it. */
function deviceGrant(op, view) {
  const author = view.actor(op);
  const given = view.ownDeviceGrants(author);
  const others = new Set([...given].map((one) => one.user).filter((user) => user !== op.user && user !== author));
  const holding = [...others].filter((user) => view.heldRights(user).some((right) => given.has(right.credential)));
  const published = view.of('device-grant1').filter((one) => one.author === author);
  const permission = view.permission(author);
  return [
    !isPublicKey(bin(op.user)) && 'bad_user',
    view.permission(op.user) >= op.permission && 'already_holds',
    permission === 0 && 'unknown_author',
    permission > 0 && permission < op.permission && 'not_permitted',
    !holdsDirectly(author, op.permission, view) && 'not_permitted',
    (holding.length > MOST_DEVICES - 1 || (op.kind === 'device-grant1' && published.length > MOST_DEVICE_GRANTS - 1))
      && 'too_many_devices',
  ];
}

/** M7 of a removal of another member: by which rights it is held. */
function removalOfAnother(op, view, taken) {
  if (view.councilRight(op)) return [view.permission(op.author) < WRITE && 'not_permitted'];
  const isDevices = view.isDeviceRemoval(op);
  const hasCouncil = view.of('init3').length > 0;
  const sufficing = view.sufficing(op);
  const lacksQuorum = !isDevices && view.coveringQuorums().length > 0
    && sufficing.every((right) => view.restsOn(op, right) === null);
  const holding = sufficing.filter((right) => view.isHeldBy(op, right));
  const junior = taken.every((right) => holding.some((by) => isSenior(by, right)));
  return [
    (lacksQuorum || (hasCouncil && !junior)) && 'needs_quorum',
    !lacksQuorum && !junior && 'not_permitted',
    !isDevices && view.permission(op.author) < WRITE && 'not_permitted',
  ];
}

/** Whether a key gives the mark of the init of its epoch, which is in the past. */
function givesMark({ epoch, key }, view, repo) {
  const init = inPast(epoch, view, ['init2', 'init3', 'epoch-init3']);
  return init !== null && epochKeys(key, repo).mark.equals(init.states.mark);
}

/** E2 of an init whose epoch has these keys; says of the operation what it gives, and for whom it was made. */
function isInitRight(op, view, keys, repo) {
  const members = [...view.members()];
  op.sealedFor = members;
  const given = readGiven(keys.openKeys(op.sealedKeys));
  if (!given) return false;
  op.gives = given.map((g) => g.epoch);
  const boxes = members.slice(0, MAX_BOXES).map(([user]) => keys.box(bin(user), prekeyOf(view, user)));
  return keys.openTopic(op.states.sealedTopic) !== null
    && given.every((g) => givesMark(g, view, repo)) && op.gives.includes(op.publishedIn)
    && !view.operations.some((other) => isInit(other) && other.states.mark.equals(op.states.mark))
    && op.boxObject.equals(Buffer.concat(boxes))
    && op.writersBoxObject.length === 32 * Math.min(MAX_BOXES, writersOf(members).length);
}

/** The keys that an init gives, or null where what it seals does not open or decode. */
function readGiven(plaintext) {
  try {
    return plaintext && readGivenKeys(plaintext);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

/** M1 of the repo's init. */
export function checkFounding(op, { repo, keysOfInit }) {
  // Without owners nobody is a member; which code that has is not said.
  if (!isFounding(op)) return new Set(['not_permitted', 'unknown_author', 'bad_certificate']);
  const owners = op.owners.map(bin);
  const stated = op.kind === 'init3' ? [op.council] : [];
  const count = new Set(op.owners).size;
  return codes([
    !op.owners.includes(op.author) && 'not_permitted',
    !verify(repo, repoDigest(repo, op.name, owners, stated), op.certificate) && 'bad_certificate',
    !owners.every(isPublicKey) && 'bad_certificate',
    stated.some((council) => 2 * council <= count || council > count) && 'bad_quorum',
    !keysOfInit.openTopic(op.states.sealedTopic) && 'bad_epoch', // E2, as far as it is about this init
  ]);
}

const codes = (found) => new Set(found.filter(Boolean));

/** V7 of an operation with a past: the codes of what is broken. `op.need` is known. */
export function checkOperation(op, view, context) {
  const permission = view.permission(op.author);
  const found = [];
  // An init acks nothing: M1
  if (isFounding(op)) found.push('not_permitted');
  if (op.need > 0 && !isRemovalOfAnother(op) && !isDeviceGrant(op) && permission < op.need) found.push('not_permitted');
  if (op.need > 0 && permission === 0) found.push('unknown_author');
  return codes([...found, ...(CHECKS[op.kind]?.(op, view, context) ?? [])]);
}

/** V7 of a content commit: { author, kind, proposal, acks }; the view is that of the past of its place. */
export function checkContent(commit, view) {
  const permission = view.permission(commit.author);
  const least = leastOfContent(commit.kind);
  const checkpoint = commit.kind === 'checkpoint1' ? checkCheckpoint(commit, view) : [];
  return codes([permission < least && 'not_permitted', permission === 0 && 'unknown_author', ...checkpoint]);
}

/** M5, M15: what the author of a content commit must hold. */
export const leastOfContent = (kind) => (kind === 'compaction1' ? MANAGE : WRITE);

/** M13 of a checkpoint. */
function checkCheckpoint(commit, view) {
  const proposal = inPast(commit.proposal, view, ['propose-checkpoint1']);
  const quorums = view.quorumsInForce();
  if (!proposal || quorums.length === 0) return ['unknown_proposal'];
  const same = proposal.branch === commit.branch && new Set(proposal.commits).size === commit.acks.length
    && commit.acks.every((ack) => proposal.commits.includes(ack));
  return [
    !same && 'bad_checkpoint',
    !view.satisfied(quorums, view.approvals(proposal.id)) && 'needs_quorum',
  ];
}

/** V12, E4: whether the epoch opens all that was started in the past. `op` is null of a content commit. */
export function opensItsPast(epoch, view, op = null) {
  const epochs = new Epochs(view, op);
  const asked = op?.kind === 'epoch-init3' ? op.id : op?.kind === 'epoch-hand1' ? op.epoch : epoch;
  const opened = epochs.opens(asked);
  return epochs.inits.every((init) => opened.has(init.id));
}

/** N4: whether the approvals of a checkpoint, of which `past` is the view of its place, count after all operations. */
export function isStillApproved(commit, past, all) {
  const approvals = past.of('approve1').filter((a) => a.proposal === commit.proposal && all.counts(a));
  const signers = [...new Set(approvals.map((a) => a.author))].map((author) => ({ author }));
  return past.satisfied(past.quorumsInForce(), signers);
}
