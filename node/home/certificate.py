"""The certificate of the listener for other machines: files of the user's own, or one that the node makes for itself.

The node's own is kept with its key in one file, `api-tls.pem`, so that neither is ever there without the other. It is made
anew before it ends and when it is to have other names. Its key stays; its fingerprint does not.
"""

import datetime
import hashlib
import ipaddress
import os
import ssl
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from node.home.home import OWN_CERTIFICATE_NAME, Home
from node.home.listen_addresses import host_of_name
from node.home.private_files import replace_file
from node.runtime.errors import ServiceError
from protocol.limits.users import (
    CERTIFICATE_RENEWED_SECONDS,
    CERTIFICATE_SECONDS,
    TLS_FILE_SIZE_MAX,
)
from ravel.home import read_private

_HERE: Final = ("localhost", "127.0.0.1", "::1")
"""Names that each certificate of the node's own is also for: tunnels, and proxies on this machine."""
_EARLIER: Final = datetime.timedelta(days=1)
"""Time by which a certificate is valid before it is made: phones' clocks are not all right."""
Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Certificate that the listener shows. `path` and `key_path` are PEM files. `ends_at` is unix seconds.

    `fingerprint`: SHA-256 of the first certificate's DER, 32 bytes, as browsers show it. `names`: its DNS names, without
    those that stand for many.
    """

    path: Path
    key_path: Path
    fingerprint: bytes
    names: frozenset[str]
    ends_at: float
    stamp: Stamp

    @property
    def has_changed(self) -> bool:
        """Return True if its files are others now."""
        return _stamp_of(self.path, self.key_path) != self.stamp


def load_certificate(home: Home, now: float) -> Certificate:
    """Load the certificate of a node's configuration; its own is made or renewed first. Blocks.

    Raises ServiceError `bad_config`, `storage_failed`.
    """
    api = home.config.api
    # Not when the file is read: `ravel config set` sets one after the other.
    if bool(api.tls_certificate) != bool(api.tls_key):
        lacking = "tls_key" if api.tls_certificate else "tls_certificate"
        raise ServiceError(
            "bad_config",
            f"[api] tls_certificate and tls_key are both set, or both empty: {lacking} is empty",
            f"set it: `ravel config set api.{lacking} FILE`",
        )
    if api.tls_certificate:
        path, key_path = home.path / api.tls_certificate, home.path / api.tls_key
        _check_secret(key_path)
    else:
        path = key_path = _keep_own(home.path, [*api.tls_names, _host_of(api.tls)], now)
    stamp = _stamp_of(path, key_path)
    try:
        with path.open("rb") as file:
            found = x509.load_pem_x509_certificate(file.read(TLS_FILE_SIZE_MAX))
        names = _names_in(found)
    except OSError as error:
        raise _unusable(path, str(error)) from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unusable(path, f"no certificate in PEM: {error}") from None
    return Certificate(
        path,
        key_path,
        found.fingerprint(hashes.SHA256()),
        frozenset(name.lower() for name in names if isinstance(name, str) and "*" not in name),
        found.not_valid_after_utc.timestamp(),
        stamp,
    )


def make_context(certificate: Certificate) -> ssl.SSLContext:
    """Make a TLS context of 1.2 or newer with a certificate, for HTTP/1.1. Raises ServiceError `bad_config`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could have us make keys without end
    context.set_alpn_protocols(["http/1.1"])
    try:
        # An empty password: without one, OpenSSL would ask a terminal for the passphrase of a sealed key.
        context.load_cert_chain(certificate.path, certificate.key_path, password="")
    except (OSError, ValueError) as error:
        raise _unusable(certificate.key_path, f"not the key of {certificate.path}: {error}") from None
    return context


def _keep_own(folder: Path, named: Iterable[str], now: float) -> Path:
    """Return the file of the node's own certificate for these hosts; make or renew it if necessary."""
    path = folder / OWN_CERTIFICATE_NAME
    hosts = sorted({*_HERE, *filter(None, map(host_of_name, named))})
    key: ec.EllipticCurvePrivateKey | None = None
    if path.exists():
        content = read_private(path, TLS_FILE_SIZE_MAX)
        try:
            loaded = serialization.load_pem_private_key(content, None)
            found = x509.load_pem_x509_certificate(content)
            is_for_all = sorted(map(str, _names_in(found))) == hosts
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ServiceError(
                "bad_config",
                f"{path} is damaged: {error}",
                "remove it: the node makes another, with another fingerprint",
            ) from None
        left = found.not_valid_after_utc.timestamp() - now
        has_begun = found.not_valid_before_utc.timestamp() <= now  # else the clock was ahead when it was made
        if is_for_all and has_begun and left > CERTIFICATE_RENEWED_SECONDS:
            return path
        key = loaded if isinstance(loaded, ec.EllipticCurvePrivateKey) else None
    try:
        replace_file(path, _make(key or ec.generate_private_key(ec.SECP256R1()), hosts, now))
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"{path} cannot be written: {error}", "check the disk and its permissions"
        ) from None
    return path


def _make(key: ec.EllipticCurvePrivateKey, hosts: list[str], now: float) -> bytes:
    """Make a certificate that is signed by its own key and signs no other, with the key, in PEM."""
    begins = datetime.datetime.fromtimestamp(int(now), datetime.UTC) - _EARLIER
    public = key.public_key()
    digest = hashlib.sha256(
        public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    ).hexdigest()
    # The name of the key in it: browsers that keep a list of exceptions show it there.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Ravel node {digest[:12]}")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + datetime.timedelta(seconds=CERTIFICATE_SECONDS))
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    sealed = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return sealed + made.public_bytes(serialization.Encoding.PEM)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _names_in(certificate: x509.Certificate) -> list[str | ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the names and addresses that a certificate is for; none if it says none. Raises ValueError."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    names = found.get_values_for_type(x509.DNSName)
    addresses = found.get_values_for_type(x509.IPAddress)
    return [
        *names,
        *(one for one in addresses if not isinstance(one, ipaddress.IPv4Network | ipaddress.IPv6Network)),
    ]


def _host_of(listen: str) -> str:
    """Return the host of the listening address; empty for all interfaces."""
    host = listen.rpartition(":")[0].strip("[]")
    return "" if host in ("*", "0.0.0.0", "::") else host  # noqa: S104  # it is compared


def _check_secret(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise _unusable(path, str(error)) from None
    if stat.S_IMODE(mode) & 0o007:
        raise ServiceError(
            "bad_config", f"{path} can be read by every user of the machine", f"mend it with: chmod o= {path}"
        )


def _stamp_of(*paths: Path) -> Stamp:
    """Return numbers that change when one of the files is written or replaced; zeros for one that is not there."""
    stamps = []
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            stamps.append((0, 0, 0))
        else:
            stamps.append((found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(stamps)


def _unusable(path: Path, problem: str) -> ServiceError:
    return ServiceError(
        "bad_config",
        f"{path}: {problem}",
        "look at [api] tls_certificate and tls_key: two files in PEM, the key without a passphrase",
    )
