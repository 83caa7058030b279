// The C interface to models of one file.
#include "frontend/c_common.h"
#include "rushlight/runtime.h"

using namespace rushlight;
using namespace rushlight::c;
using runtime::Model;
using runtime::Session;
using runtime::TensorInfo;

namespace {

const Model& model_at(rl_model model) {
  RL_CHECK_VALUE(model, "the model is NULL");
  return *reinterpret_cast<const Model*>(model);
}

Session& session_at(rl_session session) {
  RL_CHECK_VALUE(session, "the session is NULL");
  return *reinterpret_cast<Session*>(session);
}

std::string method_of(const Model& model, const char* method) {
  return method ? std::string(method) : model.methods()[0];
}

// Runs f(inputs), and hands its results to the caller.
template <class F>
void run_into(const Model& model, const std::string& method, const rl_tensor* inputs, size_t input_count,
              rl_tensor* outputs, size_t output_count, F&& f) {
  const size_t expected = model.outputs(method).size();
  RL_CHECK_VALUE(output_count == expected, "the model has ", expected, " outputs, but there is room for ",
                 output_count);
  RL_CHECK_VALUE((inputs || !input_count) && (outputs || !output_count), "the list is NULL");
  std::vector<Tensor> given_inputs;
  for (size_t i = 0; i < input_count; ++i) given_inputs.push_back(tensor_at(inputs[i]));
  std::vector<Tensor> results = f(given_inputs);
  for (size_t i = 0; i < results.size(); ++i) outputs[i] = given(std::move(results[i]));
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
int rl_model_load_memory(const void* bytes, size_t size, void (*release)(void*), void* context,
                         rl_model* model) {
  return guarded([&] {
    const std::shared_ptr<const void> owner(checked(bytes, "bytes"), [=](const void*) {
      if (release) release(context);
    });
    auto loaded = std::make_unique<Model>(Model::load({static_cast<const std::byte*>(bytes), size}, owner));
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
    run_into(m, m.methods()[0], inputs, input_count, outputs, output_count,
             [&](const std::vector<Tensor>& list) { return m.run(list); });
  });
}

int rl_model_method_count(rl_model model, size_t* count) {
  return guarded([&] { *checked(count, "count") = model_at(model).methods().size(); });
}
int rl_model_method(rl_model model, size_t i, const char** name) {
  return guarded([&] {
    const auto& methods = model_at(model).methods();
    RL_CHECK_INDEX(i < methods.size(), "index ", i, " is out of range: there are ", methods.size());
    *checked(name, "name") = methods[i].c_str();
  });
}
int rl_model_method_sizes(rl_model model, const char* method, size_t* input_count, size_t* output_count) {
  return guarded([&] {
    const Model& m = model_at(model);
    const std::string name = method_of(m, method);
    *checked(input_count, "input_count") = m.inputs(name).size();
    *checked(output_count, "output_count") = m.outputs(name).size();
  });
}
int rl_model_method_input(rl_model model, const char* method, size_t i, rl_model_tensor* result) {
  return guarded([&] {
    const Model& m = model_at(model);
    describe(m.inputs(method_of(m, method)), i, result);
  });
}
int rl_model_method_output(rl_model model, const char* method, size_t i, rl_model_tensor* result) {
  return guarded([&] {
    const Model& m = model_at(model);
    describe(m.outputs(method_of(m, method)), i, result);
  });
}
int rl_model_state_count(rl_model model, size_t* count) {
  return guarded([&] { *checked(count, "count") = model_at(model).state().size(); });
}
int rl_model_state(rl_model model, size_t i, rl_model_tensor* result) {
  return guarded([&] { describe(model_at(model).state(), i, result); });
}

int rl_session_create(rl_model model, rl_session* session) {
  return guarded([&] {
    auto made = std::make_unique<Session>(model_at(model));
    *checked(session, "session") = reinterpret_cast<rl_session>(made.release());
  });
}
int rl_session_clone(rl_session session, rl_session* copy) {
  return guarded([&] {
    auto made = std::make_unique<Session>(session_at(session).clone());
    *checked(copy, "copy") = reinterpret_cast<rl_session>(made.release());
  });
}
void rl_session_release(rl_session session) { delete reinterpret_cast<Session*>(session); }
int rl_session_reset(rl_session session) {
  return guarded([&] { session_at(session).reset(); });
}
int rl_session_nbytes(rl_session session, size_t* nbytes) {
  return guarded([&] { *checked(nbytes, "nbytes") = session_at(session).nbytes(); });
}
int rl_session_state(rl_session session, const char* name, rl_tensor* tensor) {
  return guarded([&] {
    Tensor found = session_at(session).state(checked(name, "name"));
    *checked(tensor, "tensor") = given(std::move(found));
  });
}
int rl_session_run(rl_session session, const char* method, const rl_tensor* inputs, size_t input_count,
                   rl_tensor* outputs, size_t output_count) {
  return guarded([&] {
    Session& s = session_at(session);
    const std::string name = method_of(s.model(), method);
    run_into(s.model(), name, inputs, input_count, outputs, output_count,
             [&](const std::vector<Tensor>& list) { return s.run(name, list); });
  });
}

}  // extern "C"
