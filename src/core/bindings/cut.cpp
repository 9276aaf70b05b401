// What precision at k needs, bit by bit.
#include "../cut.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

using Cuts = nb::ndarray<int32_t, nb::c_contig, nb::device::cpu>;

using GuardedCounts = Guarded<CutCounts>;

std::unique_ptr<GuardedCounts> make_cut_counts(Table<uint8_t> relevant, size_t k) {
  const GilReleased released;
  return std::make_unique<GuardedCounts>(CutCounts(relevant.data(), relevant.shape(0), relevant.shape(1), k));
}

void cut_add(GuardedCounts& guarded, Vector<uint8_t> base_bits, Vector<uint8_t> query_bits, size_t n_threads) {
  guarded.use([&](CutCounts& counts) {
    check_cut_bits(counts, span(base_bits), span(query_bits));
    counts.add(base_bits.data(), query_bits.data(), n_threads);
  });
}

void cut_now(GuardedCounts& guarded, Cuts out) {
  guarded.use([&](CutCounts& counts) {
    require(out.ndim() == 2 && out.shape(0) == counts.n_queries() && out.shape(1) == 4, "out must be (queries, 4)");
    const std::vector<Cut>& cuts = counts.cuts();
    std::copy(cuts.begin(), cuts.end(), reinterpret_cast<Cut*>(out.data()));
  });
}

void cut_with_each(GuardedCounts& guarded, Table<uint64_t> pool, Table<uint64_t> queries, size_t n_bits,
                   size_t n_threads, Cuts out) {
  guarded.use([&](CutCounts& counts) {
    const CutPool checked = check_cut_pool(counts, grid(pool), grid(queries), n_bits);
    require(out.ndim() == 3 && out.shape(0) == counts.n_queries() && out.shape(1) == n_bits && out.shape(2) == 4,
            "out must be (queries, bits, 4)");
    counts.with_each(checked.base, checked.queries, n_threads, reinterpret_cast<Cut*>(out.data()));
  });
}

}  // namespace

void bind_cut(nb::module_& m) {
  nb::class_<GuardedCounts>(m, "CutCounts", "What precision at k needs to know of each query, bit by bit.")
      .def("add", &cut_add, "base_bits"_a, "query_bits"_a, "n_threads"_a, "One bit more.")
      .def("now", &cut_now, "out"_a.noconvert(),
           "For each query: points before the edge, relevant ones among them, points at the edge, relevant ones.")
      .def("with_each", &cut_with_each, "pool"_a, "queries"_a, "n_bits"_a, "n_threads"_a, "out"_a.noconvert(),
           "The same for each query and bit of a pool, if that bit were added.");
  m.def("cut_counts", &make_cut_counts, "relevant"_a, "k"_a, "Counts of no bits yet: all points are at distance 0.");
}

}  // namespace ilhash::bindings
