"""Process groups: who is in them, and which of them this process knows."""

from __future__ import annotations

import warnings
from collections import Counter
from datetime import timedelta
from typing import Any, NamedTuple

from rushlight._command.names import show_public_from
from rushlight._errors.advice import advised

from . import _recorder
from ._errors import DistBackendError
from ._gloo_group import GlooGroup, is_gloo_available
from ._program_backend import ProgramBackend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight import Tensor


class Backend(str):
    """The name of a backend, lower-cased; `Backend.GLOO` and so on."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability = {
        GLOO: ["cpu"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu"],
    }
    _makers: dict = {}  # what register_backend added: name -> (maker, whether its interface is extended)

    def __new__(cls, name: str):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, but got {name!r}")
        value = name.lower()
        return getattr(cls, value.upper(), value)

    @classmethod
    def register_backend(cls, name: str, func: Callable[..., Any], extended_api=False, devices: Any = None):
        """Let `init_process_group(name)` make groups with `func(store, rank, size, timeout)`, which returns
        an object of a subclass of `ProcessGroup` (_program_backend.py lists its methods), or one with the
        methods of `_gloo_group.GlooGroup`. With `extended_api` it is called as `func(options,
        backend_options)`, where `options` has all of that and the ranks of the group."""
        if hasattr(cls, name.upper()) and name.lower() != cls.FAKE:  # a fake one is the program's to make
            raise RuntimeError(f"{name.upper()} c10d backend already exist")
        setattr(cls, name.upper(), name.lower())
        if name.lower() not in cls.backend_list:
            cls.backend_list.append(name.lower())
        devices = [devices] if isinstance(devices, str) else devices or ["cpu"]
        cls.backend_capability[name.lower()] = devices
        cls._makers[name.lower()] = func, extended_api


class BackendOptions(NamedTuple):
    """What a backend of the extended interface is told of the group to make."""

    store: Any
    group_rank: int
    group_size: int
    timeout: Any
    group_id: str
    global_ranks_in_group: list


class BackendConfig:
    """Which backend serves which type of device: "gloo", or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend):
        text = str(backend)
        if ":" in text:
            pairs = [part.split(":") for part in text.split(",")]
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError(
                    f"Invalid backend config {text!r}: expected a backend, or device:backend,..."
                )
            self.device_backend_map = {device: Backend(name) for device, name in pairs}
        elif text in (Backend.UNDEFINED, ""):
            self.device_backend_map = {"cpu": Backend(Backend.GLOO)}
            if is_backend_available(Backend.NCCL):
                self.device_backend_map["cuda"] = Backend(Backend.NCCL)
        else:
            devices = Backend.backend_capability.get(Backend(text), ["cpu"])
            self.device_backend_map = {device: Backend(text) for device in devices}

    def get_device_backend_map(self):
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def first_backend(self):
        """The backend that names the group: that of CPU tensors where there is one. Raises where a backend
        cannot run here."""
        names = self.device_backend_map
        for name in names.values():
            if name == Backend.NCCL:
                _require_nccl()
        return names.get("cpu") or next(iter(names.values()))


def _require_nccl():
    """DistBackendError says why there are no groups on NCCL."""
    from .. import cuda
    from ._nccl_library import require

    if not cuda.is_available():
        raise DistBackendError(
            "nccl: no CUDA device was found (torch.cuda.is_available() is False); use backend='gloo' for CPU "
            "tensors"
        )
    require()


def _make_engines(config, *args):
    names = config.get_device_backend_map()
    made = {name: _make_engine(name, *args) for name in dict.fromkeys(names.values())}
    if len(made) == 1:
        return next(iter(made.values()))
    from ._by_device import EnginesByDevice

    order = sorted(names, key=lambda kind: kind != "cpu")
    return EnginesByDevice({kind: made[names[kind]] for kind in order})


