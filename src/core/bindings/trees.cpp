// Decision trees: margins, and boosting.
#include "../trees.hpp"

#include <cstdint>
#include <vector>

#include "../boosting.hpp"
#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

// Copies, as the checks must be of what is walked: an array from a file may change meanwhile.
TreeTable as_table(const Vector<int32_t>& feature, const Vector<double>& threshold, const Vector<int32_t>& left,
                   const Vector<int32_t>& right, const Vector<double>& value, const Vector<int32_t>& roots,
                   double bias) {
  return {to_vector(feature),
          to_vector(left),
          to_vector(right),
          to_vector(roots),
          to_vector(threshold),
          to_vector(value),
          bias};
}

void check_table(Vector<int32_t> feature, Vector<double> threshold, Vector<int32_t> left, Vector<int32_t> right,
                 Vector<double> value, Vector<int32_t> roots, uint64_t n_features, uint64_t max_depth) {
  const GilReleased released;
  check_trees(as_table(feature, threshold, left, right, value, roots, 0.0), n_features, max_depth);
}

void margins_of_trees(Vector<int32_t> feature, Vector<double> threshold, Vector<int32_t> left, Vector<int32_t> right,
                      Vector<double> value, Vector<int32_t> roots, double bias, Matrix<float> x,
                      WritableVector<float> out) {
  const Rows<const float> rows = as_rows<const float>(x);
  require(out.shape(0) == rows.n_rows, "out must have one value per row");
  const GilReleased released;
  const TreeTable table = as_table(feature, threshold, left, right, value, roots, bias);
  require(rows.n_columns > 0, "rows must have features");
  require_no_fault(fault_of(table, rows.n_columns));
  tree_margins(table, rows, out.data());
}

void bins_of_rows(Matrix<float> x, Vector<uint32_t> edge_begin, Vector<double> edges, WritableTable<uint8_t> out) {
  const Rows<const float> rows = as_rows<const float>(x);
  require(out.shape(0) == rows.n_columns && out.shape(1) == rows.n_rows, "out must be one row per feature");
  const GilReleased released;
  check_bin_edges(span(edge_begin), span(edges), rows.n_columns);
  place_in_bins(rows, edge_begin.data(), edges.data(), out.data());
}

nb::tuple boosted_trees(Table<uint8_t> bins, Vector<uint32_t> edge_begin, Vector<double> edges, Vector<int8_t> z,
                        uint32_t n_trees, uint32_t depth, uint32_t n_tried, double rate, double penalty,
                        uint64_t seed) {
  std::vector<double> margins(bins.shape(1));
  TreeTable table;
  {
    const GilReleased released;
    const BoostingOptions options{n_trees, depth, n_tried, rate, penalty, seed};
    const BinnedFeatures x = check_boosting(grid(bins), span(edge_begin), span(edges), span(z), options);
    table = boost(x, z.data(), options, margins.data());
  }
  return nb::make_tuple(to_numpy(std::move(table.feature)), to_numpy(std::move(table.threshold)),
                        to_numpy(std::move(table.left)), to_numpy(std::move(table.right)),
                        to_numpy(std::move(table.value)), to_numpy(std::move(table.roots)), table.bias,
                        to_numpy(std::move(margins)));
}

}  // namespace

void bind_trees(nb::module_& m) {
  m.def("check_trees", &check_table, "feature"_a.noconvert(), "threshold"_a.noconvert(), "left"_a.noconvert(),
        "right"_a.noconvert(), "value"_a.noconvert(), "roots"_a.noconvert(), "n_features"_a, "max_depth"_a,
        "Raise ValueError unless a table of trees is sound: see check_trees in checks.hpp.");
  m.def("tree_margins", &margins_of_trees, "feature"_a, "threshold"_a, "left"_a, "right"_a, "value"_a, "roots"_a,
        "bias"_a, "x"_a.noconvert(), "out"_a.noconvert());
  m.def("place_in_bins", &bins_of_rows, "x"_a.noconvert(), "edge_begin"_a, "edges"_a, "out"_a.noconvert(),
        "Write the number of a feature's edges below each value, (features, rows).");
  m.def("boosted_trees", &boosted_trees, "bins"_a, "edge_begin"_a, "edges"_a, "z"_a, "n_trees"_a, "depth"_a,
        "n_tried"_a, "rate"_a, "penalty"_a, "seed"_a,
        "(feature, threshold, left, right, value, roots, bias, margins of the rows).");
}

}  // namespace ilhash::bindings
