// Models in files behind libtorch's interface.
#include <gtest/gtest.h>
#include <torch/script.h>

#include <cstdio>
#include <fstream>

#include "io/model_file.h"
#include "jit/text.h"

namespace {

std::string written(const char* graph) {
  const std::string path = testing::TempDir() + "script.rl";
  rushlight::io::write_model(path, rushlight::jit::parse_graph(graph), {{"weight", torch::full({3}, 2.0)}});
  return path;
}

TEST(ApiScript, RunsAModelFromAFile) {
  const std::string path = written(R"(rushlight graph 1
graph(%x: float32[4, 3]) {
  %w: float32[3] = constant("weight")
  %y = mul.Tensor(%x, %w)
  return (%y)
}
)");
  torch::jit::script::Module module = torch::jit::load(path);
  module.eval();
  module.to(torch::kCPU);
  const torch::Tensor x = torch::randn({4, 3});
  EXPECT_TRUE(torch::equal(module.forward({x}).toTensor(), x * 2));
  EXPECT_THROW(module.forward({x, x}), std::exception);
  EXPECT_THROW(module.forward({torch::randn({4, 5})}), std::exception);
  EXPECT_THROW(module.forward({3.0}), rushlight::Error);
  EXPECT_THROW(module.train(), rushlight::Error);
  EXPECT_FALSE(module.is_training());
  std::remove(path.c_str());
}

TEST(ApiScript, GivesSeveralResultsAsATuple) {
  const std::string path = written(R"(rushlight graph 1
graph(%x: float32[4, 3]) {
  %w: float32[3] = constant("weight")
  %y = mul.Tensor(%x, %w)
  %z = add.Tensor(%x, %w)
  return (%y, %z)
}
)");
  const auto results = torch::jit::load(path).forward({torch::ones({4, 3})}).toTupleRef();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(torch::equal(results[1].toTensor(), torch::full({4, 3}, 3.0)));
  std::remove(path.c_str());
}

TEST(ApiScript, RefusesWhatIsNoModel) {
  const std::string path = testing::TempDir() + "no_model.pt";
  std::ofstream(path) << "PK\x03\x04" << std::string(100, 'x');
  try {
    torch::jit::load(path);
    FAIL() << "loaded a damaged archive";
  } catch (const rushlight::Error& e) {
    EXPECT_NE(std::string(e.what()).find("PytorchStreamReader failed"), std::string::npos) << e.what();
  }
  EXPECT_THROW(torch::jit::Module().forward({}), rushlight::Error);
  std::remove(path.c_str());
}

}  // namespace
