// What the files of the C interface share: errors, and tensors as handles.
#pragma once
#include "core/tensor.h"
#include "rushlight/c.h"

namespace rushlight::c {

// Of this thread. By a function: clang 19 loses what makes a variable of a thread, seen from another file, on
// WebAssembly.
std::string& last_error();
int error_number(ErrorKind kind);

// Runs f; an exception becomes its number and rl_last_error().
template <class F>
int guarded(F f) {
  try {
    f();
    return RL_OK;
  } catch (const Error& e) {
    last_error() = e.what();
    return error_number(e.kind());
  } catch (const std::exception& e) {
    last_error() = e.what();
    return RL_ERROR_OTHER;
  }
}

Tensor tensor_at(rl_tensor t);
DType dtype_at(int dtype);
IntList list_at(const int64_t* data, size_t n);
inline rl_tensor given(Tensor t) { return reinterpret_cast<rl_tensor>(t.detach_impl()); }
template <class T>
T* checked(T* out, const char* what) {
  RL_CHECK_VALUE(out, what, " is NULL");
  return out;
}

}  // namespace rushlight::c
