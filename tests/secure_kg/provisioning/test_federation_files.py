"""Sites, requests and signed rosters: the way of an honest federation, and everything that must be refused."""

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.provisioning.membership import member_of
from secure_kg.provisioning.record import accepted_roster, note_roster, own_number
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.roster import parse_roster
from secure_kg.provisioning.site_folder import SiteFolder
from secure_kg.provisioning.tls import client_tls, server_tls
from tests.support.provisioned import Federation, request_of


def leaf_of(site: SiteFolder) -> bytes:
    pem = site.leaf_file("client").read_text()
    start = pem.index("-----BEGIN CERTIFICATE-----")
    return ssl.PEM_cert_to_DER_cert(pem[start : pem.index("-----END CERTIFICATE-----") + 26])


def shaken_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> bytes | None:
    """A handshake in memory; the client's leaf as the server has seen it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].version() == "TLSv1.3"
    return ends[1].getpeercert(True)


def test_a_roster_comes_back_as_it_was_signed_and_numbers_its_sites(federation: Federation) -> None:
    roster = federation.roster()
    assert [member.name for member in roster.members] == ["Site 1", "Site 2"]
    assert roster.settings.strategy == "fedr"
    assert roster.settings.clients == 2
    assert [own_number(roster, site.path) for site in federation.sites] == [1, 2]
    assert own_number(roster, federation.coordinator.site.path) == 0


def test_both_ends_know_each_other_after_a_handshake(federation: Federation) -> None:
    roster = federation.roster()
    server = server_tls(roster, federation.coordinator.site.path)
    number_of = member_of(roster)
    for number, site in enumerate(federation.sites, 1):
        leaf = shaken_hands(server, client_tls(roster, site.path))
        assert leaf is not None
        assert number_of(leaf) == number


def test_a_stranger_is_refused_by_the_handshake(federation: Federation, tmp_path: Path) -> None:
    other = Federation(tmp_path / "other")
    server = server_tls(federation.roster(), federation.coordinator.site.path)
    with pytest.raises(ssl.SSLError):
        shaken_hands(server, client_tls(other.roster(), other.sites[0].path))


def test_another_server_is_refused_by_a_site(federation: Federation, tmp_path: Path) -> None:
    other = Federation(tmp_path / "other")
    server = server_tls(other.roster(), other.coordinator.site.path)
    with pytest.raises(ssl.SSLError):
        shaken_hands(server, client_tls(federation.roster(), federation.sites[0].path))


def test_tls_1_2_is_refused(federation: Federation) -> None:
    roster = federation.roster()
    client = client_tls(roster, federation.sites[0].path)
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        shaken_hands(server_tls(roster, federation.coordinator.site.path), client)


def test_a_leaf_of_a_stranger_is_nobodys(federation: Federation, tmp_path: Path) -> None:
    lines: list[str] = []
    number_of = member_of(federation.roster(), report=lines.append)
    assert number_of(leaf_of(SiteFolder.new(tmp_path / "stranger", "Stranger"))) is None
    assert number_of(b"no certificate") is None
    assert lines
    assert all("refused" in line and "\n" not in line for line in lines)


def test_a_revocation_holds_from_the_next_connection_on(federation: Federation) -> None:
    number_of = member_of(federation.roster(), federation.coordinator.path)
    leaf = leaf_of(federation.sites[1])
    assert number_of(leaf) == 2
    coordinator = federation.coordinator
    coordinator.publish(coordinator.revoke(coordinator.member("Site 2"), certificates_only=False))
    assert number_of(leaf) is None
    assert number_of(leaf_of(federation.sites[0])) == 1


def test_revoked_certificates_are_refused_though_the_member_stays(federation: Federation) -> None:
    coordinator, leaf = federation.coordinator, leaf_of(federation.sites[1])
    coordinator.publish(coordinator.revoke(coordinator.member("2"), certificates_only=True))
    assert member_of(federation.roster())(leaf) is None
    assert own_number(federation.roster(), federation.sites[1].path) == 2


def test_an_older_or_broken_roster_changes_nothing_at_a_server(federation: Federation) -> None:
    path, lines = federation.coordinator.path, list[str]()
    old = path.read_bytes()
    coordinator = federation.coordinator
    coordinator.publish(coordinator.revoke(coordinator.member("2"), certificates_only=False))
    number_of = member_of(federation.roster(), path, report=lines.append)
    for content in (old, old[:-40], b"", b"[[[[" * 1000):
        path.write_bytes(content)
        assert number_of(leaf_of(federation.sites[1])) is None
        assert number_of(leaf_of(federation.sites[0])) == 1
    assert any("still holds" in line for line in lines)


def test_a_site_takes_no_older_roster_than_it_has_seen(federation: Federation) -> None:
    path, site = federation.coordinator.path, federation.sites[0]
    old = path.read_bytes()
    with pytest.raises(UserError, match="coordinator"):
        accepted_roster(path, site.path)
    note_roster(site.path, federation.roster())
    federation.coordinator.publish(federation.roster().members)
    assert accepted_roster(path, site.path).version == 3
    path.write_bytes(old)
    with pytest.raises(UserError, match="an old one"):
        accepted_roster(path, site.path)


def test_another_coordinators_roster_is_refused(federation: Federation, tmp_path: Path) -> None:
    note_roster(federation.sites[0].path, federation.roster())
    other = Federation(tmp_path / "other")
    with pytest.raises(UserError):
        accepted_roster(other.coordinator.path, federation.sites[0].path)


def test_no_byte_of_a_roster_can_be_changed(federation: Federation) -> None:
    text = federation.coordinator.path.read_text()
    for at in range(0, len(text), 23):
        changed = text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :]
        with pytest.raises(UserError):
            parse_roster(changed, federation.pin)
    for end in range(0, len(text) - 1, 97):
        with pytest.raises(UserError):
            parse_roster(text[:end], federation.pin)


def test_a_request_needs_the_key_that_it_names(federation: Federation) -> None:
    site = federation.sites[0]
    text = request_text("Site 1", site.identity_pem, datetime.now(UTC))
    for at in range(0, len(text), 11):
        with pytest.raises(UserError):
            parse_request(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])


def test_nobody_is_approved_twice_or_as_the_coordinator(federation: Federation) -> None:
    coordinator = federation.coordinator
    with pytest.raises(UserError, match="is a member already"):
        coordinator.approve([request_of(federation.sites[0], "Again")])
    with pytest.raises(UserError, match="coordinator"):
        coordinator.approve([request_of(coordinator.site, "Double")])


@pytest.mark.parametrize("name", ["", "a/b", "..", "a\nb", "\x1b[31mred", "x" * 500, "\u202egnp"])
def test_names_that_could_mislead_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError):
        SiteFolder.new(tmp_path / "site", name)


def test_private_files_that_others_can_read_are_refused(federation: Federation, tmp_path: Path) -> None:
    site, roster = federation.sites[0], federation.roster()
    for path in site.path.iterdir():
        if path.is_file() and b"PRIVATE KEY" in path.read_bytes():
            assert os.stat(path).st_mode & 0o077 == 0
            path.chmod(0o644)
            with pytest.raises(UserError):
                client_tls(roster, site.path)
            path.chmod(0o600)
    assert os.stat(site.path).st_mode & 0o077 == 0
    site.path.chmod(0o755)
    with pytest.raises(UserError):
        SiteFolder.open(site.path)
