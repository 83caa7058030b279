"""Shows what a pickle holds without making any of it: ``python -m torch.utils.show_pickle FILE``.

Objects are shown as the call that would make them, so files that nobody trusts can be looked at."""

import fnmatch
import pickle
import pprint
import struct
import sys
import zipfile
from contextlib import ExitStack

__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]

_USAGE = """usage: show_pickle PICKLE_FILE
  PICKLE_FILE can be any of:
    path to a pickle file
    file.zip@member.pkl
    file.zip@*/pattern.*
      (shell glob pattern for members)
      (only first match will be shown)
"""


class FakeObject:
    """What a class of that name would have made of the arguments, and the state it would have got."""

    def __init__(self, module, name, args):
        self.module, self.name, self.args, self.state = module, name, args, None

    def __setstate__(self, state):
        self.state = state

    def __repr__(self):
        made = f"{self.module}.{self.name}{self.args!r}"
        return made if self.state is None else f"{made}(state={self.state!r})"


class FakeClass:
    """Stands for a class or function; called, it makes a `FakeObject`."""

    def __init__(self, module, name):
        self.module, self.name = module, name
        self.__new__ = lambda cls, *args: FakeObject(module, name, args)  # type: ignore[assignment, method-assign]

    def __repr__(self):
        return f"{self.module}.{self.name}"

    def __call__(self, *args):
        return FakeObject(self.module, self.name, args)


class DumpUnpickler(pickle._Unpickler):  # type: ignore[name-defined, misc]
    """Reads a pickle into fakes; with `catch_invalid_utf8` also texts that are none."""

    def __init__(self, file, *, catch_invalid_utf8=False, **kwargs):
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module, name):
        return FakeClass(module, name)

    def persistent_load(self, pid):
        return FakeObject("pers", "obj", (pid,))

    def load_binunicode(self):
        (size,) = struct.unpack("<I", self.read(4))  # type: ignore[attr-defined]
        content = self.read(size)  # type: ignore[attr-defined]
        try:
            text = content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            text = FakeObject("builtin", "UnicodeDecodeError", (str(error),))
        self.append(text)  # type: ignore[attr-defined]

    dispatch = {  # type: ignore[assignment]
        **pickle._Unpickler.dispatch,  # type: ignore[attr-defined]
        pickle.BINUNICODE[0]: load_binunicode,  # type: ignore[dict-item]
    }

    @classmethod
    def dump(cls, in_stream, out_stream):
        """Shows a pickle, and returns what was shown."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value


def main(argv, output_stream=None):
    """Shows the file that is named behind the program's name; returns 2 where none is."""
    if len(argv) != 2:
        if output_stream is not None:
            raise Exception("Pass argv of length 2.")
        sys.stderr.write(_USAGE)
        return 2
    path, is_member, wanted = argv[1].partition("@")
    with ExitStack() as stack:
        if is_member:
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = [name for name in archive.namelist() if fnmatch.fnmatch(name, wanted)]
            if "*" in wanted and not names:
                raise Exception(f"Could not find member matching {wanted} in {path}")
            file = archive.open(names[0] if "*" in wanted else wanted)
        else:
            file = open(path, "rb")
        DumpUnpickler.dump(stack.enter_context(file), output_stream)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv))
