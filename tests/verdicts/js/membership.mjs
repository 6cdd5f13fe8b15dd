// Rules R and Q of membership-rules.md, as plain functions of a closed set of operations.
//
// An operation is { id, author, rank, past: Set of ids, kind, need, ...fields of its body }; users are hex. `need` is the
// permission that M names for it: 0 where it needs nothing.

export const READ = 1;
export const WRITE = 2;
export const MANAGE = 3;
export const ADMIN = 4;
export const OWNER = 5;
export const PERMISSIONS = [null, 'read', 'write', 'manage', 'admin', 'owner'];
/** The right of the council (Q4), higher than any permission. */
const COUNCIL = 6;

/** Canonical order in the root branch: there are no checkpoints, so rank, then id. */
export const inOrder = (a, b) => a.rank - b.rank || (a.id < b.id ? -1 : 1);
export const isConcurrent = (a, b) => a !== b && !a.past.has(b.id) && !b.past.has(a.id);
/** Whether this is a removal of oneself. A move is one, which leaves nothing. */
export const isLeave = (op) => op.kind === 'move1' || (op.kind === 'remove1' && op.user === op.author);
export const isRemovalOfAnother = (op) => op.kind === 'remove1' && op.user !== op.author;
/** Whether this is a repo's init, with a council or without. */
export const isFounding = (op) => op.kind === 'init2' || op.kind === 'init3';
/** Whether this is a device grant, a recovery grant among them (Words). */
export const isDeviceGrant = (op) => op.kind === 'device-grant1' || op.kind === 'recovery-grant1';
/** Whether this gives its user the permission that it names (Words). */
export const isGrant = (op) => op.kind === 'grant2' || isDeviceGrant(op);
/** What a removal leaves, as a number. */
export const leaves = (removal) => removal.keeps ?? 0;

/**
 * R1. A right is { credential, permission, quorum: whether it is one of a quorum }. The `origin` of a credential is itself, or
 * of a move that of what it passes on.
 */
export function isSenior(a, b) {
  if (a.permission !== b.permission) return a.permission > b.permission;
  return originOf(b.credential).past.has(originOf(a.credential).id);
}

const originOf = (credential) => credential.origin ?? credential;

/** A closed set of operations, and what the rules say of it. */
export class View {
  /** `all` maps ids to operations; `set` has the ids of this closed set. */
  constructor(all, set) {
    this.all = all;
    this.set = set;
    this.operations = [...set].map((id) => all.get(id));
    this.memo = new Map();
  }

  /** The operations of a kind. */
  of(kind) {
    return this.operations.filter((op) => op.kind === kind);
  }

  /** A value that is computed once. */
  once(name, compute) {
    if (!this.memo.has(name)) this.memo.set(name, compute());
    return this.memo.get(name);
  }

  /** Say of a move what it passes on: the operation, where that chain began, and how many moves that took. */
  follow(move) {
    if (move.passed) return;
    move.passed = this.all.get(move.credential);
    if (move.passed.kind === 'move1') this.follow(move.passed);
    move.origin = originOf(move.passed);
    move.steps = 1 + (move.passed.steps ?? 0);
    // Of those who hold a founding, for whom the chain acts.
    move.founder = move.passed.founder ?? move.author;
  }

  /** The highest permission that a credential gives. */
  highest(credential) {
    if (isFounding(credential)) return OWNER;
    if (credential.kind === 'join1') return this.all.get(credential.invitation).permission;
    return credential.kind === 'move1' ? this.highest(credential.origin) : credential.permission;
  }

  /** The author in M, Q and R: of a recovery grant the member who named the friends. */
  actor(op) {
    return op.kind === 'recovery-grant1' ? this.all.get(op.naming).author : op.author;
  }

  /** A user, and all from whom places came to it in this set, by however many moves. */
  withForerunners(user) {
    return this.once(`forerunners ${user}`, () => {
      const persons = new Set([user]);
      for (const person of persons) {
        for (const move of this.of('move1')) if (move.user === person) persons.add(move.author);
      }
      return persons;
    });
  }

  /** A user's own device grants in this set. Who its forerunners are may be asked of a smaller one. */
  ownDeviceGrants(user, asked = this) {
    const persons = asked.withForerunners(user);
    return new Set(this.operations.filter((op) => isDeviceGrant(op) && persons.has(this.actor(op))));
  }

  /** The removals of a user: those that name it, and the moves that it made. */
  removalsOf(user) {
    return this.operations.filter((op) => (op.kind === 'remove1' && op.user === user)
      || (op.kind === 'move1' && op.author === user));
  }

  /** What a removal of another is to take, where this is its past: what is held, or else what only leaves took. */
  toTake(removal) {
    return this.once(`to take ${removal.id}`, () => {
      const above = (rights) => rights.filter(({ permission }) => permission > leaves(removal));
      const held = above(this.heldRights(removal.user));
      return held.length > 0 ? held : above(this.rightsAfter(removal.user, false));
    });
  }

