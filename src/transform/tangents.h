// Where tangents are kept and how they are written to, for the rules in forward.cpp.
#pragma once
#include "transform/forward.h"

namespace rushlight {

// Calls made here carry no tangents on at this level.
class WithoutTangents {
 public:
  WithoutTangents() : enabled_(forward_mode_enabled()) { set_forward_mode(false); }
  ~WithoutTangents() { set_forward_mode(enabled_); }
  WithoutTangents(const WithoutTangents&) = delete;

 private:
  bool enabled_;
};

// A tangent that nobody has to record comes without grad mode, though the program may not have switched it
// off: views among such tangents are ordinary ones.
class UnrecordedTangents {  // scope
 public:
  explicit UnrecordedTangents(bool enabled);  // whether grad mode is on
  ~UnrecordedTangents();
  UnrecordedTangents(const UnrecordedTangents&) = delete;

 private:
  bool before_;
};
void make_ordinary(const Tensor& tangent);

// Whether the level has said what the tangent of `t` is, or that there is none (primal_of).
bool knows_tangent(const Tensor& t);
// The tangent of a tensor that is about to be written to by what has the examples of `like`. A view's is a
// view of its base's.
Tensor ensure_tangent(const Tensor& t, const Tensor& like);
// After a write to `target`, whose tangent is now this one; undefined: zero.
void write_tangent(const Tensor& target, const Tensor& tangent);

}  // namespace rushlight
