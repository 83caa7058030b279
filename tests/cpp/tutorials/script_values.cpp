// The interface of script modules beyond forward: attributes, methods, values of all kinds, files.
//   script_values MODEL FOLDER   MODEL is `Everything` of tests/python/cpp/torchscript_models.py
#include <torch/script.h>
#include <torch/torch.h>

#include <fstream>
#include <sstream>

#include "check.h"

using torch::jit::IValue;

static void values() {
  IValue v(3);
  CHECK(v.isInt() && v.toInt() == 3 && v.to<int64_t>() == 3 && v.tagKind() == "Int" && v.isScalar());
  CHECK(IValue(2.5).toDouble() == 2.5 && IValue(true).toBool() && IValue("text").toStringRef() == "text");
  CHECK(IValue("text").toString()->string() == "text");
  CHECK(IValue().isNone() && !IValue().toOptional<int64_t>().has_value());
  CHECK(IValue(7).toOptional<int64_t>().value() == 7);
  CHECK(IValue(torch::Device("cpu")).toDevice().is_cpu());
  CHECK(throws<c10::Error>([&] { v.toTensor(); }));

  const auto tuple = c10::ivalue::Tuple::create(torch::ones({2}), 5, "x");
  v = tuple;
  CHECK(v.isTuple() && v.toTuple()->elements().size() == 3 && v.toTupleRef().elements()[1].toInt() == 5);
  const auto [t, n] =
      IValue(std::make_tuple(torch::ones({2}), int64_t{4})).to<std::tuple<at::Tensor, int64_t>>();
  CHECK(t.numel() == 2 && n == 4);

  c10::List<int64_t> ints({1, 2, 3});
  ints.push_back(4);
  v = ints;
  CHECK(v.isIntList() && v.toIntVector().back() == 4 && v.toIntList()[0] == 1 && v.toList().size() == 4);
  v.toIntList().set(0, 9);
  CHECK(ints.get(0) == 9);  // one list
  int64_t sum = 0;
  for (const int64_t i : ints) sum += i;
  CHECK(sum == 18);
  CHECK(IValue(std::vector<at::Tensor>{torch::ones({1})}).toTensorVector().size() == 1);
  CHECK(IValue(std::vector<at::Tensor>()).isTensorList());

  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("a", torch::ones({2}));
  dict.insert_or_assign("b", torch::zeros({3}));
  CHECK(dict.contains("a") && dict.at("b").numel() == 3 && dict.size() == 2 && dict.find("c") == dict.end());
  std::string keys;
  for (const auto& entry : dict) keys += entry.key() + std::to_string(entry.value().numel());
  CHECK(keys == "a2b3");
  v = dict;
  CHECK(v.isGenericDict() && v.toGenericDict().at("a").toTensor().numel() == 2);
  CHECK(throws<c10::Error>([&] { dict.at("c"); }));
  std::ostringstream out;
  out << IValue(std::make_tuple(2.0, std::string("x"), std::vector<int64_t>{1, 2}));
  CHECK(out.str() == "(2., x, [1, 2])");
}