  /** The credentials that give permissions to a user: [operation, permission]. A quorum's go to its signers together. */
  credentials(user) {
    return this.once(`credentials ${user}`, () => {
      const found = [];
      for (const op of this.operations) {
        if (isFounding(op) && op.owners.includes(user)) found.push([op, OWNER]);
        if (op.kind === 'move1') this.follow(op);
        const isTo = isGrant(op) || op.kind === 'move1' ? op.user : op.kind === 'join1' ? op.author : null;
        if (isTo === user) found.push([op, this.highest(op)]);
      }
      return found;
    });
  }

  /** All rights of a user whose credential is in a past, held or not, of at least a permission. */
  rights(user, past, least) {
    const found = [];
    for (const [credential, highest] of this.credentials(user)) {
      if (!past.has(credential.id)) continue;
      for (let permission = Math.max(least, READ); permission <= highest; permission++) {
        found.push({ credential, permission, quorum: false });
      }
    }
    return found;
  }

  /** The rights that suffice for an operation (Words). */
  sufficing(op) {
    const council = isRemovalOfAnother(op) ? this.pastOf(op).councilRight(op) : null;
    if (council) return [council];
    const rights = this.rights(this.actor(op), op.past, op.need);
    const found = rights.filter((right) => op.kind !== 'move1' || right.credential.id === op.credential);
    if (isRemovalOfAnother(op) && !this.isDeviceRemoval(op)) {
      for (const quorum of this.pastOf(op).coveringQuorums()) {
        found.push({ credential: quorum, permission: OWNER, quorum: true });
      }
    }
    return found;
  }

  /** Whether a removal takes nothing, by its own past, but what its author gave to a device (Words). */
  isDeviceRemoval(op) {
    if (!isRemovalOfAnother(op)) return false;
    const past = this.pastOf(op);
    return past.once(`device ${op.id}`, () => {
      const taken = past.toTake(op);
      const own = past.ownDeviceGrants(op.author);
      return past.councilRight(op) === null && taken.length > 0 && taken.every(({ credential }) => own.has(credential));
    });
  }

  /** The view of an operation's past. */
  pastOf(op) {
    op.pastView ??= new View(this.all, op.past);
    return op.pastView;
  }

  /**
   * R2: whether an operation counts. With a `limit`, a right, only as far as removals and revocations say that act by
   * rights senior to it (R6).
   */
  counts(op, limit = null) {
    const ask = () => {
      if (op.kind === 'join1') {
        if (!this.counts(this.all.get(op.invitation), limit)) return false;
        return !this.of('revoke1').some((revocation) => revocation.invitation === op.invitation
          && isConcurrent(revocation, op) && this.revokes(revocation, limit));
      }
      if (op.need === 0) return true;
      if (isRemovalOfAnother(op)) return this.sufficing(op).some((right) => this.isHeldBy(op, right));
      return this.sufficing(op).some((right) => this.holds(this.actor(op), right, op, limit));
    };
    return this.once(`counts ${op.id} ${limitName(limit)}`, ask);
  }

  /** Whether a revocation counts; with a limit, by a right senior to it. */
  revokes(revocation, limit) {
    if (!limit) return this.counts(revocation);
    return this.sufficing(revocation).some((right) => isSenior(right, limit)
      && this.holds(revocation.author, right, revocation));
  }

  /** R3: whether a user holds a right for an operation of that user. */
  holds(user, right, op, limit = null, hearLeaves = true) {
    const { credential } = right;
    if (!op.past.has(credential.id)) return false;
    // Whether a move counts is not asked: that would lead to lower rights.
    const stands = credential.kind === 'move1'
      ? this.holds(credential.author, { ...right, credential: credential.passed }, credential, limit)
      : this.counts(credential, limit);
    return stands && !this.removalsOf(user).some((removal) => (hearLeaves || !isLeave(removal))
      && this.takes(removal, right, op, limit));
  }

  /** R4 and R5: whether a removal takes a right of its member from an operation. */
  takes(removal, right, op, limit) {
    if (right.permission <= leaves(removal) || right.credential.past.has(removal.id)) return false;
    if (isLeave(removal)) return op.past.has(removal.id);
    if (removal === op || removal.past.has(op.id) || op.isNamedBy?.(removal)) return false;
    if (this.isDeviceRemoval(removal)
      && !this.ownDeviceGrants(removal.author, this.pastOf(removal)).has(right.credential)) return false;
    return this.sufficing(removal).some((by) => isSenior(by, right) && (!limit || isSenior(by, limit))
      && this.isHeldBy(removal, by));
  }

  /** Whether a removal of another member is held by a right that suffices for it (R2, R6). */
  isHeldBy(removal, right) {
    return right.permission === COUNCIL || this.once(`held ${removal.id} ${limitName(right)}`, () => {
      const has = right.quorum ? this.counts(right.credential) : this.holds(removal.author, right, removal);
      return has && this.isApproved(removal, right);
    });
  }

