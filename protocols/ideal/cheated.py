"""The view of an active server that tells clients lies, up to the aborts of those who notice, written without inputs.

Given are the lie (`cheating.Cheat`) and, if enough clients notice nothing and open the sum, that sum. No client's input
is given. What the simulator does, besides what `masked_sum` does:

1. Whether a client goes on, and what it says if it does not, is computed by the client's own code from what it has been
   told and from signatures, all of which are public. It holds no input, and in place of others' shares zeros.
2. The uploads of a sum that is never opened are independent and uniform. None of their seeds' shares is in the view, so
   each self mask is a uniform vector to the server (the commitment to a seed is that of a random oracle; AES-256-CTR is
   a pseudorandom generator). They are drawn as uploads with a uniform total.

Simulated are lies about mask keys, shares and survivors. Assumes, besides what `masked_sum` assumes, that nobody forges
Ed25519 signatures: the simulator signs with the clients' identities, and only what a client would sign.
"""

from collections.abc import Collection

from protocols.foundation import wire
from protocols.foundation.errors import PeersRefused, ProtocolError, SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.ideal.cheating import Cheat
from protocols.ideal.masked_sum import SimulatedSum, SimulatedSums, uniform_vector
from protocols.primitives.group import GroupVector
from protocols.primitives.keys import AgreementKey
from protocols.primitives.shamir import SHARE_BYTES
from protocols.session.control import RefuseShares
from protocols.session.conversation import MAX_REASON, Failed
from protocols.session.credentials import Credentials
from protocols.session.pair_secrets import PairSecrets
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import EncryptedShares, KeyDirectory, SurvivorSignature
from protocols.sums.secagg.refusals import not_opened, require_fit
from protocols.sums.secagg.server import SecAggServer, Step
from protocols.sums.secagg.states import Advertised, HeldShares, Masked
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import Layout, SumTerms


class CheatedSums(SimulatedSums):
    """A session that ends with a sum in which the server cheats. `credentials` are needed."""

    def cheated_sum(self, terms: SumTerms[Layout], cheat: Cheat, total: GroupVector | None, done: RoundId) -> None:
        """`total`: over those whose uploads are in it, if it is opened. `done`: the last round before this one."""
        if self._credentials is None:
            raise ValueError("lies are told to clients that sign")
        bound, silent = self._bound(terms), dict[PartyId, Step]()
        server = SecAggServer(bound, frozenset(self.present), signed=True)
        opened = total if total is not None else uniform_vector(terms.layout.group, terms.layout.entries)
        simulated = SimulatedSum(bound, opened, silent, self._credentials)
        clients = {party: _Inputless(party, bound, self._credentials[party]) for party in sorted(self.present)}
        while server.step is not Step.DONE:
            step, phase = server.step, f"{server.step.value}/{terms.purpose}"
            silent.update({party: step for party in server.awaited if clients[party].refusal is not None})
            simulated.begin(step, server.awaited)
            for party in sorted(server.awaited):
                refusal = clients[party].refusal
                if refusal is not None:
                    number = terms.round if isinstance(refusal, RefuseShares) else done
                    frame = wire.encode(refusal, self.session, number)
                    self._recorder.write("received", party, terms.round, phase, frame)
                    continue
                answer = clients[party].signed or simulated.answer(step, party)
                self.received(party, answer, terms.round, phase)
                server.receive(party, answer)
            try:
                replies = server.close()
            except SumAbandoned:
                return
            for party, reply in sorted(replies.items()):
                told = cheat.instead(party, reply)
                self.sent(party, told, terms.round, phase)
                if isinstance(told, EncryptedShares) and isinstance(reply, EncryptedShares):
                    changed = [peer for peer, one in told.sealed.items() if one != reply.sealed[peer]]
                    clients[party].hear_shares(told, changed)
                else:
                    clients[party].hear(told, simulated.mask_key(party))


class _Inputless:
    """A client's own code without an input, without channels to others and with zeros for their shares."""

    def __init__(self, party: PartyId, terms: BoundTerms, credentials: Credentials) -> None:
        self.refusal: Failed | RefuseShares | None = None
        self.signed: SurvivorSignature | None = None
        """Its answer to the list of survivors it was told, due in the next step."""
        key = AgreementKey()
        others = {peer: AgreementKey().public for peer in terms.participants if peer != party}
        self._purpose = terms.sum.purpose
        channels = PairSecrets(key, {**others, party: key.public}, terms.session)
        self._client = SecAggClient(party, terms, channels, credentials)

    def hear_shares(self, message: EncryptedShares, changed: Collection[int]) -> None:
        """`changed`: whose shares the server has changed on the way. A client could open all others."""

        def check(peer: PartyId) -> None:
            if peer in changed:
                raise not_opened(peer)

        try:
            require_fit([PartyId(peer) for peer in message.sealed], check)
        except PeersRefused as problem:
            self._refuse(problem)
            return
        nothing = HeldShares(bytes(SHARE_BYTES), bytes(SHARE_BYTES))
        self._client._states |= {PartyId(peer): state for peer, state in message.states.items()}
        self._client.state = Masked(bytes(SHARE_BYTES), {PartyId(peer): nothing for peer in message.sealed})

    def _refuse(self, problem: PeersRefused) -> None:
        self.refusal = RefuseShares(self._purpose, str(problem)[:MAX_REASON], [int(party) for party in problem.of])

    def hear(self, message: wire.Message, mask_key: AgreementKey) -> None:
        self.signed = None
        if isinstance(message, KeyDirectory):
            self._client.state = Advertised(mask_key)
        try:
            answer = self._client.receive(message)
        except PeersRefused as problem:
            self._refuse(problem)
            return
        except ProtocolError as problem:
            self.refusal = Failed(str(problem)[:MAX_REASON])
            return
        if isinstance(answer, SurvivorSignature):
            self.signed = answer