int main(int, const char* argv[]) {
  values();
  torch::NoGradGuard no_grad;
  const std::string path = argv[1], folder = argv[2];
  torch::jit::script::Module module = torch::jit::load(path, torch::kCPU);
  CHECK(!module.is_training());
  module.train();
  CHECK(module.is_training() && module.attr("linear").toModule().is_training());
  module.eval();

  // Attributes and parameters.
  CHECK(module.hasattr("scale") && !module.hasattr("nothing_like_it"));
  CHECK(module.attr("scale").toDouble() == 1.5 && module.attr("missing", 3).toInt() == 3);
  CHECK(module.attr("names").to<std::vector<std::string>>() == std::vector<std::string>({"a", "b"}));
  CHECK(throws<c10::Error>([&] { module.attr("missing"); }));
  std::string names;
  for (const auto& p : module.named_parameters()) names += p.name + " ";
  CHECK(names == "linear.weight linear.bias ");
  CHECK(module.parameters().size() == 2 && module.parameters(/*recurse=*/false).empty());
  CHECK(module.buffers().size() == 1 && module.named_buffers()[0].name == "offset");
  CHECK(module.named_children().size() == 1 && module.named_modules().size() == 2);

  // Methods, arguments by name, other inputs and outputs than tensors.
  const torch::Tensor x = torch::ones({2, 3});
  c10::Dict<std::string, at::Tensor> inputs;
  inputs.insert("x", x);
  const auto outputs = module.forward({inputs, c10::List<int64_t>({1, 2})}).toTuple();
  CHECK(outputs->elements()[0].toGenericDict().at("y").toTensor().sizes() == at::IntArrayRef({2, 2}));
  CHECK(outputs->elements()[1].toInt() == 3);
  CHECK(module.get_method("scaled")({x}).toTensor().equal(x * 1.5));
  CHECK(module.get_method("scaled")({x}, {{"by", 2.0}}).toTensor().equal(x * 3.0));
  CHECK(module.run_method("scaled", x, 4.0).toTensor().equal(x * 6.0));
  CHECK(module.find_method("scaled").has_value() && !module.find_method("other"));
  module.setattr("scale", 2.0);
  CHECK(module.run_method("scaled", x).toTensor().equal(x * 2));

  // Mistakes say what was expected.
  const auto message = [&](auto f) -> std::string {
    try {
      f();
    } catch (const c10::Error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message([&] { module.run_method("scaled", 3); }).find("Expected a value of type 'Tensor'") !=
        std::string::npos);
  CHECK(message([&] { module.run_method("scaled"); }).find("missing value for argument 'x'") !=
        std::string::npos);
  CHECK(message([&] { module.run_method("scaled", x, 1.0, 2.0); }).find("expected at most") !=
        std::string::npos);
  CHECK(message([&] { module.run_method("refuses", x); }).find("not today") != std::string::npos);
  CHECK(message([&] { module.run_method("unknown"); }).find("'unknown' is not defined") != std::string::npos);
  CHECK(message([&] { torch::jit::load(folder + "/none.pt"); }).find("none.pt") != std::string::npos);

  // Copies, dtypes, frozen modules.
  torch::jit::Module other = module.clone();
  other.setattr("scale", 1.0);
  CHECK(module.attr("scale").toDouble() == 2.0);
  other.to(torch::kDouble);
  CHECK(other.attr("offset").toTensor().dtype() == torch::kDouble);
  CHECK(module.attr("offset").toTensor().dtype() == torch::kFloat);
  torch::jit::Module frozen = torch::jit::optimize_for_inference(torch::jit::freeze(module));
  CHECK(frozen.run_method("scaled", x).toTensor().equal(x * 2));
  CHECK(!frozen.attr("linear").toModule().attr("weight").toTensor().requires_grad());

  // Files: streams, further records, and what was saved again.
  std::ifstream file(path, std::ios::binary);
  torch::jit::ExtraFilesMap extra = {{"note.txt", ""}};
  torch::jit::Module streamed = torch::jit::load(file, torch::kCPU, extra);
  CHECK(extra["note.txt"] == "hello");
  CHECK(streamed.run_method("scaled", x).toTensor().equal(x * 1.5));
  module.save(folder + "/again.pt", {{"note.txt", "bye"}});
  torch::jit::Module again = torch::jit::load(folder + "/again.pt", torch::kCPU, extra);
  CHECK(extra["note.txt"] == "bye" && again.attr("scale").toDouble() == 2.0);
  CHECK(again.forward({inputs, c10::List<int64_t>()})
            .toTuple()
            ->elements()[0]
            .toGenericDict()
            .at("y")
            .toTensor()
            .equal(module.forward({inputs, c10::List<int64_t>()})
                       .toTuple()
                       ->elements()[0]
                       .toGenericDict()
                       .at("y")
                       .toTensor()));

  // Gradients reach the parameters of a loaded module.
  torch::AutoGradMode grad(true);
  c10::Dict<std::string, at::Tensor> more;
  more.insert("x", x);
  again.forward({more, c10::List<int64_t>()})
      .toTuple()
      ->elements()[0]
      .toGenericDict()
      .at("y")
      .toTensor()
      .sum()
      .backward();
  CHECK(again.attr("linear").toModule().attr("weight").toTensor().grad().defined());
  return 0;
}
