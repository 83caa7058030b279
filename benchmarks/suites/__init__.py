"""The suites. Their modules are PyTorch programs, which only the processes that are measured import."""

from typing import NamedTuple

from ..peers import ENGINES, PEERS


class SuiteInfo(NamedTuple):
    title: str
    sampled: bool = False  # each sample is a program of its own; else a function in a process that stays
    most_rounds: int = 1_000_000
    many_processes: bool = False  # processor time of one says nothing: always measured in wall time
    on_request: bool = False  # takes long, so that it is left out unless named
    peers: tuple[str, ...] = ()  # modules of benchmarks.peers that it is compared with in PyTorch's place
    compiled: bool = False  # cases come in two ways, see ..compiled


SUITES = {
    "small": SuiteInfo("Small operations"),
    "modules": SuiteInfo("Module calls"),
    "autograd": SuiteInfo("Autograd"),
    "optimizers": SuiteInfo("Optimizers"),
    "kernels": SuiteInfo("Large operations"),
    "convolutions": SuiteInfo("Convolutions", on_request=True),
    "models": SuiteInfo("Models"),
    "compiled": SuiteInfo("torch.compile", on_request=True, compiled=True),
    "loader": SuiteInfo("Data loading and exchange between processes", many_processes=True),
    "distributed": SuiteInfo("Jobs of several processes", many_processes=True),
    "files": SuiteInfo("Saving and loading"),
    "startup": SuiteInfo("Start-up", sampled=True),
    "cpp": SuiteInfo("The core from C++", sampled=True, most_rounds=5),
    "peers": SuiteInfo("Other libraries", on_request=True, peers=tuple(p for p in PEERS if p not in ENGINES)),
    "engines": SuiteInfo("Models of one file beside inference engines", on_request=True, peers=ENGINES),
    "package": SuiteInfo("Build and wheel", sampled=True, most_rounds=1, on_request=True),
}
