"""Texts that run together while memory fails: each ends once, no page is lost, later texts are right."""

import os
import pathlib
import shutil
import subprocess

import pytest
from language_folders import write_llama

import rushlight as torch
from rushlight.export import load_language_model, save_language_model

SOURCE = pathlib.Path(torch.__file__).parent.parent / "src"
FAILING = SOURCE.parent / "tests" / "fuzz" / "failing_memory.cpp"

PROGRAM = r"""
#define RUSHLIGHT_CORE
#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include "generation/text_engine.h"
using namespace rushlight::generation;

int main(int, char** argv) {
  const auto begin = reinterpret_cast<void (*)(long, int)>(dlsym(RTLD_DEFAULT, "failing_memory_begin"));
  const auto end = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "failing_memory_end"));
  if (!begin || !end) return std::puts("memory does not fail"), 1;
  const auto model = TextModel::load(argv[1]);
  TextLimits limits;
  limits.max_running = 3, limits.chunk = 20, limits.max_queued = 9;
  TextEngine engine(model, limits, 6);  // of which a text may take five
  long tickets = 0, failed = 0;
  const auto run = [&](long left, bool again, bool print) {
    int ends = 0;
    for (int i = 0; i < 3; ++i) {
      TextRequest request;
      for (int k = 0; k < 30 + i; ++k) request.tokens.push_back(5 + k % (7 + (i > 0)));
      request.settings.max_tokens = 50, request.settings.ignore_end = true;
      TextCallbacks calls;
      calls.on_end = [&, print, i](const TextEnd& e) {
        ++ends;
        if (e.outcome != TextOutcome::Done) ++failed;
        for (const auto token : e.result.tokens)
          if (print) std::printf("%ld ", static_cast<long>(token));
        if (print) std::printf("%d\n", static_cast<int>(e.outcome));
      };
      engine.add(std::make_unique<Text>(++tickets, std::move(request), std::move(calls)));
    }
    begin(left, again);
    for (int steps = 0; !engine.idle(); ++steps)
      if (steps > 1000) return std::puts("it goes on and on"), std::exit(1), 0L;
    else
      engine.step();
    const long made = end();
    if (ends != 3 || engine.stats.pages_used != 0) {
      std::printf("after %ld: %d ends\n", left, ends);
      std::exit(1);
    }
    return made;
  };
  run(-1, false, false);
  engine.forget_prefixes();
  const long made = run(-1, false, false);
  const long step = std::max(1L, made / std::atol(argv[2]));
  for (long n = 0; n < made; n += step) {
    run(n, (n / step) % 4 == 3, false);
    engine.forget_prefixes();
  }
  run(-1, false, true);
  std::printf("%ld %ld %d\n", made, failed, engine.stats.put_back > 0);
}
"""


@pytest.mark.skipif(
    not FAILING.exists() or not shutil.which("g++"), reason="needs the sources and a compiler"
)
def test_no_page_is_lost_where_memory_fails(tmp_path):
    library = pathlib.Path(torch.__file__).parent / "lib"
    (tmp_path / "program.cpp").write_text(PROGRAM)
    failing = tmp_path / "failing.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", failing, FAILING], check=True, timeout=300)
    words = [
        "g++",
        "-std=c++20",
        f"-I{SOURCE}",
        f"-I{SOURCE.parent / 'include'}",
        "program.cpp",
        "-o",
        "program",
    ]
    words += [f"-L{library}", "-lrushlight", "-ldl", f"-Wl,-rpath,{library}", "-Wl,--allow-shlib-undefined"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=300)
    save_language_model(write_llama(tmp_path / "f"), tmp_path / "m.rl")
    done = subprocess.run(
        [tmp_path / "program", tmp_path / "m.rl", "400"],
        env={**os.environ, "LD_PRELOAD": str(failing), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *texts, last = done.stdout.splitlines()
    alone = load_language_model(tmp_path / "m.rl")
    for i in range(3):
        prompt = [5 + k % (7 + (i > 0)) for k in range(30 + i)]
        tokens, _, _ = alone.generate(prompt, max_tokens=50, ignore_end=True)
        assert " ".join(map(str, [*tokens, 0])) in texts
    made, failed, put_back = map(int, last.split())
    assert made > 400 and failed > 100 and put_back
