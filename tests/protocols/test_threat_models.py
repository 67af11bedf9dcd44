"""Every protocol opens with its threat model in the fixed form."""

import importlib
import re

import pytest

LABELS = ["Parties", "Adversary", "Reveals", "Assumes", "Not covered", "Reference", "Deviations"]
PROTOCOLS = [
    "protocols.sums.secagg",
    "protocols.sums.secagg.params",
    "protocols.alignment.psu",
    "protocols.alignment.psu.names",
    "protocols.alignment.psu.vote",
    "protocols.session.group_key",
    "protocols.sums.secret.aggregation",
    "protocols.holders.secret",
    "protocols.holders.plain",
    "protocols.sums.plain",
    "protocols.alignment.plain",
]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_docstring_states_the_threat_model(name: str) -> None:
    text = importlib.import_module(name).__doc__ or ""
    assert re.findall(rf"^({'|'.join(LABELS)}):  *\S", text, re.MULTILINE) == LABELS
