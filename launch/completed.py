"""Runs that `--resume` names and that have nothing left to do."""

from launch.hosts.job import Plan
from launch.telling import told_by, told_to
from secure_kg.foundation.errors import UserError
from secure_kg.runs.records.record import WrongRecord
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder


def finished_before(plan: Plan) -> bool:
    """Whether `--resume` names a run that has nothing left to do."""
    if not plan.resume or plan.out is None:
        return False
    try:
        summary = RunFolder(plan.out).summary()
    except WrongRecord:  # it is written anew
        return False
    if summary is None:
        return False
    _check_privacy(plan, summary)
    return (plan.config.rounds, plan.config.patience) == (summary.config.get("rounds"), summary.config.get("patience"))


def _check_privacy(plan: Plan, summary: Summary) -> None:
    """Refuse a `config.toml` that promises another privacy than the run has had."""
    now, then = plan.config.told().get("privacy") or {}, summary.config.get("privacy") or {}
    if bool(now) != bool(then):
        raise UserError(f"{plan.out}: config.toml and summary.json do not agree on differential privacy")
    for name in sorted(now.keys() & then.keys()):
        if now[name] != then[name]:
            raise UserError(
                f"{plan.out}: config.toml has {name} = {now[name]}, and the run was made with {then[name]}; put that "
                "back, or start a new run"
            )


def show_again(plan: Plan) -> None:
    """The results of a run that is complete."""
    if plan.out is not None and (summary := RunFolder(plan.out).summary()) is not None:
        told_to(plan.json)("this run is complete; --rounds or --patience with a larger number continues it")
        told_by(plan.json)(summary, plan.out)
