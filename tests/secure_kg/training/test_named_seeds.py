"""Named seeds: repeatable, and different for every name, client and round."""

import itertools

import pytest

from secure_kg.training.seeds import named_generator, named_torch_seed


def test_streams_repeat_and_do_not_collide() -> None:
    names = list(itertools.product((0, 1, 2**32, 2**64), ("order", "negatives", "order\x01"), (0, 1, 2), (0, 1, 2)))
    first = {named_torch_seed(seed, purpose, client, turn) for seed, purpose, client, turn in names}
    again = {named_torch_seed(seed, purpose, client, turn) for seed, purpose, client, turn in names}
    assert first == again
    assert len(first) == len(names)
    assert named_generator(5, "order", 1).integers(2**60) == named_generator(5, "order", 1).integers(2**60)


@pytest.mark.parametrize(("seed", "client"), [(-1, 0), (2**128, 0), (0, -1), (0, 2**32)])
def test_out_of_range_is_refused(seed: int, client: int) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        named_generator(seed, "order", client)
