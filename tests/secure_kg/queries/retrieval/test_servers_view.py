"""Everything that the server of a question sees, frame by frame: no name, row, point or score in clear."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from protocols.scores.interface import Scores, encode
from protocols.scores.layout import ScoreLayout
from protocols.scores.terms import ScoreTerms
from protocols.transport.tap import read_transcript
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.requests import Numbers
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.runs.score_recording import read_session
from tests.support import retrieval
from tests.support.retrieval import UNION, World, answers, ask

ENTITIES = tuple(f"an entity of the graph {number:02}" for number in range(14))
RELATIONS = ("is cured by", "has a part", "is liked by", "is owned by")
QUESTION = f'?x : "{RELATIONS[0]}"(?y, ?x) & "{RELATIONS[1]}"("{ENTITIES[1]}", ?y)'
DIRECT = f'?x : "{RELATIONS[0]}"(?x, "{ENTITIES[1]}")'
"""Of a form that stored facts answer, too."""
TELLING = dict.fromkeys(range(1, 4), Rules("all", exact=None))
_AT_ONCE = 3
"""So many numbers beside each other are no coincidence in any of the forms that are looked for."""


class Secrets:
    """What no frame may hold, as the parties of one session have it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Names of three letters would occur in masked bytes now and then.
        monkeypatch.setattr(retrieval, "ENTITIES", ENTITIES)
        monkeypatch.setattr(retrieval, "RELATIONS", RELATIONS)
        self.points: list[Numbers] = []
        self.scores: list[Scores] = []
        straight = Knowledge.scores

        def noting(knowledge: Knowledge, points: Numbers) -> Scores:
            found = straight(knowledge, points)
            self.points.append(points)
            self.scores.append(found)
            return found

        monkeypatch.setattr(Knowledge, "scores", noting)

    def names(self) -> list[bytes]:
        return [name.encode() for name in (*ENTITIES, *RELATIONS)]

    def numbers(self, terms: list[ScoreTerms]) -> Iterator[bytes]:
        """Rows and points as floats and as fixed-point numbers of every step, and scores as their step encodes them."""
        rows = [*World().whole.rows.detach().numpy(), *(point for points in self.points for point in points)]
        for row in rows:
            yield from _windows(row.astype("<f4"))
            yield from _windows(row.astype("<f8"))
            for codec in {one.codec for one in terms}:
                yield from _windows(codec.encode(row).vector.astype("<u4"))
        for one in terms:
            if one.positions == UNION:
                for scores in self.scores:
                    vector = ScoreLayout(one).unchecked(encode(scores, one))[:UNION]
                    yield from _windows(vector.astype("<u4"))
        for scores in self.scores:
            yield from _windows(scores.values.reshape(-1).astype("<f4"))


def _windows(numbers: npt.NDArray[Any]) -> Iterator[bytes]:
    """All that lie beside each other, but for those with a number that may be anywhere."""
    for start in range(len(numbers) - _AT_ONCE + 1):
        part = numbers[start : start + _AT_ONCE]
        if np.count_nonzero(part) == _AT_ONCE:
            yield part.tobytes()


def seen(record: Path) -> tuple[bytes, list[ScoreTerms]]:
    """All frames, and the terms of all steps."""
    (transcript,) = record.glob("transcript-*.bin")
    frames = [bytes(one.frame) for one in read_transcript(transcript)]
    assert len(frames) > 50
    session = read_session(record)
    assert session is not None
    return b"|".join(frames), [batch.terms() for batch in session.batches]


@pytest.mark.parametrize(
    ("question", "settings"),
    [
        (QUESTION, {"backend": "topk"}),
        (QUESTION, {"backend": "masked", "least": 2}),
        (QUESTION, {"backend": "topk", "hidden": True}),
        (DIRECT, {"backend": "topk", "exact": Exact.BESIDE, "rules": TELLING}),
    ],
    ids=["topk", "masked", "hidden", "exact"],
)
def test_the_server_sees_no_name_row_point_or_score(
    question: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets, record = Secrets(monkeypatch), tmp_path / "record"
    assert len(answers(ask(World(), question, record=record, **settings))) == 5
    content, terms = seen(record)
    assert [name for name in secrets.names() if name in content] == []
    assert secrets.scores
    assert [numbers for numbers in secrets.numbers(terms) if numbers in content] == []


def test_scores_in_clear_are_in_what_the_server_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the search above can find something: points and scores, and still no name, since lookups are masked."""
    secrets, record = Secrets(monkeypatch), tmp_path / "record"
    answers(ask(World(), QUESTION, record=record, backend="plain"))
    content, terms = seen(record)
    assert [name for name in secrets.names() if name in content] == []
    points = [part for points in secrets.points for part in _windows(points[0])]
    assert all(part in content for part in points)
    (of_scores,) = (one for one in terms if one.positions == UNION)
    vectors = [ScoreLayout(of_scores).unchecked(encode(scores, of_scores))[:UNION] for scores in secrets.scores]
    found = [vector.astype("<u4").tobytes() in content for vector in vectors]
    assert sum(found) == World().clients - 1  # those of the asker stay with it
