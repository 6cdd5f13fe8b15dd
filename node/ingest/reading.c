/* Reads publications of the usual form: parses, hashes, decrypts and checks their signatures, without Python.

   `ravel_read` answers for each publication with what `publication_reading.read_publication` makes of it. It answers nil
   where a publication has another form, is at fault, or has a signature that does not hold: Python reads those. So nothing
   here says why something is refused. Whatever is accepted here must be read there with the same result, which
   tests/unit/node/ingest/test_native_reading.py and the fuzz target `native_reading` check.

   The usual form: the commit's block and its body's, or a bare one, both without children; a body whose kind the header
   declares outside of the root branch; at most LINKS_MAX ids in each list; no files. Memory is what the caller gives, and a
   fixed part of the stack. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ITEM_SIZE_MAX 8192 /* Bytes of a publication: Python's BLAKE3 uses wide registers, and hashes larger ones faster. */
#define LINKS_MAX 16        /* Ids in a list: they are compared with each other. */
#define TANGLES_MAX 16      /* TANGLE_COUNT_MAX */
#define KIND_SIZE_MAX 32    /* TANGLE_KIND_SIZE_MAX */
#define METADATA_SIZE_MAX 4096
#define MARK_SIZE 8
#define SMALL_ORDER_COUNT 5 /* `protocol.crypto.signing.SMALL_ORDER_Y` */
#define CLAIM_SIZE 128      /* key, digest, signature */
#define NUMBER_MAX ((UINT64_C(1) << 53) - 1) /* RANK_MAX, FEED_SEQUENCE_MAX, TIMESTAMP_MAX_MS */

/* --- BLAKE3, from its specification: hashes of 32 bytes of what lies in memory --- */

enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8, KEYED = 16, CONTEXT = 32, MATERIAL = 64 };
enum { CHUNK_SIZE = 1024, BLOCK_SIZE = 64, DEPTH_MAX = 8 }; /* 2^8 chunks are more than an item has */

static const uint32_t IV[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                               0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
static const uint8_t SCHEDULE[7][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1}, {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4}, {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13}};

static const uint8_t ZERO[32] = {0};

static uint32_t load(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void load_words(uint32_t words[8], const uint8_t bytes[32]) {
    for (int i = 0; i < 8; i++) words[i] = load(bytes + 4 * i);
}

static void store_words(uint8_t bytes[32], const uint32_t words[8]) {
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) bytes[4 * i + j] = (uint8_t)(words[i] >> 8 * j);
}

#define ROTATE(word, count) ((word) >> (count) | (word) << (32 - (count)))
#define MIX(a, b, c, d, x, y)                                                                                              \
    v[a] += v[b] + (x), v[d] = ROTATE(v[d] ^ v[a], 16), v[c] += v[d], v[b] = ROTATE(v[b] ^ v[c], 12),                      \
        v[a] += v[b] + (y), v[d] = ROTATE(v[d] ^ v[a], 8), v[c] += v[d], v[b] = ROTATE(v[b] ^ v[c], 7)

static void compress(uint32_t value[8], const uint32_t m[16], uint64_t counter, uint32_t size, uint32_t flags) {
    uint32_t v[16] = {value[0], value[1], value[2], value[3], value[4], value[5], value[6], value[7],
                      IV[0], IV[1], IV[2], IV[3], (uint32_t)counter, (uint32_t)(counter >> 32), size, flags};
#pragma GCC unroll 7
    for (int round = 0; round < 7; round++) {
        const uint8_t *s = SCHEDULE[round];
        MIX(0, 4, 8, 12, m[s[0]], m[s[1]]), MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);
        MIX(2, 6, 10, 14, m[s[4]], m[s[5]]), MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);
        MIX(0, 5, 10, 15, m[s[8]], m[s[9]]), MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);
        MIX(2, 7, 8, 13, m[s[12]], m[s[13]]), MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++) value[i] = v[i] ^ v[i + 8];
}

