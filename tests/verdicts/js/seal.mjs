// ChaCha20 as a stream, and XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) with HChaCha20 written out.
import crypto from 'node:crypto';

/** ChaCha20 (RFC 8439) with nonce and counter zero; opens what it has closed. */
export function chacha20(key, bytes) {
  const cipher = crypto.createCipheriv('chacha20', key, Buffer.alloc(16));
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}

const rotate = (x, n) => (x << n) | (x >>> (32 - n));

/** HChaCha20: a key from a key and 16 bytes of nonce. */
function hchacha20(key, nonce) {
  const v = new Int32Array(16);
  v.set([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);
  for (let i = 0; i < 8; i++) v[4 + i] = key.readInt32LE(4 * i);
  for (let i = 0; i < 4; i++) v[12 + i] = nonce.readInt32LE(4 * i);
  const quarter = (a, b, c, d) => {
    v[a] += v[b];
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 12);
    v[a] += v[b];
    v[d] = rotate(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 7);
  };
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 4; i++) quarter(i, 4 + i, 8 + i, 12 + i);
    for (let i = 0; i < 4; i++) quarter(i, 4 + ((i + 1) & 3), 8 + ((i + 2) & 3), 12 + ((i + 3) & 3));
  }
  const out = Buffer.alloc(32);
  for (let i = 0; i < 4; i++) {
    out.writeInt32LE(v[i], 4 * i);
    out.writeInt32LE(v[12 + i], 16 + 4 * i);
  }
  return out;
}

/** The key and the nonce of ChaCha20-Poly1305 that XChaCha20-Poly1305 comes to. */
function inner(key, nonce) {
  return [hchacha20(key, nonce.subarray(0, 16)), Buffer.concat([Buffer.alloc(4), nonce.subarray(16)])];
}

/** What was sealed, or null where it does not open. */
export function unseal(key, sealed, associated) {
  if (sealed.length < 40) return null;
  const decipher = crypto.createDecipheriv('chacha20-poly1305', ...inner(key, sealed.subarray(0, 24)), {
    authTagLength: 16,
  });
  decipher.setAAD(associated, { plaintextLength: sealed.length - 40 });
  decipher.setAuthTag(sealed.subarray(sealed.length - 16));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(24, sealed.length - 16)), decipher.final()]);
  } catch {
    return null;
  }
}
