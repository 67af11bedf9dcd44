"""Who gets an answer from a live server, and who does not: over sockets, with certificates that parties really have."""

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from protocols.session import site_keys
from secure_kg.foundation.errors import UserError
from secure_kg.provisioning import membership, site_folder, tls
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.membership import member_of
from secure_kg.provisioning.record import accepted_roster, note_roster, own_number
from secure_kg.provisioning.roster import Roster
from secure_kg.provisioning.site_folder import SiteFolder
from secure_kg.provisioning.tls import client_tls, server_tls
from tests.support.provisioned import Federation, greeting, request_of, rotation_of, serving


def refused(port: int, context: ssl.SSLContext) -> bool:
    try:
        return greeting(port, context) == ""
    except (ssl.SSLError, ConnectionError):
        return True


def clock_at(moment: datetime) -> type[datetime]:
    """A `datetime` whose clock stands at `moment`."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return moment

    return Clock


def test_members_are_greeted_by_their_numbers_and_others_hear_nothing(federation: Federation, tmp_path: Path) -> None:
    other = Federation(tmp_path / "other")
    with serving(federation) as (port, _):
        for number, site in enumerate(federation.sites, 1):
            assert f"Member: {number}\r\n" in greeting(port, client_tls(federation.roster(), site.path))
        stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a context of ours would not even talk to this server
        stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
        stranger.load_cert_chain(other.sites[0].leaf_file("client"))
        assert refused(port, stranger)
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
        assert refused(port, nobody)


def test_a_revoked_member_is_refused_by_a_server_that_goes_on(federation: Federation) -> None:
    contexts = [client_tls(federation.roster(), site.path) for site in federation.sites]
    with serving(federation) as (port, lines):
        assert "Member: 2" in greeting(port, contexts[1])
        federation.revoke("Site 2")
        assert refused(port, contexts[1])
        assert "Member: 1" in greeting(port, contexts[0])
    assert any("member 2 (Site 2) was revoked" in line for line in lines)


def test_a_revoked_certificate_is_refused_and_a_fresh_one_lets_the_member_in_at_once(federation: Federation) -> None:
    site = federation.sites[1]
    old = client_tls(federation.roster(), site.path)
    with serving(federation) as (port, _):
        federation.revoke("Site 2", certificates_only=True)
        assert refused(port, old)
        assert "Member: 2" in greeting(port, client_tls(federation.roster(), site.path))


def test_a_certificate_of_a_clock_that_was_ahead_does_not_outlive_its_revocation(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, roster = federation.sites[1], federation.roster()
    monkeypatch.setattr(site_folder, "datetime", clock_at(datetime.now(UTC) + timedelta(minutes=50)))
    site.renew_leaf("client")
    monkeypatch.undo()
    ahead = client_tls(roster, site.path)
    with serving(federation) as (port, _):
        assert "Member: 2" in greeting(port, ahead)
        federation.revoke("2", certificates_only=True)
        assert refused(port, ahead)


def test_an_expired_certificate_is_refused(federation: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    site, roster, lines = federation.sites[0], federation.roster(), list[str]()
    monkeypatch.setattr(site_folder, "datetime", clock_at(datetime.now(UTC) - timedelta(days=91)))
    path = site.renew_leaf("client")
    monkeypatch.undo()
    old = path.read_bytes()
    context = client_tls(roster, site.path)
    path.write_bytes(old)
    context.load_cert_chain(path)
    with serving(federation) as (port, _):
        assert refused(port, context)
    assert member_of(roster, report=lines.append)(site_keys.leaf_in(old)) is None
    assert "has expired" in lines[0]


def test_nobody_is_let_in_once_the_federation_has_expired(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = client_tls(federation.roster(), federation.sites[0].path)
    with serving(federation) as (port, lines):
        assert "Member: 1" in greeting(port, context)
        monkeypatch.setattr(membership, "datetime", clock_at(datetime.now(UTC) + timedelta(days=61)))
        assert refused(port, context)
        monkeypatch.undo()
    assert any("expired" in line for line in lines)


def test_a_rotated_member_comes_in_by_its_new_identity_alone(federation: Federation) -> None:
    site = federation.sites[1]
    old = client_tls(federation.roster(), site.path)
    coordinator = federation.coordinator
    with serving(federation) as (port, lines):
        federation.coordinator = coordinator.publish(coordinator.approve([rotation_of(site)]))
        roster = federation.roster()
        assert own_number(roster, site.path) == 2
        assert "Member: 1" in greeting(port, client_tls(roster, federation.sites[0].path))  # the new version is read
        assert "Member: 2" in greeting(port, client_tls(roster, site.path))
        assert refused(port, old)
    assert any("nobody in the federation" in line for line in lines)


def test_a_member_that_was_approved_later_needs_no_restart(federation: Federation, tmp_path: Path) -> None:
    later = SiteFolder.new(tmp_path / "later", "Later")
    coordinator = federation.coordinator
    with serving(federation) as (port, _):
        federation.coordinator = coordinator.publish(coordinator.approve([request_of(later)]))
        assert "Member: 1" in greeting(port, client_tls(federation.roster(), federation.sites[0].path))
        assert "Member: 3" in greeting(port, client_tls(federation.roster(), later.path))


def test_another_servers_identity_is_not_spoken_to(federation: Federation, tmp_path: Path) -> None:
    other = Federation(tmp_path / "other")
    with serving(other) as (port, _), pytest.raises(ssl.SSLError):
        greeting(port, client_tls(federation.roster(), federation.sites[0].path))


def test_a_new_member_need_not_wait_until_another_one_connects(federation: Federation, tmp_path: Path) -> None:
    later = SiteFolder.new(tmp_path / "later", "Later")
    coordinator = federation.coordinator
    with serving(federation) as (port, _):
        federation.coordinator = coordinator.publish(coordinator.approve([request_of(later)]))
        assert "Member: 3" in greeting(port, client_tls(federation.roster(), later.path))


def test_a_server_that_starts_again_goes_back_to_no_older_version_than_it_has_served(
    federation: Federation, tmp_path: Path
) -> None:
    """Whoever carries files hands out one from before the revocation, and waits for a restart."""
    folder, path = tmp_path / "server", tmp_path / "federation.toml"
    server = SiteFolder.new(folder, "Server")
    made = Coordinator.new(
        tmp_path / "other", "Other", "localhost:1", federation.roster().settings, days=9, server=request_of(server)
    )
    note_roster(folder, made.roster)
    path.write_bytes(made.path.read_bytes())
    number_of = member_of(made.roster, path, tls=server_tls(made.roster, folder))
    before = path.read_bytes()
    path.write_bytes(made.publish([]).path.read_bytes())
    number_of(b"")
    path.write_bytes(before)
    with pytest.raises(UserError, match="an old one"):
        accepted_roster(path, folder)


def test_contexts_that_live_longer_than_a_certificate_take_up_the_next_one(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "_LOOKED_AT", 0.0)  # an hour later, each time
    monkeypatch.setattr(tls, "_AGAIN", 0.0)
    site, server = federation.sites[0], federation.coordinator.site
    context = client_tls(federation.roster(), site.path)
    with serving(federation) as (port, _):
        assert "Member: 1" in greeting(port, context)
        files = [server.leaf_path("server"), site.leaf_path("client")]
        before = [path.read_bytes() for path in files]
        monkeypatch.setattr(site_folder, "RENEWED", timedelta(days=91))  # two months later
        assert "Member: 1" in greeting(port, context)
        assert "Member: 1" in greeting(port, context)
        monkeypatch.undo()
        assert all(path.read_bytes() != old for path, old in zip(files, before, strict=True))
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain, context.wrap_socket(plain) as secured:
            assert secured.getpeercert(True) == site_keys.leaf_in(files[0].read_bytes())


def test_a_certificate_that_another_command_renewed_is_taken_up(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "_AGAIN", 0.0)
    site = federation.sites[0]
    context = client_tls(federation.roster(), site.path)
    with serving(federation) as (port, _):
        federation.revoke("1", certificates_only=True)
        assert refused(port, context)
        client_tls(federation.roster(), site.path)  # another command of this site, which has the newer version
        assert "Member: 1" in greeting(port, context)


def test_a_member_with_two_bad_certificates_does_not_fill_the_log(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, lines, leaves = federation.sites[0], list[str](), []
    for days in (91, 1):
        monkeypatch.setattr(site_folder, "datetime", clock_at(datetime.now(UTC) - timedelta(days=days)))
        leaves.append(site_keys.leaf_in(site.renew_leaf("client").read_bytes()))
    monkeypatch.undo()
    federation.revoke("1", certificates_only=True)
    number_of = member_of(federation.roster(), report=lines.append)
    for _ in range(5):
        assert [number_of(leaf) for leaf in (*leaves, b"", b"x")] == [None] * 4
    assert len(lines) == 2  # one about the member, one about everybody else
    monkeypatch.setattr(membership, "_PAUSE", 0.0)
    number_of(leaves[0])
    assert "9 more" in lines[2]


def test_a_file_that_could_not_be_read_once_is_read_again(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No descriptor was left when the revocation came; the file does not change again."""
    roster, leaf = federation.roster(), site_keys.leaf_in(federation.sites[0].leaf_file("client").read_bytes())
    number_of = member_of(roster, federation.path)
    assert number_of(leaf) == 1
    federation.revoke("1")

    def none_left(path: Path, coordinator: str) -> Roster:
        raise UserError("Too many open files")

    monkeypatch.setattr(membership, "load_roster", none_left)
    monkeypatch.setattr(membership, "_AGAIN", 0.0)
    assert number_of(leaf) == 1
    monkeypatch.undo()
    assert number_of(leaf) is None
