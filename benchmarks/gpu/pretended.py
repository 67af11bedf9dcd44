"""A GPU that is pretended: values lie in the memory of the CPU, under the rules of a GPU.

Inside `PretendedGpu()`, in its own thread, whatever code moves to a CUDA device is a tensor that says it is there. It
is computed on the CPU, by the routes that a GPU takes, and mistakes that only a GPU would show are errors: operations
on tensors of both places, arrays of numpy from a tensor on the GPU, and operations that torch has no repeatable CUDA
kernel for (`REFUSED`). So the logic of device code runs on machines without a GPU. Speed, memory and last bits of a
real one it does not show.
"""

import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

Operation: TypeAlias = Callable[..., Any]

_ACROSS: Final = frozenset({"aten.copy_.default", "aten._to_copy.default"})
"""Operations that take tensors of both places."""
_FACTORIES: Final = frozenset(
    {torch.zeros, torch.ones, torch.empty, torch.full, torch.arange, torch.tensor, torch.eye, torch.linspace}
)
_MOVES: Final = frozenset({Tensor.to, Tensor.cpu, Tensor.cuda, Tensor.pin_memory})


def _floats(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(one, Tensor) and one.is_floating_point() for one in arguments)


REFUSED: Final[dict[str, Callable[[tuple[Any, ...]], bool]]] = {
    "aten.cumsum": _floats,
    "aten.put_": lambda arguments: True,
    "aten.put": lambda arguments: True,
    "aten.histc": lambda arguments: True,
    "aten.bincount": lambda arguments: len(arguments) > 1 and arguments[1] is not None,
    "aten.median.dim": lambda arguments: True,
    "aten.nll_loss_forward": lambda arguments: True,
    "aten.nll_loss2d_forward": lambda arguments: True,
    "aten._ctc_loss_backward": lambda arguments: True,
    "aten._embedding_bag_dense_backward": lambda arguments: True,
    "aten.grid_sampler_2d_backward": lambda arguments: True,
    "aten.reflection_pad1d_backward": lambda arguments: True,
    "aten.reflection_pad2d_backward": lambda arguments: True,
    "aten.scatter_reduce.two": lambda arguments: "prod" in arguments,
    "aten.scatter_reduce_.two": lambda arguments: "prod" in arguments,
}
"""Operations for which torch raises when a GPU must repeat its results (`torch.use_deterministic_algorithms`), of those
that learners might use; each with a test of its arguments."""


