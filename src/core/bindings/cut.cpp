// What precision at k needs, bit by bit.
#include "../cut.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "checks.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

using Cuts = nb::ndarray<int32_t, nb::c_contig, nb::device::cpu>;

CutCounts make_cut_counts(Table<uint8_t> relevant, size_t k) {
  nb::gil_scoped_release release;
  return {relevant.data(), relevant.shape(0), relevant.shape(1), k};
}

void cut_add(CutCounts& counts, Vector<uint8_t> base_bits, Vector<uint8_t> query_bits, size_t n_threads) {
  require(base_bits.shape(0) == counts.n_base() && query_bits.shape(0) == counts.n_queries(),
          "there must be one bit for each base point and each query");
  nb::gil_scoped_release release;
  counts.add(base_bits.data(), query_bits.data(), n_threads);
}

void cut_now(const CutCounts& counts, Cuts out) {
  require(out.ndim() == 2 && out.shape(0) == counts.n_queries() && out.shape(1) == 4, "out must be (queries, 4)");
  nb::gil_scoped_release release;
  const std::vector<Cut>& cuts = counts.cuts();
  std::copy(cuts.begin(), cuts.end(), reinterpret_cast<Cut*>(out.data()));
}

void cut_with_each(const CutCounts& counts, Table<uint64_t> pool, Table<uint64_t> queries, size_t n_bits,
                   size_t n_threads, Cuts out) {
  const WordCodes base{pool.data(), pool.shape(0), n_bits}, own{queries.data(), queries.shape(0), n_bits};
  require(n_bits > 0 && pool.shape(1) == base.n_words() && queries.shape(1) == base.n_words(),
          "codes must have as many words as the bits fill");
  require(base.n == counts.n_base() && own.n == counts.n_queries(),
          "there must be one code for each base point and each query");
  require(out.ndim() == 3 && out.shape(0) == own.n && out.shape(1) == n_bits && out.shape(2) == 4,
          "out must be (queries, bits, 4)");
  nb::gil_scoped_release release;
  counts.with_each(base, own, n_threads, reinterpret_cast<Cut*>(out.data()));
}

}  // namespace

void bind_cut(nb::module_& m) {
  nb::class_<CutCounts>(m, "CutCounts", "What precision at k needs to know of each query, bit by bit.")
      .def("add", &cut_add, "base_bits"_a, "query_bits"_a, "n_threads"_a, "One bit more.")
      .def("now", &cut_now, "out"_a.noconvert(),
           "For each query: points before the edge, relevant ones among them, points at the edge, relevant ones.")
      .def("with_each", &cut_with_each, "pool"_a, "queries"_a, "n_bits"_a, "n_threads"_a, "out"_a.noconvert(),
           "The same for each query and bit of a pool, if that bit were added.");
  m.def("cut_counts", &make_cut_counts, "relevant"_a, "k"_a, "Counts of no bits yet: all points are at distance 0.");
}

}  // namespace ilhash::bindings
