"""Whole masked sums in one thread and without a transport, with whoever drops out at whichever step."""

import gc
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.group import MODULUS, Group, GroupVector, Ring
from protocols.primitives.identity import IdentityKey
from protocols.primitives.keys import AgreementKey
from protocols.session.channels import setup_transcript
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import EncryptedShares, KeyDirectory, MaskedInput, SignedSurvivors, Survivors
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import SecAggServer, Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.states import Aborted, Advertised, HeldShares, Masked, Ready, Shared, Signed, State
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import SumTerms, VectorLayout

SESSION: Final = SessionId(bytes(range(16)))
PURPOSE: Final = "rows"
LENGTH: Final = 6
SEMI_HONEST_STEPS: Final = [Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT, Step.UNMASKING]
SIGNED_STEPS: Final = [*SEMI_HONEST_STEPS[:3], Step.CONSISTENCY_CHECK, Step.UNMASKING]


def parties(*numbers: int) -> list[PartyId]:
    return [PartyId(number) for number in numbers]


def everyone(count: int) -> list[PartyId]:
    return parties(*range(1, count + 1))


def complete(count: int, threshold: int, min_survivors: int = 2) -> SumParameters:
    """The complete graph with any threshold, whether or not a threat model justifies it."""
    return SumParameters(count, count - 1, threshold, min_survivors)


def modulus(group: Group) -> int:
    return 1 << group.bits if isinstance(group, Ring) else MODULUS


def random_input(group: Group, length: int, rng: np.random.Generator) -> GroupVector:
    return rng.integers(0, modulus(group), length, dtype=group.dtype)


def exact_sum(group: Group, vectors: Iterable[GroupVector], length: int) -> list[int]:
    """Entry by entry in Python's integers: nothing of the group's own arithmetic."""
    columns = [[int(entry) for entry in vector] for vector in vectors]
    return [sum(column[place] for column in columns) % modulus(group) for place in range(length)]


def credentials_for(clients: Collection[PartyId]) -> dict[PartyId, Credentials]:
    """An identity for each client, and all public halves in everybody's key directory."""
    identities = {party: IdentityKey.generate() for party in clients}
    directory = {party: identity.public for party, identity in identities.items()}
    return {party: Credentials(identity, directory) for party, identity in identities.items()}


def channel_directory(adverts: Mapping[PartyId, AdvertiseChannel]) -> ChannelDirectory:
    """What an honest server sends everybody."""
    return ChannelDirectory(
        {int(party): advert.channel_key for party, advert in adverts.items()},
        {int(party): advert.signature for party, advert in adverts.items()},
    )


@dataclass
class Sum:
    """One sum: the server, the clients, their inputs, and what the server has last sent to whom."""

    terms: BoundTerms
    server: SecAggServer
    clients: dict[PartyId, SecAggClient]
    inputs: dict[PartyId, GroupVector]
    inbox: dict[PartyId, wire.Message] = field(default_factory=dict)

    def answer(self, party: PartyId) -> wire.Message:
        """What the client sends in the current step, after it has taken the server's last message."""
        client = self.clients[party]
        if self.server.step is Step.ADVERTISE_KEYS:
            return client.start()
        answer = client.receive(self.inbox[party])
        if self.server.step is Step.MASKED_INPUT:
            assert answer is None
            return client.set_input(self.inputs[party].copy())
        assert answer is not None
        return answer

    def step(self, silent: Collection[PartyId] = ()) -> None:
        for party in sorted(self.server.awaited.difference(silent)):
            self.server.receive(party, self.answer(party))
        self.inbox = self.server.close()

    def until(self, step: Step, silent_at: Mapping[PartyId, Step] | None = None) -> "Sum":
        """Every step before `step`."""
        while self.server.step is not step:
            self.step([party for party, last in (silent_at or {}).items() if last is self.server.step])
        return self

    def run(self, silent_at: Mapping[PartyId, Step] | None = None) -> GroupVector:
        """All steps; `silent_at` says which clients answer no more from which step on."""
        return self.until(Step.DONE, silent_at).server.total()

    def exact(self, survivors: Collection[PartyId] | None = None) -> list[int]:
        """The sum of the inputs themselves."""
        chosen, layout = self.server.survivors if survivors is None else survivors, self.terms.sum.layout
        return exact_sum(layout.group, [self.inputs[party] for party in chosen], layout.entries)