/* The chaining value of a chunk of at most CHUNK_SIZE bytes. */
static void hash_chunk(uint32_t value[8], const uint32_t key[8], const uint8_t *input, size_t size, uint64_t counter,
                       uint32_t flags, uint32_t last_flags) {
    memcpy(value, key, 32);
    uint32_t start = CHUNK_START;
    for (;; input += BLOCK_SIZE, size -= BLOCK_SIZE, start = 0) {
        bool is_last = size <= BLOCK_SIZE;
        uint32_t words[16];
        uint8_t padded[BLOCK_SIZE] = {0};
        const uint8_t *from = input;
        if (is_last) {
            if (size) memcpy(padded, input, size);
            from = padded;
        }
        for (int i = 0; i < 16; i++) words[i] = load(from + 4 * i);
        compress(value, words, counter, is_last ? (uint32_t)size : BLOCK_SIZE,
                 flags | start | (is_last ? CHUNK_END | last_flags : 0));
        if (is_last) return;
    }
}

/* `right` becomes the value of the parent of `left` and `right`. */
static void hash_parent(uint32_t right[8], const uint32_t key[8], const uint32_t left[8], uint32_t flags) {
    uint32_t words[16];
    memcpy(words, left, 32), memcpy(words + 8, right, 32);
    memcpy(right, key, 32);
    compress(right, words, 0, BLOCK_SIZE, flags | PARENT);
}

/* At most 2^DEPTH_MAX chunks. */
static void hash(uint8_t out[32], const uint32_t key[8], uint32_t flags, const uint8_t *input, size_t size) {
    uint32_t stack[DEPTH_MAX + 1][8], value[8];
    size_t depth = 0;
    uint64_t chunk = 0;
    for (; size > CHUNK_SIZE; input += CHUNK_SIZE, size -= CHUNK_SIZE) {
        hash_chunk(value, key, input, CHUNK_SIZE, chunk++, flags, 0);
        for (uint64_t rest = chunk; !(rest & 1); rest >>= 1) hash_parent(value, key, stack[--depth], flags);
        memcpy(stack[depth++], value, 32);
    }
    hash_chunk(value, key, input, size, chunk, flags, depth ? 0 : ROOT);
    while (depth--) hash_parent(value, key, stack[depth], flags | (depth ? 0 : ROOT));
    store_words(out, value);
}

static void hash_keyed(uint8_t out[32], const uint8_t key[32], const uint8_t *input, size_t size) {
    uint32_t words[8];
    load_words(words, key);
    hash(out, words, KEYED, input, size);
}

/* --- MessagePack in its one form --- */

typedef struct {
    const uint8_t *at, *end;
} Cursor;

typedef struct {
    const uint8_t *first; /* each takes 34 bytes, two of them its header */
    size_t count;
} Ids;

static const uint8_t *take(Cursor *c, size_t size) {
    if ((size_t)(c->end - c->at) < size) return NULL;
    c->at += size;
    return c->at - size;
}

static bool expect(Cursor *c, const void *bytes, size_t size) {
    const uint8_t *found = take(c, size);
    return found && !memcmp(found, bytes, size);
}

static bool expect_byte(Cursor *c, uint8_t byte) { return expect(c, &byte, 1); }

/* A number in big-endian order of so many bytes. */
static bool take_number(Cursor *c, size_t size, uint64_t *value) {
    const uint8_t *bytes = take(c, size);
    if (!bytes) return false;
    *value = 0;
    while (size--) *value = *value << 8 | *bytes++;
    return true;
}

static bool read_number(Cursor *c, uint64_t *value) {
    uint64_t kind;
    if (!take_number(c, 1, &kind)) return false;
    *value = kind;
    if (kind < 0x80) return true;
    if (kind < 0xCC || kind > 0xCF) return false;
    size_t size = (size_t)1 << (kind - 0xCC);
    uint64_t least = size == 1 ? 0x80 : UINT64_C(1) << 4 * size; /* what takes no fewer bytes */
    return take_number(c, size, value) && *value >= least && *value <= NUMBER_MAX;
}

/* The size of bytes of any length: at most 65,535, as no item is larger. */
static bool read_bytes(Cursor *c, const uint8_t **bytes, size_t *size) {
    uint64_t kind, length;
    if (!take_number(c, 1, &kind) || (kind != 0xC4 && kind != 0xC5)) return false;
    if (!take_number(c, kind == 0xC4 ? 1 : 2, &length) || (kind == 0xC5 && length < 256)) return false;
    *size = (size_t)length;
    return (*bytes = take(c, *size)) != NULL;
}

