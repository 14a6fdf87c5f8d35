"""A place cannot pose as the server, and the server cannot pose as a place: it never has a place's key.

Before: certificates of places were for servers as well and had the names localhost and 127.0.0.1, and places took any
certificate of the authority that fitted the name they connected to. On one machine, or with one entry in a name server,
a place took 20 uploads of another place. The server made the keys of all places.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from ownview.base.errors import DataError, MessageError, OutputError
from ownview.deploy.carriers import server_end
from ownview.deploy.folders import PlaceFolder, Plan, ServerFolder, create_server_folder
from ownview.deploy.https.joining import join
from ownview.deploy.https.polling import attend
from ownview.deploy.identities.certificates import (
    certificate_request,
    fingerprint,
    new_key,
    sign_request,
    write_authority,
    write_server,
)
from ownview.deploy.identities.invitations import Invitation, invite, revoke
from ownview.deploy.settings import CoordinatorSettings
from tests.deploy.lines import free_port, write_place
from tests.deploy.world import agreement


class Silent:
    """A place that must not be asked anything."""

    def answer(self, message: bytes) -> bytes:
        raise AssertionError(message)


@pytest.fixture
def deployment(tmp_path: Path) -> ServerFolder:
    return create_server_folder(tmp_path / "server", agreement(), Plan(port=free_port()), CoordinatorSettings())


@contextmanager
def at_work(server: ServerFolder) -> Iterator[list[str]]:
    said: list[str] = []
    with server_end(server, server.plan()[0], said.append):
        yield said


@pytest.mark.parametrize("poses", ["a place", "a server of another name", "a server of another authority"])
def test_nobody_else_is_taken_for_the_server(poses: str, tmp_path: Path) -> None:
    write_authority(tmp_path)
    for name in ("east", "north"):
        write_place(tmp_path, name)
    shown, folder = "east", tmp_path
    if poses != "a place":
        shown, folder = "server", tmp_path if "name" in poses else tmp_path / "other"
        write_authority(folder)
        write_server(folder, ["elsewhere.example"] if "name" in poses else ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{shown}.crt", folder / f"{shown}.key")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def pose() -> None:
            connection, _ = listening.accept()
            with connection, pytest.raises(OSError, match="ALERT"):
                context.wrap_socket(connection, server_side=True).recv(1)

        posing = threading.Thread(target=pose)
        posing.start()
        with pytest.raises(MessageError, match="a certificate that does not fit"):
            attend(Silent(), listening.getsockname(), tmp_path, "north", threading.Event())
        posing.join(60)
        assert not posing.is_alive()


def test_certificates_have_one_use_each(deployment: ServerFolder) -> None:
    write_place(deployment.certificates, "east")
    uses = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "east": ExtendedKeyUsageOID.CLIENT_AUTH}
    for name, use in uses.items():
        made = x509.load_pem_x509_certificate((deployment.certificates / f"{name}.crt").read_bytes())
        assert list(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [use]
        assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert (name == "server") == any(
            isinstance(one.value, x509.SubjectAlternativeName) for one in made.extensions
        ), "only the server has names"


def test_a_place_makes_its_key_and_the_server_never_has_it(deployment: ServerFolder, tmp_path: Path) -> None:
    file = invite(deployment, "east")
    carried = Invitation.read(file)
    with at_work(deployment):
        place = join(file, tmp_path / "east")
        with pytest.raises(OutputError, match="is the folder of a place already"):
            join(file, tmp_path / "east")
    key = (place.certificates / "east.key").read_bytes()
    assert (place.certificates / "east.key").stat().st_mode & 0o077 == 0
    known = [one for one in deployment.path.rglob("*") if one.is_file()]
    assert len(known) > 5
    assert not [one for one in known if key.strip().splitlines()[1] in one.read_bytes()]
    secret = {one.name for one in known if b"PRIVATE KEY" in one.read_bytes()}
    assert secret == {"ca.key", "server.key"}, "the invitation is gone, too"
    certificate = (place.certificates / "east.crt").read_bytes()
    assert deployment.keys.names() == {fingerprint(certificate): "east"}
    assert fingerprint(carried.certificate.encode()) not in deployment.keys.names()


def test_an_invitation_is_good_once_and_for_a_while(deployment: ServerFolder, tmp_path: Path) -> None:
    first, late, gone = (tmp_path / f"{name}.json" for name in ("east", "north", "west"))
    for file in (first, late, gone):
        file.write_bytes(invite(deployment, file.stem).read_bytes())
    past = datetime.now(UTC) - timedelta(days=1)
    deployment.keys.invite("north", fingerprint(Invitation.read(late).certificate.encode()), past)
    revoke(deployment, "west")
    with at_work(deployment):
        place = join(first, tmp_path / "east")
        place.file.unlink()  # as if the answer had been lost: the same key may ask again
        assert join(first, tmp_path / "east").membership().name == "east"
        for file, why in ((first, "was used already"), (late, "ended at"), (gone, "withdrawn")):
            with pytest.raises(MessageError, match=why):
                join(file, tmp_path / f"{file.stem}-again")
        revoke(deployment, "east")
        place.file.unlink()
        anew = invite(deployment, "east")
        with pytest.raises(MessageError, match="expected a new key") as refused:
            join(anew, place.path)  # with the key that was revoked
        assert str(deployment.path) not in str(refused.value), "where the server keeps its files is its own business"
        join(anew, tmp_path / "east-anew")
    assert list(deployment.keys.names().values()) == ["east"]


def test_an_invitation_opens_nothing_else(deployment: ServerFolder, tmp_path: Path) -> None:
    """Its certificate is of the authority; it can ask for no message."""
    carried = Invitation.read(invite(deployment, "east"))
    for name, content in (("ca.crt", carried.authority), ("x.crt", carried.certificate), ("x.key", carried.key)):
        (tmp_path / name).write_text(content)
    with at_work(deployment), pytest.raises(MessageError, match="unknown key"):
        attend(Silent(), (carried.host, carried.port), tmp_path, "x", threading.Event())


def test_requests_that_are_none_are_refused_and_wishes_in_them_ignored(deployment: ServerFolder) -> None:
    key = new_key()
    wish = x509.BasicConstraints(ca=True, path_length=None)
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).add_extension(wish, critical=True)
    request = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    made = x509.load_pem_x509_certificate(sign_request(deployment.certificates, "east", request))
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert [one.value for one in made.subject] == ["east"]
    other = certificate_request("east", ec.generate_private_key(ec.SECP521R1()))
    for wrong in (b"", b"no request", request[:-60] + request[-40:], other):
        with pytest.raises(MessageError, match="certificate request"):
            sign_request(deployment.certificates, "east", wrong)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[" * 50_000, b"\xff\x00", b'{"name": "../up"}'])
def test_a_file_that_is_no_invitation_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "east.json"
    file.write_bytes(content)
    with pytest.raises(DataError, match="no invitation"):
        join(file, tmp_path / "east")
    assert not PlaceFolder(tmp_path / "east").exists
    assert not (tmp_path / "east").exists()