class Federation:
    """Clients after the set-up of a session, from which any number of sums begin."""

    def __init__(
        self,
        clients: Sequence[PartyId],
        *,
        signed: bool = False,
        session: SessionId = SESSION,
        openings: Mapping[PartyId, Openings] | None = None,
    ) -> None:
        self.clients, self.session, self.signed = list(clients), session, signed
        self.credentials = credentials_for(clients) if signed else {}
        kept = openings or {}
        self.sessions = {
            party: SecAggSession(party, clients, session, self.credentials.get(party), kept.get(party))
            for party in clients
        }
        self.directory = channel_directory({party: begun.start() for party, begun in self.sessions.items()})
        for begun in self.sessions.values():
            begun.receive(self.directory)
        self.round = 0
        self._rng = np.random.default_rng(len(clients))

    def begin(
        self,
        parameters: SumParameters,
        group: Group | None = None,
        length: int = LENGTH,
        *,
        purpose: str = PURPOSE,
        round_id: int | None = None,
        model: bytes = b"",
        without: Collection[PartyId] = (),
    ) -> Sum:
        """A sum over all clients, in the next round unless another is named; `without` have yet to begin it."""
        self.round = self.round + 1 if round_id is None else round_id
        group = group if group is not None else Ring(64)
        transcript = setup_transcript(
            self.session, {PartyId(party): key for party, key in self.directory.channel_keys.items()}
        )
        terms = BoundTerms(
            self.session,
            transcript,
            parameters,
            SumTerms(
                RoundId(self.round), purpose, tuple(sorted(self.clients)), VectorLayout(group, length), model=model
            ),
        )
        server = SecAggServer(terms, frozenset(self.clients), signed=self.signed)
        clients = {
            party: begun.begin(
                SumTerms(RoundId(self.round), purpose, tuple(self.clients), VectorLayout(group, length), model=model),
                parameters,
            )
            for party, begun in self.sessions.items()
            if party not in without
        }
        return Sum(terms, server, clients, {party: random_input(group, length, self._rng) for party in self.clients})


# --- what a client knows and what it says ---------------------------------------------------------------------------


def _of_peers(held: Mapping[PartyId, HeldShares]) -> dict[str, bytes]:
    keys = {f"mask key share of {peer}": shares.mask_key for peer, shares in held.items()}
    return keys | {f"seed share of {peer}": shares.seed for peer, shares in held.items()}


def secrets_in(client: SecAggClient) -> dict[str, bytes]:
    """Everything a client must not show, by name, as its present state holds it."""
    known: dict[str, bytes] = {}
    if client._channels is not None:
        known |= {f"channel with {peer}": secret._extracted for peer, secret in client._channels._secrets.items()}
        if client._channels._key is not None:
            known |= {"channel key": client._channels._key.secret_for_sharing()}
    match client.state:
        case Advertised(mask_key):
            known |= {"mask key": mask_key.secret_for_sharing()}
        case Shared(_, agreed, seed, own_seed_share):
            known |= {"seed": seed, "seed share of me": own_seed_share}
            known |= {f"agreed with {peer}": secret for peer, secret in agreed.items()}
        case Ready(masks, self_mask, own_seed_share, held):
            known |= {"self mask": self_mask, "seed share of me": own_seed_share, **_of_peers(held)}
            known |= {f"mask with {peer}": key for peer, key in masks.items()}
        case Masked(own_seed_share, held):
            known |= {"seed share of me": own_seed_share, **_of_peers(held)}
        case Signed(_, answer):
            known |= {f"answer about {peer}": share for peer, share in answer.mask_key_shares.items()}
            known |= {f"answer about {peer}": share for peer, share in answer.seed_shares.items()}
    return known


class Watched:
    """A client of which every secret it ever held and every message it ever sent are on record."""

    def __init__(self, client: SecAggClient, session: SessionId = SESSION) -> None:
        self.client = client
        self.secrets: dict[str, bytes] = {}
        self.sent: list[wire.Message] = []
        self._session = session
        self._note(None)

    def start(self) -> wire.Message:
        return self._calling(self.client.start)

    def receive(self, message: wire.Message) -> wire.Message | None:
        answer = self.client.receive(message)
        self._note(answer)
        return answer

    def set_input(self, vector: GroupVector) -> MaskedInput:
        self.secrets["input"] = vector.tobytes()
        answer = self.client.set_input(vector)
        self._note(answer)
        return answer

    def shown(self) -> set[str]:
        """The names of the secrets that occur in the bytes of what was sent."""
        frames = b"".join(bytes(wire.encode(message, self._session, RoundId(1))) for message in self.sent)
        return {name for name, secret in self.secrets.items() if secret in frames}

    def kept(self) -> set[str]:
        """The names of the secrets that can still be reached from the client."""
        memory = reachable_bytes(self.client)
        return {name for name, secret in self.secrets.items() if any(secret in piece for piece in memory)}

    def shares_shown(self) -> dict[str, set[str]]:
        """For each client of which a share was shown, of which of its two secrets."""
        shares: dict[str, set[str]] = {}
        for name in self.shown():
            what, _, owner = name.partition(" share of ")
            if owner:
                shares.setdefault(owner, set()).add(what)
        return shares

    def _calling(self, method: Callable[[], wire.Message]) -> wire.Message:
        answer = method()
        self._note(answer)
        return answer

    def _note(self, answer: wire.Message | None) -> None:
        self.secrets |= secrets_in(self.client)
        if answer is not None:
            self.sent.append(answer)