static const uint8_t *read_exactly(Cursor *c, uint8_t size) {
    uint8_t start[2] = {0xC4, size};
    return expect(c, start, 2) ? take(c, size) : NULL;
}

static bool read_count(Cursor *c, size_t *count, size_t count_max) {
    uint64_t kind, more;
    if (!take_number(c, 1, &kind)) return false;
    *count = (size_t)(kind & 0x0F);
    if (kind == 0xDC) {
        if (!take_number(c, 2, &more) || more < 16) return false;
        *count = (size_t)more;
    } else if (kind < 0x90 || kind > 0x9F) {
        return false;
    }
    return *count <= count_max;
}

/* A list of ids, no two of them equal. */
static bool read_ids(Cursor *c, Ids *ids) {
    if (!read_count(c, &ids->count, LINKS_MAX)) return false;
    ids->first = c->at;
    for (size_t i = 0; i < ids->count; i++) {
        const uint8_t *id = read_exactly(c, 32);
        if (!id) return false;
        for (size_t j = 0; j < i; j++)
            if (!memcmp(id, ids->first + 34 * j + 2, 32)) return false;
    }
    return true;
}

/* --- what is written: the caller's memory, nothing where it is full --- */

typedef struct {
    uint8_t *at, *end;
} Answer;

static bool put(Answer *a, const void *bytes, size_t size) {
    if ((size_t)(a->end - a->at) < size) return false;
    memcpy(a->at, bytes, size);
    a->at += size;
    return true;
}

static bool put_byte(Answer *a, uint8_t byte) { return put(a, &byte, 1); }

static bool put_bytes(Answer *a, const uint8_t *bytes, size_t size) {
    uint8_t small[2] = {0xC4, (uint8_t)size}, large[3] = {0xC5, (uint8_t)(size >> 8), (uint8_t)size};
    return (size < 256 ? put(a, small, 2) : put(a, large, 3)) && put(a, bytes, size);
}

/* --- formats --- */

typedef struct {
    const uint8_t *encoded, *fields, *clear, *clear_end, *ciphertext, *mark; /* `clear`: acks, rank and mark */
    size_t size, ciphertext_size, ack_count, mark_size;
    uint64_t rank;
    uint8_t id[32];
} Block;

typedef struct {
    const uint8_t *fields, *fields_end, *signature; /* `fields`: links and content */
    const uint8_t *author, *branch, *epoch, *metadata, *body_id, *body_key;
    size_t metadata_size;
} Commit;

typedef struct {
    const uint8_t *repo_id, *read_key, *secret, *key, *mark, *epoch_ids; /* `key` is NULL to who follows one branch */
    size_t epoch_count;
} Opening;

typedef struct {
    int (*verify)(const unsigned char *signature, const unsigned char *message, unsigned long long size,
                  const unsigned char *key);
    int (*decipher)(unsigned char *out, const unsigned char *in, unsigned long long size, const unsigned char *nonce,
                    const unsigned char *key);
} Sodium;

typedef struct {
    uint32_t commit[8], publication[8], branch_secret[8], branch_mark[8];
} Contexts;

static bool read_block(Cursor *outer, Block *block) {
    if (!read_bytes(outer, &block->encoded, &block->size)) return false;
    Cursor c = {block->encoded, block->encoded + block->size};
    Ids acks;
    if (!expect(&c, "\x96\xA6" "block2", 8)) return false;
    block->fields = c.at;
    if (!expect_byte(&c, 0x90)) return false; /* no children */
    block->clear = c.at;
    if (!read_ids(&c, &acks) || !read_number(&c, &block->rank)) return false;
    if (!read_bytes(&c, &block->mark, &block->mark_size)) return false;
    block->clear_end = c.at;
    block->ack_count = acks.count;
    if (!read_bytes(&c, &block->ciphertext, &block->ciphertext_size) || c.at != c.end) return false;
    hash(block->id, IV, 0, block->encoded, block->size);
    return true;
}

