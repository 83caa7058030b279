// Forward-mode differentiation: tensors that carry tangents, and the rule for every operator's tangents.
#pragma once
#include "autograd/meta.h"
#include "dispatch/state.h"

namespace rushlight {

// Note [Forward mode]
// Inside a dual level a tensor may carry a tangent (AutogradMeta::Extra). The interceptor kForwardGrad
// computes the tangents of an operator's results from those of its operands, with public operators at the
// same level, so that they can be recorded and batched like anything else. A record says which rule it takes
// (traits.tangent), and its family answers where it says nothing:
// - A linear operator applies itself to the tangents; so a view's tangent is a view of its base's tangent.
// - A product is the sum over its factors, each replaced by its tangent in turn.
// - A real function of elements multiplies tangents by what its derivative multiplies gradients by.
// - Everything else goes by the double-vjp identity: u -> vjp(u) is linear, and its own vjp is the jvp.
// Tangents of a level that has ended are ignored.

uint64_t enter_dual_level();
void leave_dual_level();
int dual_level_depth();

// Whether calls made now look at tangents.
inline bool forward_mode_enabled() { return dispatch_state.consider & kForwardGrad; }
void set_forward_mode(bool enabled);

// Whether tangents are computed inside dual levels (torch.autograd.forward_ad.set_fwd_grad_enabled).
bool tangents_allowed();
void allow_tangents(bool allowed);

Tensor tangent_of(const Tensor& t);  // undefined: zero
void set_tangent(const Tensor& t, const Tensor& tangent);
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// `t` without its tangent, but with its history.
Tensor primal_of(const Tensor& t);

void install_forward();

}  // namespace rushlight
