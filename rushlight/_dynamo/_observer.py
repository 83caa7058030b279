"""Watching a program run: which code it executes, so that the state that code reads is known beforehand, and
which built-in functions it calls, so that those with effects outside of the program are stopped first.
"""

import builtins
import copy
import functools
import inspect
import logging
import math
import operator
import sys
import types

import rushlight as torch
from rushlight import _C
from rushlight._command.names import is_own, is_own_file, is_own_frame, path_in_package

from .exc import Unsupported

__all__ = ["Interruption", "Observer", "mark_of"]

__capture__ = "skip"  # Note [Capture marks]


_CALL_OF_CUSTOM_OPERATOR = torch.library.CustomOpDef.__call__.__code__
_IMPORTER = "<frozen importlib._bootstrap>"
# What these find out follows from what guards check of functions, and of loggers.
_FOLLOWS = frozenset([inspect.signature.__code__, logging.Logger.isEnabledFor.__code__])
_FUNCTION_TABLES = frozenset(["__wrapped__", "__signature__"])

# Attributes of tensors that a graph does not hold.
_TENSOR_STATE = frozenset(
    """grad grad_fn is_leaf _version data _base output_nr retain_grad retains_grad register_hook backward set_
    _backward_hooks register_post_accumulate_grad_hook _grad requires_grad_ share_memory_ __dict__ _cdata
    numpy tolist data_ptr const_data_ptr storage _typed_storage untyped_storage __array__ __array_wrap__
    __dlpack__ __dlpack_device__ is_set_to detach_ is_pinned pin_memory record_stream apply_ map_ map2_
    is_shared as_subclass _make_subclass module_load __reduce_ex__ __deepcopy__""".split()
)

_SWALLOWING = frozenset(["Exception", "BaseException"])  # after which an attribute may be missing

_PURE_BUILTINS = frozenset(
    """abs all any bin bool callable chr divmod format getattr hasattr hex isinstance issubclass iter len max
    min next oct ord pow repr round setattr delattr sorted sum __build_class__""".split()
)
_PURE_LIBRARY = frozenset(
    """tensor as_tensor asarray scalar_tensor promote_types result_type can_cast get_default_dtype
    get_num_threads get_autocast_dtype broadcast_shapes finfo iinfo""".split()
)
_PLAIN_TYPES = (
    list,
    dict,
    tuple,
    set,
    frozenset,
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    slice,
    range,
    type(None),
)
_TENSOR_FACTS = frozenset(
    """size dim ndimension numel nelement stride is_contiguous element_size get_device storage_offset
    is_floating_point is_complex is_signed __len__ is_inference __torch_function__ _is_view has_names is_neg
    is_conj""".split()
)


