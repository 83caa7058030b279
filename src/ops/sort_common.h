// The files of the sort family.
#pragma once
#include "dispatch/table.h"

namespace rushlight {

void register_search_operators(Table& t);
void register_histogram_operators(Table& t);
void register_unique_operators(Table& t);

}  // namespace rushlight
