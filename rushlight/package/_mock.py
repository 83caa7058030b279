"""What stands for the contents of a module that was left out of a package. This source goes into packages."""

_METHODS = """
__abs__ __add__ __and__ __bool__ __bytes__ __call__ __complex__ __contains__ __delitem__ __divmod__
__enter__ __eq__ __exit__ __float__ __floordiv__ __format__ __ge__ __getitem__ __gt__ __iadd__ __imul__
__index__ __int__ __invert__ __isub__ __iter__ __le__ __len__ __lshift__ __lt__ __matmul__ __mod__
__mul__ __ne__ __neg__ __next__ __or__ __pos__ __pow__ __radd__ __reversed__ __rmul__ __round__
__rshift__ __rsub__ __rtruediv__ __setitem__ __sub__ __truediv__ __xor__
""".split()


class MockedObject:
    """Raises where it is used."""

    _name: str

    def __new__(cls, *args, **kwargs):
        if not kwargs.get("_suppress_err"):
            raise NotImplementedError(
                f"Object '{cls._name}' was mocked out during packaging but it is being used in a "
                "class definition"
            )
        return super().__new__(cls)

    def __init__(self, name, _suppress_err):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"

    def __getattr__(self, attribute):
        raise _mocked(self, attribute)

    def __setattr__(self, attribute, value):
        raise _mocked(self, attribute)

    def __delattr__(self, attribute):
        raise _mocked(self, attribute)

    __hash__ = object.__hash__


def _mocked(mocked, attribute):
    return NotImplementedError(
        f"Object '{mocked._name}' was mocked out during packaging but it is being used in '{attribute}'. "
        "If this error is happening during 'load_pickle', please ensure that your pickled object doesn't "
        "contain any mocked objects."
    )


def _raising(method):
    def refuse(self, *args, **kwargs):
        raise _mocked(self, method)

    return refuse


for _method in _METHODS:
    setattr(MockedObject, _method, _raising(_method))
