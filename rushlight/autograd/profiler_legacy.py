"""The profiler's former name."""

from rushlight.autograd import profiler
from rushlight.autograd._profiler_enums import ActiveProfilerType

__all__ = ["profile"]


class profile(profiler.profile):
    __doc__ = profiler.profile.__doc__
    _kind = ActiveProfilerType.LEGACY

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
    ):
        super().__init__(
            enabled,
            use_cuda=use_cuda,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )
