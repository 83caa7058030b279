"""What `./dev cross` unpacks of compilers."""

import os

from dev_project import module


def test_unpacked_compilers_find_their_libraries(tmp_path, monkeypatch):
    """The assembler stopped for want of libopcodes on a machine that had no compiler for ARM64 of its own."""
    cross = module("cross")
    system = cross.System(tmp_path)
    libraries = system.tools / "usr" / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    for step in ("_unpack", "_headers", "_wheels", "_program"):
        monkeypatch.setattr(system, step, lambda *_: None)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    system.make()
    assert os.environ["LD_LIBRARY_PATH"] == f"{libraries}:/somewhere"
    assert os.environ["PATH"] == f"{system.tools}/usr/bin:/usr/bin"
    monkeypatch.delenv("LD_LIBRARY_PATH")
    libraries.rmdir()
    system.make()
    assert "LD_LIBRARY_PATH" not in os.environ
