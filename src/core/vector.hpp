// The kernels that run over long arrays of numbers. One source (vector_kernels.inc) is compiled once per instruction
// set; dispatch.cpp picks at run time. Sums go into a fixed number of lanes, so all sets give the same bytes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ilhash {

// A matrix by rows: element (r, c) stands at data + r * row_stride + c, strides counted in elements.
template <class T>
struct Rows {
  T* data;
  size_t row_stride;
  size_t n_rows, n_columns;
};

constexpr size_t kProjectTile = 64;

struct VectorKernels {
  // out[i, j] = float(x[rows[i], columns[j]] - origin[j]); adds up sum and sum of squares of each column of out.
  // columns == nullptr: all of them. `scratch` holds two floats per column of out.
  void (*gather_f32)(Rows<const float> x, const int64_t* rows, const int32_t* columns, const float* origin,
                     Rows<float> out, float* scratch, double* sum, double* sum_of_squares);
  void (*gather_f64)(Rows<const double> x, const int64_t* rows, const int32_t* columns, const float* origin,
                     Rows<float> out, float* scratch, double* sum, double* sum_of_squares);
  void (*gather_u8)(Rows<const uint8_t> x, const int64_t* rows, const int32_t* columns, const float* origin,
                    Rows<float> out, float* scratch, double* sum, double* sum_of_squares);

  // x[i, j] = (x[i, j] - shift[j]) * factor[j], in place.
  void (*rescale)(Rows<float> x, const float* shift, const float* factor);

  // Squared hinge at margins f with targets y in {-1,+1}: slack = 1 - y f; pull = -y max(slack, 0);
  // active = slack > 0. Returns the sum of max(slack, 0)^2.
  double (*hinge)(const float* f, const float* y, size_t n, float* slack, float* pull, uint8_t* active);

  // Slope and curvature, in the step t, of half the squared hinge along a direction.
  void (*hinge_slope)(const float* slack, const float* y, const float* direction, size_t n, float t, double* slope,
                      double* curvature);

  // product = x v and image = x' (weight * product), in one pass over x.
  void (*gram_times)(Rows<const float> x, const float* v, const float* weight, float* product, float* image);

  // product = x v.
  void (*times)(Rows<const float> x, const float* v, float* product);

  // image += the sum over k < n of weight[k] times row which[k] of x, or row k without `which`.
  void (*add_rows)(Rows<const float> x, const uint32_t* which, size_t n, const float* weight, float* image);

  // out[i, b] = bias[b] + sum_j weights[b, j] * x[i, columns[b, j]]: functions of d features each.
  // `tile` is scratch of x.n_columns * kProjectTile floats.
  void (*project_subsets)(Rows<const float> x, const float* weights, const int32_t* columns, const float* bias,
                          size_t n_bits, size_t d, float* tile, Rows<float> out);
};

const VectorKernels& vector_kernels();  // the best this machine has, or what ILHASH_SIMD names
const char* vector_level();             // "portable", "avx2" or "avx512"

}  // namespace ilhash
