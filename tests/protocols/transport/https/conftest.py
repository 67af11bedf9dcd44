"""One federation for all tests of a module that change nothing in it."""

from collections.abc import Iterator

import pytest

from protocols.foundation.identifiers import SERVER, PartyId
from tests.support.in_threads import soon
from tests.support.links import Links, Provisioned, links


@pytest.fixture(scope="session")
def provisioned(tmp_path_factory: pytest.TempPathFactory) -> Provisioned:
    return Provisioned(tmp_path_factory.mktemp("federation"), sites=3)


@pytest.fixture
def linked(provisioned: Provisioned):  # type: ignore[no-untyped-def]
    with links(provisioned) as made:
        yield made
    assert isinstance(made, Links)


@pytest.fixture
def attacked(provisioned: Provisioned) -> Iterator[Links]:
    """A server at which client 2 is at work, and goes on being so whatever a test does."""
    with links(provisioned) as made:
        honest = made.client(2)
        made.wait(2)
        server = made.server.transport()
        yield made
        honest.send(SERVER, b"undisturbed")
        assert server.receive([PartyId(2)], soon()) == (PartyId(2), b"undisturbed")
        server.send(PartyId(2), b"so am I")
        assert honest.receive([SERVER], soon()) == (SERVER, b"so am I")
