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


CPP_SESSIONS = r"""
#define RUSHLIGHT_CORE
#include <cstdio>
#include "rushlight/runtime.h"
using namespace rushlight;

int main(int, char** argv) {
  const auto model = runtime::Model::load(argv[1]);
  for (const auto& name : model.methods()) std::printf("%s ", name.c_str());
  for (const auto& info : model.state()) std::printf("%s %s\n", info.name.c_str(), info.type.c_str());
  Tensor x = empty_tensor({2}, DType::Float32);
  x.data<float>()[0] = 1, x.data<float>()[1] = 2;
  runtime::Session a(model), b(model);
  a.run("add", {x});
  const void* place = a.state("total").data_ptr();
  auto c = a.clone();
  const auto first = a.run("add", {x});
  c.run("add", {{"x", x}});
  c.run("add", {x});
  std::printf("%g ", first[0].data<float>()[1]);
  for (auto* s : {&a, &b, &c}) std::printf("%g ", s->run("get", std::vector<Tensor>())[0].data<float>()[1]);
  a.reset();
  const Tensor total = a.state("total");
  std::printf("%g %zu %d\n", total.data<float>()[1], a.nbytes(), total.data_ptr() == place);
  for (const char* method : {"add", "gone"}) try {
      model.run(method, {x});
    } catch (const std::exception& e) {
      std::printf("%s\n", e.what());
    }
}
"""

C_SESSIONS = r"""
#include <stdio.h>
#include "rushlight/c.h"
#define MUST(call) if (call) return puts(rl_last_error()), 1

int main(int argc, char** argv) {
  rl_model model;
  rl_session session, copy;
  rl_model_tensor info;
  rl_tensor x, y;
  size_t count, inputs, outputs;
  float data[2] = {1, 2};
  const char* name;
  void* found;
  MUST(rl_model_load(argv[1], &model));
  MUST(rl_model_method_count(model, &count));
  MUST(rl_model_method(model, 1, &name));
  MUST(rl_model_method_sizes(model, "add", &inputs, &outputs));
  MUST(rl_model_method_input(model, NULL, 0, &info));
  printf("%zu %s %zu %zu %s\n", count, name, inputs, outputs, info.type);
  MUST(rl_model_state(model, 0, &info));
  printf("%s %s\n", info.name, info.type);
  MUST(rl_session_create(model, &session));
  rl_model_release(model);
  rl_tensor_from_memory(data, (int64_t[]){2}, NULL, 1, RL_FLOAT32, NULL, NULL, &x);
  for (int i = 0; i < 3; ++i) {
    MUST(rl_session_run(session, "add", &x, 1, &y, 1));
    rl_tensor_release(y);
  }
  MUST(rl_session_clone(session, &copy));
  MUST(rl_session_reset(session));
  MUST(rl_session_run(copy, "get", NULL, 0, &y, 1));
  rl_tensor_data(y, &found);
  printf("%g ", ((float*)found)[1]);
  rl_tensor_release(y);
  MUST(rl_session_state(session, "total", &y));
  rl_tensor_data(y, &found);
  MUST(rl_session_nbytes(session, &count));
  printf("%g %zu\n", ((float*)found)[1], count);
  rl_tensor_release(y);
  int status = rl_session_run(session, "gone", NULL, 0, &y, 1);
  printf("%d %s\n", status, rl_last_error());
  rl_tensor_release(x);
  rl_session_release(copy);
  rl_session_release(session);
  return 0;
}
"""


# The bytes stay as they are, though a kernel keeps weights in an order of its own, and are given back once.
C_MEMORY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rushlight/c.h"
#define MUST(call) if (call) return puts(rl_last_error()), 1

static int releases = 0;
static void release(void* context) { releases += *(int*)context; }

int main(int argc, char** argv) {
  FILE* file = fopen(argv[1], "rb");
  fseek(file, 0, SEEK_END);
  const size_t size = (size_t)ftell(file);
  char *bytes = NULL, *same = malloc(size);
  posix_memalign((void**)&bytes, 64, size + 64);
  rewind(file);
  fread(bytes, 1, size, file);
  memcpy(same, bytes, size);
  rl_model model;
  rl_session session;
  rl_tensor x, y;
  int one = 1;
  void* found;
  MUST(rl_model_load_memory(bytes, size, release, &one, &model));
  MUST(rl_session_create(model, &session));
  rl_model_release(model);
  MUST(rl_tensor_empty((int64_t[]){1, 64, 16, 16}, 4, RL_FLOAT32, &x));
  rl_tensor_data(x, &found);
  for (int i = 0; i < 64 * 256; ++i) ((float*)found)[i] = 1;
  for (int i = 0; i < 3; ++i) {
    MUST(rl_session_run(session, NULL, &x, 1, &y, 1));
    rl_tensor_data(y, &found);
    printf("%g ", *(float*)found);
    rl_tensor_release(y);
  }
  printf("%d %d ", memcmp(bytes, same, size), releases);
  rl_session_release(session);
  printf("%d\n", releases);
  rl_tensor_release(x);
  printf("%d ", rl_model_load_memory(bytes, size / 2, release, &one, &model));
  printf("%d %s\n", releases, rl_last_error());
  printf("%d ", rl_model_load_memory(bytes + 4, size - 4, release, &one, &model));
  printf("%d %s\n", releases, rl_last_error());
  return 0;
}
"""


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def add(self, x):
        return self.total.add_(x)

    def get(self):
        return self.total + 0


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


@pytest.fixture(scope="module")
def stateful(tmp_path_factory):
    path, module = tmp_path_factory.mktemp("runtime") / "state.rl", Sum()
    save_file({"add": module.add, "get": module.get}, path, {"add": (torch.ones(2),), "get": ()})
    return path


def test_sessions_of_cpp(tmp_path, stateful):
    lines = run(CPP_SESSIONS, ".cpp", tmp_path, stateful)
    assert lines[:2] == ["add get total float32[2]", "4 4 0 6 0 8 1"]
    assert lines[2] == "the method 'add' writes to the state 'total': run it in a session of the model"
    assert lines[3] == "there is no method 'gone'; the model has add, get"


def test_sessions_of_c(tmp_path, stateful):
    lines = run(C_SESSIONS, ".c", tmp_path, stateful)
    assert lines == [
        "2 get 1 1 float32[2]",
        "total float32[2]",
        "6 0 8",
        "2 there is no method 'gone'; the model has add, get",
    ]


def test_c_from_memory(tmp_path):
    path = tmp_path / "conv.rl"
    layer = nn.Conv2d(64, 256, 3, bias=False)
    nn.init.constant_(layer.weight, 1 / 8)
    save_file(layer, path, (torch.ones(1, 64, 16, 16),))
    lines = run(C_MEMORY, ".c", tmp_path, path)
    assert lines[0] == "72 72 72 0 0 1"
    assert lines[1].startswith("1 2 cannot read the model 'in memory': it was cut short")
    assert lines[2] == "2 3 the bytes of a model must begin at a multiple of 64"
