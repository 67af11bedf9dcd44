"""Variants broken on purpose leave transcripts and run folders that show the fault, and nothing else behind."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.insecure_runs import insecure_run, insecure_transcript
from benchmarks.insecure_variants import VARIANTS, insecure, insecure_short_secret
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput, ShareKeys
from secure_kg.audit.view.read import Observation, Recording, open_run
from secure_kg.foundation.errors import UserError

pytestmark = pytest.mark.long


def observations(recording: Recording) -> list[Observation]:
    seen = list(recording)
    assert recording.damage is None
    assert recording.seal is not None
    return seen


def mask_keys(seen: list[Observation]) -> Counter[bytes]:
    return Counter(one.message.mask_key for one in seen if isinstance(one.message, AdvertiseKeys))


@pytest.mark.parametrize("variant", [None, *VARIANTS])
def test_a_transcript_of_every_variant_can_be_read(tmp_path: Path, variant: str | None) -> None:
    insecure_transcript(variant, tmp_path / "transcript.bin")
    seen = observations(Recording(tmp_path / "transcript.bin"))
    kinds = {type(one.message) for one in seen}
    assert (ClearInput in kinds) == (variant == "plain-twin")
    assert (MaskedInput in kinds) == (variant != "plain-twin")
    if variant != "plain-twin":
        assert (max(mask_keys(seen).values()) > 1) == (variant == "reused-masks")


@pytest.mark.parametrize("variant", ["reused-masks", "short-mask-keys", "unit-weights", "plain-twin"])
def test_a_whole_run_of_a_variant_comes_to_its_end(tmp_path: Path, variant: str) -> None:
    summary = insecure_run(variant, tmp_path / "run", rounds=2, eval_every=2, checkpoint_every=2)
    run = open_run(tmp_path / "run")
    assert run.summary == summary
    seen = observations(run.recordings[0])
    if variant == "reused-masks":
        assert max(mask_keys(seen).values()) > 1
    if variant == "short-mask-keys":
        assert [dropout.client for dropout in summary.dropouts] == [4]
    assert any(isinstance(one.message, ShareKeys) for one in seen) == (variant != "plain-twin")


def everything_substituted() -> list[Any]:
    return [getattr(place, name) for pieces in VARIANTS.values() for place, name, _ in pieces]


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_everything_is_put_back(variant: str) -> None:
    before = everything_substituted()

    def broken() -> None:
        with insecure(variant):
            assert (everything_substituted() == before) == (variant == "plain-twin")
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        broken()
    assert everything_substituted() == before


def test_short_secrets_are_short_and_others_are_refused() -> None:
    drawn = np.frombuffer(b"".join(insecure_short_secret() for _ in range(8)), dtype="<u8").reshape(8, 4)
    assert int(drawn[:, 0].max()) < 1 << 28
    assert not drawn[:, 1:].any()
    with pytest.raises(UserError, match="no insecure variant"), insecure("sound"):
        pass
