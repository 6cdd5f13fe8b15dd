// BLAKE3 (hash, keyed_hash, derive_key, each with output of any length), written from the BLAKE3 paper.

const IV = new Int32Array([
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]);
const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const BLOCK = 64;
const CHUNK = 1024;
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;
const KEYED_HASH = 16;
const DERIVE_KEY_CONTEXT = 32;
const DERIVE_KEY_MATERIAL = 64;

// Which message word each of the 7 rounds takes where: computed once, so that no words are moved.
const SCHEDULE = [[...PERMUTATION.keys()]];
for (let round = 1; round < 7; round++) SCHEDULE.push(PERMUTATION.map((i) => SCHEDULE[round - 1][i]));

/** The quarter round as text: of the words a to d of the state and two words of the message. */
const mix = (a, b, c, d, x, y) => `
  v${a} = (v${a} + v${b} + m${x}) | 0; v${d} ^= v${a}; v${d} = (v${d} >>> 16) | (v${d} << 16);
  v${c} = (v${c} + v${d}) | 0; v${b} ^= v${c}; v${b} = (v${b} >>> 12) | (v${b} << 20);
  v${a} = (v${a} + v${b} + m${y}) | 0; v${d} ^= v${a}; v${d} = (v${d} >>> 8) | (v${d} << 24);
  v${c} = (v${c} + v${d}) | 0; v${b} ^= v${c}; v${b} = (v${b} >>> 7) | (v${b} << 25);`;
const roundOf = (s) => mix(0, 4, 8, 12, s[0], s[1]) + mix(1, 5, 9, 13, s[2], s[3])
  + mix(2, 6, 10, 14, s[4], s[5]) + mix(3, 7, 11, 15, s[6], s[7])
  + mix(0, 5, 10, 15, s[8], s[9]) + mix(1, 6, 11, 12, s[10], s[11])
  + mix(2, 7, 8, 13, s[12], s[13]) + mix(3, 4, 9, 14, s[14], s[15]);
const each = (count, say) => Array.from({ length: count }, (_, i) => say(i)).join(' ');

/**
 * The compression function: 16 words, of which the first 8 are the next chaining value. Half of what a judge does is this,
 * so its text is written out here, without loops: then all words are local variables, which takes a tenth of the time.
 */
const compress = new Function('cv', 'words', 'counter', 'length', 'flags', `
  ${each(16, (i) => `const m${i} = words[${i}];`)}
  ${each(8, (i) => `let v${i} = cv[${i}];`)}
  ${each(4, (i) => `let v${8 + i} = ${IV[i]};`)}
  let v12 = counter | 0, v13 = Math.floor(counter / 4294967296) | 0, v14 = length, v15 = flags;
  ${SCHEDULE.map(roundOf).join('')}
  const out = new Int32Array(16);
  ${each(8, (i) => `out[${i}] = v${i} ^ v${8 + i}; out[${8 + i}] = v${8 + i} ^ cv[${i}];`)}
  return out;`);

/** The little-endian words of at most one block of bytes, filled up with zeros. */
function wordsOf(bytes, start, end) {
  const words = new Int32Array(16);
  let at = start;
  for (let i = 0; at + 4 <= end; i++, at += 4) {
    words[i] = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
  }
  for (; at < end; at++) words[(at - start) >> 2] |= bytes[at] << (8 * ((at - start) & 3));
  return words;
}

/** The last compression of one chunk, not done yet: what it would take as ROOT or as an inner node. */
function chunkNode(key, bytes, start, end, counter, flags) {
  let cv = key;
  let at = start;
  let first = CHUNK_START;
  while (end - at > BLOCK) {
    cv = compress(cv, wordsOf(bytes, at, at + BLOCK), counter, BLOCK, flags | first);
    first = 0;
    at += BLOCK;
  }
  return { cv, words: wordsOf(bytes, at, end), counter, length: end - at, flags: flags | first | CHUNK_END };
}

/** The node of the subtree over bytes from start to end, of which the first chunk has the number counter. */
function treeNode(key, bytes, start, end, counter, flags) {
  const size = end - start;
  if (size <= CHUNK) return chunkNode(key, bytes, start, end, counter, flags);
  // The left subtree is the largest full one that leaves at least one byte to the right.
  let left = CHUNK;
  while (left * 2 < size) left *= 2;
  const words = new Int32Array(16);
  words.set(chaining(treeNode(key, bytes, start, start + left, counter, flags)));
  words.set(chaining(treeNode(key, bytes, start + left, end, counter + left / CHUNK, flags)), 8);
  return { cv: key, words, counter: 0, length: BLOCK, flags: flags | PARENT };
}

/** The chaining value of an inner node. */
function chaining(node) {
  return compress(node.cv, node.words, node.counter, node.length, node.flags).subarray(0, 8);
}

/** The output of a root node: as many bytes as are asked for. */
function output(node, length) {
  const out = Buffer.alloc(length);
  for (let block = 0; block * BLOCK < length; block++) {
    const v = compress(node.cv, node.words, block, node.length, node.flags | ROOT);
    for (let i = 0; i < BLOCK && block * BLOCK + i < length; i++) {
      out[block * BLOCK + i] = v[i >> 2] >>> (8 * (i & 3));
    }
  }
  return out;
}

/** BLAKE3 with a key and flags. */
function run(keyWords, flags, bytes, length) {
  return output(treeNode(keyWords, bytes, 0, bytes.length, 0, flags), length);
}

/** The hash of bytes. */
export function hash(bytes, length = 32) {
  return run(IV, 0, bytes, length);
}

/** The hash of bytes under a key of 32 bytes. */
export function keyedHash(key, bytes, length = 32) {
  return run(wordsOf(key, 0, 32), KEYED_HASH, bytes, length);
}

const contextKeys = new Map();

/** derive_key: what follows from material in the context of a string. */
export function deriveKey(context, material, length = 32) {
  let words = contextKeys.get(context);
  if (!words) {
    words = wordsOf(run(IV, DERIVE_KEY_CONTEXT, Buffer.from(context), 32), 0, 32);
    contextKeys.set(context, words);
  }
  return run(words, DERIVE_KEY_MATERIAL, material, length);
}
