// The words of E of membership-rules.md, as functions of a set of accepted operations.
//
// An operation has `publishedIn` (the epoch that its commit names, null of the repo's init) and `byWriter`. An accepted
// init has `mark`, `gives` (epochs whose keys it gives) and `sealedFor` (the members after its past).
import { WRITE, isConcurrent, isFounding, isGrant, isRemovalOfAnother, leaves } from './membership.mjs';

export const MAX_BOXES = 8192;
export const isInit = (op) => isFounding(op) || op.kind === 'epoch-init3';

/** The union of what a function says of each item. */
const union = (items, f) => new Set(items.flatMap((item) => [...f(item)]));

export class Epochs {
  /** Of a view; `further` is an operation that is not in it and has all of it in its past: one that is judged. */
  constructor(view, further = null) {
    this.view = view;
    this.operations = further ? [...view.operations, further] : view.operations;
    this.inits = this.operations.filter(isInit);
  }

  /** The init that started an epoch, or undefined. */
  init(epoch) {
    return this.inits.find((op) => op.id === epoch);
  }

  /** The operations of a kind that are published in an epoch. */
  publishedIn(epoch, kind) {
    return this.operations.filter((op) => op.publishedIn === epoch && (!kind || op.kind === kind));
  }

  /** The hand-overs of an epoch, wherever they are published. */
  handOvers(epoch) {
    return this.operations.filter((op) => op.kind === 'epoch-hand1' && op.epoch === epoch);
  }

  /** Opens: the epochs that an epoch opens, itself included. */
  opens(epoch) {
    const opened = new Set([epoch]);
    // A set visits also what is added on the way, so this follows all that these open.
    for (const e of opened) {
      for (const given of this.init(e)?.gives ?? []) opened.add(given);
      for (const op of this.publishedIn(e, 'epoch-open1')) op.epochs.forEach((o) => opened.add(o.epoch));
    }
    return opened;
  }

  /** May hold: the users who may hold an epoch. */
  mayHold(epoch) {
    const opening = this.inits.filter((op) => this.opens(op.id).has(epoch)).map((op) => op.id);
    return union(opening, (e) => this.mayHoldByItself(e));
  }

  /** Who may hold an epoch, but for those who may hold one that opens it. */
  mayHoldByItself(epoch) {
    const init = this.init(epoch);
    const users = new Set([init.author]);
    boxed(init).forEach(([user]) => users.add(user));
    for (const op of this.handOvers(epoch)) op.boxes.forEach((box) => users.add(box.user));
    for (const op of this.publishedIn(epoch)) users.add(op.author);
    for (const op of this.publishedIn(epoch)) if (isGrant(op) || op.kind === 'move1') users.add(op.user);
    return users;
  }

  /** May hold the writers' secret. */
  mayHoldWriters(epoch) {
    const init = this.init(epoch);
    const users = new Set([init.author]);
    boxedWriters(init).forEach(([user]) => users.add(user));
    for (const op of this.handOvers(epoch)) {
      for (const box of op.boxes) if (box.writersBox) users.add(box.user);
    }
    for (const op of this.publishedIn(epoch, 'join1')) {
      if (this.view.all.get(op.invitation).permission >= WRITE) users.add(op.author);
    }
    return users;
  }

  /** The inits of epochs that count. */
  counting() {
    return this.inits.filter((op) => this.view.counts(op));
  }

  /** The inits of the tips. */
  tips() {
    const counting = this.counting();
    return counting.filter((op) => !counting.some((other) => other.past.has(op.id)));
  }

  /** Whether a tip is clean. */
  isClean(init) {
    const { view } = this;
    const removed = view.of('remove1').every((op) => init.past.has(op.id)
      || !isRemovalOfAnother(op) || leaves(op) >= WRITE || !view.counts(op));
    const revoked = view.of('revoke1').every((op) => init.past.has(op.id) || !view.counts(op)
      || !view.of('join1').some((join) => join.invitation === op.invitation && isConcurrent(op, join)));
    const fresh = view.of('prekey1').every((op) => init.past.has(op.id) || view.permission(op.author) === 0
      || !this.inits.some((other) => other.past.has(op.id)));
    return removed && revoked && fresh
      && [...this.mayHold(init.id)].every((user) => view.permission(user) > 0)
      && [...this.mayHoldWriters(init.id)].every((user) => view.permission(user) >= WRITE);
  }

  /** The inits of the clean tips. */
  clean() {
    return this.tips().filter((init) => this.isClean(init));
  }

  /** E8: the epoch that members write in, or null while one is due. */
  writtenIn() {
    const order = (a, b) => boxed(a).length - boxed(b).length || (a.id < b.id ? -1 : 1);
    return this.clean().sort(order)[0]?.id ?? null;
  }
}

/** The members, with permissions, for whom an init has boxes: of too many the first by id. The repo's init has none. */
const boxed = (init) => (isFounding(init) ? [] : init.sealedFor.slice(0, MAX_BOXES));

/** The members for whom an init has writers' boxes. */
const boxedWriters = (init) => (isFounding(init) ? [] : writersOf(init.sealedFor).slice(0, MAX_BOXES));

export const writersOf = (members) => members.filter(([, permission]) => permission >= WRITE);

/** The prekey of a user in a set: the one that follows all others of the user; null: the form of its own key. */
export function prekeyOf(view, user) {
  const stated = view.of('prekey1').filter((op) => op.author === user);
  return stated.find((op) => stated.every((other) => other === op || op.past.has(other.id)))?.key ?? null;
}

/** How many prekeys of a user no init of a set has in its past. */
export function unusedPrekeys(view, user) {
  const { inits } = new Epochs(view);
  return view.of('prekey1').filter((op) => op.author === user && !inits.some((init) => init.past.has(op.id))).length;
}

/** Whether an epoch is due after a set. */
export function isDue(view) {
  return new Epochs(view).writtenIn() === null;
}
