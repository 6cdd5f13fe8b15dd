// German texts of coming to a repo and going: as en_joining.js.

export const ofJoining = {
  joinAbout: "Füge den Link ein, den du bekommen hast. Nichts geschieht, bevor du gesehen hast, wohin er führt.",
  followToo: "Nur lesen, wenn der Link niemanden zum Mitglied macht",
  lookAtLink: "Ansehen, wohin er führt",
  joinNamed: {
    invite: (name) => `${name} beitreten`,
    ask: (name) => `Um Aufnahme in ${name} bitten`,
    read: (name) => `${name} lesen`,
    branch: (name) => `${name} lesen`,
  },
  linkGives: {
    invite: (by, may) => `${by || "Jemand"} lädt dich ein. Du darfst ${may === "write" ? "lesen und schreiben" : "lesen"}.`,
    ask: (by, may) => `Mit ihm bittest du darum, zu ${may === "write" ? "lesen und zu schreiben" : "lesen"}.`,
    read: () => "Du liest alles darin.",
    branch: () => "Du liest nur diesen Zweig.",
  },
  linkMakes: {
    invite: "Du bist sofort Mitglied und siehst alles von Anfang an.",
    ask: "Du siehst nichts davon, bis dich ein Admin einlässt. Ihr vergleicht sechs Wörter.",
    read: "Du bist kein Mitglied, und niemand sieht, dass du liest.",
    branch: "Du bist kein Mitglied, und niemand sieht, dass du liest.",
  },
  othersSee: (name) => `Die Mitglieder sehen deinen Namen, ${name}.`,
  comesFrom: (names) => `Es kommt von ${names}.`,
  hereAs: (name) => `Es ist schon auf diesem Computer, als ${name}.`,
  linkClaims: "Die Namen hat geschrieben, wer den Link gemacht hat.",
  goodUntil: (time) => `gilt bis ${time}`,
  wasGoodUntil: (time) => `galt bis ${time}`,
  joining: (name) => `Beitritt zu ${name}. Es füllt sich, sobald ein Mitglied verbunden ist.`,
  joined: (name) => `Du bist jetzt Mitglied von ${name}.`,
  following: (name) => `Du liest jetzt ${name}.`,
  linkHint: "ravel:invite:…",

  // A new repo
  newRepoAbout: "Ein Repo ist ein Ort für eine Gruppe. Es gehört dir. Niemand sonst sieht es, bis du jemanden einlädst.",
  created: (name) => `${name} ist angelegt. Lade andere unter Personen ein.`,
};
