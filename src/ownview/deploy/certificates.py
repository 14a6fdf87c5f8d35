"""A private certificate authority, and the certificates that it gives a server and its places (needs cryptography).

Files of a folder, keys readable by their owner alone:

    ca.crt, ca.key              the authority; its key stays with whoever enrols places
    server.crt, server.key      of the coordinator
    NAME.crt, NAME.key          of a place

A place is known by the fingerprint of its public key. What name a certificate claims is nobody's business.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ownview.base.errors import DataError
from ownview.base.files import make_folder, write_bytes, write_secret

AUTHORITY, SERVER = "ca", "server"
_CURVE = ec.SECP384R1()
_YEARS = timedelta(days=3650)
_CLOCKS_DIFFER = timedelta(days=1)


def write_authority(folder: Path) -> None:
    """Make ca.crt and ca.key; nothing happens where they are there already."""
    if (folder / "ca.crt").exists() and (folder / "ca.key").exists():
        return
    make_folder(folder)
    key = ec.generate_private_key(_CURVE)
    name = _named("Ownview private authority")
    builder = _builder(name, name, key.public_key()).add_extension(x509.BasicConstraints(True, 0), critical=True)
    _write(folder, AUTHORITY, key, _usable_to_sign(builder).sign(key, hashes.SHA384()))


def write_server(folder: Path, hosts: Sequence[str] = ("localhost", "127.0.0.1")) -> None:
    """Make server.crt and server.key, signed by the authority of the folder, for the names and addresses `hosts`."""
    key = ec.generate_private_key(_CURVE)
    alternatives = x509.SubjectAlternativeName([_host(one) for one in hosts])
    _sign(folder, SERVER, key, [alternatives, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])])


def write_place(folder: Path, name: str) -> str:
    """Make NAME.crt and NAME.key, signed by the authority of the folder; returns the key's fingerprint."""
    require_place_name(name)
    key = ec.generate_private_key(_CURVE)
    # A place is a server to its own helpers (Flower asks for that), and a client to the coordinator.
    uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
    local = x509.SubjectAlternativeName([_host("localhost"), _host("127.0.0.1")])
    _sign(folder, name, key, [uses, local])
    return fingerprint((folder / f"{name}.crt").read_bytes())


def require_place_name(name: str) -> None:
    """Refuse a name that no place can have."""
    if name in (AUTHORITY, SERVER) or not name or not all(one.isalnum() or one in "-_." for one in name):
        raise DataError(f"place {name!r}: expected letters, digits, '-', '_' or '.', and neither 'ca' nor 'server'")


def fingerprint(certificate: bytes) -> str:
    """SHA-256 of a certificate's public key, in hex; the certificate as PEM or DER."""
    pem = certificate.lstrip().startswith(b"-----")
    read = x509.load_pem_x509_certificate if pem else x509.load_der_x509_certificate
    return key_fingerprint(read(certificate).public_key().public_bytes(*_PUBLIC))


def key_fingerprint(public_key: bytes) -> str:
    """SHA-256 of a public key as DER (SubjectPublicKeyInfo), in hex."""
    return sha256(public_key).hexdigest()


_PUBLIC = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo


def _sign(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, extensions: Sequence[x509.ExtensionType]) -> None:
    try:
        authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
        signer = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    except FileNotFoundError as error:
        raise DataError(f"{folder}: has no certificate authority; expected ca.crt and ca.key") from error
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise DataError(f"{folder / 'ca.key'}: expected a key on an elliptic curve")
    builder = _builder(_named(name), authority.subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    for one in (issuer, *extensions):
        builder = builder.add_extension(one, critical=False)
    _write(folder, name, key, builder.sign(signer, hashes.SHA384()))


def _builder(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(issuer, name, key, x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + _YEARS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usable_to_sign(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    signs = dict.fromkeys(("key_cert_sign", "crl_sign"), True)
    others = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    usage = x509.KeyUsage(**signs, **dict.fromkeys((*others, "encipher_only", "decipher_only"), False))
    return builder.add_extension(usage, critical=True)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_secret(folder / f"{name}.key", encoded)
    write_bytes(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))
