"""The role of a client in a job: greet, load its own data, train, and say so if it cannot go on; over any transport.

The host of a job (`launch.hosts`) carries the role: it brings the transport, and it decides what an outcome or an error
means for the process.

Free of MPI. It brings torch, so the server's process does not import it.
"""

from enum import Enum

from protocols.foundation.errors import Aborted, LeftOut, PeerLost, ProtocolError
from protocols.foundation.identifiers import SERVER
from protocols.transport.base import Transport
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.client.reasons import for_server
from secure_kg.federation.client.site import Site
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import InternalError, UserError, storage_error


class Participation(Enum):
    """How a client's part ended."""

    ALL_PRESENT = "all clients are there at the end"
    SOME_MISSING = "some clients dropped out"
    EXCLUDED = "the others began without this client"


def take_part(config: RunConfig, transport: Transport, clients: int, site: Site) -> Participation:
    """The whole part of client `transport.party`, of as many clients as it knows there are.

    `Aborted`: the server has ended the job and has said why. `UserError`, `ProtocolError` or `InternalError`: this
    client cannot go on, and has told the server so, in words that name none of its files (`reasons`). A `PeerLost` of
    the server: its process has ended, or has begun anew.
    """
    client = FederationClient(config, transport, clients)
    folder = site.folder(None)
    try:
        folder = site.folder(client.greet())
        brought = site.equip(folder)
        brought.follow(client)
        more = brought.members, brought.computed
        complete = client.run(brought.learner, folder, brought.credentials, brought.record, *more)
        return Participation.ALL_PRESENT if complete else Participation.SOME_MISSING
    except LeftOut:  # during set-up
        return Participation.EXCLUDED
    except Aborted:
        raise
    except PeerLost as problem:
        if SERVER not in problem.parties:
            client.say_failed(for_server(problem, config))
        raise  # a server that is lost hears nothing, and one that was started again must not take it for its own
    except (UserError, ProtocolError) as problem:
        client.say_failed(for_server(problem, config))
        raise
    except Exception as problem:
        if (full := storage_error(problem)) is not None:
            client.say_failed(for_server(full, config))
            raise full from None
        fault = InternalError.recorded(problem, folder / "error.log")
        client.say_failed(for_server(fault, config))
        raise fault from problem
