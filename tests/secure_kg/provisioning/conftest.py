"""What tests of provisioning share."""

from pathlib import Path

import pytest

from tests.support.provisioned import Federation


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    return Federation(tmp_path)
