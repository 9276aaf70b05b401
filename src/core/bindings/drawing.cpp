// Points in a seeded order.
#include "../drawing.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

auto drawn(uint64_t n, uint64_t seed, uint64_t start, uint64_t count) {
  check_permuted(n, start, count);
  std::vector<int64_t> out;
  {
    const GilReleased released;
    out = permuted(n, seed, start, count);
  }
  return to_numpy(std::move(out));
}

auto by_neighbourhoods(Vector<int64_t> row_begin, Vector<int32_t> columns, uint64_t seed, uint64_t count) {
  std::vector<int64_t> out;
  {
    const GilReleased released;
    const uint64_t n = check_neighbourhoods(span(row_begin), span(columns));
    out = neighbourhood_order(row_begin.data(), columns.data(), n, seed, count);
  }
  return to_numpy(std::move(out));
}

}  // namespace

void bind_drawing(nb::module_& m) {
  m.def("permuted", &drawn, "n"_a, "seed"_a, "start"_a, "count"_a,
        "Entries start .. start + count of a seeded permutation of 0 .. n-1, in constant memory.");
  m.def("neighbourhood_order", &by_neighbourhoods, "row_begin"_a, "columns"_a, "seed"_a, "count"_a,
        "Points in a seeded order, each followed by its neighbours that have not come yet.");
}

}  // namespace ilhash::bindings
