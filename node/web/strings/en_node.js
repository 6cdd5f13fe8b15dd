// English texts of the node's own pages: settings, health, backup, tokens, report, notices. Part of `text` in en.js.

export const many = (count, one, several = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : several}`;

const fullFirst = { quota: "Its quota (relay.size_max)", disk: "The disk" };
const refusedWhat = { topic: "topic", commits: "batch of commits", file: "file", circuit: "circuit", link: "account link" };
const severalOf = { commits: "batches of commits" };
const refusedTo = { account: "of accounts", partner: "of partner relays", known: "of known peers", stranger: "of strangers" };
const refusedBecause = {
  account_full: "The account has used its quota. Give it more, or let its people delete.",
  peer_full: "The peer has brought as much as one may: relay.peer_size_max, peer_topics_max or peer_circuits_max.",
  subnet_full: "Strangers of one subnet have brought as much as they may: relay.subnet_size_max or subnet_topics_max.",
  topic_full: "The topic has as much as one may: relay.topic_size_max.",
  relay_full: "Nothing more can be removed to make room: relay.size_max or circuits_max.",
  topic_forgotten: "The topic was removed to make room. Its members bring it again.",
  not_known: "Only accounts and known peers may: relay.accept.",
  day_used: "The peer has used its bytes of the day: relay.circuit_day_max.",
  not_taken: "The other node had as many circuits as it takes.",
  unknown_link: "There is no such link: it was revoked with its account, or is of another relay.",
  used_link: "Another node has used the link. Each node needs one of its own.",
  expired_link: "The link has expired. Invite again.",
  bad_topic_signature: "It is not of a writer of the topic.",
  bad_file: "The file was larger than its deposit said, or no file.",
  incomplete: "The peer left before the file was whole. It goes on at its next deposit.",
  bare: "The body was erased, and newcomers could not read it from here.",
};
const linkRefusedBecause = {
  account_full: "The account has as many nodes as one may have. Invite the node to an account of another name.",
};

export const ofNode = {
  // Settings
  settingsAbout: "Changes are written to the configuration file at once. The node reads it when it starts.",
  settingsOfNode: "The node",
  filter: "Find",
  needsRestart: "Some changes wait for a restart. In a terminal on the node's machine:",
  afterRestart: "Used after the next start.",
  configFile: (path) => `In ${path}`,
  noSetting: "No setting fits.",
  sections: {
    node: "Work",
    network: "Network",
    api: "Page and apps",
    export: "Export",
    relay: "Relay for others",
    storage: "Storage",
    search: "Search",
    log: "Log",
  },
  sources: { default: "default", file: "set in the file", environment: "set by the environment", option: "given at the start" },
  defaultOf: (value) => `default: ${value || "empty"}`,
  overridden: (variable) => (variable ? `The environment variable ${variable} overrides the file.` : "It was given when the node was started."),
  flags: { true: "yes", false: "no" },
  nowHidden: (value) => `now ${value}`,
  newValue: "new value",
  settingSaved: (name) => `${name} is saved.`,
  savedInVain: (name, variable) => `${name} is saved, and has no effect while ${variable} is set.`,

  // Notices of this browser
  notices: "Notifications",
  noticesAbout: "When this tab is hidden: somebody mentions you, joins a repo, or asks to be let in.",
  noticesOn: "Notifications are on in this browser.",
  noticesRefused: "This browser refuses them. Allow notifications for this page in its settings.",
  noticesImpossible: "This browser has none, or gives them only to pages over TLS or on the node's own machine.",
  turnOn: "Turn on",
  turnOff: "Turn off",
  mentionedYou: (who) => `${who} mentions you`,
  somebodyJoined: (count, repo) => (count === 1 ? `A new member in ${repo}` : `${count} new members in ${repo}`),
  somebodyAsks: (repo) => `Somebody asks to be let into ${repo}`,

  // Unread
  unreadWord: "unread",
  unreadCount: (count, isMore) => `${count}${isMore ? "+" : ""}`,
  mentionsOf: (count) => many(count, "mention"),
  newSince: "New since your last visit",
  isNewToYou: "New",
  firstUnread: "First unread",
  titleWith: (count, name) => `(${count}) ${name}`,

  // Health
  healthAbout: "What ravel doctor sees: the folder, keys, disk, store, clock, peers and exports. It changes nothing.",
  problems: (problems, warnings) =>
    problems ? `${many(problems, "problem")} to solve.` : warnings ? `It works; ${many(warnings, "warning")}.` : "All is well.",
  checkStates: { ok: "ok", warning: "warning", problem: "problem" },
  whatToDo: (advice) => `What to do: ${advice}`,

  // Backup and keys
  backupAbout: "A backup is a folder on the node's machine, best on another disk. It has the store, files, settings and keys: keep it as safe as your keys.",
  backupFolder: "Folder to create",
  startBackup: "Back up now",
  backingUp: (folder) => `Backing up into ${folder}…`,
  written: "Written",
  sizeOf: (size, expected) => `${size} of about ${expected}`,
  backupFailed: (why) => `The backup failed. ${why}`,
  backedUp: (folder, size, time) => `Backed up into ${folder}: ${size}, ${time}.`,
  restoreAbout: "To restore it, run this on a machine with Ravel; NEW is a folder for the new node:",
  restoreWarning: "Never run the restored node beside this one: it is the same node and the same person.",
  keys: "Keys",
  protections: {
    none: "The keys lie in the clear. Anyone who copies the node's folder is you.",
    passphrase: "The keys are sealed with a passphrase.",
    keyring: "The keys are sealed by the keyring of the node's machine.",
  },
  sealAbout: "A passphrase seals them. In a terminal on the node's machine:",
  showWords: "Show my 24 words",
  wordsWarning: "The words are your key on paper: with them you are yourself again on a new machine. Anyone who reads them is you, for ever. Look that nobody sees your screen.",
  wordsAbout: "Write them on paper, in this order, and keep it safe. Take no picture of them.",
  wordsWritten: "I wrote them down",
  passphrase: "Passphrase",

  // Tokens
  tokensAbout: "Apps use this node with a token. Each may do only what you tick.",
  tokensForPersons: "Only a page that ravel open opened makes and revokes tokens.",
  noTokens: "No tokens yet. Make the first one below.",
  newToken: "New token",
  tokenName: "Name of the app",
  tokenNameHint: "letters, digits, dot, underscore, hyphen",
  tokenMay: "It may",
  tokenActions: {
    read: "read repos",
    write: "write posts, files and documents",
    manage: "manage branches and tags",
    admin: "decide who is a member",
    node: "see and steer the node: not with single repos",
  },
  tokenRepos: "For these repos alone (none ticked: all)",
  tokenDays: "Good for days",
  tokenMade: (name) => `The token of ${name}. It is shown only now: copy it into the app.`,
  tokenKinds: { app: "app", page: "page", home: "the node's own" },
  thisPage: "this page",
  gone: "(gone)",
  tokenOrigins: (origins) => `for pages of ${origins}`,
  tokenExpired: (time) => `expired ${time}`,
  tokenTimes: (until, used) => `until ${until} · ${used ? `last used ${used}` : "never used"}`,
  revokeToken: (name) => `Revoke ${name}`,
  revokeQuestion: (name) => `Revoke the token ${name}? What uses it is refused from now on.`,
  revoked: (name) => `${name} was revoked.`,

  // An account at a relay
  joinRelay: "Use a relay by its link",
  joinRelayAbout: "For a link with which the operator of a relay gives you an account. It is good once, for this node.",
  relayLinkHint: "ravel:relay:…",
  joinedRelay: (address, quota) => `This node uses ${address} now. You may keep ${quota} there.`,

  // Report
  reportAbout: "An analysis of all that this node holds: members, activity, branches, how long commits took to spread. It is computed on the node's machine.",
  reportSteps: { "": "", export: "Exporting what is new…", analyze: "Computing the order and the tables…" },
  reportMade: (time) => `Made ${time}.`,
  reportFile: (path) => `As a file: ${path}`,
  openReport: "Show the report",
  makeReport: "Make the report",
  makeReportAgain: "Make it again",
  closeReport: "Close",

  // Relay
  relayAbout: "This node stores topics of others, which it cannot read, and passes their connections on.",
  relayTitle: "Kept for others",
  relayRoom: (size, most, topics) => `${size} of ${most} · ${many(topics, "topic")}`,
  forecast: (growth, free, days, first) =>
    `${growth} a day came in the last week. ${free} are free on the disk. ` +
    (days === null ? "There is room for years." : days === 0 ? `${fullFirst[first]} is full today.` : `${fullFirst[first]} is full in ${many(days, "day")}.`),
  accepts: { true: "Peers without an account may add topics, too.", false: "Only accounts and known peers may add topics." },
  promisedTooMuch: (promised, most) => `The quotas of all accounts are ${promised} together, and the relay stores ${most} at most.`,
  blocksDamaged: (count) => `${many(count, "block")} of stored files were damaged. Look at the disk, then run ravel fsck.`,
  circuitsNow: (open, most, passed, rate) => `${open} of ${many(most, "circuit")} open · ${passed} passed since the start · ${rate}/s now`,
  noCircuits: "Circuits are off (relay.circuits).",
  accounts: "Accounts",
  noAccounts: "There are no accounts yet. Invite the first person below.",
  moreAccounts: (count) => `${many(count, "more account")}: ravel relay accounts lists them.`,
  nodesOf: (nodes, connected, links) =>
    [`${many(nodes, "node")}, ${connected} connected`, ...(links ? [`${many(links, "unused link")}`] : [])].join(" · "),
  quotaUsed: (used, quota) => `${used} of ${quota}`,
  circuitsToday: (open, passed) => `${many(open, "circuit")} open · ${passed} passed today`,
  inviteAccount: "Invite a person",
  inviteAccountAbout: "A link gives one node the account, once. For a person's next node, or another quota, use the same name again.",
  accountName: "Name of the account",
  quota: "Quota",
  unit: "Unit",
  linkDays: "Days until the link expires",
  accountLink: (name, until) => `Send this to ${name}. It works for one node, until ${until}. There: Peers on the page, or ravel relay join -`,
  quotaChanged: (name) => `The quota of ${name} is changed.`,
  revokeAccount: (name) => `Revoke the account ${name}`,
  revokeAccountQuestion: (name) => `Revoke ${name}? Its nodes are strangers again. What they brought stays until there is no room.`,
  accountRevoked: (name) => `The account ${name} is revoked.`,
  visitorsTitle: "Who uses it",
  visitorColumns: ["Peers", "Connected", "Stored", "Circuits · passed"],
  visitorKinds: { account: "Accounts", partner: "Partner relays", known: "Other known peers", stranger: "Strangers" },
  refusedTitle: "Refused since the start",
  refusedNothing: "Nothing was refused.",
  refusedThing: (what, kind, count) => `${many(count, refusedWhat[what], severalOf[what])} · ${refusedTo[kind]}`,
  refusedBecause: (what, reason) => (what === "link" && linkRefusedBecause[reason]) || refusedBecause[reason] || reason,
  refusedLast: (time) => `last ${time}`,
  allowedPeers: "Known peers without an account",
  allowAbout: "A peer that you allow has no quota of its own: the bounds for one peer hold.",
  noTopics: "Nothing is kept for others yet.",
  pin: "Pin",
  unpin: "Unpin",
  allow: "Allow",
  deny: "Deny",

  // The node does not answer
  away: "This node does not answer",
  awayAbout: "It is not running, or restarts. This page tries again by itself and goes on where you were.",
  awayHow: "If it stays so, start it on its machine:",
  awayCommand: "ravel up",
  tryNow: "Try now",
  lostSince: (time) => `The node does not answer since ${time}. You see what came until then; the page goes on by itself.`,

  // Join by a picture of a QR code
  scan: "Scan with the camera",
  scanPicture: "Read a QR code from a picture",
  scanStop: "Stop the camera",
  scanAim: "Hold the QR code in front of the camera.",
  scanNothing: "There is no QR code of a link in this picture.",
  scanRefused: "The camera cannot be used here: allow it in the browser, or choose a picture.",
};
