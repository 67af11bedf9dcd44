"""Servers that make sums over other sets of clients, by never telling the victim of them.

Nothing of that shows in a transcript that an honest server whose client is lost would not have, too.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.cheating.entry import Played
from benchmarks.cheating.evaluations import FinishesAtOnce, NoBestAfter, figures_of_victim
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.sessions import REPEATED, Dies, difference_of_rows
from benchmarks.cheating.spoils import NOTHING, compared, held_rows, observations, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, VICTIM, Session, Stage, stage_config
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import PartyId
from protocols.session.messages import ChannelDirectory
from secure_kg.federation.plan.messages import Evaluate, Finish, TrainRound
from secure_kg.runs import checkpoint


class NeverTold(Cheat):
    """The victim is lost, as far as the server's program can see, when it is to be sent a message of some kind."""

    def __init__(self, kind: type[wire.Message], in_round: int) -> None:
        super().__init__()
        self._kind, self._in_round = kind, in_round

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if to == VICTIM and isinstance(message, self._kind) and self.round == self._in_round:
            raise PeerLost(f"client {to} is called a dropout", to)
        return (message,)


class ResultsWithoutVictim(NeverTold):
    server = FinishesAtOnce


def round_quietly(path: Path) -> Played:
    """As `sessions.round_without_victim`."""
    stage = Stage(path, stage_config())
    first, second = stage.perform(Dies(4)), stage.perform(NeverTold(TrainRound, REPEATED))
    spoils = difference_of_rows(stage, first, second, both=False)
    return Played(stage, spoils.got, spoils.record())


def results_quietly(path: Path) -> Played:
    """As `evaluations.results_again`."""
    rounds = 3
    stage = Stage(path, stage_config(rounds=rounds, eval_every=1, checkpoint_every=1))
    first = stage.perform(NoBestAfter(rounds - 1))
    checkpoint.mark_complete(stage.run, rounds - 1, range(1, CLIENTS + 1))
    second = stage.perform(ResultsWithoutVictim(Finish, rounds))
    with_it = total_of(sums_read(stage, first), "test", rounds + 1)
    without = total_of(sums_read(stage, second), "test", rounds)
    if with_it is None or without is None or VICTIM in without[1]:
        return Played(stage, False, NOTHING.record())
    spoils = figures_of_victim(with_it[0], without[0], first.trainers[VICTIM], "test", 0)
    return Played(stage, spoils.got, spoils.record())


def absent_from_an_evaluation(path: Path) -> Played:
    """The number of the victim's validation triples, by which two evaluations differ whatever was trained between."""
    stage = Stage(path, stage_config())
    stage.perform(NeverTold(Evaluate, 4))
    sums = sums_read(stage, stage.last)
    with_it, without = total_of(sums, "valid", 2), total_of(sums, "valid", 4)
    truth = len(stage.graphs[VICTIM - 1].valid)
    computed = int(with_it[0].counts[0] - without[0].counts[0]) if with_it is not None and without is not None else None
    return Played(stage, computed == truth, {"computed": computed, "validation_triples_of_the_victim": truth})


def aligned_anew(path: Path) -> Played:
    """A run that has its alignment begins again as if it had none, without the victim.

    Its success: the number of names that only the victim holds.
    """
    stage = Stage(path, stage_config(by="relations", min_holders=2))
    first = stage.perform(Dies(2))
    for trace in [stage.run / "checkpoint.json", *stage.run.glob("server/*")]:
        trace.unlink(missing_ok=True)
    second = stage.perform(NeverTold(ChannelDirectory, 0))
    sizes = [size_of_union(session) for session in (first, second)]
    truth = len(stage.graphs[VICTIM - 1].relations)
    computed = sizes[0] - sizes[1] if sizes[0] is not None and sizes[1] is not None else None
    return Played(stage, computed == truth, {"computed": computed, "names_of_the_victim_alone": truth})


def size_of_union(session: Session) -> int | None:
    """As the server told it to the clients."""
    told = [one.message for one in observations(session.notebook) if isinstance(one.message, UnionPlaces)]
    return told[-1].size if told else None


def run_again(path: Path) -> Played:
    """The same clients with the same seed in a second run, which the victim is not told of: the first sums differ.

    Against a server that is not called active clients keep their records in the run's folder.
    """
    config = stage_config(adversary="semi-honest", alignment="plain", rounds=1, eval_every=1, checkpoint_every=0)
    stage, again = Stage(path / "first", config), Stage(path / "second", config)
    stage.perform(Cheat())
    again.perform(NeverTold(ChannelDirectory, 0))
    with_it, without = (total_of(sums_read(one, one.last), "rows", 1) for one in (stage, again))
    put = stage.last.trainers[VICTIM].put if VICTIM in stage.last.trainers else []
    held = held_rows(stage, VICTIM, put[0]) if put else None
    if with_it is None or without is None or held is None:
        return Played(again, False, NOTHING.record())
    positions, truth = held
    size = len(with_it[0].counts)
    if len(without[0].counts) != size:
        return Played(again, False, NOTHING.record())
    sums = [total.real.reshape(size, -1)[positions] for total in (with_it[0], without[0])]
    counts = np.maximum(with_it[0].counts, 1)[positions, None]
    spoils = compared(sums[0] - sums[1], truth, sums[0] / counts)
    return Played(again, spoils.got, spoils.record())