EVERYONE: Final = everyone(4)
ME: Final = PartyId(2)
OTHERS: Final = [party for party in EVERYONE if party != ME]
PARAMETERS: Final = complete(4, 3)


class Script:
    """One whole sum as client 2 lives it, up to any of its states. The server and all others are honest."""

    def __init__(
        self, signed: bool = False, begun: Sum | None = None, silent_at: Mapping[PartyId, Step] | None = None
    ) -> None:
        self.sum = begun if begun is not None else Federation(EVERYONE, signed=signed).begin(PARAMETERS)
        self.me = Watched(self.sum.clients[ME])
        self.signed = signed
        self._silent_at = silent_at or {}
        self._moves = [self._start, self._answering, self._shares, self._input, self._answering]
        if signed:
            self._moves.append(self._answering)
        self.due: dict[type[wire.Message], wire.Message] = {}
        """The honest server's message of each kind, once it has come that far."""

    def reach(self, state: type[State]) -> "Script":
        while self._moves and not isinstance(self.me.client.state, state):
            self._moves.pop(0)()
        if state is Aborted and not isinstance(self.me.client.state, Aborted):
            self.me.client.abort("over")
        assert isinstance(self.me.client.state, state)
        return self

    def _others(self) -> None:
        step = self.sum.server.step
        for party in sorted(self.sum.server.awaited - {ME}):
            if self._silent_at.get(party) is step:
                continue
            self.sum.server.receive(party, self.sum.answer(party))

    def _close(self) -> None:
        self.sum.inbox = self.sum.server.close()
        if ME in self.sum.inbox:
            self.due[type(self.sum.inbox[ME])] = self.sum.inbox[ME]

    def _start(self) -> None:
        self._others()
        self.sum.server.receive(ME, self.me.start())
        self._close()

    def _answering(self) -> None:
        self._others()
        answer = self.me.receive(self.sum.inbox[ME])
        assert answer is not None
        self.sum.server.receive(ME, answer)
        self._close()

    def _shares(self) -> None:
        assert self.me.receive(self.sum.inbox[ME]) is None

    def _input(self) -> None:
        self._others()
        self.sum.server.receive(ME, self.me.set_input(self.sum.inputs[ME].copy()))
        self._close()


def key_directory(purpose: str, mask_keys: dict[int, bytes], signatures: dict[int, bytes]) -> KeyDirectory:
    """A directory of clients that commit to no state."""
    return KeyDirectory(purpose, mask_keys, {}, signatures)


def assert_over(watched: Watched) -> None:
    """The reason is kept, no secret is, and nothing is answered any more."""
    client = watched.client
    assert isinstance(client.state, Aborted)
    assert client.state.reason
    assert watched.kept() == set()
    sent = list(watched.sent)
    attempts: list[Callable[[], object]] = [
        watched.start,
        lambda: watched.set_input(Ring(64).zeros(LENGTH)),
        *[lambda dropped=dropped: watched.receive(Survivors(PURPOSE, dropped)) for dropped in ([], [1])],
        lambda: watched.receive(key_directory(PURPOSE, {}, {})),
        lambda: watched.receive(EncryptedShares(PURPOSE, {}, {}, {})),
        lambda: watched.receive(SignedSurvivors(PURPOSE, {})),
    ]
    for attempt in attempts:
        with pytest.raises(ProtocolError):
            attempt()
    assert watched.sent == sent
    assert isinstance(client.state, Aborted)


_CODE: Final = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def reachable_bytes(root: object) -> list[bytes]:
    """All byte strings, arrays and private agreement keys that can be reached from an object, code left aside."""
    found: list[bytes] = []
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, _CODE):
            continue
        seen.add(id(value))
        if isinstance(value, bytes | bytearray | memoryview):
            found.append(bytes(value))
        elif isinstance(value, np.ndarray):
            found.append(value.tobytes())
        elif isinstance(value, AgreementKey):
            found.append(value.secret_for_sharing())
        else:
            waiting.extend(gc.get_referents(value))
    return found
