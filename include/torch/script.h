#pragma once
#include "rushlight/script.h"
#include "torch/extension.h"
