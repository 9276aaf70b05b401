// Kernels over long arrays.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../vector.hpp"
#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

template <class T, auto kernel>
auto gather(Matrix<T> x, Vector<int64_t> rows, std::optional<Vector<int32_t>> columns, Vector<float> origin,
            WritableMatrix<float> out) {
  const Rows<const T> from = as_rows<const T>(x);
  const Rows<float> to = as_rows<float>(out);
  std::vector<double> sum(to.n_columns, 0.0), squares(to.n_columns, 0.0);
  std::vector<float> scratch(2 * to.n_columns);
  {
    const GilReleased released;
    check_gather(from.n_rows, from.n_columns, span(rows), maybe_span(columns), origin.shape(0), to.n_rows,
                 to.n_columns);
    (vector_kernels().*kernel)(from, rows.data(), columns ? columns->data() : nullptr, origin.data(), to,
                               scratch.data(), sum.data(), squares.data());
  }
  return nb::make_tuple(to_numpy(std::move(sum)), to_numpy(std::move(squares)));
}

void rescale(WritableMatrix<float> x, Vector<float> shift, Vector<float> factor) {
  const Rows<float> rows = as_rows<float>(x);
  require(shift.shape(0) == rows.n_columns && factor.shape(0) == rows.n_columns, "one shift and factor per column");
  const GilReleased released;
  vector_kernels().rescale(rows, shift.data(), factor.data());
}

double hinge(Vector<float> f, Vector<float> y, WritableVector<float> slack, WritableVector<float> pull,
             WritableVector<uint8_t> active) {
  const size_t n = f.shape(0);
  require(y.shape(0) == n && slack.shape(0) == n && pull.shape(0) == n && active.shape(0) == n, "lengths differ");
  const GilReleased released;
  return vector_kernels().hinge(f.data(), y.data(), n, slack.data(), pull.data(), active.data());
}

nb::tuple hinge_slope(Vector<float> slack, Vector<float> y, Vector<float> direction, float t) {
  const size_t n = slack.shape(0);
  require(y.shape(0) == n && direction.shape(0) == n, "lengths differ");
  double slope = 0, curvature = 0;
  {
    const GilReleased released;
    vector_kernels().hinge_slope(slack.data(), y.data(), direction.data(), n, t, &slope, &curvature);
  }
  return nb::make_tuple(slope, curvature);
}

void gram_times(Matrix<float> x, Vector<float> v, Vector<float> weight, WritableVector<float> product,
                WritableVector<float> image) {
  const Rows<const float> rows = as_rows<const float>(x);
  require(v.shape(0) == rows.n_columns && image.shape(0) == rows.n_columns, "v and image: one value per column of x");
  require(weight.shape(0) == rows.n_rows && product.shape(0) == rows.n_rows, "weight and product: one value per row");
  const GilReleased released;
  vector_kernels().gram_times(rows, v.data(), weight.data(), product.data(), image.data());
}

void project_subsets(Matrix<float> x, Table<float> weights, Table<int32_t> columns, Vector<float> bias,
                     WritableMatrix<float> out) {
  const Rows<const float> from = as_rows<const float>(x);
  const Rows<float> to = as_rows<float>(out);
  const size_t n_bits = weights.shape(0), d = weights.shape(1);
  const GilReleased released;
  check_subsets(from.n_rows, from.n_columns, grid(weights), grid(columns), bias.shape(0), to.n_rows, to.n_columns);
  std::vector<float> tile(from.n_columns * kProjectTile, 0.0f);
  vector_kernels().project_subsets(from, weights.data(), columns.data(), bias.data(), n_bits, d, tile.data(), to);
}

}  // namespace

void bind_vectors(nb::module_& m) {
  m.def("simd", [] { return std::string(vector_level()); }, "The instruction set in use.");
  m.def("gather_f32", &gather<float, &VectorKernels::gather_f32>, "x"_a.noconvert(), "rows"_a, "columns"_a.none(),
        "origin"_a, "out"_a.noconvert());
  m.def("gather_f64", &gather<double, &VectorKernels::gather_f64>, "x"_a.noconvert(), "rows"_a, "columns"_a.none(),
        "origin"_a, "out"_a.noconvert());
  m.def("gather_u8", &gather<uint8_t, &VectorKernels::gather_u8>, "x"_a.noconvert(), "rows"_a, "columns"_a.none(),
        "origin"_a, "out"_a.noconvert());
  m.def("rescale", &rescale, "x"_a.noconvert(), "shift"_a, "factor"_a);
  m.def("hinge", &hinge, "f"_a, "y"_a, "slack"_a.noconvert(), "pull"_a.noconvert(), "active"_a.noconvert());
  m.def("hinge_slope", &hinge_slope, "slack"_a, "y"_a, "direction"_a, "t"_a);
  m.def("gram_times", &gram_times, "x"_a.noconvert(), "v"_a, "weight"_a, "product"_a.noconvert(),
        "image"_a.noconvert());
  m.def("project_subsets", &project_subsets, "x"_a.noconvert(), "weights"_a, "columns"_a, "bias"_a,
        "out"_a.noconvert());
}

}  // namespace ilhash::bindings
