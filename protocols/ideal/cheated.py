"""The view of an active server that tells clients lies, up to the aborts of those who notice, written without inputs.

Given are the lie (`cheating.Cheat`) and, if enough clients notice nothing and open the sum, that sum. No client's input
is given. What the simulator does, besides what `masked_sum` does:

1. Whether a client goes on, and what it says if it does not, is computed by the client's own code from what it has been
   told and from signatures, all of which are public. It holds no input, and in place of others' shares zeros.
2. The uploads of a sum that is never opened are independent and uniform. None of their seeds' shares is in the view, so
   each self mask is a uniform vector to the server (the commitment to a seed is that of a random oracle; AES-256-CTR is
   a pseudorandom generator). They are drawn as uploads with a uniform total.

Simulated are lies about mask keys and about survivors. Assumes, besides what `masked_sum` assumes, that nobody forges
Ed25519 signatures: the simulator signs with the clients' identities, and only what a client would sign.
"""

from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError, SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.ideal.cheating import Cheat
from protocols.ideal.masked_sum import SimulatedSum, SimulatedSums, uniform_vector
from protocols.primitives.group import GroupVector
from protocols.primitives.keys import AgreementKey
from protocols.primitives.shamir import SHARE_BYTES
from protocols.session.conversation import MAX_REASON, Failed
from protocols.session.credentials import Credentials
from protocols.session.pair_secrets import PairSecrets
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import EncryptedShares, KeyDirectory, SurvivorSignature
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
                    frame = wire.encode(Failed(refusal), self.session, done)
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
                clients[party].hear(told, simulated.mask_key(party))


class _Inputless:
    """A client's own code without an input, without channels to others and with zeros for their shares."""

    def __init__(self, party: PartyId, terms: BoundTerms, credentials: Credentials) -> None:
        self.refusal: str | None = None
        self.signed: SurvivorSignature | None = None
        """Its answer to the list of survivors it was told, due in the next step."""
        key = AgreementKey()
        others = {peer: AgreementKey().public for peer in terms.participants if peer != party}
        channels = PairSecrets(key, {**others, party: key.public}, terms.session)
        self._client = SecAggClient(party, terms, channels, credentials)

    def hear(self, message: wire.Message, mask_key: AgreementKey) -> None:
        self.signed = None
        if isinstance(message, EncryptedShares):
            # Relayed as they should be, so that a client could open all of them.
            nothing = HeldShares(bytes(SHARE_BYTES), bytes(SHARE_BYTES))
            self._client._states |= {PartyId(peer): state for peer, state in message.states.items()}
            self._client.state = Masked(bytes(SHARE_BYTES), {PartyId(peer): nothing for peer in message.sealed})
            return
        if isinstance(message, KeyDirectory):
            self._client.state = Advertised(mask_key)
        try:
            answer = self._client.receive(message)
        except ProtocolError as problem:
            self.refusal = str(problem)[:MAX_REASON]
            return
        if isinstance(answer, SurvivorSignature):
            self.signed = answer
