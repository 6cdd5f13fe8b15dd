"""A phone on the page: paired over TLS with the node's own certificate, writes, is revoked, and sees so.

Chromium is told the certificate's key, as a person compares its fingerprint: any other certificate it refuses.
"""

import base64
import hashlib
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from node.home.home import OWN_CERTIFICATE_NAME
from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.chromium import chromium
from tests.e2e.cluster import Peer, run_ravel
from tests.e2e.page_steps import (
    PHONE,
    ROWS,
    by_command,
    enter,
    open_panel,
    posts,
    press_on,
    retype,
    says,
    write_by_keys,
)
from tests.e2e.page_steps import picture as look_at

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]


def _trust(peer: Peer) -> str:
    """The option by which Chromium takes certificates with the key of this node's."""
    loaded = x509.load_pem_x509_certificate((peer.home / OWN_CERTIFICATE_NAME).read_bytes())
    key = loaded.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"--ignore-certificate-errors-spki-list={base64.b64encode(hashlib.sha256(key).digest()).decode()}"


def _pair(phone: Browser, link: str, name: str) -> None:
    phone.open(link)
    phone.until("document.querySelector('#pair-form [name=code]')?.value.length > 9")
    look_at(phone, "pair")
    phone.show(*PHONE, "light")
    retype(phone, "#pair-form [name=name]", name)


def test_a_phone_is_paired_writes_and_is_revoked(tmp_path: Path, page: Browser, bobs: Browser) -> None:
    laptop, stranger = page, bobs
    alice = Peer(tmp_path / "alice")
    try:
        alice.start("--set", "api.tls=127.0.0.1:0")
        alice.client.create_repo("notes")
        with chromium(tmp_path / "phone", _trust(alice)) as phone:
            enter(laptop, alice)
            by_command(laptop, "phones")
            laptop.until("document.getElementById('pair')")
            look_at(laptop, "no-browsers")
            press_on(laptop, "#pair")
            laptop.until("document.getElementById('pairing-link')?.value.startsWith('https://127.0.0.1:')")
            look_at(laptop, "pairing-code")
            link = laptop.evaluate("document.getElementById('pairing-link').value")
            phone.show(*PHONE, "light")
            _pair(phone, link, "Ann's phone")
            phone.until("document.getElementById('repos') && !document.querySelector('#repos .skeleton')")
            assert phone.evaluate("[location.hash, sessionStorage.length, localStorage.length]") == ["", 0, 1]

            press_on(phone, "[data-branch]")
            write_by_keys(phone, "from my phone")
            posts(laptop)
            laptop.until(says("from my phone", f"{ROWS}[0]"))
            by_command(laptop, "phones")
            look_at(phone, "phone")
            phone.show(*PHONE, "light")
            phone.open(phone.evaluate("location.origin + '/?again'"))
            phone.until("document.getElementById('node')")  # it stays paired when its tab was closed

            open_panel(phone, "browsers")
            phone.until("document.getElementById('browsers').children.length === 1")
            assert phone.evaluate("document.querySelector('#browsers .danger')") is None, (
                "that is for the machine"
            )
            laptop.until(says("Ann's phone", "document.getElementById('browsers')"))
            laptop.until("!document.getElementById('pairing-link')")
            look_at(laptop, "browsers")
            press_on(laptop, "#browsers .danger")
            laptop.until("document.querySelector('dialog[open]')")
            press_on(laptop, "dialog .danger")
            laptop.until("document.getElementById('browsers').children.length === 0")

            phone.until("document.getElementById('login')", 60)  # its stream ends within 15 s
            phone.until("document.getElementById('login-error').textContent.includes('revoked')")
            look_at(phone, "revoked")
            assert phone.evaluate("localStorage.length") == 0
            _pair(phone, link, "Eve")
            phone.until("document.getElementById('login-error').textContent.includes('code was used')")
            said = [text for text in phone.complaints() if "status of 401" not in text]
            assert laptop.complaints() == said == []
        stranger.open(link.partition("#")[0])
        assert "Ravel" not in stranger.text(), "a certificate that nobody compared is refused"
        assert "Ann's phone" not in run_ravel(alice, "browser", "list").stdout
    finally:
        alice.close()
