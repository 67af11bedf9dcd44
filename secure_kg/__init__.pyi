from secure_kg.federation.plan.settings import RunConfig as RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES as STRATEGIES
from secure_kg.foundation.errors import UserError as UserError
from secure_kg.models.shapes import MODELS as MODELS
from secure_kg.report.picture import Picture as Picture
from secure_kg.simulation.simulate import SimulatedRun as SimulatedRun
from secure_kg.simulation.simulate import simulate as simulate
from secure_kg.trained.asking import Answers as Answers
from secure_kg.trained.auditing import AuditOutcome as AuditOutcome
from secure_kg.trained.client_model import ClientModel as ClientModel
from secure_kg.trained.result import RunResult as RunResult
from secure_kg.trained.run import TrainedRun as TrainedRun
from secure_kg.trained.run import load_run as load_run

__version__: str
