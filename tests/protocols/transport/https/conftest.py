"""One federation for all tests of a module that change nothing in it."""

import pytest

from tests.support.links import Links, Provisioned, links


@pytest.fixture(scope="session")
def provisioned(tmp_path_factory: pytest.TempPathFactory) -> Provisioned:
    return Provisioned(tmp_path_factory.mktemp("federation"), sites=3)


@pytest.fixture
def linked(provisioned: Provisioned):  # type: ignore[no-untyped-def]
    with links(provisioned) as made:
        yield made
    assert isinstance(made, Links)
