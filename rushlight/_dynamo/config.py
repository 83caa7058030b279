"""Settings of graph capture. Of effect: recompile_limit and cache_size_limit (the smaller), and disable."""

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = False
verbose = False
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
force_parameter_static_shapes = True
optimize_ddp = True
inline_inbuilt_nn_modules = True
guard_nn_modules = True
compiled_autograd = False
disable = False
allow_unspec_int_on_nn_module = False

_keep_captures = False  # for explain()


class _Patch:
    """Settings that hold inside of a ``with`` block, or of a decorated function."""

    def __init__(self, changes):
        self.changes = changes

    def __enter__(self):
        settings = globals()
        self.before = {name: settings[name] for name in self.changes}
        settings.update(self.changes)

    def __exit__(self, *exc):
        globals().update(self.before)

    def __call__(self, fn):
        from functools import wraps

        @wraps(fn)
        def inside(*args, **kwargs):
            with _Patch(self.changes):
                return fn(*args, **kwargs)

        return inside


def patch(name=None, value=None, **changes):
    """Change settings for a while: ``patch("verbose", True)``, ``patch(verbose=True)``, ``patch({...})``."""
    if isinstance(name, dict):
        changes = {**name, **changes}
    elif name is not None:
        changes[name] = value
    unknown = [setting for setting in changes if setting not in globals()]
    if unknown:
        raise AttributeError(f"torch._dynamo.config has no setting {unknown[0]!r}")
    return _Patch(changes)
