"""The file of tokens: hashes alone, for its owner alone, written whole, and refused where a bit has changed."""

import stat
from pathlib import Path

import pytest
from msgspec import structs

from node.home.tokens import TOKENS_NAME, Token, TokenFile, digest_of, is_well_formed, new_secret
from node.runtime.errors import ServiceError
from protocol.limits.users import API_TOKENS_FILE_SIZE_MAX, API_TOKENS_MAX, PAGE_TOKENS_MAX

NOW = 1_700_000_000


def _token(name: str, secret: str, **changes: object) -> Token:
    made = Token(name, digest_of(secret), "app", ("read",), NOW, NOW + 60, ("a" * 52,))
    return structs.replace(made, **changes)


def _loaded(folder: Path) -> list[Token] | None:
    """What the file holds; None where it is refused."""
    try:
        return TokenFile(folder, lambda: NOW).tokens()
    except ServiceError as error:
        return None if error.code == "bad_config" else []


def test_what_is_written_is_there_after_a_restart_without_the_secret(tmp_path: Path) -> None:
    secret = new_secret()
    TokenFile(tmp_path, lambda: NOW).replace([_token("chat", secret)])
    path = tmp_path / TOKENS_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret.removeprefix("ravel_") not in path.read_text()
    again = TokenFile(tmp_path, lambda: NOW)
    assert again.find(secret) == _token("chat", secret)
    assert again.find(new_secret()) is None
    assert again.find(digest_of(secret)) is None, "the hash is no token"


def test_a_file_without_origins_is_as_older_versions_write_and_read_it(tmp_path: Path) -> None:
    path = tmp_path / TOKENS_NAME
    TokenFile(tmp_path, lambda: NOW).replace([_token("chat", "s")])
    assert "origins" not in path.read_text()
    origins = ("https://polls.example",)
    TokenFile(tmp_path, lambda: NOW).replace([_token("chat", "s"), _token("poll", "p", origins=origins)])
    assert [one.origins for one in _loaded(tmp_path) or []] == [(), origins]
    path.write_text(path.read_text().replace("polls.example", "evils.example"))
    assert _loaded(tmp_path) is None, "the checksum is of the origins, too"


def test_a_secret_is_256_random_bits_in_one_form() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(is_well_formed(one) and len(one) == len("ravel_") + 52 for one in made)
    for wrong in ("", "ravel_", "t" * 64, new_secret()[:-1], new_secret() + "a", new_secret().upper()):
        assert not is_well_formed(wrong)


def test_a_token_is_good_until_it_expires_or_is_revoked(tmp_path: Path) -> None:
    now = NOW
    file = TokenFile(tmp_path, lambda: now)
    token = _token("chat", "s")
    file.replace([token])
    assert file.is_good(token)
    now = NOW + 59
    assert file.is_good(token)
    now = NOW + 60
    assert not file.is_good(token)
    now = NOW
    file.replace([])
    assert not file.is_good(token)


def test_uses_are_shown_at_once_and_written_when_asked(tmp_path: Path) -> None:
    now = NOW
    file = TokenFile(tmp_path, lambda: now)
    token = _token("chat", "s")
    file.replace([token])
    before = (tmp_path / TOKENS_NAME).stat().st_ino
    file.save_uses()
    assert (tmp_path / TOKENS_NAME).stat().st_ino == before, "nothing to write"
    file.note_use(token)
    assert [one.last_used_at for one in file.tokens()] == [NOW]
    assert [one.last_used_at for one in TokenFile(tmp_path, lambda: now).tokens()] == [None]
    file.save_uses()
    assert [one.last_used_at for one in TokenFile(tmp_path, lambda: now).tokens()] == [NOW]
    now = NOW + 5
    file.note_use(token)
    file.replace([])
    file.save_uses()
    assert file.tokens() == [], "a use does not bring a revoked token back"


def test_no_changed_bit_gives_another_token(tmp_path: Path) -> None:
    TokenFile(tmp_path, lambda: NOW).replace([_token("chat", "s")])
    path = tmp_path / TOKENS_NAME
    whole = path.read_bytes()
    kept = TokenFile(tmp_path, lambda: NOW).tokens()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        assert _loaded(tmp_path) in (kept, None)
    path.write_bytes(whole[:-40])
    with pytest.raises(ServiceError, match="damaged"):
        TokenFile(tmp_path, lambda: NOW)


def test_a_file_that_others_read_or_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / TOKENS_NAME
    path.write_bytes(b"{}")
    path.chmod(0o644)
    with pytest.raises(ServiceError, match="can be read by others"):
        TokenFile(tmp_path, lambda: NOW)
    path.chmod(0o600)
    path.write_bytes(b" " * (API_TOKENS_FILE_SIZE_MAX + 1))
    with pytest.raises(ServiceError, match="more than"):
        TokenFile(tmp_path, lambda: NOW)


def test_the_most_and_largest_tokens_fit_into_the_file(tmp_path: Path) -> None:
    target = "a" * 52
    tokens = [
        _token("n" * 64, str(number), branches=(f"{target}:{target}",) * 16)
        for number in range(API_TOKENS_MAX + PAGE_TOKENS_MAX)
    ]
    TokenFile(tmp_path, lambda: NOW).replace(tokens)
    assert (tmp_path / TOKENS_NAME).stat().st_size < API_TOKENS_FILE_SIZE_MAX / 2
    assert len(TokenFile(tmp_path, lambda: NOW).tokens()) == len(tokens)


def test_a_disk_that_fails_changes_nothing(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "gone", lambda: NOW)
    with pytest.raises(ServiceError) as caught:
        file.replace([_token("chat", "s")])
    assert (caught.value.code, file.tokens()) == ("storage_failed", [])
