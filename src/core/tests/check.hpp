// Counts of what held and what did not; a test is a program that ends with all_passed().
#pragma once

#include <cstdio>

namespace ilhash::testing {

inline long passed = 0, failed = 0;

inline void check(bool condition, const char* text, int line) {
  condition ? ++passed : ++failed;
  if (!condition && failed <= 20) std::printf("line %d: %s\n", line, text);
}

// Says how many checks there were; the exit code of the program.
inline int all_passed(const char* name) {
  std::printf("%s: %ld passed, %ld failed\n", name, passed, failed);
  return failed ? 1 : 0;
}

}  // namespace ilhash::testing

#define CHECK(condition) ilhash::testing::check((condition), #condition, __LINE__)
