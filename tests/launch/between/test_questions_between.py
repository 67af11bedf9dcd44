"""Questions between organisations: a server, sites with their own folders, real certificates; all on this machine."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from launch import ask, audit, fedcqa, join, serve
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import Aborted
from protocols.foundation.identifiers import NO_SESSION, SERVER, SETUP
from protocols.session.conversation import Conversation
from secure_kg.queries.retrieval.over_run import AskSettings
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.sessions.messages import AskSession, Attend, BeginSession
from secure_kg.queries.sessions.site_rules import SiteRules
from secure_kg.queries.sessions.statement import Statement
from tests.mpi.test_questions_under_mpirun import QUESTION, TINY
from tests.support.jobs_in_threads import run_in_threads
from tests.support.question_sites import Distributed, answers_in, asked, live


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("questions")
    ended = run_in_threads(4, *TINY, "--out", "run", cwd=made, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    return made / "run"


@pytest.fixture
def parties(run: Path, tmp_path: Path) -> Distributed:
    return Distributed(tmp_path / "organisations", run)


def site(parties: Distributed, number: int) -> list[str]:
    return [str(parties.file), "--site", str(parties.path / f"site{number}")]


def in_one_process(run: Path, settings: list[str], to: Path, client: int = 2) -> None:
    assert ask.main([str(run), "--client", str(client), *settings, "--json", str(to)]) == 0


FACTS = '?x : exports3("usa", ?x) & embassy("usa", ?x)'
"""Stored facts answer questions without a variable in between."""
WAYS = {
    "topk": ["--top-k", "4"],
    "masked": ["--scores", "masked"],
    "hidden": ["--hide-query"],
    "exact": ["--exact"],
    "bfv": ["--scores", "bfv"],
}


@pytest.mark.parametrize(
    "way", ["exact", *(pytest.param(one, marks=pytest.mark.slow) for one in ("topk", "masked", "hidden", "bfv"))]
)
def test_the_answers_are_those_of_one_process_and_its_record_is_audited(
    way: str, run: Path, parties: Distributed, tmp_path: Path
) -> None:
    """To the order and the score; the asker's rules about names have no part in it, those of the sites do."""
    exact = way == "exact"
    settings = ["--query", FACTS if exact else QUESTION, *WAYS[way]]
    told = ["--name-policy", "all", *(["--allow-exact"] if exact else [])]
    in_one_process(run, [*settings, *told], tmp_path / "threads.json")
    rules = SiteRules(rules=Rules(names="all", exact=None if exact else frozenset()))
    with live(parties, record=tmp_path / "seen") as there:
        there.answer(1, rules)
        there.answer(3, rules)
        code, out, errors = asked(*site(parties, 2), *settings, "--json", str(tmp_path / "sites.json"))
    assert (code, errors) == (0, ""), (out, there.lines, there.said)
    one, other = (json.loads((tmp_path / name).read_text()) for name in ("threads.json", "sites.json"))
    assert answers_in(tmp_path / "sites.json") == answers_in(tmp_path / "threads.json")
    assert one["questions"][0]["stored"] == other["questions"][0]["stored"]
    assert any("the session of Site 2 (2) is over" in line for line in there.said[1])
    seen = tmp_path / "seen" / "session-0001-client-2"
    assert audit.main([str(seen), "--out", str(tmp_path / "audit")]) == 0


