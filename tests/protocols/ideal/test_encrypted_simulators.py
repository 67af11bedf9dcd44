"""Simulated views of encrypted scores: of the form of real ones, and readable with the asker's key as the true sum."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId, new_session
from protocols.ideal.encrypted_scores import (
    KeptKeys,
    OpenedSession,
    SimulatedAsker,
    as_masked_sums,
    encrypted_session,
    encrypted_terms,
    public_key_of,
    simulate_encrypted_scores,
    with_plaintexts,
    with_zeros,
)
from protocols.ideal.group_key import simulate_group_key
from protocols.ideal.masked_sum import SimulatedSums
from protocols.ideal.opened import NotAView, open_sum
from protocols.ideal.real import Falls, Parties
from protocols.ideal.scores import KnownBatch
from protocols.ideal.views import View
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.messages import EncryptedScores, EncryptedTotal
from protocols.scores.encrypted.scheme import Scheme
from protocols.scores.interface import encode
from protocols.scores.messages import PURPOSE
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from tests.support.encrypted_scores import SCHEMES, sum_of
from tests.support.score_batches import some_scores, terms_of

pytest.importorskip("gmpy2")
pytest.importorskip("phe")
pytest.importorskip("tenseal")

PARTIES = Parties.of(5, ThreatModel(0.0, 0.25))
LAST = RoundId(4)
TODO = [
    KnownBatch(terms, f"queries {terms.round}".encode(), some_scores(terms))
    for terms in (terms_of(5, 12, queries=2), terms_of(5, 30, round=LAST, table=b"another"))
]
SILENCES = [{}, {PartyId(4): Step.MASKED_INPUT}, {PartyId(5): Step.UNMASKING}]
every_scheme = pytest.mark.parametrize("make", SCHEMES.values(), ids=SCHEMES)
every_silence = pytest.mark.parametrize("silent", SILENCES, ids=str)
MakeScheme = Callable[[], Scheme]
Silences = dict[PartyId, Step]


def real(make: MakeScheme, silent: Silences, kept: KeptKeys) -> View:
    falls = Falls({(LAST, PURPOSE): silent}, EncryptedScores)
    return encrypted_session(PARTIES, TODO, make, falls, kept).view()


def total_of(batch: KnownBatch, scheme: Scheme, silent: Silences) -> np.ndarray:
    layout = EncryptedLayout(batch.terms, scheme.group)
    gone = {party for party, step in silent.items() if step is Step.MASKED_INPUT and batch.terms.round == LAST}
    given = [party for party in batch.terms.scorers if party not in gone]
    return sum_of(layout, *(layout.vector(encode(batch.scores[party], batch.terms)) for party in given))


def simulated(make: MakeScheme, silent: Silences, kept: KeptKeys, with_asker: bool) -> View:
    sums, asker = SimulatedSums(PARTIES.clients, PARTIES.model, new_session()), SimulatedAsker(make(), PARTIES.clients)
    sums.setup()
    simulate_group_key(sums)
    kept[asker.key.public] = asker.key
    for batch in TODO:
        total = total_of(batch, asker.scheme, silent) if with_asker else None
        falls = silent if batch.terms.round == LAST else {}
        simulate_encrypted_scores(sums, batch.terms, len(batch.queries), asker, total, falls)
    return sums.view()


def form(view: View, sized: bool) -> list[tuple[object, ...]]:
    """Without the lengths of frames with what SEAL compresses."""
    of_seal = ("BfvKey", "BfvScores", "BfvTotal")
    return [one if sized or one[4] not in of_seal else one[:-1] for one in view.structure()]


@every_scheme
@every_silence
def test_simulated_views_have_the_form_of_real_ones(make: MakeScheme, silent: Silences) -> None:
    sized = make().name.startswith("paillier")
    shown = form(real(make, silent, KeptKeys()), sized)
    assert form(simulated(make, silent, KeptKeys(), False), sized) == shown
    assert form(simulated(make, silent, KeptKeys(), True), sized) == shown


@every_scheme
@every_silence
def test_with_the_asker_real_and_simulated_views_open_as_the_true_sums(make: MakeScheme, silent: Silences) -> None:
    """To the honest server's code, and in the total that the asker decrypts."""
    scheme = make()
    for view_of in (real, lambda *given: simulated(*given, True)):
        kept = KeptKeys()
        view = view_of(make, silent, kept)
        key = kept[public_key_of(view)]
        read = with_plaintexts(view, TODO, scheme, kept)
        assert not kept
        totals = [seen.message for seen in view.messages() if isinstance(seen.message, EncryptedTotal)]
        for batch, message in zip(TODO, totals, strict=True):
            wanted, terms = total_of(batch, scheme, silent), encrypted_terms(batch.terms, scheme)
            assert np.array_equal(open_sum(read, terms, PARTIES.clients, PARTIES.model).total, wanted)
            assert np.array_equal(key.decrypt(message.ciphertexts, terms.layout), wanted)


@every_scheme
def test_without_the_asker_what_is_encrypted_adds_up_to_zero(make: MakeScheme) -> None:
    kept, scheme = KeptKeys(), make()
    view = simulated(make, {}, kept, False)
    read = with_plaintexts(view, TODO, scheme, kept)
    for batch in TODO:
        terms = encrypted_terms(batch.terms, scheme)
        opened, correction = (
            open_sum(one, terms, PARTIES.clients, PARTIES.model) for one in (read, with_zeros(view, TODO, scheme))
        )
        assert not opened.total.any()
        assert np.array_equal(sum_of(terms.layout, correction.total, *opened.uploads.values()), opened.total)


@every_scheme
def test_other_inputs_than_those_sent_give_another_sum(make: MakeScheme) -> None:
    """The comparison reads the ciphertexts: entries that are all one come to another total."""
    kept, scheme = KeptKeys(), make()
    view = simulated(make, {}, kept, True)
    ones = as_masked_sums(view, TODO, scheme, lambda message, layout: layout.group.zeros(layout.entries) + 1)
    terms = encrypted_terms(TODO[0].terms, scheme)
    wanted = total_of(TODO[0], scheme, {})
    assert not np.array_equal(open_sum(ones, terms, PARTIES.clients, PARTIES.model).total, wanted)
    with pytest.raises(NotAView):
        open_sum(replace(view, frames=view.frames[-3:]), terms, PARTIES.clients, PARTIES.model)


@every_scheme
def test_the_session_of_server_and_asker_reads_every_view(make: MakeScheme) -> None:
    kept, scheme = KeptKeys(), make()
    inner = encrypted_session(PARTIES, TODO, make, Falls(carrier=EncryptedScores), kept)
    session = OpenedSession(inner, lambda view: with_plaintexts(view, TODO, scheme, kept))
    assert session.parties == PARTIES
    assert not any(isinstance(seen.message, EncryptedScores) for seen in session.view().messages())
