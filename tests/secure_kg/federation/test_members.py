"""A client refuses another run under a seed with which it has trained beside somebody who is not there any more."""

import json
from pathlib import Path

import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.identity import IdentityKey, fingerprint
from protocols.session.credentials import Credentials
from protocols.sums.secagg.openings import Opening
from secure_kg.federation.client.lineage import seed_in
from secure_kg.federation.client.member_site import MemberSite
from secure_kg.federation.client.members import NUMBERS_ALONE, Members
from secure_kg.federation.client.site import Equipment, OwnSite
from secure_kg.foundation.errors import UserError
from secure_kg.runs.client_folder import append_opening, read_openings
from tests.support.federation_in_threads import nations, run_federation, small_config

KEYS = {PartyId(number): bytes([number]) * 32 for number in (1, 2, 3)}
NEW = {**KEYS, PartyId(3): bytes([9]) * 32}
GONE = fingerprint(KEYS[PartyId(3)])
ALL = frozenset(KEYS)


def opened(run: str = "before", seed: int = 0, *, known: bool = True) -> Opening:
    identities = Members.of(KEYS).identities if known else {}
    lineage = f"fedr/TransE/8/{seed}/rows/2"
    return Opening(RoundId(2), "rows", ALL, dict.fromkeys(ALL, b"s" * 32), b"m", run, lineage, identities=identities)


def test_another_run_beside_a_successor_is_refused_in_a_line_that_names_who_is_gone() -> None:
    with pytest.raises(UserError, match=f"seed 0 before beside {GONE}.*--other-members") as problem:
        Members.of(NEW).bound_by([opened()], "now", 0)
    assert "\n" not in str(problem.value)


def test_the_same_run_another_seed_and_the_same_members_are_not() -> None:
    assert Members.of(NEW).bound_by([opened(run="now")], "now", 0) == [opened(run="now")]
    assert Members.of(KEYS).bound_by([opened()], "now", 0) == [opened()]
    assert Members.of(NEW).bound_by([opened(seed=1)], "now", 0) == [opened(seed=1, known=False)]


def test_a_person_may_allow_it_and_then_numbers_count() -> None:
    members = Members.of(NEW, others_allowed=True)
    assert members.bound_by([opened(), opened(run="now")], "now", 0) == [opened(known=False), opened(run="now")]


def test_where_only_numbers_are_known_nothing_is_refused() -> None:
    assert NUMBERS_ALONE.bound_by([opened()], "now", 0) == [opened()]
    assert Members.of(NEW).bound_by([opened(known=False)], "now", 0) == [opened(known=False)]


def test_pinned_identities_are_taken_where_nothing_else_is_known() -> None:
    key = IdentityKey.generate()
    credentials = Credentials(key, {PartyId(1): key.public})
    assert NUMBERS_ALONE.or_of(credentials).identities == {PartyId(1): fingerprint(key.public)}
    assert Members.of(KEYS).or_of(credentials) == Members.of(KEYS)
    assert NUMBERS_ALONE.or_of(None) is NUMBERS_ALONE


@pytest.mark.parametrize(
    ("lineage", "seed"), [("fedr/7/rows/1", "7"), ("fedr/TransE/8/7/rows/2", "7"), ("", ""), ("fedr/7", "")]
)
def test_the_seed_is_read_from_a_lineage(lineage: str, seed: str) -> None:
    assert seed_in(lineage) == seed


# --- the record -----------------------------------------------------------------------------------------------------


def test_a_record_says_which_of_the_two_it_holds(tmp_path: Path) -> None:
    append_opening(tmp_path, opened())
    append_opening(tmp_path, opened(known=False))
    assert read_openings(tmp_path) == [opened(), opened(known=False)]
    lines = [json.loads(line) for line in (tmp_path / "openings.jsonl").read_text().splitlines()]
    assert [(line["version"], line["by"], "identities" in line) for line in lines] == [
        (2, "identity", True),
        (2, "number", False),
    ]


def test_a_record_of_the_version_before_is_read_as_before(tmp_path: Path) -> None:
    append_opening(tmp_path, opened(known=False))
    line = json.loads((tmp_path / "openings.jsonl").read_text())
    del line["version"], line["by"]
    (tmp_path / "openings.jsonl").write_text(json.dumps(line) + "\n")
    assert read_openings(tmp_path) == [opened(known=False)]


@pytest.mark.parametrize(
    "changes",
    [{"version": 3}, {"version": "2"}, {"by": "name"}, {"identities": {"1": "aa"}}, {"identities": None},
     {"identities": []}, {"identities": {"1": "aa", "2": "bb", "3": "aa"}}],
)  # fmt: skip
def test_a_line_that_cannot_be_understood_is_refused_in_one_line(tmp_path: Path, changes: dict[str, object]) -> None:
    append_opening(tmp_path, opened())
    line = json.loads((tmp_path / "openings.jsonl").read_text())
    (tmp_path / "openings.jsonl").write_text(json.dumps({**line, **changes}) + "\n")
    with pytest.raises(UserError, match="line 1: not a record of openings"):
        read_openings(tmp_path)


# --- whole federations ----------------------------------------------------------------------------------------------


def test_a_site_hands_on_who_the_roster_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Equipment(None)  # type: ignore[arg-type]
    monkeypatch.setattr(OwnSite, "equip", lambda self, folder: made)
    site = MemberSite(
        config=small_config(), number=1, clients=3, runs=tmp_path, out=None, resume=True, keys=tmp_path,
        report=print, members=Members.of(KEYS),
    )  # fmt: skip
    folder = tmp_path / "run" / "clients" / "1"
    folder.mkdir(parents=True)
    assert site.equip(folder).members == Members.of(KEYS)


@pytest.mark.long
@pytest.mark.parametrize("allowed", [False, True])
def test_a_second_federation_in_which_a_member_was_replaced(tmp_path: Path, allowed: bool) -> None:
    """Against a semi-honest server, as between organisations: nobody signs, and all know who the others are."""
    config = small_config(rounds=2, max_corrupt=0.0)
    graphs = nations(3)
    before = {number: Members.of(KEYS) for number in (1, 2, 3)}
    run_federation(config, graphs, tmp_path / "first", records=tmp_path / "keys", members=before).done()
    (tmp_path / "keys" / "client-3.record").rename(tmp_path / "gone.record")
    after = {number: Members.of(NEW, others_allowed=allowed) for number in (1, 2, 3)}
    again = run_federation(config, graphs, tmp_path / "second", records=tmp_path / "keys", members=after)
    if allowed:
        assert not again.client_errors
        return
    assert again.outcome is None
    assert {1, 2} <= again.client_errors.keys()
    assert all(GONE in str(again.client_errors[number]) for number in (1, 2))
    assert GONE not in str(again.server_error), "who it was is the clients' affair"
