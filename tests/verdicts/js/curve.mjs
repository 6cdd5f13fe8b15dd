// Ed25519 with strict verification, checks of keys, and X25519 between Ed25519 keys (protocol.md, 2).
// node:crypto computes signatures and shared points. What it does not check (small orders, the prime-order group,
// canonical encodings) is done here on the curve itself, with BigInts.
import crypto from 'node:crypto';

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const mod = (a) => {
  const r = a % P;
  return r < 0n ? r + P : r;
};

/** a to the power of e, modulo P. */
function power(a, e) {
  let result = 1n;
  let base = mod(a);
  for (let rest = e; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * base) % P;
    base = (base * base) % P;
  }
  return result;
}

const invert = (a) => power(a, P - 2n);
const D = mod(-121665n * invert(121666n));
const SQRT_MINUS_ONE = power(2n, (P - 1n) / 4n);

/** The number of 32 little-endian bytes. */
function numberOf(bytes) {
  return BigInt('0x' + Buffer.from(bytes).reverse().toString('hex'));
}

/** 32 little-endian bytes of a number. */
function bytesOf(n) {
  return Buffer.from(n.toString(16).padStart(64, '0'), 'hex').reverse();
}

/** The affine point [x, y] of a canonical encoding, else null. */
function decompress(bytes) {
  const n = numberOf(bytes);
  const sign = n >> 255n;
  const y = n & (2n ** 255n - 1n);
  if (y >= P) return null;
  const u = mod(y * y - 1n);
  const v = mod(D * y * y + 1n);
  // x = sqrt(u / v), by the formula of RFC 8032, 5.1.3
  const v3 = (((v * v) % P) * v) % P;
  let x = (((u * v3) % P) * power(u * ((((v3 * v3) % P) * v) % P), (P - 5n) / 8n)) % P;
  const check = mod(v * x * x);
  if (check === mod(-u)) x = (x * SQRT_MINUS_ONE) % P;
  else if (check !== u) return null;
  if (x === 0n && sign) return null;
  if ((x & 1n) !== sign) x = P - x;
  return [x, y];
}

/** The sum of two points in extended coordinates [X, Y, Z, T]; complete, so it doubles too. */
export function add([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = mod((y1 - x1) * (y2 - x2));
  const b = ((y1 + x1) * (y2 + x2)) % P;
  const c = (2n * D * ((t1 * t2) % P)) % P;
  const d = (2n * z1 * z2) % P;
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

/** Twice a point (RFC 8032, 5.1.4), without T, which doubling does not need. */
function double([x, y, z]) {
  const a = (x * x) % P;
  const b = (y * y) % P;
  const c = (2n * z * z) % P;
  const h = a + b;
  const e = h - (x + y) * (x + y);
  const g = a - b;
  const f = c + g;
  return [(e * f) % P, (g * h) % P, (f * g) % P, e * h];
}

/** The extended coordinates of an affine point. */
const extended = ([x, y]) => [x, y, 1n, (x * y) % P];

/** n times a point. */
function multiply(n, point) {
  let result = [0n, 1n, 1n, 0n];
  for (const bit of n.toString(2)) {
    result = double(result);
    if (bit === '1') result = add(result, point);
  }
  return result.map(mod);
}

/** Whether a point is the neutral one. */
const isNeutral = ([x, y, z]) => x === 0n && y === z;

const users = new Map();

/** Whether 32 bytes are a canonical public key of the prime-order group. */
export function isPublicKey(bytes) {
  const name = bytes.toString('latin1');
  let answer = users.get(name);
  if (answer === undefined) {
    const point = decompress(bytes);
    answer = point !== null && !(point[0] === 0n && point[1] === 1n) && isNeutral(multiply(L, extended(point)));
    users.set(name, answer);
  }
  return answer;
}

// The eight points whose order divides 8.
const SMALL_ORDER = new Set([
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
]);

// Keys are given to OpenSSL as JWK, since its DER decoder takes ten times as long. Of a private key the public part is
// computed anew, so what stands there for it does not matter.
const text = (bytes) => bytes.toString('base64url');
const imported = new Map();
/** A key for OpenSSL. The same ones come again and again, so they are kept. */
function keyOf(create, crv, parts) {
  const name = `${crv} ${parts.x} ${parts.d}`;
  if (!imported.has(name)) {
    if (imported.size > 20000) imported.clear();
    imported.set(name, create({ key: { kty: 'OKP', crv, ...parts }, format: 'jwk' }));
  }
  return imported.get(name);
}
const publicKey = (crv, bytes) => keyOf(crypto.createPublicKey, crv, { x: text(bytes) });
const NOTHING = text(Buffer.alloc(32));
const privateKey = (crv, bytes) => keyOf(crypto.createPrivateKey, crv, { d: text(bytes), x: NOTHING });
const publicOf = (key) => Buffer.from(key.export({ format: 'jwk' }).x, 'base64url');

const verified = new Map();

/** Whether a signature holds, strictly: S reduced, R canonical and not of small order, the key of the prime-order group. */
export function verify(key, message, signature) {
  const name = Buffer.concat([key, message, signature]).toString('latin1');
  let answer = verified.get(name);
  if (answer === undefined) {
    if (verified.size > 50000) verified.clear();
    answer = verifyAnew(key, message, signature);
    verified.set(name, answer);
  }
  return answer;
}

function verifyAnew(key, message, signature) {
  if (signature.length !== 64 || key.length !== 32) return false;
  const r = signature.subarray(0, 32);
  if (numberOf(signature.subarray(32)) >= L) return false;
  if (SMALL_ORDER.has(r.toString('hex')) || (numberOf(r) & (2n ** 255n - 1n)) >= P) return false;
  // OpenSSL computes R without the cofactor and compares bytes, so a longer form of R never equals it.
  try {
    if (!crypto.verify(null, message, publicKey('Ed25519', key), signature)) return false;
  } catch {
    return false;
  }
  return isPublicKey(key);
}

/** The Ed25519 public key of a seed. */
export function edPublic(seed) {
  const key = publicOf(privateKey('Ed25519', seed));
  // A multiple of the base point is in its group: this spares the check.
  users.set(key.toString('latin1'), true);
  return key;
}

/** The X25519 public key of a private one. */
export function xPublic(secret) {
  return publicOf(privateKey('X25519', secret));
}

/** The shared point, or null where it is zero. */
export function xShared(secret, other) {
  try {
    const shared = crypto.diffieHellman({
      privateKey: privateKey('X25519', secret),
      publicKey: publicKey('X25519', other),
    });
    return shared.some((byte) => byte !== 0) ? shared : null;
  } catch {
    return null;
  }
}

/** The X25519 private key of an Ed25519 seed. */
export function xPrivateOfSeed(seed) {
  return crypto.createHash('sha512').update(seed).digest().subarray(0, 32);
}

const montgomery = new Map();

/** The X25519 form of an Ed25519 public key: u = (1 + y) / (1 - y). */
export function xOfPublic(key) {
  const name = key.toString('latin1');
  let u = montgomery.get(name);
  if (!u) {
    const y = numberOf(key) & (2n ** 255n - 1n);
    u = bytesOf(mod((1n + y) * invert(1n - y)));
    montgomery.set(name, u);
  }
  return u;
}
