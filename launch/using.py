"""What the commands that use trained models share: the run, the client, and where its data are now."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from launch.command_line import OneLineParser
from secure_kg.federation.plan.settings import Device
from secure_kg.foundation.invocation import command

if TYPE_CHECKING:
    from secure_kg.trained.client_model import ClientModel


def using_parser(module: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A parser with the options that name a client's model."""
    parser = OneLineParser(
        prog=command(module),
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a finished run, or of launch.fuse")
    parser.add_argument("--client", type=whole_number, metavar="K", help="whose model [the only one in the folder]")
    parser.add_argument("--client-data", metavar="DIR", help="where the client's own data are now [as in the run]")
    return parser


def add_device(parser: argparse.ArgumentParser, usual: Device) -> None:
    """The option that says where to compute."""
    parser.add_argument("--device", choices=get_args(Device), default=usual, help=f"where to compute [{usual}]")


def whole_number(text: str) -> int:
    """From 1 on."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) < 1 << 31:
        raise argparse.ArgumentTypeError("must be a whole number from 1 on")
    return int(text)


def client_model(options: argparse.Namespace) -> "ClientModel":
    """The model that the options name."""
    from secure_kg.trained.run import load_run

    run = load_run(options.run, options.client_data)
    return run.client(options.client, getattr(options, "device", "cpu"))
