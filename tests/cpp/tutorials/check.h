// CHECK(condition): ends the program with the line where something is not as the tutorial says.
#pragma once
#include <cstdlib>
#include <iostream>

#define CHECK(...)                                                                \
  do {                                                                            \
    if (!(__VA_ARGS__)) {                                                         \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " #__VA_ARGS__ << std::endl; \
      std::exit(1);                                                               \
    }                                                                             \
  } while (false)

template <class Error, class F>
bool throws(F f) {
  try {
    f();
  } catch (const Error&) {
    return true;
  }
  return false;
}
