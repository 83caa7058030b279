"""`./dev fuzz server`: what it takes from the commands of the build in place."""

import shlex

from dev_project import module


def test_compilers_commands_lose_what_belongs_to_another_object():
    words = shlex.split(
        "ccache c++ -DX=1 -include pch.hxx -Winvalid-pch -O2 -MD -MT a.o -MF a.d -o a.o -Isrc"
    )
    assert module("sanitized_server").kept(words) == ["ccache", "c++", "-DX=1", "-O2", "-Isrc"]


def test_of_linkers_commands_only_the_link_is_taken():
    link_of = module("sanitized_server").link_of
    assert link_of(shlex.split(": && c++ -shared -o lib.so a.o && cd build && check lib.so")) == [
        *("c++", "-shared", "-o", "lib.so", "a.o"),
    ]
    assert link_of(shlex.split("c++ -c a.cpp -o a.o")) == []


def test_units_are_those_that_a_request_passes_through():
    units = module("sanitized_server").UNITS
    for name in ("src/serve/server", "src/generation/tokenizer", "src/io/json", "build/dev/serve_page"):
        assert units.search(f"/x/{name}.cpp"), name
    assert units.search("/x/src/core/cpu_allocator.cpp")
    for name in ("src/ops/add", "src/core/cpu_allocator_test", "src/serve/inference"):
        assert bool(units.search(f"/x/{name}.cpp")) == (name == "src/serve/inference"), name
