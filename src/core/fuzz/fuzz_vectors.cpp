// Kernels over matrices whose rows may lie apart, by any rows and columns; against loops.
#include <cmath>

#include "input.hpp"
#include "vector.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

struct Matrix {
  size_t n_rows, n_columns, stride;
  std::vector<float> values;

  explicit Matrix(Input& in) : n_rows(in.below(40)), n_columns(in.below(40)), stride(n_columns + in.below(4)) {
    values.resize(n_rows ? (n_rows - 1) * stride + n_columns : 0);
    for (float& v : values) v = in.take<int8_t>();
  }
  Rows<const float> view() const { return {values.data(), stride, n_rows, n_columns}; }
  float at(size_t i, size_t j) const { return values[i * stride + j]; }
};

void gather(Input& in) {
  const Matrix x(in);
  std::vector<int64_t> rows(in.below(40));
  for (int64_t& row : rows) row = x.n_rows ? static_cast<int64_t>(in.below(x.n_rows)) : 0;
  in.spoil(rows);
  std::vector<int32_t> columns(in.below(40));
  for (int32_t& column : columns) column = x.n_columns ? static_cast<int32_t>(in.below(x.n_columns)) : 0;
  in.spoil(columns);
  const bool all = in.flag();
  const size_t width = all ? x.n_columns : columns.size();
  const std::vector<float> origin(width, 2.0f);
  const Maybe<Span<int32_t>> chosen = all ? std::nullopt : Maybe<Span<int32_t>>(span(columns));
  std::vector<float> out(rows.size() * width), scratch(2 * width);
  const Rows<float> to{out.data(), width, rows.size(), width};
  check_gather(x.n_rows, x.n_columns, span(rows), chosen, origin.size(), to.n_rows, to.n_columns);
  std::vector<double> sum(width), squares(width);
  vector_kernels().gather_f32(x.view(), rows.data(), all ? nullptr : columns.data(), origin.data(), to, scratch.data(),
                              sum.data(), squares.data());
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < width; ++j)
      expect(out[i * width + j] == x.at(static_cast<size_t>(rows[i]), all ? j : static_cast<size_t>(columns[j])) - 2.0f,
             "what was gathered");
}

void project(Input& in) {
  const Matrix x(in);
  const size_t n_bits = in.below(12), d = in.below(12);
  std::vector<float> weights(n_bits * d), bias(n_bits, 1.0f), out(x.n_rows * n_bits);
  for (float& w : weights) w = in.take<int8_t>();
  std::vector<int32_t> columns(n_bits * d);
  for (int32_t& column : columns) column = x.n_columns ? static_cast<int32_t>(in.below(x.n_columns)) : 0;
  for (size_t changes = columns.empty() ? 0 : in.below(3); changes > 0; --changes)
    columns[in.below(columns.size())] = in.take<int32_t>();
  check_subsets(x.n_rows, x.n_columns, {weights.data(), n_bits, d}, {columns.data(), n_bits, d}, bias.size(), x.n_rows,
                n_bits);
  std::vector<float> tile(x.n_columns * kProjectTile, 0.0f);
  vector_kernels().project_subsets(x.view(), weights.data(), columns.data(), bias.data(), n_bits, d, tile.data(),
                                   {out.data(), n_bits, x.n_rows, n_bits});
  for (size_t i = 0; i < x.n_rows; ++i)
    for (size_t b = 0; b < n_bits; ++b) {
      float twin = 1.0f;  // sums of small whole numbers are exact in any order
      for (size_t j = 0; j < d; ++j) twin += weights[b * d + j] * x.at(i, static_cast<size_t>(columns[b * d + j]));
      expect(out[i * n_bits + b] == twin, "what was projected");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] { in.flag() ? gather(in) : project(in); });
}
