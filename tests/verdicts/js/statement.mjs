// Membership checkpoints (profiles/members-checkpoint.md): the statement of a set, and which checkpoints are true.
import { Epochs } from './epochs.mjs';
import { membersDigest } from './keys.mjs';
import { ADMIN, inOrder, isLeave } from './membership.mjs';
import { encode } from './msgpack.mjs';

const CONSIDERED = 8;
const bin = (hex) => Buffer.from(hex, 'hex');
const ascending = (ids) => [...new Set(ids)].sort();
const bins = (ids) => ascending(ids).map(bin);
/** Entries for operations, by id: the id, then what a function says of each. */
const entries = (ops, say) => ascending(ops.map((op) => op.id)).map((id) => {
  const op = ops.find((one) => one.id === id);
  return [bin(id), ...say(op)];
});

/** The statement of a closed set of operations. */
function statementOf(view) {
  const held = [];
  for (const user of view.members().keys()) {
    const rights = view.heldRights(user);
    for (const id of ascending(rights.map((right) => right.credential.id))) {
      const sum = rights.filter((right) => right.credential.id === id)
        .reduce((total, { permission }) => total + 2 ** (permission - 1), 0);
      const isHigh = rights.some((right) => right.credential.id === id && right.permission >= ADMIN);
      held.push({ user, credential: view.all.get(id), sum, isHigh });
    }
  }
  const high = held.filter((one) => one.isHigh).map((one) => one.credential);
  const earlier = (op) => high.filter((other) => op.past.has(other.id)).map((other) => other.id);
  const removals = view.of('remove1').filter((op) => view.counts(op));
  const revocations = view.of('revoke1').filter((op) => view.counts(op));
  const invitations = view.of('invite1').filter((op) => view.counts(op)
    && !revocations.some((revocation) => revocation.invitation === op.id));
  const joined = (op) => view.of('join1').filter((join) => join.invitation === op.id && view.counts(join))
    .map((join) => join.author);
  const barred = (op) => [...removals, ...view.of('move1')].filter((removal) => !op.past.has(removal.id))
    .map((removal) => (removal.kind === 'move1' ? removal.author : removal.user));
  const epochs = new Epochs(view);
  return [
    held.map(({ user, credential, sum }) => [bin(user), bin(credential.id), sum]),
    entries(high.filter((op) => earlier(op).length > 0), (op) => [bins(earlier(op))]),
    entries(removals.filter((op) => !isLeave(op)), (op) => [
      bin(op.user), op.keeps, op.feeds.map((end) => [bin(end.branch), end.sequence, bin(end.commit)]),
    ]),
    entries(invitations, (op) => [op.key, op.permission, op.uses, op.expiresAt, bins(joined(op)), bins(barred(op))]),
    entries(view.quorumsInForce(), (op) => [op.signers.map(bin), op.threshold, op.removals]),
    entries(epochs.inits, (op) => [
      op.states.mark, op.states.writersMark, bins([...epochs.opens(op.id)].filter((id) => id !== op.id)),
    ]),
    entries(view.of('branch-add2'), (op) => [bin(op.branch), op.name, [bin(op.root.id), op.root.key]]),
  ];
}

/** Which of the considered checkpoints are true, by id. */
export function judgeCheckpoints(view, repo) {
  const found = {};
  const said = view.of('members-checkpoint1').filter((op) => op.digest && view.pastOf(op).permission(op.author) >= ADMIN);
  for (const author of new Set(said.map((op) => op.author))) {
    for (const op of said.filter((one) => one.author === author).sort(inOrder).slice(-CONSIDERED)) {
      found[op.id] = membersDigest(repo, encode(statementOf(view.pastOf(op)))).toString('hex') === op.digest;
    }
  }
  return found;
}
