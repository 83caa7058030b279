"""Time limits of process groups, `datetime.timedelta`s."""

from datetime import timedelta

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout = _DEFAULT_PG_TIMEOUT = timedelta(minutes=30)
default_pg_nccl_timeout = _DEFAULT_PG_NCCL_TIMEOUT = timedelta(minutes=10)
