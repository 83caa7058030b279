// The engine that writes texts.
#pragma once
#if __has_include("rushlight/text_service.h")
#include "rushlight/text_service.h"
#else
#include "serve/text_fallback.h"
#endif
