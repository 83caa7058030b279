#pragma once
#include "rushlight/script.h"
#include "torch/names.h"
