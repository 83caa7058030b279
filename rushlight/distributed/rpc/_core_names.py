"""What packages ask ``torch._C._distributed_rpc`` for."""

from . import _state
from ._agent import WorkerInfo
from ._rref import RRef as PyRRef

__all__ = ["PyRRef", "WorkerInfo"]


def _is_current_rpc_agent_set():
    """Whether this process takes part in remote calls."""
    return _state.current is not None


def _get_current_rpc_agent():
    """The agent of this process."""
    return _state.agent()
