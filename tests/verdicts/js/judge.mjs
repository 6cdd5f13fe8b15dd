// Judges the histories of a verdicts.json by the documents alone, and compares with what it expects.
//   node judge.mjs FILE|- [--print] [--strict-codes] [--orders=N] [--jobs=N]
import fs from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { isDeepStrictEqual } from 'node:util';
import { judgeHistory } from './node.mjs';

/** A small generator of numbers with a seed (mulberry32): a shuffle that failed can be repeated. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The items in another order. */
function shuffled(items, seed) {
  const next = random(seed);
  const out = [...items];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [out[i], out[j]] = [out[j], out[i]];
  }
  return out;
}

/** Judges a history in up to three orders: { result } or { differs }. */
function judgeInOrders(history, seed, count = 3) {
  const received = new Map();
  const result = judgeHistory(history, received);
  const orders = {
    reversed: [...history.publications].reverse(),
    shuffled: shuffled(history.publications, seed),
  };
  for (const [order, publications] of Object.entries(orders).slice(0, count - 1)) {
    const other = judgeHistory({ ...history, publications }, received);
    if (!isDeepStrictEqual(other, result)) return { result, differs: { order, other } };
  }
  return { result };
}

/** The differences between what was expected and what was found, as [path, expected, found]. */
function compare(expect, found, strictCodes) {
  const differences = [];
  const at = (path, expected, actual) => {
    if (!isDeepStrictEqual(expected, actual)) differences.push([path, expected, actual]);
  };
  const keys = (a, b) => [...new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})])].sort();
  for (const id of keys(expect.commits, found.commits)) {
    const [a, b] = [expect.commits?.[id], found.commits[id]];
    if (!a || !b || a.is !== b.is) differences.push([`commits ${id}`, a, b]);
    else if (a.is === 'rejected') {
      // All codes that apply may stand there, and the rules do not say how many a node reports: one in common is enough.
      const same = strictCodes ? isDeepStrictEqual([...(a.codes ?? [])].sort(), b.codes)
        : !a.codes?.length || a.codes.some((code) => b.codes.includes(code));
      if (!same) differences.push([`codes of ${id}`, a.codes, b.codes]);
    }
  }
  at('dropped', expect.dropped, found.dropped);
  for (const user of keys(expect.members, found.members)) {
    at(`member ${user}`, expect.members?.[user], found.members[user]);
  }
  for (const part of ['counting', 'tips', 'clean', 'held']) {
    at(`epochs.${part}`, [...(expect.epochs?.[part] ?? [])].sort(), found.epochs[part]);
  }
  at('epochs.written_in', expect.epochs?.written_in ?? null, found.epochs.written_in);
  at('checkpoints', expect.checkpoints, found.checkpoints);
  for (const branch of keys(expect.branches, found.branches)) {
    at(`branch ${branch}`, expect.branches?.[branch], found.branches[branch]);
  }
  return differences;
}

/** What one history comes to: { name, result, problems }. */
function report(history, index, options) {
  let judged;
  try {
    judged = judgeInOrders(history, index + 1, options.orders);
  } catch (error) {
    return { name: history.name, result: null, problems: [['defect of the judge', null, String(error.stack)]] };
  }
  const problems = [];
  if (judged.differs) problems.push([`order ${judged.differs.order}`, judged.result, judged.differs.other]);
  if (!options.print) problems.push(...compare(history.expect ?? {}, judged.result, options.strictCodes));
  return { name: history.name, result: judged.result, problems };
}

/** Judges histories in this thread or in several. */
async function judgeAll(histories, options) {
  if (options.jobs < 2 || histories.length < 20) return histories.map((h, i) => report(h, i, options));
  const reports = [];
  let next = 0;
  const size = 20;
  const run = () => new Promise((resolve, reject) => {
    const worker = new Worker(fileURLToPath(import.meta.url));
    const give = () => {
      if (next >= histories.length) return worker.terminate().then(resolve);
      worker.postMessage({ start: next, histories: histories.slice(next, next + size), options });
      next += size;
      return null;
    };
    worker.on('message', ({ start, found }) => {
      found.forEach((r, i) => { reports[start + i] = r; });
      give();
    });
    worker.on('error', reject);
    give();
  });
  await Promise.all(Array.from({ length: options.jobs }, run));
  return reports;
}

/** A value as short text. */
const show = (value) => (value === undefined ? 'nothing' : typeof value === 'string' ? value : JSON.stringify(value));

async function main() {
  const args = process.argv.slice(2);
  const file = args.find((arg) => !arg.startsWith('--'));
  if (!file) {
    console.error('usage: node judge.mjs FILE|- [--print] [--strict-codes] [--orders=N] [--jobs=N]');
    process.exit(2);
  }
  const number = (name, otherwise) => Number(args.find((arg) => arg.startsWith(`--${name}=`))?.split('=')[1] ?? otherwise);
  const options = {
    orders: number('orders', 3),
    print: args.includes('--print'),
    strictCodes: args.includes('--strict-codes'),
    jobs: number('jobs', os.cpus().length),
  };
  const { histories } = JSON.parse(fs.readFileSync(file === '-' ? 0 : file, 'utf8'));
  const reports = await judgeAll(histories, options);
  if (options.print) {
    const results = Object.fromEntries(reports.map(({ name, result }) => [name, result]));
    process.stdout.write(`${JSON.stringify(results, null, 1)}\n`);
  }
  const failed = reports.filter(({ problems }) => problems.length > 0);
  const out = options.print ? console.error : console.log;
  for (const { name, problems } of failed) {
    for (const [path, expected, found] of problems) {
      out(`${name}: ${path}: expected ${show(expected)}, found ${show(found)}`);
    }
  }
  out(`${reports.length} histories, ${failed.length} with differences`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

if (!isMainThread) {
  parentPort.on('message', ({ start, histories, options }) => {
    parentPort.postMessage({ start, found: histories.map((h, i) => report(h, start + i, options)) });
  });
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main();
}
