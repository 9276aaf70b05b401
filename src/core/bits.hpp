// Sets of numbers as words of 64 bits.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

namespace ilhash {

constexpr size_t kWordBits = 64;

inline size_t words_for(size_t n) { return (n + kWordBits - 1) / kWordBits; }
inline uint64_t bit_of(size_t i) { return uint64_t{1} << (i % kWordBits); }
inline bool has_bit(const uint64_t* set, size_t i) { return set[i / kWordBits] >> (i % kWordBits) & 1; }
inline void set_bit(uint64_t* set, size_t i) { set[i / kWordBits] |= bit_of(i); }
inline void clear_bit(uint64_t* set, size_t i) { set[i / kWordBits] &= ~bit_of(i); }

// The place of the lowest bit of a word that has one.
inline uint32_t lowest_bit(uint64_t word) {
#if defined(_MSC_VER) && !defined(__clang__)
  unsigned long place;
  _BitScanForward64(&place, word);
  return place;
#else
  return static_cast<uint32_t>(__builtin_ctzll(word));
#endif
}

}  // namespace ilhash
