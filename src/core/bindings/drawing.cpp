// Points in a seeded order.
#include <cstdint>
#include <vector>

#include "../random.hpp"
#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

auto permuted(uint64_t n, uint64_t seed, uint64_t start, uint64_t count) {
  check_permuted(n, start, count);
  std::vector<int64_t> out(count);
  {
    const GilReleased released;
    const Permutation permutation(n, seed);
    for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(permutation(start + i));
  }
  return to_numpy(std::move(out));
}

// Points in the order of a seeded permutation, each followed by those of its neighbours that have not come yet;
// points without neighbours are left out. Stops after `count` points.
auto neighbourhood_order(Vector<int64_t> row_begin, Vector<int32_t> columns, uint64_t seed, uint64_t count) {
  std::vector<int64_t> out;
  {
    const GilReleased released;
    const uint64_t n = check_neighbourhoods(span(row_begin), span(columns));
    const Permutation permutation(n, seed);
    std::vector<bool> taken(n, false);
    const auto take = [&](int64_t point) {
      if (taken[point] || out.size() >= count) return;
      taken[point] = true;
      out.push_back(point);
    };
    for (uint64_t i = 0; i < n && out.size() < count; ++i) {
      const uint64_t centre = permutation(i);
      if (row_begin(centre) == row_begin(centre + 1)) continue;
      take(static_cast<int64_t>(centre));
      for (int64_t a = row_begin(centre); a < row_begin(centre + 1); ++a) take(columns(a));
    }
  }
  return to_numpy(std::move(out));
}

}  // namespace

void bind_drawing(nb::module_& m) {
  m.def("permuted", &permuted, "n"_a, "seed"_a, "start"_a, "count"_a,
        "Entries start .. start + count of a seeded permutation of 0 .. n-1, in constant memory.");
  m.def("neighbourhood_order", &neighbourhood_order, "row_begin"_a, "columns"_a, "seed"_a, "count"_a,
        "Points in a seeded order, each followed by its neighbours that have not come yet.");
}

}  // namespace ilhash::bindings
