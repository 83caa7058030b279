"""How the processes of a job meet: a URL to a store, the own rank and the number of processes.

`env://` reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, or what Slurm's srun and mpirun set;
`tcp://host:port?rank=0&world_size=4` and `file:///path?rank=0&world_size=4` say the same themselves.
"""

from __future__ import annotations

import os
from datetime import timedelta
from urllib.parse import parse_qs, urlparse

from rushlight._errors.advice import advised

from ._job_environment import from_job
from .constants import default_pg_timeout
from .store import PrefixStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["register_rendezvous_handler", "rendezvous"]

_handlers: dict = {}


def register_rendezvous_handler(scheme, handler) -> None:
    """Let `handler(url, **options)` serve URLs of this scheme; it yields (store, rank, world_size).

    Raises RuntimeError when the scheme is taken.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any):
    """Iterator over (store, rank, world_size) for the URL; a rank given here wins over the URL's."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parsed = urlparse(url)
    if parsed.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parsed.scheme}://")
    options = {key: values[-1] for key, values in parse_qs(parsed.query).items()}
    if rank != -1:
        options["rank"] = str(rank)
    if world_size != -1:
        options["world_size"] = str(world_size)
    return _handlers[parsed.scheme](url, _options=options, **kwargs)


def _error(message):
    return advised(ValueError("Error initializing torch.distributed using " + message))


def _whole_number(options, name, scheme):
    if name not in options:
        raise _error(f"{scheme}:// rendezvous: {name.replace('_', ' ')} parameter missing")
    return int(options[name])


def _serve_or_connect(host, port, rank, world_size, timeout):
    from ._tcp_store import TCPStore

    # A launcher serves the store itself: all ranks are its clients.
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    master = rank == 0 and not served
    store = TCPStore(host, port, world_size, master, timeout, wait_for_workers=not served, multi_tenant=True)
    if served:  # the store outlives a failed attempt: the next one must not read its keys
        return PrefixStore(f"/worker/attempt_{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    return store


def _environment(url, timeout: timedelta = default_pg_timeout, _options=None, **_):
    options, job = dict(_options or {}), from_job()
    for name in ("rank", "world_size", "master_addr", "master_port"):
        if name not in options:
            value = os.environ.get(name.upper()) or job.get(name)
            if value is None:
                raise _error(f"env:// rendezvous: environment variable {name.upper()} expected, but not set")
            options[name] = value
    rank, world_size = int(options["rank"]), int(options["world_size"])
    port = int(options["master_port"])
    yield _serve_or_connect(options["master_addr"], port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using env:// method")


def _tcp(url, timeout: timedelta = default_pg_timeout, _options=None, **_):
    parsed, options = urlparse(url), _options or {}
    if parsed.port is None:
        raise _error("tcp:// rendezvous: port number missing")
    rank = _whole_number(options, "rank", "tcp")
    world_size = _whole_number(options, "world_size", "tcp")
    store = _serve_or_connect(parsed.hostname, parsed.port, rank, world_size, timeout)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _file(url, _options=None, **_):
    from ._file_store import FileStore

    parsed, options = urlparse(url), _options or {}
    if not parsed.path:
        raise _error("file:// rendezvous: path missing")
    rank = _whole_number(options, "rank", "file")
    world_size = _whole_number(options, "world_size", "file")
    yield FileStore(parsed.path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


register_rendezvous_handler("env", _environment)
register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("file", _file)
