"""Pages of membership attacks: which columns their tables have, and what stands in them."""

import re

from secure_kg.audit.records.membership import (
    MembershipBound,
    MembershipOutcome,
    MembershipReport,
    MembershipSweep,
)
from secure_kg.report.membership_page import membership_page, sweep_page


def outcome(victim: int, auc: float, attack: str = "A_CIP") -> MembershipOutcome:
    return MembershipOutcome(
        attack=attack, variant="mended", view="means", targets="canaries", victim=victim, round=20, members=516,
        others=484, auc=auc, auc_low=auc - 0.01, auc_high=auc + 0.01, tpr_at_1_percent=0.6, f1=0.9, best_f1=0.92,
        always_yes_f1=0.681, roc=[(0.0, 0.0), (1.0, 1.0)],
    )  # fmt: skip


def report(*outcomes: MembershipOutcome, epsilon: float | None = None) -> MembershipReport:
    bound = None
    if epsilon is not None:
        bound = MembershipBound(
            epsilon=epsilon, delta=1e-5, noise=5.0, steps=200, best_guess=0.9, auc=0.77, upload_auc=None
        )
    return MembershipReport(about="a run", settings={}, outcomes=list(outcomes), bound=bound, notes=[])


def cells(page: str) -> list[list[str]]:
    """Of the first table: the head, then the lines."""
    first = page[page.index("<thead>") : page.index("</tbody>")]
    return [re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", line) for line in first.split("</tr>")[:-1]]


def test_one_victim_is_told_in_words_and_several_in_a_column() -> None:
    single, several = (
        membership_page(report(outcome(2, 0.97))),
        membership_page(report(outcome(2, 0.9), outcome(3, 0.8))),
    )
    assert "victim" not in cells(single)[0]
    assert "The victim is client 2." in single
    assert [line[:3] for line in cells(several)] == [
        ["attack", "victim", "AUC"], ["A_CIP mended, means", "2", "0.900"], ["A_CIP mended, means", "3", "0.800"],
    ]  # fmt: skip
    assert "The victim is" not in several


def test_every_figure_stands_under_its_name_with_a_bound_and_without() -> None:
    for epsilon, more in ((None, {}), (8.0, {"bound": "0.770"})):
        head, line = cells(membership_page(report(outcome(2, 0.97), epsilon=epsilon)))
        named = dict(zip(head, line, strict=True))
        assert named == more | {
            "attack": "A_CIP mended, means", "AUC": "0.970", "95 %": "0.960 - 0.980", "TPR at 1 % FPR": "0.600",
            "F1": "0.900", "best F1": "0.920", "always yes": "0.681", "round": "20", "targets": "516 + 484",
        }  # fmt: skip


def test_a_sweep_has_a_column_for_each_epsilon_and_a_line_for_each_attack() -> None:
    reports = [report(outcome(2, 0.55), epsilon=2.0), report(outcome(2, 0.97), outcome(2, 0.95, "A_SI"))]
    page = sweep_page(MembershipSweep(about="a sweep", reports=reports, notes=[]))
    assert cells(page) == [
        ["attack", "epsilon 2", "epsilon none"],
        ["bound", "0.770", ""],
        ["A_CIP mended, means", "0.550", "0.970"],
        ["A_SI mended, means", "", "0.950"],
    ]
