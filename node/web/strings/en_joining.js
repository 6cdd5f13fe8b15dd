// English texts of coming to a repo: links, joining, a new one. Part of `text` in opened.js.

export const ofJoining = {
  joinAbout: "Paste the link that you were sent. Nothing happens before you have seen where it leads.",
  followToo: "To read is enough, if I cannot become a member",
  lookAtLink: "See where it leads",
  joinNamed: {
    invite: (name) => `Join ${name}`,
    ask: (name) => `Ask to join ${name}`,
    read: (name) => `Read ${name}`,
    branch: (name) => `Read ${name}`,
  },
  linkGives: {
    invite: (by, may) => `${by || "Somebody"} invites you. You may ${may === "write" ? "read and write" : "read"}.`,
    ask: (by, may) => `By it you ask to ${may === "write" ? "read and write" : "read"}.`,
    read: () => "You read all of it.",
    branch: () => "You read this branch alone.",
  },
  linkMakes: {
    invite: "You are a member at once, and see everything from the beginning.",
    ask: "You see nothing of it until an admin lets you in. You compare six words.",
    read: "You are no member, and nobody sees that you read.",
    branch: "You are no member, and nobody sees that you read.",
  },
  othersSee: (name) => `Its members see your name, ${name}.`,
  comesFrom: (names) => `It comes from ${names}.`,
  hereAs: (name) => `It is on this computer already, as ${name}.`,
  linkClaims: "The names are what the maker of the link wrote.",
  goodUntil: (time) => `good until ${time}`,
  wasGoodUntil: (time) => `was good until ${time}`,
  joining: (name) => `Joining ${name}. It fills as soon as a member is connected.`,
  joined: (name) => `You are a member of ${name} now.`,
  following: (name) => `You read ${name} now.`,
  linkHint: "ravel:invite:…",

  // A new repo
  newRepoAbout: "A repo is a place for a group. You are its owner. Nobody else sees it until you invite them.",
  created: (name) => `${name} was created. Invite others under People.`,
};