def test_sites_that_answer_also_ask_and_two_at_once_have_their_turns(
    run: Path, parties: Distributed, tmp_path: Path
) -> None:
    """Each asker stands in for the process of its site that answers; both answer each other."""
    settings, codes = ["--query", QUESTION], dict[int, tuple[int, str, str]]()
    with live(parties, 1, 2, 3) as there:
        there.until(lambda: len(there.server.linked()) == 3)

        def asks(number: int) -> None:
            codes[number] = asked_quietly(parties, number, *settings, "--json", str(tmp_path / f"{number}.json"))

        threads = [threading.Thread(target=asks, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert {number: code for number, (code, _, _) in codes.items()} == {1: 0, 2: 0}, (codes, there.lines)
    for number in (1, 2):
        in_one_process(run, settings, tmp_path / "threads.json", client=number)
        assert answers_in(tmp_path / f"{number}.json") == answers_in(tmp_path / "threads.json")


def asked_quietly(parties: Distributed, number: int, *settings: str) -> tuple[int, str, str]:
    """Of several threads: their output is that of the process."""
    return ask.main([*site(parties, number), *settings]), "", ""


# --- who is missing -------------------------------------------------------------------------------------------------


def test_a_site_that_does_not_answer_is_one_line_and_the_others_go_on(parties: Distributed) -> None:
    with live(parties, 1, wait=1.0) as there:
        code, _, errors = asked(*site(parties, 2), "--query", QUESTION)
        assert (code, len(errors.splitlines())) == (2, 1), errors
        assert "client (3) does not answer now, and these questions need 2 others" in errors
        there.answer(3)
        code, out, errors = asked(*site(parties, 2), "--query", QUESTION)
        assert (code, errors) == (0, ""), (out, there.lines, there.said)


def test_a_server_that_ends_in_a_session_is_one_line_and_sites_go_on_waiting(
    parties: Distributed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(parties, 1, 3) as there:
        monkeypatch.setattr("launch.hosts.network_questions.serve", lambda *_: there.server.close())
        code, _, errors = asked(*site(parties, 2), "--query", QUESTION)
        assert (code, len(errors.splitlines())) == (2, 1), errors
        monkeypatch.undo()
        there.serve_again()
        code, out, errors = asked(*site(parties, 2), "--query", QUESTION)
        assert (code, errors) == (0, ""), (out, there.lines, there.said)


def test_a_server_that_is_not_there_is_one_line(parties: Distributed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launch.hosts.network_answers._AWAY_SECONDS", 1.0)
    code, _, errors = asked(*site(parties, 2), "--query", QUESTION)
    assert (code, len(errors.splitlines())) == (2, 1), errors
    assert "the server was out of reach for 1 s" in errors


# --- rules of sites -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "options", "words"),
    [
        (SiteRules(min_holders=2), [], "its rules want --min-holders 2 at least, not 1"),
        (SiteRules(scores=frozenset({"topk"})), ["--scores", "masked"], "its rules allow --scores topk, not masked"),
        (SiteRules(), ["--scores", "plain"], "its rules allow --scores bfv, masked, paillier, topk, not plain"),
        (SiteRules(atom_budget=1), [], "go beyond the budget of 1"),
    ],
)
def test_no_message_widens_what_a_site_answers(
    rules: SiteRules, options: list[str], words: str, parties: Distributed
) -> None:
    with live(parties, 1) as there:
        there.answer(3, rules)
        code, _, errors = asked(*site(parties, 2), "--query", QUESTION, *options)
        assert code == 2
        assert words in errors, (errors, there.said)


def test_what_others_answer_is_not_the_askers_to_say(parties: Distributed) -> None:
    for option in (["--name-policy", "all"], ["--client", "2"], ["--record", "seen"], ["--atom-budget", "9"]):
        code, _, errors = asked(*site(parties, 2), "--query", QUESTION, *option)
        assert (code, len(errors.splitlines())) == (2, 1)
        assert option[0] in errors


# --- hostile members ------------------------------------------------------------------------------------------------


def statement_of(parties: Distributed, number: int, least: int = 1) -> tuple[bytes, bytes]:
    """As the site itself would sign it."""
    there = parties.site(number)
    knowledge = there.knowledge(Rules(names="none", anchors="none"))
    made = Statement.of(
        AskSettings(client=number), least, parties.roster.digest, knowledge.positions.digest, knowledge.table
    )
    return made.signed(parties.sites[there.number].identity_pem, time.time())


def refusal(parties: Distributed, number: int, *messages: AskSession | Attend) -> str:
    """What the server says to a member that sends these."""
    with parties.link(number) as transport:
        talk = Conversation(transport, NO_SESSION)
        for message in messages:
            talk.send(SERVER, message, SETUP)
        with pytest.raises(Aborted) as told:
            talk.receive(SERVER, BeginSession, SETUP, Deadline.after(20.0))
    return str(told.value)


def test_a_member_cannot_ask_in_anothers_name_and_disturbs_nobody(parties: Distributed) -> None:
    content, signature = statement_of(parties, 2)
    with live(parties, 1) as there:
        words = refusal(parties, 3, AskSession(False, content, signature))
        assert "in the name of another member" in words
        own, _ = statement_of(parties, 3)
        assert "has not asked for it" in refusal(parties, 3, AskSession(False, own, signature))
        changed = own.replace(b'"top":10', b'"top":99')
        assert changed != own
        assert "has not asked for it" in refusal(parties, 3, AskSession(False, changed, signature))
        assert "no asker of this version" in refusal(parties, 3, AskSession(False, b"{" * 900, signature))
        assert "and no training" in refusal(parties, 3, Attend(), Attend())
        for junk, words in ((bytes(1 << 16), "sent 65,536 bytes"), (bytes(40), "no training")):
            with parties.link(3) as transport:
                transport.send(SERVER, junk)
                with pytest.raises(Aborted, match=words):
                    Conversation(transport, NO_SESSION).receive(SERVER, BeginSession, SETUP, Deadline.after(20.0))
        there.answer(3)
        codes = (asked(*site(parties, 2), "--query", QUESTION)[0] for _ in range(5))  # until site 3 is in again
        assert 0 in codes, there.lines


def test_a_server_cannot_replay_or_change_what_was_asked(parties: Distributed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site answers the first session, and none that the server begins with the same words or with others."""
    sent: list[BeginSession] = []
    broadcast = Conversation.broadcast

    def bent(self: Conversation, to: Any, message: Any, round_id: Any) -> Any:
        if isinstance(message, BeginSession):
            sent.append(message)
            if len(sent) == 2:
                message = BeginSession(message.session, sent[0].statement, sent[0].signature)
            if len(sent) == 3:
                wider = message.statement.replace(b'"least":1', b'"least":2')
                message = BeginSession(message.session, wider, message.signature)
        return broadcast(self, to, message, round_id)

    monkeypatch.setattr(Conversation, "broadcast", bent)
    with live(parties, 1, 3) as there:
        assert asked(*site(parties, 2), "--query", QUESTION)[0] == 0, (there.lines, there.said)
        for _ in range(2):
            code, _, errors = asked(*site(parties, 2), "--query", QUESTION)
            assert (code, len(errors.splitlines())) == (2, 1)
            assert "a session of this site's that it has not asked for" in errors
        assert asked(*site(parties, 2), "--query", QUESTION)[0] == 0, (there.lines, there.said)
        said = "\n".join(there.said[1])
    assert len(sent) == 4
    assert "a session: a session that was begun before" in said
    assert "a session: a session in the name of a member that has not asked for it" in said
    assert said.count("is over") == 2


def test_sites_that_were_told_different_settings_share_no_keys(
    parties: Distributed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the asker has signed all of them."""
    other = statement_of(parties, 2, least=2)
    deliver = Conversation.broadcast

    def bent(self: Conversation, to: Any, message: Any, round_id: Any) -> Any:
        if not isinstance(message, BeginSession):
            return deliver(self, to, message, round_id)
        deliver(self, {3}, BeginSession(message.session, *other), round_id)
        return deliver(self, to - {3}, message, round_id)

    monkeypatch.setattr(Conversation, "broadcast", bent)
    with live(parties, 1, 3) as there:
        code, out, errors = asked(*site(parties, 2), "--query", QUESTION)
    assert (code, len(errors.splitlines())) == (2, 1), errors
    assert "answer" not in out
    assert not any("is over" in line for line in there.said[1] + there.said[3])


def test_an_asker_that_floods_is_refused_and_the_others_have_their_turns(parties: Distributed) -> None:
    rules = SiteRules(sessions=1)
    with live(parties) as there:
        for number in (1, 2, 3):
            there.answer(number, rules)
        assert asked(*site(parties, 2), "--query", QUESTION)[0] == 0, (there.lines, there.said)
        code, _, errors = asked(*site(parties, 2), "--query", QUESTION)
        assert (code, "1 sessions of client 2 in 10 minutes" in errors) == (2, True), errors
        code, _, errors = asked(*site(parties, 3), "--query", QUESTION)
        assert (code, errors) == (0, ""), (there.lines, there.said)


# --- commands -------------------------------------------------------------------------------------------------------


def test_commands_say_in_one_line_what_is_missing(parties: Distributed, capsys: pytest.CaptureFixture[str]) -> None:
    (parties.path / "site1" / "runs.json").unlink()
    (parties.run / "summary.json").unlink()
    centre = ["--site", str(parties.path / "coordinator"), "--out", str(parties.run)]
    cases = [
        (join.main, [*site(parties, 1), "--answer"], "no run of this federation that has come to its end"),
        (join.main, [*site(parties, 2), "--answer", "--data", "x"], "--data: is for taking part"),
        (join.main, site(parties, 2), "--data PATH is missing"),
        (join.main, [str(parties.file), *centre[:2], "--answer"], "this is the server"),
        (serve.main, [str(parties.file), *centre, "--questions"], "has not come to its end"),
        (serve.main, [str(parties.file), *centre, "--record", "seen"], "--record goes with --questions"),
    ]
    for command, arguments, words in cases:
        assert command(arguments) == 2
        line = capsys.readouterr().err
        assert words in line, line
        assert len(line.splitlines()) == 1
