// The bytes of a fuzzer as numbers and arrays.
//
// Arrays that are made of bytes alone would hardly ever pass a check. So a fuzzer makes what is right out of some bytes
// and lets others spoil it here and there; the checks then decide, as they do in the bindings.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "checks.hpp"

namespace ilhash::fuzz {

// Ends the process, which the fuzzer takes for a finding.
inline void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  // Zeros where there are no more bytes.
  template <class T>
  T take() {
    T value{};
    const size_t n = std::min(sizeof(T), static_cast<size_t>(end_ - at_));
    if (n) std::memcpy(&value, at_, n);
    at_ += n;
    return value;
  }
  bool flag() { return take<uint8_t>() & 1; }
  size_t below(size_t n) { return (n <= 256 ? take<uint8_t>() : take<uint16_t>()) % n; }

  template <class T>
  std::vector<T> many(size_t n) {
    std::vector<T> values(n);
    for (T& value : values) value = take<T>();
    return values;
  }

  // Now and then: some other values, or another length. The memory is as long as the values, so that reading behind
  // them is seen.
  template <class T>
  void spoil(std::vector<T>& values) {
    const uint8_t how = take<uint8_t>();
    if (how < 160) return;
    for (size_t i = 0; i < how % 4u && !values.empty(); ++i) values[below(values.size())] = take<T>();
    if (how >= 240) values.push_back(take<T>());
    if (how >= 224 && how < 240 && !values.empty()) values.pop_back();
    values = std::vector<T>(values);
  }

 private:
  const uint8_t *at_, *end_;
};

template <class T>
Span<T> span(const std::vector<T>& values) {
  return {values.data(), values.size()};
}

// What the checks refuse is no finding; everything else that is thrown is one.
template <class Work>
int unless_refused(const Work& work) {
  try {
    work();
  } catch (const std::invalid_argument&) {
  } catch (const std::length_error&) {
  }
  return 0;
}

}  // namespace ilhash::fuzz
