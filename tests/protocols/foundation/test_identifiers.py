"""Sessions are random and of the length the wire reserves for them."""

from protocols.foundation.identifiers import NO_SESSION, SESSION_BYTES, new_session


def test_sessions_are_fresh() -> None:
    drawn = {new_session() for _ in range(1000)}
    assert len(drawn) == 1000
    assert {len(session) for session in drawn} == {SESSION_BYTES}
    assert NO_SESSION not in drawn
