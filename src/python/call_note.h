// Note [Errors name the call]
// An error that leaves an operator takes along what the operator was called with. Its text stays PyTorch's,
// since programs match on it; the call, and what to do about it (rushlight/_errors/advice.py), become notes
// that a traceback prints below the text.
#pragma once
#include "core/device_driver.h"
#include "dispatch/op.h"
#include "python/python.h"

namespace rushlight::python {

// An error with the call it left.
class ErrorInCall : public Error {
 public:
  ErrorInCall(const Error& error, std::string call) : Error(error), call_(std::move(call)) {
    if (const auto* lost = dynamic_cast<const DeviceError*>(&error)) device_code_ = lost->code;
  }
  int device_code() const { return device_code_; }  // 0 unless a device failed
  const std::string& call() const noexcept { return call_; }

 private:
  std::string call_;
  int device_code_ = 0;
};

// "in linear(input: float32[2, 4], weight: float32[6, 5], bias: float32[6])". Arguments with their default
// values are left out.
std::string describe_call(const Op& op, const Value* values, bool inplace);

// Adds notes to the Python error that is set; `call` may be empty.
void add_notes(const std::string& call) noexcept;

}  // namespace rushlight::python
