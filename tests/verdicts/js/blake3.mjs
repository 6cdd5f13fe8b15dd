// BLAKE3 (hash, keyed_hash, derive_key, each with output of any length), written from the BLAKE3 paper.

const IV = Uint32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
);
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

/** The quarter round of the compression function. */
function mix(v, a, b, c, d, x, y) {
  let va = (v[a] + v[b] + x) | 0;
  let vd = v[d] ^ va;
  vd = (vd >>> 16) | (vd << 16);
  let vc = (v[c] + vd) | 0;
  let vb = v[b] ^ vc;
  vb = (vb >>> 12) | (vb << 20);
  va = (va + vb + y) | 0;
  vd ^= va;
  vd = (vd >>> 8) | (vd << 24);
  vc = (vc + vd) | 0;
  vb ^= vc;
  v[a] = va;
  v[b] = (vb >>> 7) | (vb << 25);
  v[c] = vc;
  v[d] = vd;
}

/** The compression function: 16 words, of which the first 8 are the next chaining value. */
function compress(cv, words, counter, length, flags) {
  const v = new Int32Array(16);
  v.set(cv);
  v.set(IV.subarray(0, 4), 8);
  v[12] = counter | 0;
  v[13] = Math.floor(counter / 4294967296);
  v[14] = length;
  v[15] = flags;
  for (const s of SCHEDULE) {
    mix(v, 0, 4, 8, 12, words[s[0]], words[s[1]]);
    mix(v, 1, 5, 9, 13, words[s[2]], words[s[3]]);
    mix(v, 2, 6, 10, 14, words[s[4]], words[s[5]]);
    mix(v, 3, 7, 11, 15, words[s[6]], words[s[7]]);
    mix(v, 0, 5, 10, 15, words[s[8]], words[s[9]]);
    mix(v, 1, 6, 11, 12, words[s[10]], words[s[11]]);
    mix(v, 2, 7, 8, 13, words[s[12]], words[s[13]]);
    mix(v, 3, 4, 9, 14, words[s[14]], words[s[15]]);
  }
  for (let i = 0; i < 8; i++) {
    v[i] ^= v[i + 8];
    v[i + 8] ^= cv[i];
  }
  return v;
}

/** The little-endian words of at most one block of bytes, filled up with zeros. */
function wordsOf(bytes, start, end) {
  const words = new Int32Array(16);
  for (let i = start; i < end; i++) words[(i - start) >> 2] |= bytes[i] << (8 * ((i - start) & 3));
  return words;
}

/** The last compression of one chunk, not done yet: what it would take as ROOT or as an inner node. */
function chunkNode(key, bytes, start, end, counter, flags) {
  let cv = key;
  let at = start;
  let first = CHUNK_START;
  while (end - at > BLOCK) {
    cv = compress(cv, wordsOf(bytes, at, at + BLOCK), counter, BLOCK, flags | first).subarray(0, 8);
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
  return run(wordsOf(key, 0, 32).subarray(0, 8), KEYED_HASH, bytes, length);
}

const contextKeys = new Map();

/** derive_key: what follows from material in the context of a string. */
export function deriveKey(context, material, length = 32) {
  let words = contextKeys.get(context);
  if (!words) {
    words = wordsOf(run(IV, DERIVE_KEY_CONTEXT, Buffer.from(context), 32), 0, 32).subarray(0, 8);
    contextKeys.set(context, words);
  }
  return run(words, DERIVE_KEY_MATERIAL, material, length);
}
