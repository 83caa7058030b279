// For the C++ tests.
#pragma once
#include <gtest/gtest.h>

#include "cmake/precompiled/core.h"
