"""What an asker states: one encoding, one signature, one use."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import NO_SESSION, SETUP, PartyId
from protocols.session.identities import new_identity
from protocols.session.site_keys import public_of, sign_document
from secure_kg.foundation.errors import UserError
from secure_kg.queries.retrieval.over_run import AskSettings
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.queries.sessions.checks import SiteChecks
from secure_kg.queries.sessions.messages import MOST_STATEMENT_BYTES, AskSession, Attend, BeginSession
from secure_kg.queries.sessions.seen import SeenStatements
from secure_kg.queries.sessions.site_rules import SiteRules
from secure_kg.queries.sessions.statement import (
    WINDOW_SECONDS,
    Statement,
    StatementRefused,
    greeting,
    read_statement,
    require_signature,
)

FEDERATION, UNION, TABLE = bytes(32), bytes([1]) * 32, bytes([2]) * 32
NOW = 1_800_000_000.0
KEYS = {number: new_identity().private_pem for number in (1, 2)}


def statement(asker: int = 2, **settings: Any) -> Statement:
    return Statement.of(AskSettings(client=asker, **settings), 1, FEDERATION, UNION, TABLE)


def begin(made: Statement, now: float = NOW, signer: int | None = None) -> BeginSession:
    content, signature = made.signed(KEYS[signer or made.asker], now)
    return BeginSession(bytes([9]) * 16, content, signature)


def checks(folder: Path, now: float = NOW, rules: SiteRules = SiteRules()) -> SiteChecks:  # noqa: B008
    folder.mkdir(mode=0o700, exist_ok=True)
    known = {PartyId(number): public_of(pem) for number, pem in KEYS.items()}
    return SiteChecks(
        me=PartyId(1),
        federation=FEDERATION,
        union=UNION,
        table=TABLE,
        rules=rules,
        seen=SeenStatements(folder),
        identity=known.get,
        clock=lambda: now,
    )


def refused(folder: Path, one: BeginSession, now: float = NOW, rules: SiteRules = SiteRules()) -> str:  # noqa: B008
    with pytest.raises(StatementRefused) as told:
        checks(folder, now, rules).admitted(one)
    return str(told.value)


def test_a_statement_is_read_as_it_was_written_and_makes_the_askers_settings() -> None:
    settings = AskSettings(client=2, scores="masked", top=7, exact=Exact.BESIDE)
    made = Statement.of(settings, 3, FEDERATION, UNION, TABLE)
    content, signature = made.signed(KEYS[2], NOW)
    found = read_statement(content)
    require_signature(content, signature, public_of(KEYS[2]))
    own = AskSettings(rules=Rules(names="none"), atom_budget=5)
    assert found.settings(own) == replace(settings, min_holders=3, rules=own.rules, atom_budget=5)
    assert found.to_bytes() == content
    assert found.number != read_statement(made.signed(KEYS[2], NOW)[0]).number


@pytest.mark.parametrize(
    "change",
    [
        {"scores": "crypten"}, {"scores": "nobody"}, {"scores": ["topk"]}, {"top": 0}, {"top": 1001}, {"top": True},
        {"asker": 0}, {"asker": 2.0}, {"exact": "all"}, {"exact": None}, {"hide_query": 1}, {"union": "00"},
        {"table": "G" * 64}, {"number": "AA" * 16}, {"time": -1}, {"time": 1 << 41}, {"format": 2}, {"more": 1},
        {"hide_query": True, "scores": "masked"}, {"hide_query": True, "exact": "only"}, {"least": 0},
    ],
)  # fmt: skip
def test_whatever_no_asker_makes_is_refused(change: dict[str, Any]) -> None:
    values = json.loads(statement().to_bytes()) | change
    with pytest.raises(StatementRefused, match="no asker of this version"):
        read_statement(json.dumps(values, sort_keys=True, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    "bent",
    [
        lambda content: content + b" ",
        lambda content: content.replace(b":", b": ", 1),
        lambda content: b'{"asker":1,' + content[1:],
        lambda content: content.replace(b'"asker":2', b'"asker":"2"'),
        lambda content: b"[" * 2000,
        lambda content: b"\xff" + content,
        lambda content: b"null",
        lambda content: content.replace(b'"top":10', b'"top":1e1'),
    ],
)
def test_there_is_one_encoding(bent: Any) -> None:
    with pytest.raises(StatementRefused):
        read_statement(bent(statement().to_bytes()))


def test_a_site_begins_what_was_asked_once(tmp_path: Path) -> None:
    one = begin(statement())
    assert checks(tmp_path / "site").admitted(one).asker == 2
    assert "begun before" in refused(tmp_path / "site", one)
    assert checks(tmp_path / "another").admitted(one).asker == 2


def test_nor_later_nor_after_its_clock_was_set_back(tmp_path: Path) -> None:
    site, one = tmp_path / "site", begin(statement())
    checks(site).admitted(one)
    assert "more than 10 minutes" in refused(site, one, NOW + WINDOW_SECONDS + 1)
    assert "more than 10 minutes" in refused(site, one, NOW - WINDOW_SECONDS - 1)
    late = NOW + 3 * WINDOW_SECONDS
    checks(site, late).admitted(begin(statement(), late))  # forgets the first one
    assert one.statement.decode().split('"number":"')[1][:32] not in (site / "asked.json").read_text()
    assert "begun before" in refused(site, one)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (begin(statement(), signer=1), "has not asked for it"),
        (begin(statement(asker=1)), "this site's own name"),
        (begin(replace(statement(), federation="ab" * 32)), "of another federation"),
        (begin(replace(statement(), union="ab" * 32)), "over another run"),
        (begin(replace(statement(), table="ab" * 32)), "another model"),
    ],
)
def test_a_site_goes_by_its_own_records(one: BeginSession, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path / "site", one)
    assert not (tmp_path / "site" / "asked.json").exists()


def test_a_member_without_an_identity_asks_nothing(tmp_path: Path) -> None:
    gone = replace(checks(tmp_path), identity=lambda party: None)
    with pytest.raises(StatementRefused, match="has not asked for it"):
        gone.admitted(begin(statement()))


def test_a_signature_of_another_kind_of_document_is_none() -> None:
    content = statement().to_bytes()
    with pytest.raises(StatementRefused):
        require_signature(content, sign_document(KEYS[2], "federation", content), public_of(KEYS[2]))


def test_an_asker_has_so_many_sessions_and_takes_none_from_others(tmp_path: Path) -> None:
    rules = SiteRules(sessions=3)
    for _ in range(3):
        checks(tmp_path, rules=rules).admitted(begin(statement()))
    assert "3 sessions of client 2" in refused(tmp_path, begin(statement()), rules=rules)
    other = replace(checks(tmp_path, rules=rules), me=PartyId(3))
    assert other.admitted(begin(statement(asker=1))).asker == 1
    later = NOW + WINDOW_SECONDS + 1
    assert checks(tmp_path, later, rules).admitted(begin(statement(), later)).asker == 2


def test_a_record_that_cannot_be_read_ends_the_answering(tmp_path: Path) -> None:
    (tmp_path / "asked.json").write_text("{}")
    (tmp_path / "asked.json").chmod(0o600)
    with pytest.raises(UserError, match="could begin again"):
        checks(tmp_path).admitted(begin(statement()))


@pytest.mark.parametrize(
    "message",
    [Attend(), AskSession(True, b"{}", bytes(64)), BeginSession(bytes(15) + b"1", b"{}", bytes(64))],
    ids=["attend", "ask", "begin"],
)
def test_messages_before_a_session_come_back(message: wire.Message) -> None:
    assert wire.decode(wire.encode(message, NO_SESSION, SETUP), session=NO_SESSION).message == message


@pytest.mark.parametrize(
    ("statement", "signature", "session"),
    [
        (b"", bytes(64), bytes([1]) * 16),
        (b"x" * (MOST_STATEMENT_BYTES + 1), bytes(64), bytes([1]) * 16),
        (b"{}", bytes(63), bytes([1]) * 16),
        (b"{}", bytes(64), NO_SESSION),
        (b"{}", bytes(64), b"1"),
    ],
)
def test_and_have_no_other_lengths(statement: bytes, signature: bytes, session: bytes) -> None:
    with pytest.raises(ValueError, match=r"length|number"):
        BeginSession(session, statement, signature)


def test_rules_are_read_as_they_were_written() -> None:
    rules = SiteRules(
        rules=Rules("none", frozenset({"a"}), None, "all", "shared"), min_holders=4, scores=frozenset({"topk"}),
        atom_budget=3, exact_budget=0, allow_extraction=True, sessions=2,
    )  # fmt: skip
    assert SiteRules.from_json(json.loads(json.dumps(rules.to_json()))) == rules
    assert SiteRules.from_json(SiteRules().to_json()) == SiteRules()


def test_what_means_open_needs_more_holders() -> None:
    with pytest.raises(StatementRefused, match="--min-holders 2 at least"):
        SiteRules().require_within(statement(scores="masked"))
    SiteRules(min_holders=1).require_within(statement(scores="masked"))
    SiteRules(scores=frozenset({"topk"})).require_within(statement(scores="masked", exact=Exact.ONLY))


def test_other_words_give_other_keys() -> None:
    first, second = (statement().signed(KEYS[2], NOW)[0] for _ in range(2))
    assert len({greeting(first), greeting(second), greeting(b"")}) == 3
