"""Runs that many tests look at and none changes."""

from pathlib import Path

import pytest

from tests.support.audited_runs import recorded_run, resumed_run


@pytest.fixture(scope="session")
def secagg_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_run(tmp_path_factory.mktemp("secagg") / "run")


@pytest.fixture(scope="session")
def secret_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_run(tmp_path_factory.mktemp("secret") / "run", aggregation="secret", strategy="fede")


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "run"
    return recorded_run(folder, aggregation="plain", alignment="plain", strategy="fede")


@pytest.fixture(scope="session")
def two_sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return resumed_run(tmp_path_factory.mktemp("two sessions") / "run")
