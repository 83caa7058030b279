// For the C++ front end: modules and tensors with methods.
#pragma once
#include <ostream>

#include "rushlight/nn/functional.h"
#include "rushlight/printed/functions.h"
