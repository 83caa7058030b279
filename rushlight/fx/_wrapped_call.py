"""What calling a GraphModule does."""

import traceback

from ._module_source import _show_failing_line

__all__ = ["_WrappedCall", "call_wrapped"]

__capture__ = "through"  # Note [Capture marks]


class _WrappedCall:
    """The call of a class of graph modules: an error in generated code shows the line."""

    def __init__(self, cls, cls_call):
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj, *args, **kwargs):
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:
            trace = traceback.extract_tb(error.__traceback__)
            if trace and "eval_with_key" in trace[-1].filename:
                _show_failing_line(trace)
            raise


def call_wrapped(self, *args, **kwargs):
    return self._wrapped_call(self, *args, **kwargs)
