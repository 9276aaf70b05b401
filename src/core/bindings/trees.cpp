// Decision trees: margins, and boosting.
#include "../trees.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "../boosting.hpp"
#include "../tree_margins.hpp"
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

// Each table as (feature, threshold, left, right, value, roots, bias, columns or None).
std::unique_ptr<TreeMargins> make_margins(const nb::list& tables, uint64_t n_features) {
  std::vector<TreeMargins::Source> sources;
  for (const nb::handle one : tables) {
    const auto field = [&](size_t k) { return nb::cast<nb::object>(one[k]); };
    const auto whole = [&](size_t k) { return nb::cast<Vector<int32_t>>(field(k)); };
    const auto real = [&](size_t k) { return nb::cast<Vector<double>>(field(k)); };
    TreeTable table = as_table(whole(0), real(1), whole(2), whole(3), real(4), whole(5), nb::cast<double>(field(6)));
    sources.push_back({std::move(table), field(7).is_none() ? std::vector<int32_t>() : to_vector(whole(7))});
  }
  const GilReleased released;
  check_tree_sources(sources, n_features);
  return std::make_unique<TreeMargins>(sources, n_features);
}

void margins_of_trees(const TreeMargins& trees, Matrix<float> x, WritableTable<float> out) {
  const Rows<const float> rows = as_rows<const float>(x);
  require(rows.n_columns == trees.n_features(), "rows must have as many features as the trees were made for");
  require(out.shape(0) == rows.n_rows && out.shape(1) == trees.size(), "out must be (rows, tables)");
  const GilReleased released;
  trees(rows, {out.data(), trees.size(), rows.n_rows, trees.size()});
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
  nb::class_<TreeMargins>(m, "TreeMargins", "Margins of several tables of trees.")
      .def_prop_ro("n_tables", &TreeMargins::size)
      .def("margins", &margins_of_trees, "x"_a.noconvert(), "out"_a.noconvert(),
           "Write the margins of rows, (rows, tables). Threads may do it at a time.");
  m.def("tree_margins", &make_margins, "tables"_a, "n_features"_a,
        "What gives the margins of tables (feature, threshold, left, right, value, roots, bias, columns or None).");
  m.def("place_in_bins", &bins_of_rows, "x"_a.noconvert(), "edge_begin"_a, "edges"_a, "out"_a.noconvert(),
        "Write the number of a feature's edges below each value, (features, rows).");
  m.def("boosted_trees", &boosted_trees, "bins"_a, "edge_begin"_a, "edges"_a, "z"_a, "n_trees"_a, "depth"_a,
        "n_tried"_a, "rate"_a, "penalty"_a, "seed"_a,
        "(feature, threshold, left, right, value, roots, bias, margins of the rows).");
}

}  // namespace ilhash::bindings
