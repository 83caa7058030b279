// Tensors as arguments and results of pybind11's functions. torch/extension.h includes this where an
// extension is compiled with pybind11 (rushlight.utils.cpp_extension does that for sources with
// PYBIND11_MODULE).
#pragma once
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/host/library.h"
#include "core/lazy_clone.h"
#include "rushlight/extension.h"

namespace rushlight::extension {

// As the package wraps tensors: one that has a Python object gives that object.
inline PyObject* wrap_tensor(Tensor tensor) {
  using Wrap = PyObject* (*)(Tensor);
  static const Wrap wrap = [] {
    const auto path = pybind11::module_::import("rushlight._C").attr("__file__").cast<std::string>();
    void* module = host::load_library(path);
    void* found = module ? host::find_symbol(module, "_ZN9rushlight6python4wrapENS_6TensorE") : nullptr;
    RL_CHECK(found, "this extension does not fit the package that loads it: compile it again");
    return reinterpret_cast<Wrap>(found);
  }();
  return wrap(std::move(tensor));
}

}  // namespace rushlight::extension

namespace pybind11::detail {

template <>
struct type_caster<rushlight::Tensor> {
  PYBIND11_TYPE_CASTER(rushlight::Tensor, const_name("torch.Tensor"));

  bool load(handle source, bool) {
    if (!isinstance(source, module_::import("rushlight").attr("Tensor"))) return false;
    auto* impl = reinterpret_cast<rushlight::TensorImpl*>(source.attr("_cdata").cast<uintptr_t>());
    value = rushlight::Tensor(rushlight::Ref<rushlight::TensorImpl>::share(impl));
    if (value.defined() && value->storage) expose_contents(*value->storage);  // the function may write
    return true;
  }
  static handle cast(const rushlight::Tensor& tensor, return_value_policy, handle) {
    return rushlight::extension::wrap_tensor(tensor);
  }
};

}  // namespace pybind11::detail

namespace py = pybind11;