class _There(Tensor):
    """A tensor that is on the pretended GPU; `held` has its values."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "_There":
        made = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=held.device,
            requires_grad=False,
        )
        found: _There = made
        found.held = held
        return found

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """What it says to Python. To torch itself it is on the CPU, where it is computed."""
        return torch.device("cuda", 0)

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"pretended({self.held!r})"

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("an array of numpy from a tensor on a GPU; use .cpu() first")

    def tolist(self) -> Any:
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operation: Any, types: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        named = named or {}
        _require_allowed(operation, arguments, named)
        used = operations()
        if used is not None:
            used.add(str(operation))
        found = operation(*_here(arguments), **{**_here(named), **({"device": None} if "device" in named else {})})
        return _given_back(operation, arguments, found)


def _require_allowed(operation: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    tensors = [one for one in tree_leaves((arguments, named)) if isinstance(one, Tensor)]
    here = [one for one in tensors if not isinstance(one, _There) and one.dim() > 0]
    name = str(operation)
    # In a backward pass torch itself makes zeros where there is no gradient, and makes them here.
    backward = torch._C._current_graph_task_id() != -1
    if here and name not in _ACROSS and not backward:
        raise RuntimeError(f"{name}: tensors on a GPU and on the CPU together")
    for refused, applies in REFUSED.items():
        if (name == refused or name.startswith(f"{refused}.")) and applies(_here(arguments)):
            raise RuntimeError(f"{name} does not have a deterministic implementation on a GPU")


def _here(values: Any) -> Any:
    return tree_map_only(_There, lambda one: one.held, values)


def _there(values: Any) -> Any:
    return tree_map_only(Tensor, lambda one: one if isinstance(one, _There) else _There(one), values)


def _given_back(operation: Any, arguments: tuple[Any, ...], found: Any) -> Any:
    """What an operation has written to is the tensor it was given."""
    if operation._schema.name.endswith("_") and isinstance(found, Tensor):
        return arguments[0]
    return _there(found)


_OPERATIONS = threading.local()


def operations() -> set[str] | None:
    """Names of the operations that this thread has had computed on the pretended GPU; None outside of one."""
    found: set[str] | None = getattr(_OPERATIONS, "names", None)
    return found


class _Rules(TorchFunctionMode):
    """What functions of torch do while a GPU is pretended."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        named = dict(named or {})
        if function in _MOVES:
            return self._moved(function, arguments, named)
        if function in _FACTORIES and _is_gpu(named.get("device")):
            del named["device"]
            return _There(function(*arguments, **named))
        return function(*arguments, **named)

    def _moved(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A copy to another place, or none; of another type, if that is asked for too."""
        tensor, *rest = arguments
        if function is Tensor.pin_memory:
            if isinstance(tensor, _There):
                raise RuntimeError("only memory of the CPU is pinned")
            return tensor.clone()
        places = [one for one in (*rest, *named.values()) if _is_place(one)]
        rest = [one for one in rest if not _is_place(one)]
        named = {key: one for key, one in named.items() if key not in ("device", "non_blocking")}
        if function is Tensor.to and rest and isinstance(rest[-1], bool):  # non_blocking, by position
            rest = [one for one in rest if not isinstance(one, bool)]
        place = torch.device(places[0]) if places else None
        if function in (Tensor.cpu, Tensor.cuda):
            place = torch.device("cpu" if function is Tensor.cpu else "cuda")
        same = place is None or (place.type == "cuda") == isinstance(tensor, _There)
        rest = [one for one in rest if one is not None]
        changed = tensor.to(*rest, **named) if rest or (named and function is Tensor.to) else tensor
        return changed if same else _across(changed, not isinstance(tensor, _There))


class PretendedGpu(_Rules):
    """What this thread does inside with a CUDA device is pretended. The device is `device`."""

    device: Final = torch.device("cuda", 0)

    def __enter__(self) -> "PretendedGpu":
        _OPERATIONS.names = set()
        # A module's parameters become other tensors when it moves, and are not told to take over another's memory.
        self._swapped = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(True)
        vars(torch.autograd)["_engine_run_backward"] = _backward
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)  # type: ignore[no-untyped-call]
        torch.__future__.set_swap_module_params_on_conversion(self._swapped)
        _OPERATIONS.names = None


_ENGINE: Final = vars(torch.autograd)["_engine_run_backward"]


def _backward(*arguments: Any, **named: Any) -> Any:
    """Code of our own that runs in a backward pass has the same rules: by then torch has put them aside."""
    if operations() is None:
        return _ENGINE(*arguments, **named)
    with _Rules():
        return _ENGINE(*arguments, **named)


class _Across(torch.autograd.Function):
    """A copy to the other place; gradients go the other way."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, to_gpu: bool) -> Tensor:
        ctx.to_gpu = to_gpu
        held = tensor.held if isinstance(tensor, _There) else tensor
        return _There(held.clone()) if to_gpu else held.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _across(gradients[0], not ctx.to_gpu), None


def _across(tensor: Tensor, to_gpu: bool) -> Tensor:
    moved: Tensor = _Across.apply(tensor, to_gpu)  # type: ignore[no-untyped-call]
    return moved


def _is_place(value: Any) -> bool:
    return isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in ("cpu", "cuda"))


def _is_gpu(place: Any) -> bool:
    return place is not None and torch.device(place).type == "cuda"
