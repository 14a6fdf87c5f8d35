"""A private certificate authority: it signs its server's certificate and those of places (needs cryptography).

Files of a folder, keys readable by their owner alone:

    ca.crt, ca.key              the authority; its key never leaves the server's machine
    server.crt, server.key      of the server: may act as a server (serverAuth) and as nothing else
    NAME.crt                    of a place: may act as a client (clientAuth) and as nothing else, and has no host name
    NAME.key                    of a place, at the place alone: it is made there, and the server sees a request only

A place is known by the fingerprint of its public key. The name in its certificate is for people who read it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ownview.base.errors import DataError, MessageError
from ownview.base.files import make_folder, write_bytes

AUTHORITY, SERVER = "ca", "server"
LONGEST_REQUEST = 8192
"""Bytes of a certificate request at most."""
_CURVE = ec.SECP256R1()
"""Signing a handshake, which strangers can ask for, takes an eighth of the time of the next larger curve."""
_YEARS = timedelta(days=3650)
_CLOCKS_DIFFER = timedelta(days=1)
_PUBLIC = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo


def write_authority(folder: Path) -> None:
    """Make ca.crt and ca.key; nothing happens where they are there already."""
    if (folder / "ca.crt").exists() and (folder / "ca.key").exists():
        return
    make_folder(folder)
    key = ec.generate_private_key(_CURVE)
    name = _named("Ownview private authority")
    builder = _builder(name, name, key.public_key(), _YEARS)
    builder = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
    builder = builder.add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
    write_key(folder / "ca.key", key)
    write_bytes(folder / "ca.crt", _pem(builder.sign(key, hashes.SHA256())))


def write_server(folder: Path, hosts: Sequence[str] = ("localhost", "127.0.0.1")) -> None:
    """Make server.crt and server.key, signed by the authority of the folder, for the names and addresses `hosts`."""
    key = ec.generate_private_key(_CURVE)
    names = x509.SubjectAlternativeName([_host(one) for one in hosts])
    made = _signed(folder, SERVER, key.public_key(), ExtendedKeyUsageOID.SERVER_AUTH, _YEARS, names)
    write_key(folder / "server.key", key)
    write_bytes(folder / "server.crt", _pem(made))


def new_key() -> ec.EllipticCurvePrivateKey:
    """A private key for a place, made where it is used."""
    return ec.generate_private_key(_CURVE)


def write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a private key, readable by its owner alone."""
    write_bytes(file, key_pem(key), private=True)


def read_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """A private key from a file."""
    try:
        key = serialization.load_pem_private_key(file.read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(f"{file}: no private key ({error}); expected one as PEM") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise DataError(f"{file}: expected a key on an elliptic curve")
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM, not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def certificate_request(name: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    """A request (PEM) for a certificate of this key; it proves possession of the key, and holds no secret."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_named(name))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def sign_request(folder: Path, name: str, request: bytes, valid: timedelta = _YEARS) -> bytes:
    """A client's certificate (PEM) for the key of a request, signed by the authority of a folder.

    Nothing of the request but its key is taken over: name and uses are the signer's decision.

    Args:
        folder: with ca.crt and ca.key.
        name: that the certificate gets.
        request: PEM, at most `LONGEST_REQUEST` bytes.
        valid: how long from now.

    Raises:
        MessageError: it is no request, its key is of another kind, or its sender does not have the key.
    """
    require_place_name(name)
    try:
        read = x509.load_pem_x509_csr(request[:LONGEST_REQUEST])
        key = read.public_key()
        proven = read.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise MessageError(f"no certificate request ({error}); expected one as PEM") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != _CURVE.name or not proven:
        raise MessageError(f"a certificate request without a key on {_CURVE.name} that its sender has")
    return _pem(_signed(folder, name, key, ExtendedKeyUsageOID.CLIENT_AUTH, valid))


def require_place_name(name: str) -> None:
    """Refuse a name that no place can have."""
    if (
        name in (AUTHORITY, SERVER)
        or not 0 < len(name) <= 64
        or name.startswith(".")
        or not all(one.isascii() and (one.isalnum() or one in "-_.") for one in name)
    ):
        raise DataError(
            f"place {name[:80]!r}: expected at most 64 letters, digits, '-', '_' or '.', not '.' first, and neither "
            "'ca' nor 'server'"
        )


def fingerprint(certificate: bytes) -> str:
    """SHA-256 of a certificate's public key, in hex; the certificate as PEM or DER."""
    return sha256(_read(certificate).public_key().public_bytes(*_PUBLIC)).hexdigest()


def serial_number(certificate: bytes) -> str:
    """The serial number of a certificate, in hex; the certificate as PEM or DER."""
    return f"{_read(certificate).serial_number:x}"


def _read(certificate: bytes) -> x509.Certificate:
    pem = certificate.lstrip().startswith(b"-----")
    return (x509.load_pem_x509_certificate if pem else x509.load_der_x509_certificate)(certificate)


def _signed(
    folder: Path,
    name: str,
    key: ec.EllipticCurvePublicKey,
    use: x509.ObjectIdentifier,
    valid: timedelta,
    *more: x509.ExtensionType,
) -> x509.Certificate:
    """A certificate with one use, which programs that check certificates must heed."""
    try:
        authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{folder}: has no certificate authority; expected ca.crt and ca.key") from error
    signer = read_key(folder / "ca.key")
    builder = _builder(_named(name), authority.subject, key, valid)
    builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
    builder = builder.add_extension(_usage("digital_signature"), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=True)
    for one in (x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), *more):
        builder = builder.add_extension(one, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _builder(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(issuer, name, key, x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + valid)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def _usage(*names: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{one: one in names for one in _USAGES})


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