  /** R6: whether enough approvals of a removal count, as seen from a right by which it may be held. */
  isApproved(removal, right) {
    const past = this.pastOf(removal);
    const quorums = past.coveringQuorums();
    if (quorums.length === 0 || this.isDeviceRemoval(removal)) return true;
    const approvals = past.restsOn(removal, right);
    return approvals !== null && quorums.every((quorum) => {
      const counting = approvals.filter((a) => quorum.signers.includes(a.author) && this.counts(a, right));
      return counting.length >= quorum.threshold;
    });
  }

  /** Q1: the quorums that are in force after this set. */
  quorumsInForce() {
    return this.once('in force', () => {
      const counting = this.of('quorum1').filter((quorum) => this.counts(quorum));
      return counting.filter((quorum) => !counting.some((other) => other.past.has(quorum.id)));
    });
  }

  /** The quorums in force that cover removals. */
  coveringQuorums() {
    return this.quorumsInForce().filter((quorum) => quorum.removals);
  }

  /** The counting approvals of a proposal, of each signer the first in canonical order. */
  approvals(proposal, limit = null) {
    const found = new Map();
    for (const op of this.of('approve1').sort(inOrder)) {
      if (op.proposal === proposal && !found.has(op.author) && this.counts(op, limit)) found.set(op.author, op);
    }
    return [...found.values()];
  }

  /** Q2: whether approvals satisfy all of some quorums. */
  satisfied(quorums, approvals) {
    return quorums.every((quorum) =>
      approvals.filter((approval) => quorum.signers.includes(approval.author)).length >= quorum.threshold);
  }

  /**
   * The approvals on which a removal rests as held by a right; null where there are too few (Q2, Q3). This is the view of
   * its past. That approvals count there is meant as R6 says: a signer that the quorum has excluded goes on signing.
   */
  restsOn(removal, right) {
    return this.once(`rests ${removal.id} ${limitName(right)}`, () => {
      for (const proposal of this.proposalsOf(removal)) {
        const approvals = this.approvals(proposal.id, right);
        if (this.satisfied(this.coveringQuorums(), approvals)) return approvals;
      }
      return null;
    });
  }

  /** The proposals of just this removal that are not used up (Q3), in canonical order. */
  proposalsOf(removal) {
    const usedUp = (proposal) => this.operations.some((op) => isRemovalOfAnother(op) && op.user === removal.user
      && op.past.has(proposal.id) && !this.isDeviceRemoval(op));
    return this.of('propose-removal1').sort(inOrder).filter((proposal) => proposal.user === removal.user
      && proposal.keeps === removal.keeps && !usedUp(proposal));
  }

  /** Q4: who signs for the council after this set, each with the founders whose right of owner that user holds. */
  councilSigners() {
    return this.once('council', () => {
      const [init] = this.of('init3');
      const signers = new Map();
      for (const user of init ? this.members().keys() : []) {
        const held = this.heldRights(user).filter(({ credential, permission }) => permission === OWNER
          && originOf(credential) === init);
        if (held.length > 0) signers.set(user, new Set(held.map(({ credential }) => credential.founder ?? user)));
      }
      return signers;
    });
  }

  /** Q4: the council's right to a removal, where this is its past and enough have signed; else null. */
  councilRight(removal) {
    return this.once(`council's ${removal.id}`, () => {
      const [init] = this.of('init3');
      const signers = this.councilSigners();
      const isAsked = init && this.proposalsOf(removal).some((proposal) => {
        const approvals = this.of('approve1').filter((op) => op.proposal === proposal.id);
        return new Set(approvals.flatMap((op) => [...signers.get(op.author) ?? []])).size >= init.council;
      });
      return isAsked ? { credential: init, permission: COUNCIL, quorum: false } : null;
    });
  }

  /** The rights that a user holds after this set. */
  heldRights(user) {
    return this.rightsAfter(user, true);
  }

  /** The rights that a user holds after this set; or would, if no leave of that user took anything. */
  rightsAfter(user, hearLeaves) {
    const after = { id: null, past: this.set };
    return this.once(`rights ${user} ${hearLeaves}`, () =>
      this.rights(user, this.set, READ).filter((right) => this.holds(user, right, after, null, hearLeaves)));
  }

  /** The permission of a user after this set; 0 of who is no member. */
  permission(user) {
    return Math.max(0, ...this.heldRights(user).map((right) => right.permission));
  }

  /** The members after this set, with their permissions, in the order of their ids. */
  members() {
    return this.once('members', () => {
      const users = new Set();
      for (const op of this.operations) {
        if (isFounding(op)) op.owners.forEach((owner) => users.add(owner));
        if (isGrant(op) || op.kind === 'move1') users.add(op.user);
        if (op.kind === 'join1') users.add(op.author);
      }
      const members = [...users].sort().map((user) => [user, this.permission(user)]);
      return new Map(members.filter(([, permission]) => permission > 0));
    });
  }
}

/** A name for a right, in the keys of what was computed once. */
const limitName = (right) => (right ? `${right.credential.id}${right.quorum ? 'q' : ''}${right.permission}` : '');
