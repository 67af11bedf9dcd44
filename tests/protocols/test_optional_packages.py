"""Packages with odd installations can be imported where they are needed, and only there."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long


def test_crypten_imports_and_its_converters_refuse() -> None:
    code = (
        "from protocols.scores.crypten.crypten_import import load_crypten\n"
        "crypten = load_crypten()\n"
        "assert crypten.__version__ == '0.4.1' and callable(crypten.cryptensor)\n"
        "try:\n    crypten.nn.from_pytorch(None, None)\n"
        "except RuntimeError as refusal:\n    print('refused:', refusal)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: ")


def test_crypten_leaves_pykeen_importable() -> None:
    code = (
        "from protocols.scores.crypten.crypten_import import load_crypten\nload_crypten()\nimport pykeen.optimizers\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_module_brings_them_in_by_itself() -> None:
    code = (
        "import sys, launch.hosts.mpi, secure_kg.federation.server.serve, secure_kg.federation.client.take_part\n"
        "import protocols.scores.crypten.crypten_import, protocols.registry\n"
        "print({'phe', 'gmpy2', 'tenseal', 'crypten'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.parametrize("missing", ["crypten", "omegaconf"])
def test_what_needs_crypten_says_in_one_line_how_to_install_it(missing: str) -> None:
    code = (
        f"import sys\nsys.modules[{missing!r}] = None\n"
        "from protocols.scores.crypten.crypten_import import load_crypten\n"
        "try:\n    load_crypten()\nexcept ImportError as problem:\n    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"CrypTen needs {missing}, which is not installed: pip install ")
    assert "pip install --no-deps crypten==0.4.1" in line


@pytest.mark.parametrize(
    ("backend", "missing"), [("paillier", "phe"), ("paillier", "gmpy2"), ("bfv", "tenseal")], ids=lambda name: name
)
def test_what_needs_a_cipher_says_in_one_line_how_to_install_it(backend: str, missing: str) -> None:
    schemes = {"paillier": "paillier.PaillierScheme", "bfv": "bfv.BfvScheme"}
    others = sorted({"phe", "gmpy2", "tenseal"} - {missing})
    code = (
        f"import sys, types\nsys.modules.update({{name: types.ModuleType(name) for name in {others!r}}})\n"
        f"sys.modules[{missing!r}] = None\n"
        "from protocols.scores.encrypted import bfv, paillier\n"
        f"try:\n    {schemes[backend]}()\nexcept ImportError as problem:\n    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (line,) = done.stdout.splitlines()
    assert line == (f"scores '{backend}' need {missing}, which is not installed: pip install 'secure-kg[{backend}]'")