class Interruption(BaseException):
    """Ends a program that cannot be captured; none of its handlers may take it for an error of its own."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


# Note [Capture marks]
# A module of the library says what a capture does where the program calls one of its functions:
# `__capture__ = "through"`: they do nothing but call operators, which the capture sees;
# `__capture__ = "traced"`: the same, and errors that they raise are the program's own, not an operator's;
# `__capture__ = "skip"`: they are the capture's own machinery, and no part of the program.
# `__capture_state__` are names of globals that its functions read, and that change: guards check them.
# `__package_capture__` in a folder's `__init__.py` speaks for all files of the folder. Without a mark a call
# ends the capture: the function may do what no graph holds.
def mark_of(space):
    """The mark for functions with these globals, or None."""
    mark = space.get("__capture__")
    if mark is None and (package := sys.modules.get(space.get("__package__"))) is not None:
        mark = vars(package).get("__package_capture__")
    return mark


def _place(frame):
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Observer:
    """A profile function (`sys.setprofile`) for the time of one run."""

    def __init__(self, reachable):
        self.reachable = reachable
        self.interruption = None
        self.interrupted_by_call = False  # of a function that may do more than compute
        self.codes = set()
        self.enters_inference_mode = False
        self.importing = None
        self.steps, self.see_step = (), print  # code, and who is told of the frames that run it
        self.only = self.inside = None  # code without which nothing is looked at, and the frame that runs it
        self._watches = self._paused = False

    def __enter__(self):
        self.before = sys.getprofile()
        self._watches = True
        sys.setprofile(self._see)
        return self

    def __exit__(self, *exc):
        self._watches = False
        sys.setprofile(self.before)

    @property
    def paused(self):
        """Whether what runs is no part of the program: Python then runs at its usual speed."""
        return self._paused

    @paused.setter
    def paused(self, value):
        self._paused = value
        if self._watches:
            sys.setprofile(None if value else self._see)

    def interrupt(self, reason, frame=None):
        frame = frame or self.user_frame(sys._getframe(1))
        self.interruption = f"{reason} ({_place(frame)})" if frame is not None else reason
        raise Interruption(self.interruption)

    def user_frame(self, frame):
        """The innermost frame of code that is not the library's."""
        while frame is not None and is_own_frame(frame):
            frame = frame.f_back
        return frame

    def _see(self, frame, event, function):
        if self._paused:
            return
        if self.only is not None and not self._is_inside(frame, event):
            return
        if frame.f_code in self.steps and event != "c_call":
            self.see_step(frame, event, function)
        if self.importing is not None:  # what modules do while they are imported happens once
            if event == "return" and frame is self.importing:
                self.importing = None
        elif event == "call" and frame.f_code.co_filename == _IMPORTER:
            self.importing = frame
        elif event == "call" and frame.f_code in _FOLLOWS:
            self.importing = frame
            self.reachable.learn(_FUNCTION_TABLES, by_user=False)
        elif event == "call":
            key = frame.f_code, id(frame.f_globals)
            if key not in self.codes:
                self.codes.add(key)
                self._enter(frame)
        elif event == "c_call" and not is_own_frame(frame):
            if not _is_pure(function) and not self._is_copying(frame, function):
                self.interrupted_by_call = True
                self.interrupt(f"the program calls {_name(function)}, which may do more than compute", frame)

    def _is_inside(self, frame, event):
        """Whether a frame runs below one of the code that alone is watched."""
        if self.inside is None and event == "call" and frame.f_code is self.only:
            self.inside = frame
        elif self.inside is not None and frame is not self.inside:
            return True
        elif event == "return":
            self.inside = None
        return False

    def _is_copying(self, frame, function):
        """Whether `copy` asks for what an object holds: all of its entries. Tensors copy themselves."""
        if frame.f_code.co_filename != copy.__file__:
            return False
        if function.__name__ == "__reduce_ex__":
            self.reachable.learn_entries([function.__self__])
            self.reachable.learn_slots(type(function.__self__))
            return not isinstance(function.__self__, torch.Tensor)
        return function is id

    def _reads_entries(self, frame):
        """Whether what code asks for `__dict__` are objects of its caller's: all entries are read."""
        found = _read_by_entries(frame.f_code)
        if found is None:
            return False
        values = [frame.f_locals.get(name) for name in found]
        if any(isinstance(value, torch.Tensor) for value in values):
            return False
        self.codes.discard((frame.f_code, id(frame.f_globals)))  # another call may bring others
        self.reachable.learn_entries(values)
        return True

    def _enter(self, frame):
        code = frame.f_code
        path = code.co_filename
        names = set(code.co_names)
        if "inference_mode" in names:
            self.enters_inference_mode = True
        try:
            if is_own_file(path):
                mark = mark_of(frame.f_globals)
                if mark == "skip":
                    return
                if mark not in ("through", "traced") and code is not _CALL_OF_CUSTOM_OPERATOR:
                    self.interrupt(f"the program calls {code.co_name} of rushlight/{path_in_package(path)}")
                state = names & frame.f_globals.get("__capture_state__", frozenset())
                self.reachable.read_globals(frame.f_globals, state, frame.f_globals["__name__"])
                self.reachable.learn(names, by_user=False)
                return
            denied = names & _TENSOR_STATE
            if "__dict__" in denied and (path == copy.__file__ or self._reads_entries(frame)):
                denied = denied - {"__dict__"}
            if denied:
                self.interrupt(f"the program reads or sets `.{min(denied)}`, which no graph holds", frame)
            maybe_missing = names if _SWALLOWING & names else set()
            if code.co_name == "__getattribute__":  # of an object whose entries were all looked at
                names |= {c for c in code.co_consts if isinstance(c, str) and c.isidentifier()}
            if "getattr" in names or "hasattr" in names or "AttributeError" in names or "vars" in names:
                maybe_missing = {c for c in code.co_consts if isinstance(c, str) and c.isidentifier()}
                names |= maybe_missing
                found = _constant_names(code, frame.f_globals)
                if found is None:
                    self.reachable.learn_everything()
                else:
                    maybe_missing |= found
                    names |= found
            self.reachable.read_globals(
                frame.f_globals, _global_names(code), frame.f_globals.get("__name__", "?")
            )
            self.reachable.learn(names, True, maybe_missing)
        except Unsupported as error:
            self.interrupt(str(error), frame)