def _make_engine(backend, store, rank, ranks, timeout, name):
    size = len(ranks)
    if backend == Backend.GLOO:
        return GlooGroup(store, rank, size, timeout)
    if backend == Backend.MPI:
        from ._mpi_group import MpiGroup

        return MpiGroup(ranks, rank, timeout, name)
    if backend == Backend.NCCL:
        from ._nccl_group import NcclGroup

        return NcclGroup(store, rank, size, timeout)
    if backend in Backend._makers:
        make, extended = Backend._makers[backend]
        if extended:
            made = make(BackendOptions(store, rank, size, timeout, name, list(ranks)), None)
        else:
            made = make(store, rank, size, timeout)
        return ProgramBackend(made, timeout) if isinstance(made, ProcessGroup) else made
    if backend not in Backend.backend_list:
        raise ValueError(
            f"Invalid backend: '{backend}'. Valid backends are: {', '.join(Backend.backend_list)}"
        )
    raise DistBackendError(f"{backend}: this build has no such backend; use backend='gloo'")


class ProcessGroup:
    """A set of processes that communicate. Those of `init_process_group` and `new_group` are of a subclass.

    A program's own subclass calls `super().__init__(rank, size)` and defines collectives, which
    _program_backend.py lists. It is given as `group=`, to DistributedDataParallel, or made by a backend that
    `Backend.register_backend` knows.
    """

    group_name, group_desc, bound_device_id = "", "undefined", None
    _store: Any = None
    _root_store: Any = None
    _config: Any = None  # which backend serves which device; None for a program's group
    _timeout: Any = timedelta(seconds=300)

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._ranks = rank, list(range(size))

    @property
    def engine(self):
        """What runs the collectives; of a program's group: the group."""
        if "_engine" not in vars(self):
            self._engine = ProgramBackend(self, self._timeout)
        return self._engine

    def rank(self) -> int:
        return self.getRank()

    def size(self) -> int:
        return self.getSize()

    def name(self) -> str:
        return self.getBackendName()

    def getRank(self) -> int:
        return self._rank

    def getSize(self) -> int:
        return len(self._ranks)

    def getBackendName(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not define getBackendName")

    def wire_device(self):
        """Where objects travel."""
        return "cpu"

    def get_group_store(self):
        return self._store

    def watch_with(self, watch):
        """Calls of a program's backend are not watched."""

    def abort(self):
        """Give up what is under way, without waiting."""

    def __deepcopy__(self, memo):
        return self


class OwnGroup(ProcessGroup):
    """A group of `init_process_group` or `new_group`."""

    def __init__(self, name, ranks, own_rank, backend, store, timeout, description=None):
        self.group_name = name
        self.group_desc = description or "undefined"
        self.bound_device_id = None
        self._ranks = list(ranks)  # global ranks, by rank in this group
        self._rank = self._ranks.index(own_rank)
        self._config = BackendConfig(backend)
        self._backend_name = self._config.first_backend()
        self._store = self._root_store = store
        self._timeout = timeout
        self._engine = _make_engines(self._config, store, self._rank, self._ranks, timeout, name)
        _recorder.name_group(name, self)

    def watch_with(self, watch):
        """Let failing calls tell what the other ranks are doing."""
        if not hasattr(self.engine, "watch_with"):
            return  # of somebody else's backend
        if watch is not None:
            watch.add_group(self.group_name, self._ranks)
        self.engine.watch_with(watch, self.group_name)

    def wire_device(self):
        """Where objects travel: on the CPU, unless the group has no backend for it."""
        if "cpu" in self._config.get_device_backend_map():
            return "cpu"
        return "cuda"

    def abort(self):
        """Give up what is under way, without waiting."""
        if hasattr(self.engine, "abort"):
            self.engine.abort()

    @property
    def engine(self):
        return self._engine

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return len(self._ranks)

    def getBackendName(self) -> str:
        return self._backend_name

    def _get_backend_name(self):
        return self._backend_name

    def set_timeout(self, timeout: timedelta | None) -> None:
        self._timeout = self.engine.timeout = timeout

    def __repr__(self) -> str:
        return f"<torch.distributed.ProcessGroup {self.group_name!r} of ranks {self._ranks}>"

    # --- the calls that programs make on the group itself

    def _get_backend(self, device):
        """What serves tensors of a device: the group itself."""
        return self

    def allreduce(self, tensors: list[Tensor], op: Any = None):
        from ._reduce_op import ReduceOp

        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        op = getattr(op, "reduceOp", op)
        return self.engine.all_reduce(list(tensors), ReduceOp.SUM if op is None else op, True)

    def broadcast(self, tensors: list[Tensor], root=0):
        tensor = tensors[0] if isinstance(tensors, (list, tuple)) else tensors
        return self.engine.broadcast(tensor, getattr(root, "rootRank", root), True)

    def allgather(self, outputs, tensors: list[Tensor], options: Any = None):
        nested = isinstance(tensors, (list, tuple))
        return self.engine.all_gather(
            outputs[0] if nested else outputs, tensors[0] if nested else tensors, True
        )

    def barrier(self, *_):
        return self.engine.barrier(True)

    def send(self, tensors: list[Tensor], destination, tag: int = 0):
        return self.engine.send(tensors[0], destination, tag)

    def recv(self, tensors: list[Tensor], source, tag: int = 0):
        return self.engine.receive(tensors[0], source, tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0):
        return self.engine.receive(tensors[0], -1, tag)


class World:
    """The groups of this process."""

    def __init__(self) -> None:
        self.default_pg: Any = None
        self.watch: Any = None  # the thread that tells others where this process is
        self.groups = {}  # by name
        self.made = 0  # ever: the same number on all ranks names a new group
        self.made_locally: Counter = Counter()  # of the same ranks, where only these know

    def local_name(self, members):
        """The name of a new group that only its members make; they count how many they made."""
        ranks = "-".join(map(str, members))
        self.made_locally[ranks] += 1
        return f"{ranks}/{self.made_locally[ranks]}"

    @property
    def pg_map(self):
        return {group: (group._backend_name, group._store) for group in self.groups.values()}

    @property
    def pg_names(self):
        return {group: name for name, group in self.groups.items()}

    @property
    def pg_group_ranks(self):
        return {g: {rank: index for index, rank in enumerate(g._ranks)} for g in self.groups.values()}

    @property
    def group_count(self):
        return self.made

    def next_name(self):
        self.made += 1
        return str(self.made - 1)

    def forget(self, group):
        self.groups.pop(group.group_name, None)
        if group is self.default_pg:
            self.default_pg = None


_world = World()


class _GroupMeta(type):
    @property
    def WORLD(cls):
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, group):
        _world.default_pg = group


