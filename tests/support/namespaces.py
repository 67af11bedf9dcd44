"""Hosts on one machine: network namespaces joined by a bridge, each with a name, files and processes of its own.

    with hosts(tmp_path, ["server", "site1", "site2"]) as net:
        net["server"].start(["secure-kg", "serve", ...])
        net.cut("site1")

Every host sees its own folder at `/mnt`, an empty `/dev/shm`, its own process numbers and a network that reaches the
other hosts by name and nothing else: there is no route to the outside. The bridge lies in a namespace too, the
caller's, from which hosts can be entered. A namespace lives as long as its first process, which the kernel kills with
the one that started it: whatever happens to a test, no link, mount or process of a host outlives it.
"""

import functools
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from launch.hosts.supervisor import die_with_parent
from tests.support.mpi_jobs import environment

INSIDE = Path("/mnt")
"""Where a host sees its folder."""
INTERFACE = "eth0"
_CALLER = "caller"
_UNPRIVILEGED = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
_HERE = 'cd /mnt && exec "$@"'
# The tmpfs on the root of all folders hides those of other hosts; before it, the own one is mounted where it is seen.
_BEGIN = """
set -e
hostname "$1"
mount --bind "$2" /mnt
mount --bind "$3/hosts" /etc/hosts
mount -t tmpfs -o mode=1777 none /dev/shm
if [ -d "$3" ]; then mount -t tmpfs none "$3"; fi
ip link set lo up
echo ready
exec sleep infinity
"""


