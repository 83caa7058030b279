// The C interface to models of one file.
#include "frontend/c_common.h"
#include "rushlight/runtime.h"

using namespace rushlight;
using namespace rushlight::c;
using runtime::Model;
using runtime::TensorInfo;

namespace {

const Model& model_at(rl_model model) {
  RL_CHECK_VALUE(model, "the model is NULL");
  return *reinterpret_cast<const Model*>(model);
}

void describe(const std::vector<TensorInfo>& infos, size_t i, rl_model_tensor* result) {
  RL_CHECK_INDEX(i < infos.size(), "index ", i, " is out of range: there are ", infos.size());
  const TensorInfo& info = infos[i];
  *checked(result, "result") = {info.name.c_str(), info.type.c_str(), static_cast<int>(info.dtype),
                                info.has_sizes,    info.sizes.size(), info.sizes.data()};
}

}  // namespace

extern "C" {

int rl_model_load(const char* filename, rl_model* model) {
  return guarded([&] {
    auto loaded = std::make_unique<Model>(Model::load(checked(filename, "filename")));
    *checked(model, "model") = reinterpret_cast<rl_model>(loaded.release());
  });
}
void rl_model_release(rl_model model) { delete reinterpret_cast<Model*>(model); }

int rl_model_input_count(rl_model model, size_t* count) {
  return guarded([&] { *checked(count, "count") = model_at(model).inputs().size(); });
}
int rl_model_output_count(rl_model model, size_t* count) {
  return guarded([&] { *checked(count, "count") = model_at(model).outputs().size(); });
}
int rl_model_input(rl_model model, size_t i, rl_model_tensor* result) {
  return guarded([&] { describe(model_at(model).inputs(), i, result); });
}
int rl_model_output(rl_model model, size_t i, rl_model_tensor* result) {
  return guarded([&] { describe(model_at(model).outputs(), i, result); });
}

int rl_model_run(rl_model model, const rl_tensor* inputs, size_t input_count, rl_tensor* outputs,
                 size_t output_count) {
  return guarded([&] {
    const Model& m = model_at(model);
    RL_CHECK_VALUE(output_count == m.outputs().size(), "the model has ", m.outputs().size(),
                   " outputs, but there is room for ", output_count);
    RL_CHECK_VALUE((inputs || !input_count) && (outputs || !output_count), "the list is NULL");
    std::vector<Tensor> given_inputs;
    for (size_t i = 0; i < input_count; ++i) given_inputs.push_back(tensor_at(inputs[i]));
    std::vector<Tensor> results = m.run(given_inputs);
    for (size_t i = 0; i < results.size(); ++i) outputs[i] = given(std::move(results[i]));
  });
}

}  // extern "C"
