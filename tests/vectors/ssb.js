// Writes ssb.json, the vectors of classic Scuttlebutt messages, with nothing but Node.js: its JSON, its "binary" strings, its
// Ed25519 are what the reference implementation stands on.   node tests/vectors/ssb.js > tests/vectors/ssb.json
'use strict'
const crypto = require('crypto')

const encode = (value) => JSON.stringify(value, null, 2)
const id = (value) =>
  '%' + crypto.createHash('sha256').update(Buffer.from(encode(value), 'binary')).digest('base64') + '.sha256'

function keyPair (letter) {
  const seed = Buffer.alloc(32, letter)
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const secret = crypto.createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const key = crypto.createPublicKey(secret).export({ format: 'der', type: 'spki' }).subarray(-32)
  return { secret, feed: '@' + key.toString('base64') + '.ed25519' }
}

function sign (keys, hmacKey, value) {
  let text = Buffer.from(encode(value))
  if (hmacKey) text = crypto.createHmac('sha512', hmacKey).update(text).digest().subarray(0, 32)
  return { ...value, signature: crypto.sign(null, text, keys.secret).toString('base64') + '.sig.ed25519' }
}

const alice = keyPair('a')
const network = Buffer.alloc(32, 'n')

function message (content, { hmacKey = null, swapped = false, timestamp = 1491901740000, previous = null, sequence = 1 } = {}) {
  const middle = swapped ? { sequence, author: alice.feed } : { author: alice.feed, sequence }
  return sign(alice, hmacKey, { previous, ...middle, timestamp, hash: 'sha256', content })
}

const post = (text, more = {}) => ({ type: 'post', text, ...more })
const described = [
  ['a post', message(post('hello'))],
  ['sequence before author', message(post('hello'), { swapped: true })],
  ['of a network with an HMAC key', message(post('hello'), { hmacKey: network }), network],
  ['Latin-1', message(post('Grüße'))],
  ['over Latin-1: the id is of the low bytes', message(post('5 € ✓ 日本'))],
  ['over the basic plane: two units each', message(post('😀𐀀'))],
  ['lone surrogates', message(post('\ud800 x \udc00'))],
  ['control characters and separators', message(post('\u0000\u001f\u007f\b\f\n\r\t"\\/\u2028'))],
  ['a fraction of a millisecond', message(post('hello'), { timestamp: 1514517067954.001 })],
  ['a timestamp before 1970', message(post('hello'), { timestamp: -0.5 })],
  ['keys that are array indices', message(post('hello', { b: 1, 10: 2, 9: 3, '01': 4, a: 5 }))],
  ['numbers', message(post('hello', { numbers: [0, -0, 1e21, 1e-7, 123456789012345680000, 0.1, 5e-324, 1.7976931348623157e308] }))],
  ['empty lists and objects', message(post('', { a: [], b: {}, c: [[], {}], d: null, e: true }))],
  ['a box', message('aGVsbG8=.box')],
  ['a box of a later kind', message('aGVsbG8=.box2')],
  ['a box of nothing', message('.box')],
  ['a type of 3 characters', message({ type: 'abc' })],
  ['a type of 52 characters', message({ type: 'x'.repeat(52) })],
  ['8,192 characters with the signature', message(post('€'.repeat(8192 - encode(message(post(''))).length)))]
]

const texts = [
  ' { } ', '[ ]', '"\\u0041\\/\\u00e9\\ud83d\\ude00\\u2028"', '"\\ud800"', '"\\uDC00\\ud800"', '[1.0,1.50,1e2,1E+2,10e-1]', '-0', '-0.0',
  '[1e21,1e20,123456789012345678901,0.000001,0.0000001,1.5e-10]', '[9007199254740993]', '{"a":-9007199254740993,"b": 999999999999999}', '[-0,\n-0.0,-0e5]', '[4.35,0.1,100,1e300,-1e-300]',
  '{"b":1,"a":2,"b":3}', '{"2":0,"x":0,"1":0,"4294967295":0,"4294967294":0,"-1":0,"01":0,"1.5":0}', '{"b":0,"\\u0031":1}',
  '{"a":[{"b":[1,[],{}]},""]}', 'true', ' null ', '{"__proto__":1,"a":2}', '"\\u007f\\u0080\\b\\u000b"'
].map((text) => ({ text, canonical: encode(JSON.parse(text)) }))

const messages = described.map(([description, value, hmacKey]) => ({
  description,
  id: id(value),
  hmac_key: hmacKey ? hmacKey.toString('base64') : null,
  // As a log has it: JSON on one line.
  line: JSON.stringify({ key: id(value), value, timestamp: 1571140551481 })
}))
console.log(JSON.stringify({ messages, texts }, null, 1))
