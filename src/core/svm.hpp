// Linear SVM with squared hinge loss, min_w |w|^2 / 2 + C sum_n max(0, 1 - y_n w'x_n)^2, by conjugate gradients under a
// preconditioner that was made before, for all bits of a model.
//
// The objective is piecewise quadratic. Every step costs one pass over the rows, which gives both where the direction
// leads and how the gradient changes along it; what is missing are the rows that enter or leave the loss on the way,
// and only these are read again. Each search along a direction is exact.
//
// Rows come as they were gathered: that features are standardised, x = (row - shift) * factor, is folded into the
// vectors that rows are multiplied by, so rows are neither written nor read for it.
#pragma once
#include <cstddef>
#include <vector>

#include "vector.hpp"

namespace ilhash {

struct SvmProblem {
  Rows<const float> rows;  // the last column is ones, whose weight is the bias
  const float* shift;      // of every other column
  const float* factor;
  const float* y;  // -1 and +1
  double C;
};

// How the search ended. kSlow: the preconditioner does not suit the rows; what was found is where another search
// begins.
enum class SvmEnd : unsigned char { kSolved, kSlow };

struct SvmResult {
  std::vector<float> weights, margins;  // of the standardised columns, the bias last; weights'x of every row
  unsigned steps = 0;
  SvmEnd end = SvmEnd::kSlow;
};

// `inverse` is symmetric and positive definite, about the inverse of the Hessian at the minimum. The objective may stay
// above its minimum by the share `tolerance`, as far as steps tell.
SvmResult solve_squared_hinge(const SvmProblem& problem, Rows<const float> inverse, double tolerance);

}  // namespace ilhash
