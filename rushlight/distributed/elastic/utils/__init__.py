"""Helpers of elastic jobs."""

import os
import socket
from string import Template

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name):
    """The value of a variable of the environment.

    Raises: ValueError where it is not set.
    """
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port():
    """A socket that listens at a free port of this host; whoever takes the port closes it first."""
    for family, kind, protocol, _, _ in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM):
        listener = socket.socket(family, kind, protocol)
        try:
            listener.bind(("localhost", 0))
            listener.listen(0)
        except OSError:
            listener.close()
        else:
            return listener
    raise RuntimeError("Failed to create a socket")


class macros:  # noqa: N801 - PyTorch's name
    """What arguments of a program may name: each worker gets its own."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args, local_rank):
        """The arguments, the texts among them with the number of a worker."""
        return [
            Template(arg).safe_substitute(local_rank=local_rank) if isinstance(arg, str) else arg
            for arg in args
        ]