class group(metaclass=_GroupMeta):
    """`group.WORLD`: the group of all processes, or None before `init_process_group`."""


class GroupMember(metaclass=_GroupMeta):
    """`GroupMember.NON_GROUP_MEMBER`: what `new_group` returns to processes that are not in the group."""

    NON_GROUP_MEMBER = -100


def _get_default_group():
    if _world.default_pg is None:
        text = "Default process group has not been initialized, please make sure to call init_process_group."
        raise advised(ValueError(text))
    return _world.default_pg


def _group_or_default(group) -> ProcessGroup:
    return _get_default_group() if group is None else group


def _rank_not_in_group(group) -> bool:
    return group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(name):
    rank = _world.default_pg.rank() if _world.default_pg else -1
    warnings.warn(
        f"Running {name} on global rank {rank} which does not belong to the given group.", stacklevel=3
    )


def is_backend_available(backend: str) -> bool:
    """Whether groups can be made with this backend."""
    name = backend.lower()
    if name == "mpi":
        from ._mpi_group import is_available

        return is_available()
    if name == "nccl":
        from .. import cuda

        if not cuda.is_available():
            return False
        from ._nccl_library import library

        return library() is not None
    return is_gloo_available() if name == "gloo" else name in Backend._makers


show_public_from("distributed.distributed_c10d", globals())
