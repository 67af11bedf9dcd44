"""Write `requirements.lock` and `requirements-cuda.lock`: every package `make setup` installs, with its hashes.

uv resolves the project's dependencies, its tools, its score backends and CrypTen once for Linux and Python 3.11 or
newer, under the pins of `constraints.txt`, and lists the hashes of all files of each release. torch is resolved for the
sake of its dependencies and left out. The libraries its CUDA build needs go to a file of their own.

Usage: python .ci/lock.py PATH_OF_UV (`make lock` installs uv, by hash, and calls this)
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Beside what pyproject.toml names. setuptools builds the project; pip installs everything after itself.
MORE = ["crypten", "pip", "setuptools"]

# Extras of pyproject.toml that `make setup` installs, so that the tests run every score backend, read SPARQL and
# Parquet, account for noise and build the documentation.
EXTRAS = ["dev", "mpc", "paillier", "bfv", "sparql", "dp", "parquet", "docs"]

# Dependencies that packages declare and nothing here imports. tests/test_supply_chain.py tells if this changes.
NOT_INSTALLED = {
    "click-default-group": "the command line of PyKEEN",
    "dataclasses-json": "asked for by PyKEEN's helpers and by CrypTen",
    "future": "CrypTen on Python 2",
    "onnx": "CrypTen's model converters, which do not work with a current torch",
    "optuna": "PyKEEN's search for hyperparameters; brings a database toolkit",
    "sklearn": "withdrawn; the package is called scikit-learn",
    "tensorboard": "CrypTen's examples",
    "torchvision": "CrypTen's examples",
}

CUDA = ("cuda-", "nvidia-", "triton")

HEADER = """\
# {title}
# Written by `make lock`; do not edit. Each package has the hashes of all files of its release.
"""
TITLES = {
    "requirements.lock": """Everything that `make setup` installs, except torch and the project itself.
# torch has no hash: its CPU and CUDA builds are different files of one version, and which of them an installation gets
# depends on the machine. constraints.txt pins its version.""",
    "requirements-cuda.lock": "What the CUDA build of torch needs in addition. `make setup` installs it if need be.",
}


def resolve(uv: str) -> list[str]:
    """The resolved packages, one block of lines each: the requirement, then its hashes."""
    with tempfile.TemporaryDirectory() as scratch:
        more, never = Path(scratch, "more.in"), Path(scratch, "never.txt")
        more.write_text("\n".join(MORE) + "\n")
        never.write_text("".join(f"{name} ; python_version < '3'\n" for name in NOT_INSTALLED))
        options = ["--quiet", "--no-config", "--universal", "--python-version", "3.11", "--fork-strategy", "fewest"]
        options += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
        options += ["--only-binary", ":all:", "--constraint", "constraints.txt", "--override", str(never)]
        options += [word for extra in EXTRAS for word in ("--extra", extra)]
        command = [uv, "pip", "compile", *options, "pyproject.toml", str(more)]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    blocks: list[str] = []
    for line in done.stdout.splitlines(keepends=True):
        if line[0].isspace():
            blocks[-1] += line
        else:
            blocks.append(line)
    return blocks


def main(uv: str) -> None:
    kept = [block for block in resolve(uv) if not block.startswith("torch==")]
    files = {
        "requirements.lock": [block for block in kept if not block.startswith(CUDA)],
        "requirements-cuda.lock": [block for block in kept if block.startswith(CUDA)],
    }
    for name, blocks in files.items():
        (ROOT / name).write_text(HEADER.format(title=TITLES[name]) + "\n" + "".join(blocks))


if __name__ == "__main__":
    main(sys.argv[1])
