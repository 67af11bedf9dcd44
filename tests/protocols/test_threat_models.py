"""Every protocol opens with its threat model in the fixed form."""

import importlib
import re

import pytest

LABELS = ["Parties", "Adversary", "Reveals", "Assumes", "Not covered", "Reference", "Deviations"]
PROTOCOLS = [
    "protocols.secagg",
    "protocols.secagg.params",
    "protocols.psu",
    "protocols.psu.names",
    "protocols.psu.vote",
    "protocols.group_key",
    "protocols.secret_aggregation",
    "protocols.holders",
    "protocols.plain.holders",
    "protocols.plain.sums",
    "protocols.plain.union",
]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_docstring_states_the_threat_model(name: str) -> None:
    text = importlib.import_module(name).__doc__ or ""
    assert re.findall(rf"^({'|'.join(LABELS)}):  *\S", text, re.MULTILINE) == LABELS
