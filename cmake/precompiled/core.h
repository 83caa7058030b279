// For the core library: tensors, the gate and the table, with the parts of the standard library that they
// bring along.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "core/tensor.h"
#include "dispatch/table.h"
