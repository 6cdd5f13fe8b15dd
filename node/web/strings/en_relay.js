// English texts of the view of a relay, which come with it.

import { many } from "./en_counts.js";

const fullFirst = { quota: "Its quota (relay.size_max)", disk: "The disk" };
const refusedWhat = { topic: "sealed copy", commits: "batch of changes", file: "file", circuit: "circuit", link: "account link" };
const severalOf = { topic: "sealed copies", commits: "batches of changes" };
const refusedTo = { account: "of accounts", partner: "of partner relays", known: "of known computers", stranger: "of strangers" };
const refusedBecause = {
  account_full: "The account has used its quota. Give it more, or let its people delete.",
  peer_full: "The computer has brought as much as one may: relay.peer_size_max, peer_topics_max or peer_circuits_max.",
  subnet_full: "Strangers of one subnet have brought as much as they may: relay.subnet_size_max or subnet_topics_max.",
  topic_full: "The copy has as much as one may: relay.topic_size_max.",
  relay_full: "Nothing more can be removed to make room: relay.size_max or circuits_max.",
  topic_forgotten: "The copy was removed to make room. Its members bring it again.",
  not_known: "Only accounts and known computers may: relay.accept.",
  day_used: "The computer has used its bytes of the day: relay.circuit_day_max.",
  not_taken: "The other computer had as many circuits as it takes.",
  unknown_link: "There is no such link: it was revoked with its account, or is of another relay.",
  used_link: "Another computer has used the link. Each needs one of its own.",
  expired_link: "The link has expired. Invite again.",
  bad_topic_signature: "It is not of a writer of the repo.",
  file_too_large: "The file alone has more bytes than one may bring: the account's quota, or relay.topic_size_max, peer_size_max, subnet_size_max.",
  bad_file: "The file was larger than its deposit said, or no file.",
  incomplete: "The computer left before the file was whole. It goes on at its next deposit.",
  bare: "The body was erased, and newcomers could not read it from here.",
};
const linkRefusedBecause = {
  account_full: "The account has as many computers as one may have. Invite this one to an account of another name.",
};

export const ofRelay = {
  relayAbout: "This computer keeps sealed copies for others, which it cannot read, and passes their connections on.",
  noRelay: "This computer keeps nothing for others. Under Settings, it can.",
  relayTitle: "Kept for others",
  forecast: (growth, free, days, first) =>
    `${growth} a day came in the last week. ${free} are free on the disk. ` +
    (days === null ? "There is room for years." : days === 0 ? `${fullFirst[first]} is full today.` : `${fullFirst[first]} is full in ${many(days, "day")}.`),
  accepts: { true: "Computers without an account may bring copies, too.", false: "Only accounts and known computers may bring copies." },
  promisedTooMuch: (promised, most) => `The quotas of all accounts are ${promised} together, and the relay stores ${most} at most.`,
  blocksDamaged: (count) => `${many(count, "block")} of stored files were damaged. Look at the disk, then run ravel fsck.`,
  circuitsNow: (open, most, passed, rate) => `${open} of ${many(most, "circuit")} open · ${passed} passed since the start · ${rate}/s now`,
  noCircuits: "Circuits are off (relay.circuits).",
  accounts: "Accounts",
  noAccounts: "There are no accounts yet. Invite the first person below.",
  moreAccounts: (count) => `${many(count, "more account")}: ravel relay accounts lists them.`,
  nodesOf: (nodes, connected, links) =>
    [`${many(nodes, "computer")}, ${connected} connected`, ...(links ? [`${many(links, "unused link")}`] : [])].join(" · "),
  quotaUsed: (used, quota) => `${used} of ${quota}`,
  circuitsToday: (open, passed) => `${many(open, "circuit")} open · ${passed} passed today`,
  inviteAccount: "Invite a person",
  inviteAccountAbout: "A link gives one computer the account, once. For a person's next computer, or another quota, use the same name again.",
  accountName: "Name of the account",
  quota: "Quota",
  unit: "Unit",
  linkDays: "Days until the link expires",
  accountLink: (name, until) => `Send this to ${name}. It works for one computer, until ${until}. There: Connections on the page, or ravel relay join -`,
  quotaChanged: (name) => `The quota of ${name} is changed.`,
  revokeAccount: (name) => `Revoke the account ${name}`,
  revokeAccountQuestion: (name) => `Revoke ${name}? Its computers are strangers again. What they brought stays until there is no room.`,
  accountRevoked: (name) => `The account ${name} is revoked.`,
  visitorsTitle: "Who uses it",
  visitorColumns: ["Computers", "Connected", "Stored", "Circuits · passed"],
  visitorKinds: { account: "Accounts", partner: "Partner relays", known: "Other known computers", stranger: "Strangers" },
  refusedTitle: "Refused since the start",
  refusedNothing: "Nothing was refused.",
  refusedThing: (what, kind, count) => `${many(count, refusedWhat[what], severalOf[what])} · ${refusedTo[kind]}`,
  refusedBecause: (what, reason) => (what === "link" && linkRefusedBecause[reason]) || refusedBecause[reason] || reason,
  refusedLast: (time) => `last ${time}`,
  allowedPeers: "Known computers without an account",
  allowAbout: "A computer that you allow has no quota of its own: the bounds for one hold.",
  noTopics: "Nothing is kept for others yet.",
  pin: "Pin",
  unpin: "Unpin",
  allow: "Allow",
  deny: "Deny",
};
