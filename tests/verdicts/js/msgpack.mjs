// The part of MessagePack that the formats use: nil, booleans, integers, str, bin and arrays (protocol.md, 1).
// Maps, floats and extensions are refused. nil is null, str is a string, bin is a Buffer. An integer beyond 2^53 - 1 is
// decoded as a BigInt, so that no check of a number takes it for one.

/** That bytes are refused. */
export class Refused extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
// No known structure is deeper than this. The bound keeps the recursion of a hostile value short.
const MAX_DEPTH = 32;

/** Header bytes of str, bin or array: with the fixed form below a limit (or none), then forms of 1, 2 and 4 bytes. */
function header(length, fixed, fixedLimit, form8, form16, form32) {
  if (length < fixedLimit) return Buffer.of(fixed | length);
  if (form8 !== null && length < 0x100) return Buffer.of(form8, length);
  if (length < 0x10000) return Buffer.of(form16, length >> 8, length & 255);
  const out = Buffer.alloc(5);
  out[0] = form32;
  out.writeUInt32BE(length, 1);
  return out;
}

/** The shortest encoding of an integer. */
function encodeInteger(value) {
  const n = BigInt(value);
  if (n >= 0n) {
    if (n < 0x80n) return Buffer.of(Number(n));
    if (n < 0x100n) return Buffer.of(0xcc, Number(n));
    if (n < 0x10000n) return Buffer.of(0xcd, Number(n >> 8n), Number(n & 255n));
    const out = Buffer.alloc(n < 0x100000000n ? 5 : 9);
    if (out.length === 5) {
      out[0] = 0xce;
      out.writeUInt32BE(Number(n), 1);
    } else {
      out[0] = 0xcf;
      out.writeBigUInt64BE(n, 1);
    }
    return out;
  }
  if (n >= -0x20n) return Buffer.of(Number(n) & 255);
  if (n >= -0x80n) return Buffer.of(0xd0, Number(n) & 255);
  if (n >= -0x8000n) return Buffer.of(0xd1, (Number(n) >> 8) & 255, Number(n) & 255);
  const out = Buffer.alloc(n >= -0x80000000n ? 5 : 9);
  if (out.length === 5) {
    out[0] = 0xd2;
    out.writeInt32BE(Number(n), 1);
  } else {
    out[0] = 0xd3;
    out.writeBigInt64BE(n, 1);
  }
  return out;
}

/** Collects the parts of an encoding. */
function collect(value, parts) {
  if (value === null) parts.push(Buffer.of(0xc0));
  else if (value === false || value === true) parts.push(Buffer.of(value ? 0xc3 : 0xc2));
  else if (typeof value === 'number' || typeof value === 'bigint') parts.push(encodeInteger(value));
  else if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    parts.push(header(bytes.length, 0xa0, 32, 0xd9, 0xda, 0xdb), bytes);
  } else if (value instanceof Uint8Array) {
    parts.push(header(value.length, 0, 0, 0xc4, 0xc5, 0xc6), value);
  } else if (Array.isArray(value)) {
    parts.push(header(value.length, 0x90, 16, null, 0xdc, 0xdd));
    for (const item of value) collect(item, parts);
  } else throw new TypeError('not a value of the formats');
}

/** The one encoding of a value. */
export function encode(value) {
  const parts = [];
  collect(value, parts);
  return Buffer.concat(parts);
}

/** Reads one value after another. Lengths may have longer headers than they need: decode() compares afterwards. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  take(length) {
    if (this.at + length > this.bytes.length) throw new Refused('bad_shape');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  unsigned(size) {
    const n = BigInt('0x' + this.take(size).toString('hex'));
    return n <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(n) : n;
  }

  signed(size) {
    const n = BigInt.asIntN(8 * size, BigInt('0x' + this.take(size).toString('hex')));
    const safe = BigInt(Number.MAX_SAFE_INTEGER);
    return n >= -safe && n <= safe ? Number(n) : n;
  }

  text(length) {
    try {
      return utf8.decode(this.take(length));
    } catch {
      throw new Refused('bad_shape');
    }
  }

  array(length, depth) {
    // Each element has a byte at least: a count that cannot be there is refused before anything is reserved for it.
    if (depth > MAX_DEPTH || length > this.bytes.length - this.at) throw new Refused('bad_shape');
    return Array.from({ length }, () => this.value(depth + 1));
  }

  value(depth = 0) {
    const first = this.take(1)[0];
    if (first < 0x80) return first;
    if (first >= 0xe0) return first - 0x100;
    if (first >= 0xa0 && first < 0xc0) return this.text(first & 31);
    if (first >= 0x90 && first < 0xa0) return this.array(first & 15, depth);
    switch (first) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return this.take(this.unsigned(1));
      case 0xc5: return this.take(this.unsigned(2));
      case 0xc6: return this.take(this.unsigned(4));
      case 0xcc: return this.unsigned(1);
      case 0xcd: return this.unsigned(2);
      case 0xce: return this.unsigned(4);
      case 0xcf: return this.unsigned(8);
      case 0xd0: return this.signed(1);
      case 0xd1: return this.signed(2);
      case 0xd2: return this.signed(4);
      case 0xd3: return this.signed(8);
      case 0xd9: return this.text(this.unsigned(1));
      case 0xda: return this.text(this.unsigned(2));
      case 0xdb: return this.text(this.unsigned(4));
      case 0xdc: return this.array(this.unsigned(2), depth);
      case 0xdd: return this.array(this.unsigned(4), depth);
      default: throw new Refused('bad_shape');
    }
  }
}

/** The value of bytes that are its one encoding; else throws Refused. */
export function decode(bytes) {
  const reader = new Reader(bytes);
  const value = reader.value();
  if (reader.at !== bytes.length) throw new Refused('bad_shape');
  if (!encode(value).equals(bytes)) throw new Refused('not_canonical');
  return value;
}
