// The C interface over the operator table; tensors are in c_tensor.cpp, models in c_model.cpp.
#include "rushlight/c.h"

#include <cstring>

#include "dispatch/table.h"
#include "frontend/c_common.h"
#include "frontend/call.h"
#include "rushlight/autograd.h"
#include "rushlight/serialize.h"

using namespace rushlight;
using namespace rushlight::c;

namespace {

// A value of the caller's as the parameter wants it, or nothing where it does not fit.
std::optional<Value> boxed(const rl_value& v, const Parameter& p, bool numbers_as_tensors,
                           std::vector<std::vector<Tensor>>& lists) {
  auto holds = [&](Tag tag) { return p.type == tag; };
  switch (v.kind) {
    case RL_NONE:
      return p.optional || holds(Tag::Generator) ? std::optional<Value>(Value()) : std::nullopt;
    case RL_TENSOR:
      if (!holds(Tag::Tensor) || (!v.as.tensor && !p.optional)) return std::nullopt;
      return Value(reinterpret_cast<TensorImpl*>(v.as.tensor));
    case RL_TENSORS: {
      if (!holds(Tag::TensorList) || (!v.as.tensors && v.length)) return std::nullopt;
      std::vector<Tensor>& list = lists.emplace_back();
      for (size_t i = 0; i < v.length; ++i)
        list.push_back(v.as.tensors[i] ? tensor_at(v.as.tensors[i]) : Tensor());
      return Value(TensorList(list));
    }
    case RL_BOOLEAN:
      if (holds(Tag::Scalar)) return Value(Scalar(v.as.boolean != 0));
      return holds(Tag::Bool) ? std::optional<Value>(Value(v.as.boolean != 0)) : std::nullopt;
    case RL_INT:
    case RL_FLOAT: {
      const Scalar s = v.kind == RL_INT ? Scalar(v.as.integer) : Scalar(v.as.number);
      if (holds(Tag::Scalar)) return Value(s);
      if (holds(Tag::Float)) return Value(s.to_double());
      if (holds(Tag::Int) && v.kind == RL_INT) return Value(v.as.integer);
      if (!holds(Tag::Tensor) || !numbers_as_tensors) return std::nullopt;
      return Value(lists.emplace_back(1, wrapped_number(s))[0]);  // a number where a tensor may stand
    }
    case RL_INTS:
      return holds(Tag::IntList) ? std::optional<Value>(Value(list_at(v.as.ints, v.length))) : std::nullopt;
    case RL_FLOATS:
      return holds(Tag::FloatList) && (v.as.floats || !v.length)
                 ? std::optional<Value>(Value(FloatList(v.as.floats, v.length)))
                 : std::nullopt;
    case RL_STRING:
      return holds(Tag::String) && v.as.string
                 ? std::optional<Value>(
                       Value(std::string_view(v.as.string, v.length ? v.length : std::strlen(v.as.string))))
                 : std::nullopt;
    case RL_DTYPE:
      return holds(Tag::DType) ? std::optional<Value>(Value(dtype_at(v.as.dtype))) : std::nullopt;
    default:
      RL_FAIL_AS(Value, "there is no kind of value ", v.kind);
  }
}

struct Bound {
  std::vector<Value> values;
  std::vector<std::vector<Tensor>> lists;  // what the values borrow
};
std::optional<Bound> bind(const Op& op, const rl_value* arguments, size_t n, bool numbers_as_tensors) {
  const auto& parameters = op.schema.parameters;
  if (n > parameters.size()) return std::nullopt;
  Bound bound;
  bound.lists.reserve(n);
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::optional<Value> v;
    if (i < n)
      v = boxed(arguments[i], parameters[i], numbers_as_tensors, bound.lists);
    else if (parameters[i].has_default)
      v = parameters[i].default_value;
    if (!v) return std::nullopt;
    bound.values.push_back(*v);
  }
  return bound;
}

std::vector<const Op*> overloads(std::string_view full) {
  std::string_view space, name = full, overload;
  if (const size_t at = name.find("::"); at != std::string_view::npos)
    space = name.substr(0, at), name = name.substr(at + 2);
  if (const size_t at = name.find('.'); at != std::string_view::npos)
    overload = name.substr(at + 1), name = name.substr(0, at);
  std::vector<const Op*> found = operator_table().find(space, name);
  if (full.find('.') != std::string_view::npos)
    std::erase_if(found, [&](const Op* op) { return op->schema.overload != overload; });
  return found;
}

