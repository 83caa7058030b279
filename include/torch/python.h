// Tensors as arguments and results of pybind11's functions. torch/extension.h includes this where an
// extension is compiled with pybind11 (rushlight.utils.cpp_extension does that for sources with
// PYBIND11_MODULE).
#pragma once
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <typeinfo>

#include "core/host/library.h"
#include "core/lazy_clone.h"
#include "rushlight/extension.h"

namespace rushlight::extension {

// A function of the package's own module, by its symbol.
template <class Function>
Function of_the_package(const char* symbol) {
  const auto path = pybind11::module_::import("rushlight._C").attr("__file__").cast<std::string>();
  void* module = host::load_library(path);
  void* found = module ? host::find_symbol(module, symbol) : nullptr;
  RL_CHECK(found, "this extension does not fit the package that loads it: compile it again");
  return reinterpret_cast<Function>(found);
}

// As the package wraps tensors: one that has a Python object gives that object.
inline PyObject* wrap_tensor(Tensor tensor) {
  static const auto wrap = of_the_package<PyObject* (*)(Tensor)>("_ZN9rushlight6python4wrapENS_6TensorE");
  return wrap(std::move(tensor));
}

// Errors become what they are where the package raises them: TORCH_CHECK_VALUE's a ValueError, those that
// Python code raised within an operator themselves.
inline void translate_error(std::exception_ptr error) {
  static const auto set_error =
      of_the_package<void (*)()>("_ZN9rushlight6python24set_error_from_exceptionEv");
  try {
    std::rethrow_exception(error);
  } catch (const Error&) {
    set_error();
  } catch (const std::exception& e) {
    if (std::string_view(typeid(e).name()) != "N9rushlight6python11PythonErrorE") throw;
    set_error();
  }
}
// Said as the module is loaded.
inline const bool errors_are_translated = [] {
  if (Py_IsInitialized() && PyGILState_Check())
    pybind11::register_local_exception_translator(translate_error);
  return true;
}();

inline pybind11::object named(const std::string& name) {
  return pybind11::module_::import("rushlight").attr(name.c_str());
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

template <>
struct type_caster<rushlight::DType> {
  PYBIND11_TYPE_CASTER(rushlight::DType, const_name("torch.dtype"));

  bool load(handle source, bool) {
    if (!isinstance(source, rushlight::extension::named("dtype"))) return false;
    const auto text = str(source).cast<std::string>();  // torch.float32
    for (int i = 0; i < rushlight::kAllDTypeCount; ++i) {
      value = static_cast<rushlight::DType>(i);
      if (text.ends_with("." + to_string(value))) return true;
    }
    return false;
  }
  static handle cast(rushlight::DType dtype, return_value_policy, handle) {
    return rushlight::extension::named(to_string(dtype)).release();
  }
};

template <>
struct type_caster<rushlight::Device> {
  PYBIND11_TYPE_CASTER(rushlight::Device, const_name("torch.device"));

  bool load(handle source, bool) {
    if (!isinstance<str>(source) && !isinstance(source, rushlight::extension::named("device"))) return false;
    value = rushlight::Device(str(source).cast<std::string>());
    return true;
  }
  static handle cast(const rushlight::Device& device, return_value_policy, handle) {
    return rushlight::extension::named("device")(to_string(device)).release();
  }
};

template <>
struct type_caster<rushlight::Scalar> {
  PYBIND11_TYPE_CASTER(rushlight::Scalar, const_name("Union[int, float, bool, complex]"));

  bool load(handle source, bool) {
    if (isinstance<bool_>(source))
      value = source.cast<bool>();
    else if (isinstance<int_>(source))
      value = source.cast<long long>();
    else if (isinstance<float_>(source))
      value = source.cast<double>();
    else if (PyComplex_Check(source.ptr()))
      value = source.cast<std::complex<double>>();
    else
      return false;
    return true;
  }
  static handle cast(const rushlight::Scalar& number, return_value_policy policy, handle parent) {
    using rushlight::complex128;
    if (number.isBoolean()) return bool_(number.to<bool>()).release();
    if (number.isIntegral(false)) return int_(number.to<int64_t>()).release();
    if (number.isFloatingPoint()) return float_(number.to<double>()).release();
    return make_caster<complex128>::cast(number.to<complex128>(), policy, parent);
  }
};

// A list of sizes lives as long as the call.
template <>
struct type_caster<rushlight::IntArrayRef> {
  PYBIND11_TYPE_CASTER(rushlight::IntArrayRef, const_name("Sequence[int]"));

  bool load(handle source, bool) {
    if (!isinstance<list>(source) && !isinstance<tuple>(source)) return false;
    sizes_ = source.cast<std::vector<int64_t>>();
    value = rushlight::IntArrayRef(sizes_);
    return true;
  }
  static handle cast(const rushlight::IntArrayRef& sizes, return_value_policy, handle) {
    tuple result(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) result[i] = int_(sizes[i]);
    return result.release();
  }

 private:
  std::vector<int64_t> sizes_;
};

}  // namespace pybind11::detail

namespace py = pybind11;
