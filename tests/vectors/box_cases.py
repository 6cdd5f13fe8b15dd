"""Boxes of an epoch for `generate`: of members and of writers, and keys that nobody may have."""

from typing import Final

from nacl import bindings

from protocol.crypto import hashing, signing
from protocol.crypto.epoch_boxes import BoxOpener, Sealer, epoch_mark, own_secret, prekey_of
from protocol.crypto.keys import AgreementSecret, EpochKey, UserSeed
from protocol.ids import UserId
from tests.vectors.fixed import EPOCH_KEY, REPO_ID, USER, WRITERS_SECRET, JsonObject

MEMBER_COUNT: Final = 6
_PRIME: Final = 2**255 - 19
_SIGN: Final = 2**255
_ORDER_8: Final = (
    2707385501144840649318225287225658788936804267575313519463743609750303402022,
    55188659117513257062467267217118295137698188065244968500265048394206261417927,
)
"""Coordinates y of the points of order 8 on Ed25519's curve."""
_ORDER_8_U: Final = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
"""Coordinates u of the points of order 8 on Curve25519."""


def _no_users() -> dict[str, int]:
    """All encodings of points of small order, and one of each other kind that is no key of the prime-order group.

    They are numbers of 256 bits, of which the highest says the sign of x.
    """
    small = {"1 (order 1)": 1, "-1 (order 2)": _PRIME - 1, "0 (order 4)": 0}
    small |= {f"{y % 1000} at its end (order 8)": y for y in _ORDER_8}
    small |= {"p, for 0": _PRIME, "p + 1, for 1": _PRIME + 1}
    mixed = bindings.crypto_core_ed25519_add(USER, _ORDER_8[0].to_bytes(32, "little"))
    return {
        **{f"y is {name}": y for name, y in small.items()},
        **{f"y is {name}, with the sign": y + _SIGN for name, y in small.items()},
        "a member's key and a point of order 8 added": int.from_bytes(mixed, "little"),
        "y is p + 3, for 3, which a point has": _PRIME + 3,
        "y is 2, which no point has": 2,
        "y is 3, outside the prime-order group": 3,
    }


def _no_marks() -> dict[str, int]:
    """All encodings of u for which the shared point is zero: the highest bit is ignored (RFC 7748)."""
    small = {"0": 0, "1": 1, "-1": _PRIME - 1, "p, for 0": _PRIME, "p + 1, for 1": _PRIME + 1}
    small |= {f"{u % 1000} at its end (order 8)": u for u in _ORDER_8_U}
    return {
        **{f"u is {name}": u for name, u in small.items()},
        **{f"u is {name}, with the highest bit": u + _SIGN for name, u in small.items()},
    }


def boxes() -> JsonObject:
    """Boxes of six members, of whom some may write; a box that another opens; and keys that are no users' and no marks."""
    key, secret = Sealer.of_epoch(EPOCH_KEY, REPO_ID), Sealer.of_writers(WRITERS_SECRET, REPO_ID)
    seeds = {signing.public_key(seed): seed for seed in map(_seed, range(MEMBER_COUNT))}
    users = sorted(seeds)
    writers = [user for place, user in enumerate(users) if place % 3 != 1]
    first, second = users[:2]
    taken = BoxOpener(first, own_secret(signing.key_pair(seeds[first])[1]), key.mark).open(key.seal(second))
    assert taken is not None, "the mark is a good key"
    return {
        "repo_id": REPO_ID.hex(),
        "epoch_key": EPOCH_KEY.hex(),
        "sealing_key": hashing.epoch_sealing_key(EPOCH_KEY, REPO_ID).hex(),
        "mark": key.mark.hex(),
        "writers_secret": WRITERS_SECRET.hex(),
        "writers_sealing_key": hashing.writers_sealing_key(WRITERS_SECRET, REPO_ID).hex(),
        "writers_mark": secret.mark.hex(),
        "order": [
            _told_member(key, user, seeds[user], place)
            | (_told_writer(secret, user, writers.index(user)) if user in writers else {})
            for place, user in enumerate(users)
        ],
        "boxes": b"".join(map(key.seal, users)).hex(),
        "writers_boxes": b"".join(map(secret.seal, writers)).hex(),
        "second_box_opened_by_the_first": {
            "key": taken.hex(),
            "mark": epoch_mark(EpochKey(taken), REPO_ID).hex(),
        },
        "prekey": _told_prekey(key, first),
        "no_users": [
            {"why": why, "user": number.to_bytes(32, "little").hex()} for why, number in _no_users().items()
        ],
        "no_marks": [
            {"why": why, "mark": number.to_bytes(32, "little").hex()} for why, number in _no_marks().items()
        ],
    }


def _seed(number: int) -> UserSeed:
    return UserSeed(bytes([number]) * 32)


def _told_member(key: Sealer, user: UserId, seed: UserSeed, place: int) -> JsonObject:
    """Each value on the way to a member's box."""
    theirs = bindings.crypto_sign_ed25519_pk_to_curve25519(user)
    shared = bindings.crypto_scalarmult(hashing.epoch_sealing_key(EPOCH_KEY, REPO_ID), theirs)
    return {
        "seed": seed.hex(),
        "user": user.hex(),
        "x25519_private": bindings.crypto_sign_ed25519_sk_to_curve25519(signing.key_pair(seed)[1]).hex(),
        "x25519": theirs.hex(),
        "shared_point": shared.hex(),
        "pad": hashing.box_pad(shared, key.mark, user).hex(),
        "place": place,
        "box": key.seal(user).hex(),
    }


def _told_prekey(key: Sealer, user: UserId) -> JsonObject:
    """Tell the box of a member that has stated a prekey: the shared point is that of the prekey."""
    private = AgreementSecret(bytes([64]) * 32)
    prekey = prekey_of(private)
    shared = bindings.crypto_scalarmult(hashing.epoch_sealing_key(EPOCH_KEY, REPO_ID), prekey)
    return {
        "user": user.hex(),
        "private": private.hex(),
        "prekey": prekey.hex(),
        "shared_point": shared.hex(),
        "box": key.seal(user, prekey).hex(),
    }


def _told_writer(secret: Sealer, user: UserId, place: int) -> JsonObject:
    return {"place_of_writers_box": place, "writers_box": secret.seal(user).hex()}
