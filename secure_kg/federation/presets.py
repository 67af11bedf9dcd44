"""Settings that suit a graph's size. They fill in what the user did not say.

`paper` is FedR, appendix B. `small` was chosen on the validation parts of UMLS for graphs of a few hundred entities,
where the paper's settings need several hundred rounds. `auto` is decided by the data set's name, which is public: the
server must be able to decide it too, without looking at any client's data.
"""

from typing import Any, Final

PRESETS: Final[dict[str, dict[str, Any]]] = {
    "paper": {},
    "small": {},
}
SMALL_DATASETS: Final = frozenset({"umls", "kinship", "kinships", "nations"})


def preset_for(dataset: str) -> str:
    """What `auto` stands for."""
    return "small" if dataset.lower() in SMALL_DATASETS else "paper"
