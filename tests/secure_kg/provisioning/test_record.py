"""A site's record: no way back to an older roster, no second text under one number, whoever hands files on."""

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.provisioning import record as record_module
from secure_kg.provisioning.record import accepted_roster, note_roster, own_number, read_record
from secure_kg.provisioning.roster import Draft, Roster, parse_roster, roster_text
from secure_kg.provisioning.signing import site_credentials
from secure_kg.provisioning.site_folder import SiteFolder
from tests.support.provisioned import Federation, request_of, rotation_of


def signed_again(given: Federation, /, **changes: Any) -> Roster:
    """What a coordinator could sign if it did not keep to the commands."""
    roster = given.roster()
    values = {entry.name: getattr(roster, entry.name) for entry in dataclasses.fields(Draft)}
    text = roster_text(Draft(**{**values, **changes}), given.coordinator.site.identity_pem)
    given.path.write_text(text)
    return parse_roster(text, given.pin)


def test_two_texts_under_one_version_are_noticed(federation: Federation) -> None:
    site = federation.sites[0].path
    note_roster(site, federation.roster())
    signed_again(federation, address="elsewhere.example:443")
    with pytest.raises(UserError, match="why there are two"):
        accepted_roster(federation.path, site)


def test_another_federation_of_the_same_coordinator_is_refused(federation: Federation) -> None:
    site = federation.sites[0].path
    note_roster(site, federation.roster())
    signed_again(federation, federation=bytes(16), version=99)
    with pytest.raises(UserError, match="another federation"):
        accepted_roster(federation.path, site)


def test_the_newest_version_stays_whatever_the_order_of_commands(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command with the older version has read the record before the other one wrote it."""
    site, older = federation.sites[0].path, federation.roster()
    note_roster(site, older)
    newer = [signed_again(federation, version=older.version + add) for add in (1, 2)]
    read, may_go_on = threading.Event(), threading.Event()
    real = record_module.read_record

    def slow(folder: Path) -> object:
        found = real(folder)
        if threading.current_thread().name == "older":
            read.set()
            may_go_on.wait(0.2)  # under the lock the other command cannot come in between, and this is waited in full
        return found

    monkeypatch.setattr(record_module, "read_record", slow)
    first = threading.Thread(target=note_roster, args=(site, newer[0]), name="older")
    first.start()
    assert read.wait(5)
    note_roster(site, newer[1])
    may_go_on.set()
    first.join()
    found = read_record(site)
    assert found is not None
    assert found.version == newer[1].version


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version": true}', "null", '{"compared": [1]}', "[" * 100_000, '{"version": 1e400}']
)
def test_a_damaged_record_is_refused_and_never_begun_anew(text: str, federation: Federation) -> None:
    site = federation.sites[0].path
    note_roster(site, federation.roster())
    (site / "record.json").write_text(text)
    with pytest.raises(UserError, match=r"record\.json"):
        accepted_roster(federation.path, site)


def test_a_record_with_an_unreadable_key_is_refused(federation: Federation) -> None:
    site = federation.sites[0].path
    note_roster(site, federation.roster())
    values = json.loads((site / "record.json").read_text())
    for name, wrong in (("coordinator", "AB" * 32), ("version", "2"), ("compared", ["zz"]), ("file_digest", None)):
        (site / "record.json").write_text(json.dumps({**values, name: wrong}))
        with pytest.raises(UserError, match=name):
            read_record(site)


def test_a_key_that_was_exchanged_after_the_comparison_counts_as_not_compared(federation: Federation) -> None:
    """A coordinator that is the active server puts a key of its own in a member's place, in a newer version."""
    sites = federation.sites
    note_roster(sites[0].path, federation.roster(), compared=True)
    assert site_credentials(federation.roster(), sites[0].path)
    federation.coordinator = federation.coordinator.publish(federation.coordinator.approve([rotation_of(sites[1])]))
    roster = accepted_roster(federation.path, sites[0].path)
    with pytest.raises(UserError, match="nobody has compared the fingerprint of Site 2"):
        site_credentials(roster, sites[0].path)
    note_roster(sites[0].path, roster, compared=True)
    assert site_credentials(roster, sites[0].path)


def test_a_number_is_that_of_the_identity_and_not_of_the_name(federation: Federation, tmp_path: Path) -> None:
    double = SiteFolder.new(tmp_path / "double", "Site 1")
    with pytest.raises(UserError, match="is no member"):
        own_number(federation.roster(), double.path)
    with pytest.raises(UserError, match="same name"):
        federation.coordinator.publish(federation.coordinator.approve([request_of(double)]))


def test_two_commands_may_both_take_the_new_identity(federation: Federation) -> None:
    site = federation.sites[1]
    federation.coordinator = federation.coordinator.publish(federation.coordinator.approve([rotation_of(site)]))
    upcoming = site.upcoming()
    site.take_next()
    site.take_next()  # the other command, which has seen it before
    assert site.identity == upcoming
    assert own_number(federation.roster(), site.path) == 2


def test_later_versions_cannot_change_what_a_site_has_agreed_to(federation: Federation, tmp_path: Path) -> None:
    """A coordinator that is the active server would turn the adversary to semi-honest in the next version."""
    site, roster, signed = federation.sites[0].path, federation.roster(), federation.path.read_text()
    note_roster(site, roster)
    weaker = dataclasses.replace(roster.settings, aggregation="plain")
    signed_again(federation, version=9, settings=weaker)
    with pytest.raises(UserError, match="other settings than those this site has agreed to"):
        accepted_roster(federation.path, site)
    federation.path.write_text(signed)
    other = SiteFolder.new(tmp_path / "other", "Other")
    signed_again(federation, version=9, server=other.identity, server_certificate=other.certificate)
    with pytest.raises(UserError, match="another server"):
        accepted_roster(federation.path, site)
    federation.path.write_text(signed)
    later = request_of(SiteFolder.new(tmp_path / "later", "Later"))
    federation.coordinator = federation.coordinator.publish(federation.coordinator.approve([later]))
    assert accepted_roster(federation.path, site).settings.clients == 3


def test_a_version_that_has_expired_was_seen_all_the_same(federation: Federation) -> None:
    """Otherwise one from before the revocation in it, with a later expiry, would be taken after it."""
    site, older = federation.sites[0].path, federation.path.read_text()
    note_roster(site, federation.roster())
    roster = federation.roster()
    signed_again(federation, version=roster.version + 1, expires=roster.made)
    with pytest.raises(UserError, match="expired"):
        accepted_roster(federation.path, site)
    federation.path.write_text(older)
    with pytest.raises(UserError, match="an old one"):
        accepted_roster(federation.path, site)
