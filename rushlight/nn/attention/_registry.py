"""Implementations of flash attention that other libraries bring, to be switched on by name."""

from rushlight._command.names import show_from

__all__ = [
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
]

_registered: dict = {}
_active = None  # the name and what its function returned


def register_flash_attention_impl(impl, *, register_fn):
    """Let `activate_flash_attention_impl` find `register_fn` by the name `impl`.

    The function puts its kernels in place, and returns an object whose ``remove()`` takes them out again.
    """
    _registered[impl] = register_fn


def activate_flash_attention_impl(impl):
    """Switch an implementation on, and the former one off."""
    global _active
    restore_flash_attention_impl(_raise_warn=False)
    if impl not in _registered:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. "
            f"Available implementations: {list_flash_attention_impls()}"
        )
    handle = _registered[impl]()
    if handle is not None:
        _active = (impl, handle)


def list_flash_attention_impls():
    """The names that may be switched on."""
    return sorted(_registered)


def current_flash_attention_impl():
    """The name that is switched on, or None."""
    return None if _active is None else _active[0]


def restore_flash_attention_impl(_raise_warn=True):
    """Go back to the kernels of this build."""
    global _active
    if _active is not None:
        _active[1].remove()
        _active = None
    elif _raise_warn:
        import warnings

        warnings.warn(
            "Flash attention impl was never activated, so there is nothing to restore", stacklevel=2
        )


show_from(
    "nn.attention",
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)
