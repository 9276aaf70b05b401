// Points in a seeded order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "random.hpp"

namespace ilhash {

// Entries start .. start + count of a seeded permutation of 0 .. n - 1; start + count <= n.
inline std::vector<int64_t> permuted(uint64_t n, uint64_t seed, uint64_t start, uint64_t count) {
  std::vector<int64_t> out(count);
  const Permutation permutation(n, seed);
  for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(permutation(start + i));
  return out;
}

// Points of a graph in CSR form in the order of a seeded permutation, each followed by those of its neighbours that
// have not come yet; points without neighbours are left out. Stops after `count` points.
inline std::vector<int64_t> neighbourhood_order(const int64_t* row_begin, const int32_t* columns, uint64_t n,
                                                uint64_t seed, uint64_t count) {
  std::vector<int64_t> out;
  const Permutation permutation(n, seed);
  std::vector<bool> taken(n, false);
  const auto take = [&](int64_t point) {
    if (taken[static_cast<size_t>(point)] || out.size() >= count) return;
    taken[static_cast<size_t>(point)] = true;
    out.push_back(point);
  };
  for (uint64_t i = 0; i < n && out.size() < count; ++i) {
    const uint64_t centre = permutation(i);
    if (row_begin[centre] == row_begin[centre + 1]) continue;
    take(static_cast<int64_t>(centre));
    for (int64_t a = row_begin[centre]; a < row_begin[centre + 1]; ++a) take(columns[a]);
  }
  return out;
}

}  // namespace ilhash
