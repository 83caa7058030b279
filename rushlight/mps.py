"""The MPS device. This build does not have it."""

from rushlight._absent import refuse


def is_available():
    return False


def device_count():
    return 0


def is_initialized():
    return False


def manual_seed(seed):
    """Nothing to seed."""


manual_seed_all = manual_seed


def seed():
    """Nothing to seed."""


def empty_cache():
    """Nothing is cached."""


def _is_in_bad_fork():
    return False


synchronize = current_device = set_device = get_rng_state = set_rng_state = refuse("MPS")
