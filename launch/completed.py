"""Runs that `--resume` names and that have nothing left to do."""

from launch.hosts.job import Plan
from launch.telling import told_by, told_to
from secure_kg.runs.records.record import WrongRecord
from secure_kg.runs.run_folder import RunFolder


def finished_before(plan: Plan) -> bool:
    """Whether `--resume` names a run that has nothing left to do."""
    if not plan.resume or plan.out is None:
        return False
    try:
        summary = RunFolder(plan.out).summary()
    except WrongRecord:  # it is written anew
        return False
    asked = plan.config.rounds, plan.config.patience
    return summary is not None and asked == (summary.config.get("rounds"), summary.config.get("patience"))


def show_again(plan: Plan) -> None:
    """The results of a run that is complete."""
    if plan.out is not None and (summary := RunFolder(plan.out).summary()) is not None:
        told_to(plan.json)("this run is complete; --rounds or --patience with a larger number continues it")
        told_by(plan.json)(summary, plan.out)
