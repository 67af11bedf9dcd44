"""The ends of a conversation, fresh for every test."""

import pytest

from tests.support.conversation_ends import Ends


@pytest.fixture
def ends() -> Ends:
    return Ends()
