// Other names of an operator.
#pragma once
#include "dispatch/table.h"

namespace rushlight {
namespace detail {
template <auto& Handle, class F = std::remove_cvref_t<decltype(Handle)>>
struct Alias;
template <auto& Handle, class R, class... A>
struct Alias<Handle, Fn<R(A...)>> {
  static R body(const Call& call, A... arguments) {
    if constexpr (std::is_same_v<std::tuple_element_t<0, std::tuple<A...>>, const Tensor&> &&
                  std::is_same_v<R, Tensor>) {
      // In place as the operator itself is: a copy back would overwrite what its derivative saved.
      if (call.inplace) return Handle.inplace(arguments...);
    }
    return Handle(arguments...);
  }
};
}  // namespace detail

// A second name for `Handle`, with in-place and out= forms.
template <auto& Handle>
OpBuilder add_alias(Table& t, const char* schema) {
  OpBuilder record = t.composite(schema, &detail::Alias<Handle>::body).inplace().out().doc(Handle.op().doc);
  const Op& named = Handle.op();
  if (named.family == Family::Pointwise || named.traits.elementwise) record.elementwise();
  if (named.traits.gives_bool) record.gives_bool();
  return record;
}
}  // namespace rushlight
