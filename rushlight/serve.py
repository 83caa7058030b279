"""A module behind HTTP while it is developed: ``rushlight-serve`` on a file that is made of it.

    from rushlight import serve

    with serve.Server(module, (example,), dynamic_shapes=({0: Dim("N", max=64)},)) as server:
        print(server.url)
        server.update(module)  # after it was trained further, say: no request is lost

    python -m rushlight.serve FILE.py:NAME [options of rushlight-serve]

The command calls the function NAME of FILE.py, which returns what ``save_file`` takes of a module:
``(module, example_inputs)``, or these and the dynamic shapes. When a Python file of that folder changes, it
does so again in a new process; what fails is told, and the former model goes on.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

__all__ = ["Server", "run"]

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "rushlight-serve")
OFTEN = 0.2  # seconds between looks at files


class Server:
    """A server of its own for one module, or for a file that ``save_file`` wrote.

    ``options`` are those of rushlight-serve, as ``["--batch", "8"]``. With ``port=0`` it chooses a port.
    Its log goes to standard error; ``log`` is ``all``, ``errors`` or ``none``.
    """

    def __init__(
        self,
        module,
        example=None,
        *,
        name="model",
        dynamic_shapes=None,
        host="127.0.0.1",
        port=0,
        log="errors",
        options=(),
    ):
        if not os.path.exists(PROGRAM):
            raise RuntimeError(
                "this Rushlight was built without rushlight-serve: it needs Boost's headers (libboost-dev)"
            )
        self.name = name
        self._example, self._dynamic_shapes = example, dynamic_shapes
        self._folder = tempfile.TemporaryDirectory(prefix="rushlight-serve-")
        self._process: subprocess.Popen[str] | None = None
        try:
            self._path = os.path.join(self._folder.name, f"{name}.rl")
            self._write(module)
            words = ["--host", host, "--port", str(port), "--log", log, "--reload", str(OFTEN), *options]
            self._process = process = subprocess.Popen(
                [PROGRAM, f"{name}={self._path}", *words], stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            line = process.stdout.readline()
            if "://" not in line:
                raise RuntimeError(f"rushlight-serve ended with status {process.wait()}; it says why above")
            self.url = line.split()[1]
        except BaseException:
            self.close()
            raise

    def _write(self, module):
        from rushlight.export import save_file

        if isinstance(module, (str, os.PathLike)):
            with open(module, "rb") as old, open(f"{self._path}.new", "wb") as new:
                new.write(old.read())
            os.replace(f"{self._path}.new", self._path)
        else:
            save_file(module, self._path, self._example, dynamic_shapes=self._dynamic_shapes)

    def update(self, module):
        """Serve the module as it is now. What is under way is answered by the former one."""
        self._write(module)

    def wait(self):
        """Until the server ends; its status."""
        return self._process.wait() if self._process else 0

    def close(self):
        """End when what is under way is answered."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.terminate()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def run(module, example=None, **options):
    """Serve a module until the program is interrupted. The arguments are those of `Server`."""
    with Server(module, example, **{"port": 8000, "log": "all", **options}) as server:
        print(f"{server.url}: stop it with Ctrl-C", flush=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            pass


# --- the command --------------------------------------------------------------------------------------------


def _made_by(source):
    """(module, example inputs, dynamic shapes) that FILE.py:NAME gives."""
    import importlib.util

    file, _, function = source.rpartition(":")
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(file))[0], file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = getattr(module, function)()
    return (*made, None)[:3]


def _export(source, path):
    from rushlight.export import save_file

    module, example, dynamic_shapes = _made_by(source)
    save_file(module.eval(), path, example, dynamic_shapes=dynamic_shapes)


def _state_of(folder):
    """What tells that a Python file of a folder changed."""
    found = {}
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            stat = entry.stat()
            found[entry.name] = stat.st_mtime_ns, stat.st_size
    return found


def _serve_source(source, options):
    file = source.rpartition(":")[0]
    folder = os.path.dirname(os.path.abspath(file))
    name = os.path.splitext(os.path.basename(file))[0]
    with tempfile.TemporaryDirectory(prefix="rushlight-serve-") as made:
        path = os.path.join(made, f"{name}.rl")
        # Without bytecode, which does not tell two texts of one length from one second apart.
        export = [sys.executable, "-B", "-m", "rushlight.serve", "--export", source, path]
        known = _state_of(folder)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the server, too
        status, server = 0, None
        try:
            if status := subprocess.run(export).returncode:
                return status
            server = subprocess.Popen([PROGRAM, path, "--reload", str(OFTEN), *options])
            while server.poll() is None:
                time.sleep(OFTEN)
                if (now := _state_of(folder)) != known:
                    known = now
                    if subprocess.run(export).returncode:
                        print(
                            "rushlight.serve: the former model is served until this is mended",
                            file=sys.stderr,
                            flush=True,
                        )
        except KeyboardInterrupt:
            pass
        finally:
            if server is not None:
                if server.poll() is None:
                    server.terminate()
                status = server.wait()
        return status


def main(arguments):
    if arguments[:1] == ["--export"]:
        return _export(*arguments[1:])
    if not arguments or ":" not in arguments[0]:
        print("usage: python -m rushlight.serve FILE.py:NAME [options of rushlight-serve]", file=sys.stderr)
        return 2
    return _serve_source(arguments[0], arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
