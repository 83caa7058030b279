// The arguments of a call with others in place of some operands.
#pragma once
#include <deque>
#include <utility>
#include <vector>

#include "dispatch/operands.h"

namespace rushlight {

class Replaced {
 public:
  // `replace(t)` stands in for each operand and target of which `wanted(t)`.
  template <class P, class F>
  Replaced(const Frame& frame, P wanted, F replace) : args_(frame.args, frame.args + frame.arg_count()) {
    for (Value& v : args_) {
      if (v.tag() == Tag::Tensor && v.tensor().defined() && wanted(v.tensor())) {
        v = Value(take(v.tensor(), replace));
      } else if (v.tag() == Tag::TensorList) {
        std::vector<Tensor>& list = lists_.emplace_back(v.tensors().vec());
        for (Tensor& t : list)
          if (t.defined() && wanted(t)) t = take(t, replace);
        v = Value(TensorList(list));
      }
    }
    if (!frame.out) return;
    for (int i = 0; i < target_count(frame); ++i) {
      const Tensor& t = frame.out[i];
      outs_.push_back(wanted(t) ? take(t, replace) : t);
    }
  }
  const Value* args() const { return args_.data(); }
  const Tensor* outs() const { return outs_.empty() ? nullptr : outs_.data(); }
  // (operand, what stood in for it)
  const std::deque<std::pair<Tensor, Tensor>>& pairs() const { return pairs_; }

 private:
  template <class F>
  const Tensor& take(const Tensor& t, F& replace) {
    for (const auto& [before, after] : pairs_)
      if (before.is_same(t)) return after;
    return pairs_.emplace_back(t, replace(t)).second;
  }
  std::vector<Value> args_;
  std::deque<std::vector<Tensor>> lists_;
  std::deque<std::pair<Tensor, Tensor>> pairs_;
  std::vector<Tensor> outs_;
};

template <class F>
void each_result(Results& results, F f) {
  for (int i = 0; i < results.count; ++i)
    if (results.tensors[i].defined()) f(results.tensors[i]);
  for (Tensor& t : results.list)
    if (t.defined()) f(t);
}

}  // namespace rushlight