@functools.lru_cache(4096)
def _global_names(code):
    """The names that code looks up as globals: `co_names` holds those of attributes, too."""
    import dis

    return tuple({i.argval: None for i in dis.get_instructions(code) if i.opname in _LOOKS_UP})


def _constant_names(code, space):
    """The names that all calls of getattr and hasattr have as second argument, if these are literals or
    globals; None where names are computed."""
    import dis

    instructions = [
        i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL", "PUSH_NULL")
    ]
    names = set()
    for at, instruction in enumerate(instructions):
        if (
            instruction.argval not in ("getattr", "hasattr", "AttributeError", "vars")
            or "LOAD" not in instruction.opname
        ):
            continue
        if instruction.argval in ("AttributeError", "vars") or instruction.opname == "LOAD_CONST":
            return None
        following = instructions[at + 1 : at + 8]
        call = next((i for i, f in enumerate(following) if f.opname.startswith("CALL")), None)
        last = following[max(0, call - 2) : call] if call is not None else []
        found = [name for name in (_constant(f, space) for f in last) if isinstance(name, str)]
        if not found:
            return None
        names.update(found)
    return names


def _constant(instruction, space):
    if instruction.opname == "LOAD_GLOBAL":
        return space.get(instruction.argval)
    return instruction.argval if instruction.opname == "LOAD_CONST" else None


_LOOKS_UP = frozenset(
    ["LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL"]
)
_LOADS = frozenset(["LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_DEREF"])


@functools.cache
def _read_by_entries(code):
    """The variables, set before it runs alone, that code asks for `__dict__`; None if it asks others."""
    import dis

    instructions = [
        i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL", "PUSH_NULL")
    ]
    stored = {i.argval for i in instructions if i.opname in ("STORE_FAST", "DELETE_FAST", "STORE_DEREF")}
    given = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_freevars} - stored
    found = set()
    for before, instruction in zip(instructions, instructions[1:]):
        if instruction.argval == "__dict__":
            if instruction.opname != "LOAD_ATTR" or before.opname not in _LOADS:
                return None
            found.add(before.argval)
    return found if found <= given else None


def _name(function):
    module = getattr(function, "__module__", None)
    owner = getattr(function, "__self__", None)
    if module is None and owner is not None and not isinstance(owner, types.ModuleType):
        module = type(owner).__name__
    return f"{module}.{function.__name__}" if module else function.__name__


def _is_pure(function):
    owner = getattr(function, "__self__", None)
    name = function.__name__
    if owner is builtins:
        return name in _PURE_BUILTINS
    if owner is math or owner is operator or getattr(owner, "__name__", None) in ("_operator", "_abc"):
        return True
    if isinstance(owner, torch.Tensor):
        return name in _TENSOR_FACTS
    if isinstance(owner, types.ModuleType):
        return is_own(owner.__name__, "_C") and (name in _PURE_LIBRARY or name.startswith("is_"))
    if isinstance(owner, type):
        plain = owner is object or issubclass(owner, _PLAIN_TYPES) or owner is torch.nn.Module
        return plain or name in ("__subclasses__", "mro")
    if isinstance(
        owner, (torch.nn.Module, _C._NoGrad, _C._EnableGrad, torch.set_grad_enabled, torch.inference_mode)
    ):
        return True
    return isinstance(owner, _PLAIN_TYPES) or type(owner).__module__ == "collections"