/* Where a feed's skip link leads (`protocol.formats.commit.lipmaa`). */
static uint64_t lipmaa(uint64_t sequence) {
    uint64_t ends[36] = {0};
    int k = 0;
    for (int i = 1; i < 36; i++) ends[i] = 3 * ends[i - 1] + 1;
    if (sequence == 1) return 0;
    while (ends[k] < sequence) k++;
    if (ends[k] == sequence) return ends[k - 1];
    for (uint64_t rest = sequence; rest;) rest %= ends[--k];
    return sequence - ends[k];
}

static bool read_tangles(Cursor *c) {
    const uint8_t *last = NULL;
    size_t count, last_size = 0;
    if (!read_count(c, &count, TANGLES_MAX)) return false;
    while (count--) {
        uint64_t kind;
        Ids previous;
        if (!expect_byte(c, 0x93) || !take_number(c, 1, &kind)) return false;
        uint64_t size = kind - 0xA0;
        if (kind == 0xD9) {
            if (!take_number(c, 1, &size) || size < 32) return false;
        } else if (kind < 0xA0 || kind > 0xBF) {
            return false;
        }
        const uint8_t *name = take(c, (size_t)size);
        if (!name || size < 1 || size > KIND_SIZE_MAX || name[0] < 'a' || name[0] > 'z') return false;
        for (size_t i = 1; i < size; i++)
            if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9') && name[i] != '-') return false;
        if (last) { /* sorted, each once */
            int order = memcmp(last, name, last_size < size ? last_size : (size_t)size);
            if (order > 0 || (order == 0 && last_size >= size)) return false;
        }
        last = name, last_size = (size_t)size;
        if (!read_exactly(c, 32) || !read_ids(c, &previous)) return false;
    }
    return true;
}

static bool read_optional(Cursor *c, const uint8_t **id) {
    *id = NULL;
    if (c->at < c->end && *c->at == 0xC0) return expect_byte(c, 0xC0);
    return (*id = read_exactly(c, 32)) != NULL;
}

static bool read_flag(Cursor *c) {
    const uint8_t *flag = take(c, 1);
    return flag && (*flag == 0xC2 || *flag == 0xC3);
}

static bool read_commit(const uint8_t *plaintext, size_t size, Commit *commit) {
    Cursor c = {plaintext, plaintext + size};
    const uint8_t *skip, *previous;
    uint64_t sequence, timestamp;
    Ids ids;
    if (!expect(&c, "\x94\xA7" "commit2", 9)) return false;
    commit->fields = c.at;
    if (!expect_byte(&c, 0x95) || !read_ids(&c, &ids)) return false;             /* deps */
    if (!expect(&c, "\x90\x90\x90", 3) || !read_optional(&c, &skip)) return false; /* no negative deps, no files */
    if (!expect_byte(&c, 0x9C)) return false;
    if (!(commit->author = read_exactly(&c, 32)) || !(commit->branch = read_exactly(&c, 32))) return false;
    if (!(commit->epoch = read_exactly(&c, 32)) || !read_flag(&c) || !read_flag(&c)) return false;
    if (!read_number(&c, &sequence) || sequence < 1 || !read_optional(&c, &previous)) return false;
    if ((sequence == 1) != (previous == NULL) || (lipmaa(sequence) == sequence - 1) != (skip == NULL)) return false;
    if (!read_tangles(&c) || !read_number(&c, &timestamp)) return false;
    if (!read_bytes(&c, &commit->metadata, &commit->metadata_size)) return false;
    if (commit->metadata_size > METADATA_SIZE_MAX) return false;
    if (!expect_byte(&c, 0x92) || !(commit->body_id = read_exactly(&c, 32)) || !(commit->body_key = read_exactly(&c, 32)))
        return false;
    if (!expect_byte(&c, 0x90)) return false; /* no keys of files */
    commit->fields_end = c.at;
    return (commit->signature = read_exactly(&c, 64)) && c.at == c.end;
}

/* --- signatures --- */

/* Whether a little-endian number of 32 bytes is below another. */
static bool is_below(const uint8_t number[32], const uint8_t limit[32]) {
    for (int i = 31; i >= 0; i--)
        if (number[i] != limit[i]) return number[i] < limit[i];
    return false;
}

