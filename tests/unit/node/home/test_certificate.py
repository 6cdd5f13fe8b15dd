"""The certificate of the listener for other machines: made, kept, renewed, and taken from the user's own files."""

import ssl
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from node.home.certificate import Certificate, load_certificate, make_context
from node.home.config_sections import ApiConfig, Config
from node.home.home import OWN_CERTIFICATE_NAME, Home
from node.runtime.errors import ServiceError
from protocol.limits.users import CERTIFICATE_RENEWED_SECONDS, CERTIFICATE_SECONDS

NOW = 1_700_000_000.0
DAY = 86_400


def _load(folder: Path, now: float = NOW, **api: object) -> Certificate:
    folder.mkdir(exist_ok=True)
    config = ApiConfig(**{"tls": "*:7476", **api})  # type: ignore[arg-type]  # as each test names them
    return load_certificate(Home(folder, Config(api=config)), now)


def _key(certificate: Certificate) -> object:
    loaded = x509.load_pem_x509_certificate(certificate.path.read_bytes())
    return loaded.public_key()


def test_a_node_makes_one_and_keeps_it(tmp_path: Path) -> None:
    first = _load(tmp_path)
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o600
    assert first.names == {"localhost"}
    assert len(first.fingerprint) == 32
    again = _load(tmp_path, NOW + CERTIFICATE_SECONDS - CERTIFICATE_RENEWED_SECONDS - 2 * DAY)
    assert (again.fingerprint, again.has_changed) == (first.fingerprint, False)
    made = x509.load_pem_x509_certificate(first.path.read_bytes())
    lasts = made.not_valid_after_utc - made.not_valid_before_utc
    assert lasts.days <= 825, "Apple's systems refuse more"
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert make_context(first).minimum_version == ssl.TLSVersion.TLSv1_2


def test_it_is_renewed_before_its_end_with_the_same_key(tmp_path: Path) -> None:
    first = _load(tmp_path)
    key = _key(first)
    later = _load(tmp_path, first.ends_at - CERTIFICATE_RENEWED_SECONDS)
    assert later.fingerprint != first.fingerprint
    assert first.has_changed
    assert _key(later) == key
    assert later.ends_at > first.ends_at


def test_one_that_was_made_by_a_clock_ahead_is_made_anew_with_the_same_key(tmp_path: Path) -> None:
    ahead = _load(tmp_path, NOW + 64 * 365 * DAY)
    key = _key(ahead)
    now = _load(tmp_path)
    assert now.fingerprint != ahead.fingerprint
    assert _key(now) == key
    assert x509.load_pem_x509_certificate(now.path.read_bytes()).not_valid_before_utc.timestamp() <= NOW
    assert _load(tmp_path).fingerprint == now.fingerprint


def test_other_names_make_another(tmp_path: Path) -> None:
    first = _load(tmp_path)
    second = _load(tmp_path, tls_names=("Ravel.Example:443".lower(), "192.0.2.7"))
    assert second.names == {"localhost", "ravel.example"}
    assert second.fingerprint != first.fingerprint
    assert _load(tmp_path, tls_names=("192.0.2.7", "ravel.example")).fingerprint == second.fingerprint


def test_a_name_in_another_form_makes_no_other(tmp_path: Path) -> None:
    names = ("[2001:0db8::1]", "M\u00fcller.example:443", "[fe80::1%eth0]", "192.0.2.7")
    first = _load(tmp_path, tls="[2001:0DB8::2]:7476", tls_names=names)
    assert first.names == {"localhost", "xn--mller-kva.example"}
    assert not _load(tmp_path, tls="[2001:db8::2]:7476", tls_names=names[::-1]).has_changed
    assert not first.has_changed


def test_files_of_ones_own_are_taken(tmp_path: Path) -> None:
    made = _load(tmp_path / "other", tls_names=("ravel.example",)).path.read_bytes()
    (tmp_path / "chain.pem").write_bytes(made)
    (tmp_path / "key.pem").write_bytes(made)
    (tmp_path / "key.pem").chmod(0o640)
    found = _load(tmp_path, tls_certificate="chain.pem", tls_key=str(tmp_path / "key.pem"))
    assert "ravel.example" in found.names
    assert not (tmp_path / OWN_CERTIFICATE_NAME).exists()
    make_context(found)
    (tmp_path / "chain.pem").write_bytes(_load(tmp_path / "third").path.read_bytes())
    assert found.has_changed


def test_one_file_without_the_other_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="tls_key is empty") as caught:
        _load(tmp_path, tls_certificate="chain.pem")
    assert caught.value.code == "bad_config"
    with pytest.raises(ServiceError, match="tls_certificate is empty"):
        _load(tmp_path, tls_key="key.pem")


_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "absent": (lambda path: path.unlink(), "No such file"),
    "open to all": (lambda path: path.chmod(0o644), "every user of the machine"),
    "another's": (
        lambda path: path.write_bytes(_load(path.parent / "c").path.read_bytes()),
        "not the key of",
    ),
    "no key": (lambda path: path.write_text("nonsense"), "not the key of"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_key_that_is_no_use_is_said(name: str, tmp_path: Path) -> None:
    for place in ("chain.pem", "key.pem"):
        (tmp_path / place).write_bytes(_load(tmp_path / "other").path.read_bytes())
        (tmp_path / place).chmod(0o600)
    spoil, sentence = BAD[name]
    spoil(tmp_path / "key.pem")
    with pytest.raises(ServiceError, match=sentence) as caught:
        make_context(_load(tmp_path, tls_certificate="chain.pem", tls_key="key.pem"))
    assert caught.value.code == "bad_config"


@pytest.mark.parametrize("content", ["", "nonsense", _PEM])
def test_a_damaged_file_is_said_and_not_written_over(content: str, tmp_path: Path) -> None:
    path = tmp_path / OWN_CERTIFICATE_NAME
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ServiceError, match="is damaged"):
        _load(tmp_path)
    assert path.read_text() == content
    with pytest.raises(ServiceError, match="no certificate in PEM"):
        _load(tmp_path, tls_certificate=OWN_CERTIFICATE_NAME, tls_key=OWN_CERTIFICATE_NAME)