@dataclass(frozen=True)
class Host:
    """A namespace in which commands are run."""

    name: str
    address: str
    folder: Path
    """Its folder as the test sees it; the host itself sees it at `/mnt`."""
    first: int
    """The number of its first process, as the test sees it."""
    entry: tuple[str, ...]
    """The command that enters it."""

    def command(self, command: Sequence[str]) -> list[str]:
        """A command that runs another one in this host, in its folder."""
        return [*self.entry, "sh", "-c", _HERE, "sh", *command]

    def start(
        self, command: Sequence[str], variables: Mapping[str, str] | None = None, output: IO[str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start a process. All it says goes to the file `output`; otherwise it is read by pipes."""
        return subprocess.Popen(
            self.command(command),
            env={**environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if output is None else output,
            stderr=subprocess.PIPE if output is None else subprocess.STDOUT,
            text=True,
            preexec_fn=die_with_parent,
        )

    def run(self, command: Sequence[str], seconds: float = 120) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            self.command(command), env=environment(), capture_output=True, text=True, timeout=seconds, check=False
        )

    def kill(self, inner: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process that has the number `inner` in this host."""
        done = self.run(["kill", f"-{number.value}", str(inner)])
        assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Network:
    """The hosts, and the namespace of their bridge."""

    hosts: Mapping[str, Host]
    caller: Host

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def cut(self, name: str) -> None:
        """Pull the cable of a host: nothing is refused, everything is lost."""
        self._set_port(name, "down")

    def mend(self, name: str) -> None:
        """Plug it in again."""
        self._set_port(name, "up")

    def isolate(self, *names: str) -> None:
        """Let these hosts reach all others, but not each other."""
        for name in names:
            self._set_port(name, "type", "bridge_slave", "isolated", "on")

    def launcher(self, path: Path) -> Path:
        """Write a script that does for the caller what `ssh HOST COMMAND` does, and give its path."""
        cases = [f'{name}) exec {shlex.join(host.command(["sh", "-c"]))} "$*" ;;' for name, host in self.hosts.items()]
        skip_options = 'while case "$1" in -*) true ;; *) false ;; esac; do shift; done'
        lines = ["#!/bin/sh", skip_options, 'host="$1"', "shift", 'case "$host" in', *cases, "esac"]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def _set_port(self, name: str, *settings: str) -> None:
        _do(self.caller, "ip", "link", "set", "dev", f"port{[*self.hosts].index(name)}", *settings)


@contextmanager
def hosts(root: Path, names: Sequence[str]) -> Iterator[Network]:
    """Hosts of these names with the folders `root/NAME`; skips the test where the user may not make them."""
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    with _joined(root, names) as network:
        yield network


@functools.cache
def obstacle() -> str | None:
    """Why this user cannot make hosts here, or None."""
    missing = [name for name in ("ip", "unshare", "nsenter", "mount", "hostname") if shutil.which(name) is None]
    if missing:
        return f"no hosts: {', '.join(missing)} not found"
    try:
        with tempfile.TemporaryDirectory() as folder, _joined(Path(folder), ["a", "b"]) as network:
            _do(network["a"], "sh", "-c", ": < /etc/hosts")
    except (OSError, AssertionError, subprocess.SubprocessError) as problem:
        return f"no hosts: this user may not make network namespaces with a bridge ({str(problem).strip()})"
    return None


@contextmanager
def _joined(root: Path, names: Sequence[str]) -> Iterator[Network]:
    root.mkdir(parents=True, exist_ok=True)
    addresses = {name: f"10.77.0.{number}" for number, name in enumerate(names, 1)} | {_CALLER: "10.77.0.254"}
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    (root / "hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with ExitStack() as stack:
        caller = stack.enter_context(_caller(addresses[_CALLER], root))
        made: dict[str, Host] = {}
        for number, (name, address) in enumerate(addresses.items()):
            if name != _CALLER:
                made[name] = stack.enter_context(_host(name, address, root, caller))
                _connect(caller, made[name], f"port{number}")
        yield Network(made, caller)


@contextmanager
def _caller(address: str, root: Path) -> Iterator[Host]:
    """The namespace with the bridge: it sees the test's files and processes."""
    begin = 'set -e\nmount --bind "$1/hosts" /etc/hosts\nhostname caller\necho ready\nexec sleep infinity'
    unshare = ["unshare", *_UNPRIVILEGED, "--net", "--uts", "--mount", "sh", "-c", begin, "sh", str(root)]
    with _holding(unshare) as first:
        host = Host(_CALLER, address, root, first, _entry(first, "--net", "--uts", "--mount"))
        _do(host, "ip", "link", "set", "lo", "up")
        _do(host, "ip", "link", "add", INTERFACE, "type", "bridge")
        _do(host, "ip", "addr", "add", f"{address}/24", "dev", INTERFACE)
        _do(host, "ip", "link", "set", INTERFACE, "up")
        yield host


@contextmanager
def _host(name: str, address: str, root: Path, caller: Host) -> Iterator[Host]:
    folder = root / name
    folder.mkdir(exist_ok=True)
    own = ["--net", "--uts", "--ipc", "--mount", "--pid"]
    unshare = ["unshare", *own, "--mount-proc", "--fork", "--kill-child", "sh", "-c", _BEGIN, "sh"]
    with _holding([*caller.entry, *unshare, name, str(folder), str(root)]) as holder:
        children = Path(f"/proc/{holder}/task/{holder}/children").read_text(encoding="ascii")
        first = int(children)
        yield Host(name, address, folder, first, _entry(first, *own))


def _connect(caller: Host, host: Host, port: str) -> None:
    """Lay a cable from the bridge to a host."""
    link = f"ip link add {port} type veth peer name {INTERFACE} netns {host.first}"
    for where, command in (
        (caller, link),
        (caller, f"ip link set {port} master {INTERFACE} up"),
        (host, f"ip addr add {host.address}/24 dev {INTERFACE}"),
        (host, f"ip link set {INTERFACE} up"),
    ):
        _do(where, *command.split())


def _do(host: Host, *command: str) -> None:
    done = subprocess.run([*host.entry, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _entry(first: int, *namespaces: str) -> tuple[str, ...]:
    user = ["--user", "--preserve-credentials"] if _UNPRIVILEGED else []
    return ("nsenter", "--target", str(first), *user, *namespaces, "--")


@contextmanager
def _holding(command: Sequence[str]) -> Iterator[int]:
    """The number of the process that holds a namespace, once it is ready."""
    holder = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent
    )
    try:
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            raise OSError(holder.communicate()[1])
        yield holder.pid
    finally:
        holder.kill()
        holder.communicate()
