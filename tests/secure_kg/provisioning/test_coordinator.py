"""The coordinator: one text for each version, identities that do not come back, rotations that cannot be replayed."""

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from protocols.session.identities import new_identity
from secure_kg.foundation.errors import UserError
from secure_kg.provisioning import coordinator as coordinator_module
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.site_folder import SiteFolder
from tests.support.provisioned import Federation, request_of, rotation_of


def test_of_two_commands_at_once_one_signs_and_the_other_changes_nothing(federation: Federation) -> None:
    first, second = (Coordinator.open(federation.coordinator.site.path) for _ in range(2))
    first.publish(first.revoke(first.member("1"), certificates_only=False))
    after = federation.path.read_bytes()
    with pytest.raises(UserError, match="changed by another command"):
        second.publish(second.revoke(second.member("2"), certificates_only=False))
    assert federation.path.read_bytes() == after
    assert Coordinator.open(federation.coordinator.site.path).roster.members[0].revoked  # and it goes on


def test_an_older_file_in_the_coordinators_folder_is_not_gone_on_from(federation: Federation) -> None:
    old = federation.path.read_bytes()
    federation.revoke("1")
    federation.path.write_bytes(old)
    with pytest.raises(UserError, match="an old one"):
        Coordinator.open(federation.coordinator.site.path)


def test_a_crash_between_signing_and_noting_keeps_nobody_from_going_on(federation: Federation) -> None:
    record = federation.coordinator.site.path / "record.json"
    before = record.read_bytes()
    federation.revoke("1")
    record.write_bytes(before)
    again = Coordinator.open(federation.coordinator.site.path)
    assert again.publish(again.roster.members).roster.version == 4


def test_a_rotation_is_used_once_and_in_order(federation: Federation) -> None:
    site = federation.sites[0]
    first = rotation_of(site)
    coordinator = federation.coordinator.publish(federation.coordinator.approve([first]))
    site.take_next()
    second = rotation_of(site)
    coordinator = coordinator.publish(coordinator.approve([second]))
    site.take_next()
    for replayed in (first, second):
        with pytest.raises(UserError):
            coordinator.approve([replayed])
    back = dataclasses.replace(first, identity=first.previous or b"", previous=second.identity)
    with pytest.raises(UserError, match="retired"):
        coordinator.approve([back])


def test_a_revoked_member_cannot_come_back_by_a_rotation(federation: Federation) -> None:
    site = federation.sites[0]
    rotation = rotation_of(site)
    federation.revoke("1")
    with pytest.raises(UserError, match="no member"):
        federation.coordinator.approve([rotation])


def test_a_rotation_needs_both_keys() -> None:
    old, new, thief = (new_identity().private_pem for _ in range(3))
    text = request_text("A", new, datetime.now(UTC), old)
    assert parse_request(text).previous is not None
    lines = text.splitlines(keepends=True)
    with pytest.raises(UserError, match="does not have that key"):
        parse_request("".join(lines[:-1]))
    foreign = request_text("A", new, datetime.now(UTC), thief).splitlines(keepends=True)
    with pytest.raises(UserError):
        parse_request("".join([*lines[:-1], foreign[-1]]))


def test_nobody_takes_the_place_of_a_member_that_stands(federation: Federation, tmp_path: Path) -> None:
    later = request_of(SiteFolder.new(tmp_path / "later", "Later"))
    coordinator = federation.coordinator
    with pytest.raises(UserError, match="--in-place-of"):
        coordinator.approve([later], coordinator.member("1"))
    with pytest.raises(UserError, match="no member"):
        coordinator.member("3")


def test_numbers_do_not_move_when_members_leave(federation: Federation, tmp_path: Path) -> None:
    federation.revoke("1")
    coordinator = federation.coordinator
    later = request_of(SiteFolder.new(tmp_path / "later", "Later"))
    roster = coordinator.publish(coordinator.approve([later])).roster
    assert [(one.number, one.revoked) for one in roster.members] == [(1, True), (2, False), (3, False)]
    assert roster.settings.clients == 3


def test_only_new_members_change_what_both_ends_of_a_link_agree_on(federation: Federation, tmp_path: Path) -> None:
    digest, coordinator = federation.roster().digest, federation.coordinator
    coordinator = coordinator.publish(coordinator.revoke(coordinator.member("1"), certificates_only=True))
    coordinator = coordinator.publish(coordinator.approve([rotation_of(federation.sites[1])]), address="b:1", days=9)
    assert coordinator.roster.digest == digest
    later = request_of(SiteFolder.new(tmp_path / "later", "Later"))
    assert coordinator.publish(coordinator.approve([later])).roster.digest != digest


def test_requests_of_one_command_bring_no_replaced_identity_back(federation: Federation) -> None:
    site, (second, third) = federation.sites[1], (new_identity().private_pem for _ in range(2))
    rotation = rotation_of(site)
    with pytest.raises(UserError, match="another of these requests replaces"):
        federation.coordinator.approve([rotation, request_of(site, "Other")])
    now = datetime.now(UTC)
    steps = [
        parse_request(request_text(site.name, new, now, old))
        for new, old in ((second, site.identity_pem), (third, second))
    ]
    with pytest.raises(UserError, match="is no member"):  # the one in between would never be retired
        federation.coordinator.approve(steps)


def test_a_rotation_says_whose_it_is(federation: Federation) -> None:
    """A person would be shown the name of another organisation beside the fingerprint."""
    text = request_text("North", new_identity().private_pem, datetime.now(UTC), federation.sites[1].identity_pem)
    with pytest.raises(UserError, match="North: asks for a new identity of member 2, which is Site 2"):
        federation.coordinator.approve([parse_request(text)])


def test_a_member_that_calls_itself_by_anothers_number_is_not_revoked_in_its_place(
    federation: Federation, tmp_path: Path
) -> None:
    coordinator = federation.coordinator
    names = ("4", "Four")
    requests = [request_of(SiteFolder.new(tmp_path / name, name)) for name in names]
    coordinator = coordinator.publish(coordinator.approve(requests))
    assert [coordinator.member(who).number for who in ("3", "4", "four")] == [3, 4, 4]


def test_a_clock_that_was_set_back_brings_no_revoked_certificate_back(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation.revoke("1", certificates_only=True)
    first = federation.roster().members[0].issued_from
    assert first is not None
    monkeypatch.setattr(coordinator_module, "_now", lambda: first - timedelta(days=2))
    federation.revoke("1", certificates_only=True)
    assert federation.roster().members[0].issued_from == first


def test_a_version_whose_command_was_killed_before_noting_it_is_not_signed_again(federation: Federation) -> None:
    """Else a revocation that was handed out already would be lost to another text of the same number."""
    folder = federation.coordinator.site.path
    meanwhile, record = Coordinator.open(folder), (folder / "record.json").read_bytes()
    federation.revoke("1")
    (folder / "record.json").write_bytes(record)
    with pytest.raises(UserError, match="changed by another command"):
        meanwhile.publish(meanwhile.roster.members)
    assert Coordinator.open(folder).roster.members[0].revoked