rl_value shown(const Value& v) {
  rl_value out{};
  if (v.tag() == Tag::Bool) {
    out.kind = RL_BOOLEAN, out.as.boolean = v.boolean();
  } else if (v.tag() == Tag::Int) {
    out.kind = RL_INT, out.as.integer = v.integer();
  } else if (v.tag() == Tag::Scalar && v.scalar().is_integral()) {
    out.kind = RL_INT, out.as.integer = v.scalar().to_int();
  } else if (v.tag() == Tag::Scalar || v.tag() == Tag::Float) {
    out.kind = RL_FLOAT, out.as.number = v.floating();
  }
  return out;
}

}  // namespace

extern "C" {

int rl_tensor_set_requires_grad(rl_tensor t, int on) {
  return guarded([&] { tensor_at(t).set_requires_grad(on != 0); });
}
int rl_tensor_backward(rl_tensor t) {
  return guarded([&] { tensor_at(t).backward(); });
}
int rl_tensor_grad(rl_tensor t, rl_tensor* grad) {
  return guarded([&] {
    const Tensor g = tensor_at(t).grad();
    *checked(grad, "grad") = g.defined() ? given(g) : nullptr;
  });
}
int rl_set_grad_enabled(int on) {
  return guarded([&] { GradMode::set(on != 0); });
}

int rl_call(const char* name, const rl_value* arguments, size_t argument_count, rl_value* results,
            size_t* result_count) {
  return guarded([&] {
    checked(name, "name"), checked(result_count, "result_count");
    RL_CHECK_VALUE(arguments || argument_count == 0, "arguments is NULL");
    const auto found = overloads(name);
    RL_CHECK_AS(NotImplemented, !found.empty(), "there is no operator '", name, "'");
    for (size_t i = 0; i < 2 * found.size(); ++i) {
      const Op* op = found[i % found.size()];
      const auto bound = bind(*op, arguments, argument_count, i >= found.size());
      if (!bound) continue;
      Results got;
      call_boxed(*op, bound->values.data(), got);
      std::vector<rl_value> out;
      auto add = [&](Tensor& t) {
        rl_value v{};
        v.kind = RL_TENSOR;
        v.as.tensor = reinterpret_cast<rl_tensor>(t.impl());
        out.push_back(v);
      };
      for (int k = 0; k < got.count; ++k) add(got.tensors[k]);
      for (Tensor& t : got.list) add(t);
      if (const rl_value plain = shown(got.plain); plain.kind != RL_NONE) out.push_back(plain);
      RL_CHECK_VALUE(out.size() <= *result_count, name, " gives ", out.size(),
                     " results, but there is room for ", *result_count);
      for (size_t k = 0; k < out.size(); ++k) {
        if (out[k].kind == RL_TENSOR && out[k].as.tensor) tensor_at(out[k].as.tensor).detach_impl();
        checked(results, "results")[k] = out[k];
      }
      *result_count = out.size();
      return;
    }
    std::string schemas;
    for (const Op* op : found) schemas += "\n  " + std::string(op->schema.text);
    RL_FAIL_AS(Type, name, ": the ", argument_count, " arguments fit none of", schemas);
  });
}
const char* rl_schema(const char* name) {
  const auto found = name ? overloads(name) : std::vector<const Op*>();
  return found.empty() ? nullptr : found[0]->schema.text.data();
}

int rl_manual_seed(uint64_t seed) {
  return guarded([&] { manual_seed(seed); });
}
int rl_save(rl_tensor t, const char* filename) {
  return guarded([&] { save_value(tensor_at(t), std::string(checked(filename, "filename"))); });
}
int rl_load(const char* filename, rl_tensor* result) {
  return guarded([&] {
    const Tensor t = load_value(std::string(checked(filename, "filename"))).toTensor();
    *checked(result, "result") = given(t);
  });
}
int rl_load_named(const char* filename, const char* name, rl_tensor* result) {
  return guarded([&] {
    serialize::InputArchive archive;
    archive.load_from(std::string(checked(filename, "filename")));
    Tensor t;
    archive.read(checked(name, "name"), t);
    *checked(result, "result") = given(t);
  });
}

}  // extern "C"
