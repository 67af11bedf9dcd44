"""Importing CrypTen 0.4.1 beside a current torch.

CrypTen's ONNX converter asks for `torch.onnx._internal.registration`, which torch no longer has, and fails the whole
import. Nothing here converts ONNX models, so an empty module takes its place before CrypTen is imported; calling one
of its functions raises. Another empty module takes the place of CrypTen's optimisers, of which nothing here has need:
their classes have the names of torch's own, and PyKEEN, which collects all optimisers by name, could not be imported in
the same process afterwards. CrypTen's known weaknesses (shares from a Mersenne Twister, a trusted first party by
default, plaintext left in buffers) are not mended by importing it: nothing secret may use it as it comes.
"""

import importlib
import sys
from types import ModuleType
from typing import Any, Final, NoReturn

# Without its dependencies: its metadata asks for the withdrawn package `sklearn` and for torchvision.
INSTALL: Final = "pip install 'pyyaml>=6' 'omegaconf>=2.3' && pip install --no-deps crypten==0.4.1"


def load_crypten() -> ModuleType:
    """The `crypten` module. `ImportError` says in one line how to install it if it is missing."""
    if "crypten" not in sys.modules:
        converter = ModuleType("crypten.nn.onnx_converter")
        for name in ("from_onnx", "from_pytorch", "from_tensorflow"):
            setattr(converter, name, _no_conversion)
        converter.TF_AND_TF2ONNX = False  # type: ignore[attr-defined]
        for stand_in in (converter, ModuleType("crypten.optim")):
            sys.modules[stand_in.__name__] = stand_in
    try:
        return importlib.import_module("crypten")
    except ModuleNotFoundError as problem:
        raise ImportError(f"CrypTen needs {problem.name}, which is not installed: {INSTALL}", name="crypten") from None


def _no_conversion(*_arguments: Any, **_options: Any) -> NoReturn:
    raise RuntimeError("CrypTen's model converters do not work with this version of torch")
