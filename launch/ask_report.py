"""The page that `launch.ask` writes for the asker."""

from collections.abc import Sequence
from pathlib import Path

from launch.ask_output import asked_question
from secure_kg.queries.language.reading import Question
from secure_kg.queries.retrieval.members import AskersView
from secure_kg.queries.retrieval.over_run import AskSettings
from secure_kg.queries.retrieval.parts import Outcome, Session
from secure_kg.report.questions.page import PageSession, SpentBudgets, ask_page
from secure_kg.report.questions.question import PageQuestion
from secure_kg.runs.run_folder import write_whole


def write_page(
    path: Path, run: AskersView, settings: AskSettings, session: Session, questions: Sequence[Question]
) -> None:
    """With all questions: those that a session which ended before its time did not come to have a line."""
    page = ask_page(
        PageSession(
            run=run.name,
            public=run.public,
            allow_extraction=settings.allow_extraction,
            session=session,
            questions=[_told(run, session, number, question) for number, question in enumerate(questions)],
            budgets=[SpentBudgets(int(party), *standing) for party, standing in run.budgets().items()],
            record=None if settings.record is None else str(settings.record),
            one_process=bool(run.others),
        )
    )
    write_whole(path, page.encode(), private=True)


def _told(run: AskersView, session: Session, number: int, question: Question) -> PageQuestion:
    if number < len(session.outcomes):
        outcome = session.outcomes[number]
    else:
        ended = number == len(session.outcomes) and not session.stopped
        why = session.problems.get(run.public.asker, "the session has ended")
        outcome = Outcome(None, f"came to nothing: {why}" if ended else "was not asked")
    return PageQuestion(question, tuple(asked_question(run, question, outcome).warnings), outcome)
