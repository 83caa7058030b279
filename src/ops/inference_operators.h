// What the library's table and the small runtime's both hold: every operator that a model for inference may
// call.
#pragma once
#include "dispatch/table.h"

namespace rushlight {

// Chooses the loops for this processor, and registers what computes element by element.
void register_pointwise_families(Table& t);

// Everything else, in this order: overloads of one name are tried as they were registered.
void register_other_families(Table& t);

}  // namespace rushlight
