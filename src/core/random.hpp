// Small, seedable randomness that is the same on every platform and compiler.
#pragma once
#include <cstdint>

namespace ilhash {

inline uint64_t mix64(uint64_t x) {  // the finaliser of SplitMix64 (Steele, Lea, Flood 2014)
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Counter based, so that successive draws do not wait for one another.
class Random {
 public:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15ULL;
  static uint64_t first_counter(uint64_t seed) { return mix64(seed ^ 0x5851F42D4C957F2DULL); }

  explicit Random(uint64_t seed) : counter_(first_counter(seed)) {}

  uint64_t next() { return mix64(counter_ += kStep); }

  // Uniform in [0, n) up to a bias of n / 2^32, far below what any graph of ours could show.
  uint32_t below(uint32_t n) { return scale(static_cast<uint32_t>(next() >> 32), n); }

  // Two independent draws in [0, n) for the price of one.
  void below_twice(uint32_t n, uint32_t& first, uint32_t& second) {
    const uint64_t bits = next();
    first = scale(static_cast<uint32_t>(bits >> 32), n);
    second = scale(static_cast<uint32_t>(bits), n);
  }

  static uint32_t scale(uint32_t bits, uint32_t n) {
    return static_cast<uint32_t>((static_cast<uint64_t>(bits) * n) >> 32);
  }

 private:
  uint64_t counter_;
};

// A seeded permutation of 0 .. n-1 whose any entry is computed on its own, in constant memory: a Feistel network
// over the smallest even number of bits that holds n, walked until it lands inside. This is what lets a bit draw
// its slice of a permutation of a billion rows without writing the permutation down.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed) : n_(n) {
    while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
    mask_ = (uint64_t{1} << half_bits_) - 1;
    Random random(seed);
    for (auto& key : keys_) key = random.next();
  }

  uint64_t operator()(uint64_t position) const {
    do position = shuffle_once(position);
    while (position >= n_);
    return position;
  }

 private:
  static constexpr int kRounds = 8;

  uint64_t shuffle_once(uint64_t x) const {
    uint64_t left = x >> half_bits_, right = x & mask_;
    for (const uint64_t key : keys_) {
      const uint64_t swapped = left ^ (mix64(right ^ key) & mask_);
      left = right;
      right = swapped;
    }
    return (left << half_bits_) | right;
  }

  uint64_t n_, mask_ = 0;
  int half_bits_ = 1;
  uint64_t keys_[kRounds];
};

}  // namespace ilhash
