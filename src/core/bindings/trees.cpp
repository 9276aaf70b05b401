// Decision trees: margins, and boosting.
#include "../trees.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../boosting.hpp"
#include "checks.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

void margins_of_trees(Vector<int32_t> feature, Vector<double> threshold, Vector<int32_t> left, Vector<int32_t> right,
                      Vector<double> value, Vector<int32_t> roots, double bias, Matrix<float> x,
                      WritableVector<float> out) {
  const Rows<const float> rows = as_rows<const float>(x);
  require(out.shape(0) == rows.n_rows, "out must have one value per row");
  nb::gil_scoped_release release;
  const TreeTable table{to_vector(feature),
                        to_vector(left),
                        to_vector(right),
                        to_vector(roots),
                        to_vector(threshold),
                        to_vector(value),
                        bias};
  require(rows.n_columns > 0, "rows must have features");
  require_no_fault(fault_of(table, rows.n_columns));
  tree_margins(table, rows, out.data());
}

nb::tuple boosted_trees(Table<uint8_t> bins, Vector<uint32_t> edge_begin, Vector<double> edges, Vector<int8_t> z,
                        uint32_t n_trees, uint32_t depth, uint32_t n_tried, double rate, double penalty,
                        uint64_t seed) {
  const size_t n_features = bins.shape(0), n_rows = bins.shape(1);
  require(n_rows > 0 && n_rows < (uint64_t{1} << 31), "there must be rows, fewer than 2^31");
  require(edge_begin.shape(0) == n_features + 1 && edge_begin(0) == 0 && edge_begin(n_features) == edges.shape(0),
          "edge_begin must lead through all edges, feature by feature");
  require(z.shape(0) == n_rows, "z must have one value per row");
  require(penalty > 0, "the penalty must be positive");
  std::vector<double> margins(n_rows);
  TreeTable table;
  {
    nb::gil_scoped_release release;
    require_signs(z, "z must hold -1 and +1 only");
    for (size_t j = 0; j < n_features; ++j) {
      require(edge_begin(j) <= edge_begin(j + 1) && edge_begin(j + 1) - edge_begin(j) <= 255,
              "a feature must have at most 255 edges");
      const uint8_t* const own = bins.data() + j * n_rows;
      require(*std::max_element(own, own + n_rows) <= edge_begin(j + 1) - edge_begin(j), "a bin is out of range");
    }
    const BinnedFeatures x{bins.data(), static_cast<uint32_t>(n_rows), static_cast<uint32_t>(n_features),
                           edge_begin.data(), edges.data()};
    table = boost(x, z.data(), {n_trees, depth, n_tried, rate, penalty, seed}, margins.data());
  }
  return nb::make_tuple(to_numpy(std::move(table.feature)), to_numpy(std::move(table.threshold)),
                        to_numpy(std::move(table.left)), to_numpy(std::move(table.right)),
                        to_numpy(std::move(table.value)), to_numpy(std::move(table.roots)), table.bias,
                        to_numpy(std::move(margins)));
}

}  // namespace

void bind_trees(nb::module_& m) {
  m.def("tree_margins", &margins_of_trees, "feature"_a, "threshold"_a, "left"_a, "right"_a, "value"_a, "roots"_a,
        "bias"_a, "x"_a.noconvert(), "out"_a.noconvert());
  m.def("boosted_trees", &boosted_trees, "bins"_a, "edge_begin"_a, "edges"_a, "z"_a, "n_trees"_a, "depth"_a,
        "n_tried"_a, "rate"_a, "penalty"_a, "seed"_a,
        "(feature, threshold, left, right, value, roots, bias, margins of the rows).");
}

}  // namespace ilhash::bindings