static const uint8_t GROUP_ORDER[32] = {0xED, 0xD3, 0xF5, 0x5C, 0x1A, 0x63, 0x12, 0x58, 0xD6, 0x9C, 0xF7,
                                        0xA2, 0xDE, 0xF9, 0xDE, 0x14, 0,    0,    0,    0,    0,    0,
                                        0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
static const uint8_t FIELD_PRIME[32] = {0xED, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};

/* --- one publication --- */

typedef struct {
    const Sodium *sodium;
    const Contexts *contexts;
    const uint8_t *small_order, *topic; /* `small_order`: SMALL_ORDER_COUNT points */
    bool checks_topics;
    Cursor openings, kinds; /* as packed */
} Request;

/* Whether a key that may sign (the caller looks at that) signed a digest, as `protocol.crypto.signing` says. */
static bool holds(const Request *request, const uint8_t *key, const uint8_t *digest, const uint8_t *signature) {
    uint8_t point[32];
    memcpy(point, signature, 32);
    point[31] &= 0x7F;
    if (!is_below(signature + 32, GROUP_ORDER) || !is_below(point, FIELD_PRIME)) return false;
    for (int i = 0; i < SMALL_ORDER_COUNT; i++)
        if (!memcmp(point, request->small_order + 32 * i, 32)) return false;
    return request->sodium->verify(signature, digest, 32, key) == 0;
}

static bool read_opening(Cursor *c, Opening *opening) {
    const uint8_t *has_key;
    uint64_t count;
    if (!(opening->repo_id = take(c, 32)) || !(opening->read_key = take(c, 32))) return false;
    if (!(opening->secret = take(c, 32)) || !(has_key = take(c, 1))) return false;
    if (!(opening->key = take(c, 32)) || !(opening->mark = take(c, MARK_SIZE))) return false;
    if (!*has_key) opening->key = NULL;
    if (!take_number(c, 4, &count) || !(opening->epoch_ids = take(c, 32 * (size_t)count))) return false;
    opening->epoch_count = (size_t)count;
    return true;
}

static bool has_epoch(const Opening *opening, const uint8_t *id) {
    for (size_t i = 0; i < opening->epoch_count; i++)
        if (!memcmp(opening->epoch_ids + 32 * i, id, 32)) return true;
    return false;
}

static void make_mark(const Request *request, const Opening *opening, const uint8_t *branch, uint8_t mark[32]) {
    uint8_t material[64], secret[32];
    if (!opening->key) {
        memcpy(mark, opening->mark, MARK_SIZE);
        return;
    }
    memcpy(material, opening->key, 32), memcpy(material + 32, branch, 32);
    hash(secret, request->contexts->branch_secret, MATERIAL, material, 64);
    hash(mark, request->contexts->branch_mark, MATERIAL, secret, 32);
}

/* Two encodings of what stands for a body whose kind the metadata declares: where it is here, and where it is not. One
   that is decrypted has its bytes behind the first. */
static const uint8_t *find_kind(Cursor kinds, const Commit *commit, bool is_bare, size_t *size, bool *is_decrypted) {
    uint64_t decrypted, metadata_size, here_size, absent_size;
    while (take_number(&kinds, 1, &decrypted) && take_number(&kinds, 4, &metadata_size) &&
           take_number(&kinds, 4, &here_size) && take_number(&kinds, 4, &absent_size)) {
        const uint8_t *metadata = take(&kinds, (size_t)metadata_size);
        const uint8_t *here = take(&kinds, (size_t)here_size), *absent = take(&kinds, (size_t)absent_size);
        if (!metadata || !here || !absent) return NULL;
        *size = (size_t)(is_bare ? absent_size : here_size);
        *is_decrypted = decrypted && !is_bare;
        if (metadata_size == commit->metadata_size && !memcmp(metadata, commit->metadata, commit->metadata_size))
            return is_bare ? absent : here;
    }
    return NULL;
}

static bool put_block(Answer *a, const Block *block) {
    const uint8_t *end = block->encoded + block->size;
    return put_byte(a, 0x97) && put_bytes(a, block->id, 32) && put(a, block->fields, (size_t)(end - block->fields)) &&
           put_bytes(a, block->encoded, block->size);
}

/* Decrypts a block, and says whether the key is that of what it holds. */
static bool decrypt(const Request *request, const Block *block, const uint8_t *key, const uint8_t *secret,
                    uint8_t *plaintext) {
    uint8_t computed[32];
    if (request->sodium->decipher(plaintext, block->ciphertext, block->ciphertext_size, ZERO, key)) return false;
    hash_keyed(computed, secret, plaintext, block->ciphertext_size);
    return !memcmp(computed, key, 32);
}

/* Decrypts the commit's block by the first opening whose key it has, as `publication_reading._open` does. */
static bool open_block(const Request *request, const Block *block, const uint8_t *hidden, uint8_t key[32],
                       uint8_t *plaintext, Opening *opening) {
    uint8_t place[64];
    Cursor openings = request->openings;
    memcpy(place, request->topic, 32), memcpy(place + 32, block->id, 32);
    for (;;) {
        if (!read_opening(&openings, opening) || has_epoch(opening, block->id)) return false; /* none, or an init */
        hash_keyed(key, opening->read_key, place, 64);
        for (int i = 0; i < 32; i++) key[i] ^= hidden[i];
        if (decrypt(request, block, key, opening->secret, plaintext)) return true;
    }
}

/* Whether the author's signature holds, and the topic's where that is checked. */
static bool check_signatures(const Request *request, const Block *block, const Commit *commit, const uint8_t *hidden,
                             const uint8_t *signature) {
    uint8_t bytes[2 * ITEM_SIZE_MAX], digest[32];
    Answer made = {bytes, bytes + sizeof bytes};
    if (!put_byte(&made, 0x95) || !put(&made, block->clear, (size_t)(block->clear_end - block->clear)) ||
        !put(&made, commit->fields, (size_t)(commit->fields_end - commit->fields)))
        return false;
    hash(digest, request->contexts->commit, MATERIAL, bytes, (size_t)(made.at - bytes));
    if (!holds(request, commit->author, digest, commit->signature)) return false;
    if (!request->checks_topics) return true;
    made.at = bytes;
    if (!put_byte(&made, 0x93) || !put_bytes(&made, request->topic, 32) || !put_bytes(&made, hidden, 32) ||
        !put_byte(&made, 0x92) || !put_bytes(&made, block->id, 32) || !put_bytes(&made, commit->body_id, 32))
        return false;
    hash(digest, request->contexts->publication, MATERIAL, bytes, (size_t)(made.at - bytes));
    return holds(request, request->topic, digest, signature);
}

static bool read_publication(const Request *request, const uint8_t *item, size_t size, Answer *a) {
    uint8_t plaintext[ITEM_SIZE_MAX], content[ITEM_SIZE_MAX], key[32], mark[32];
    const uint8_t *topic, *hidden, *signature, *body_id, *body;
    size_t body_size;
    Block block, rest;
    Opening opening;
    Commit commit;
    Cursor c = {item, item + size};
    bool is_bare = size > 0 && item[0] == 0x96, is_decrypted;

    if (size > ITEM_SIZE_MAX || !(is_bare ? expect(&c, "\x96\xA5" "bare1", 7) : expect(&c, "\x95\xAC" "publication1", 14)))
        return false;
    if (!(topic = read_exactly(&c, 32)) || memcmp(topic, request->topic, 32)) return false;
    if (!(hidden = read_exactly(&c, 32))) return false;
    if (is_bare) {
        if (!read_block(&c, &block) || !(body_id = read_exactly(&c, 32))) return false;
    } else {
        if (!expect_byte(&c, 0x92) || !read_block(&c, &block) || !read_block(&c, &rest)) return false;
        if (rest.mark_size || rest.ack_count || rest.rank) return false;
        body_id = rest.id;
    }
    if (!(signature = read_exactly(&c, 64)) || c.at != c.end || block.mark_size != MARK_SIZE) return false;

    if (!open_block(request, &block, hidden, key, plaintext, &opening)) return false;
    if (!read_commit(plaintext, block.ciphertext_size, &commit)) return false;
    if (!memcmp(commit.branch, ZERO, 32) || !memcmp(commit.branch, opening.repo_id, 32)) return false;
    if (!memcmp(commit.epoch, ZERO, 32) || !has_epoch(&opening, commit.epoch)) return false;
    make_mark(request, &opening, commit.branch, mark);
    if (memcmp(block.mark, mark, MARK_SIZE) || memcmp(commit.body_id, body_id, 32)) return false;
    if (!commit.metadata_size || !(body = find_kind(request->kinds, &commit, is_bare, &body_size, &is_decrypted)))
        return false;
    if (is_decrypted && !decrypt(request, &rest, commit.body_key, opening.secret, content)) return false;
    if (!check_signatures(request, &block, &commit, hidden, signature)) return false;

    return put(a, "\x93\x95", 2) && put_bytes(a, topic, 32) && put_bytes(a, hidden, 32) &&
           put_byte(a, is_bare ? 0x91 : 0x92) && put_block(a, &block) && (is_bare || put_block(a, &rest)) &&
           put_bytes(a, signature, 64) && (is_bare ? put_bytes(a, body_id, 32) : put_byte(a, 0xC0)) &&
           put(a, "\x94\xA7" "decoded\x98", 10) && put_bytes(a, block.id, 32) && put_bytes(a, key, 32) &&
           put(a, block.clear, (size_t)(block.clear_end - block.clear)) &&
           put(a, commit.fields, (size_t)(commit.fields_end - commit.fields)) && put_bytes(a, commit.signature, 64) &&
           put(a, body, body_size) && (!is_decrypted || put_bytes(a, content, rest.ciphertext_size)) &&
           put_byte(a, 0xC0) && put_byte(a, 0xC3);
}

static void read_context(uint32_t key[8], const char *context) {
    uint8_t bytes[32];
    hash(bytes, IV, CONTEXT, (const uint8_t *)context, strlen(context));
    load_words(key, bytes);
}

/* --- what Python calls (node/ingest/native_reading.py) --- */

/* Digest of the source that this was built of. */
const char *ravel_source(void) { return RAVEL_SOURCE; }

void ravel_hash(uint8_t out[32], const uint8_t *input, size_t size) { hash(out, IV, 0, input, size); }

/* Says of each claim, one after the other, whether it holds. `small_order`: SMALL_ORDER_COUNT points. */
void ravel_check(const Sodium *sodium, const uint8_t *small_order, const uint8_t *claims, uint32_t count, uint8_t *answer) {
    Request request = {.sodium = sodium, .small_order = small_order};
    for (; count--; claims += CLAIM_SIZE) *answer++ = holds(&request, claims, claims + 32, claims + 64);
}

/* Reads `count` publications that lie one after the other, each of its size. Writes a MessagePack list of as many answers
   and returns its size; 0 if `answer_size` does not suffice. `keys` is as `native_reading` packs it. `contexts` are four
   texts: of the hashes that commits and publications sign, and that make secrets and marks of branches. */
size_t ravel_read(const Sodium *sodium, const char *const contexts[4], const uint8_t *keys, size_t keys_size,
                  const uint8_t *items, const uint32_t *sizes, uint32_t count, uint8_t *answer, size_t answer_size) {
    Contexts derived;
    Request request = {.sodium = sodium, .contexts = &derived};
    Cursor c = {keys, keys + keys_size};
    Answer a = {answer, answer + answer_size};
    uint64_t checks_topics, openings_size;
    uint8_t start[5] = {0xDD, (uint8_t)(count >> 24), (uint8_t)(count >> 16), (uint8_t)(count >> 8), (uint8_t)count};
    read_context(derived.commit, contexts[0]), read_context(derived.publication, contexts[1]);
    read_context(derived.branch_secret, contexts[2]), read_context(derived.branch_mark, contexts[3]);
    if (!(request.small_order = take(&c, 32 * SMALL_ORDER_COUNT)) || !(request.topic = take(&c, 32))) return 0;
    if (!take_number(&c, 1, &checks_topics) || !take_number(&c, 4, &openings_size)) return 0;
    request.checks_topics = checks_topics != 0;
    if (!(request.openings.at = take(&c, (size_t)openings_size))) return 0;
    request.openings.end = c.at;
    request.kinds = c;
    if (!put(&a, start, sizeof start)) return 0;
    for (uint32_t i = 0; i < count; items += sizes[i++]) {
        Answer before = a;
        if (read_publication(&request, items, sizes[i], &a)) continue;
        a = before;
        if (!put_byte(&a, 0xC0)) return 0;
    }
    return (size_t)(a.at - answer);
}
