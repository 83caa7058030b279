"""Models of one file from C++ and C: small programs, compiled against the library and run."""

import pathlib
import shutil
import subprocess

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, save_file

PACKAGE = pathlib.Path(torch.__file__).parent
SOURCES = PACKAGE.parent / "src"
INCLUDES = [PACKAGE / "include"] if not SOURCES.exists() else [SOURCES, PACKAGE.parent / "include"]
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs a compiler")

CPP = r"""
#define RUSHLIGHT_CORE
#include <cstdio>
#include <thread>
#include "rushlight/runtime.h"
using namespace rushlight;

int main(int, char** argv) {
  const auto model = runtime::Model::load(argv[1]);
  for (const auto& info : model.inputs())
    std::printf("%s %s %ld\n", info.name.c_str(), info.type.c_str(), info.sizes[0]);
  Tensor x = empty_tensor({2, 3}, DType::Float32);
  for (int i = 0; i < 6; ++i) x.data<float>()[i] = static_cast<float>(i);
  const auto results = model.run({{"x", x}});
  std::printf("%g\n", results.at("total").data<float>()[1]);
  std::vector<std::thread> threads;
  bool same = true;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) same = same && model.run({x})[0].data<float>()[0] == 3;
    });
  for (auto& t : threads) t.join();
  std::printf("%d\n", same);
  try {
    model.run({{"y", x}});
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
  }
}
"""

C = r"""
#include <stdio.h>
#include "rushlight/c.h"

int main(int argc, char** argv) {
  rl_model model;
  rl_model_tensor info;
  rl_tensor input, output;
  size_t count;
  float data[6] = {0, 1, 2, 3, 4, 5};
  void* found;
  if (rl_model_load(argv[1], &model)) return puts(rl_last_error()), 1;
  rl_model_output_count(model, &count);
  rl_model_input(model, 0, &info);
  printf("%zu %s %s %ld\n", count, info.name, info.type, (long)info.sizes[0]);
  rl_tensor_from_memory(data, (int64_t[]){2, 3}, NULL, 2, RL_FLOAT32, NULL, NULL, &input);
  if (rl_model_run(model, &input, 1, &output, 1)) return puts(rl_last_error()), 1;
  rl_tensor_data(output, &found);
  printf("%g\n", ((float*)found)[1]);
  int status = rl_model_run(model, NULL, 0, &output, 1);
  printf("%d %s\n", status, rl_last_error());
  rl_tensor_release(output);
  rl_tensor_release(input);
  rl_model_release(model);
  status = rl_model_load("none.rl", &model);
  printf("%d %s\n", status, rl_last_error());
  return 0;
}
"""


class Total(nn.Module):
    def forward(self, x):
        return {"total": x.sum(1)}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("runtime") / "total.rl"
    save_file(Total(), path, (torch.zeros(4, 3),), dynamic_shapes=({0: Dim("N")},))
    return path


def run(source, suffix, folder, model):
    (folder / f"program{suffix}").write_text(source)
    compiler = ["g++", "-std=c++20"] if suffix == ".cpp" else ["gcc", "-std=c11", "-D_GNU_SOURCE"]
    library = PACKAGE / "lib"
    includes = [f"-I{path}" for path in INCLUDES]
    link = [f"-L{library}", "-lrushlight", f"-Wl,-rpath,{library}", "-Wl,--allow-shlib-undefined", "-pthread"]
    command = [*compiler, *includes, f"program{suffix}", "-o", "program", *link]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    done = subprocess.run([folder / "program", model], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_cpp(tmp_path, model):
    lines = run(CPP, ".cpp", tmp_path, model)
    assert lines[:3] == ["x float32[N, 3] -1", "12", "1"]
    assert lines[3].startswith("the input 'x' is missing") and "x: float32[N, 3]" in lines[4]


def test_c(tmp_path, model):
    lines = run(C, ".c", tmp_path, model)
    assert lines[:2] == ["1 x float32[N, 3] -1", "12"]
    assert lines[2].startswith("2 expected 1 inputs, but got 0")
    assert lines[-1].startswith("1 cannot open 'none.rl'")
