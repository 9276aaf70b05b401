// Linear SVMs under a preconditioner and the kernels that they alone use, against plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "check.hpp"
#include "random.hpp"
#include "svm.hpp"
#include "vector.hpp"

using namespace ilhash;

namespace {

float uniform(Random& random) { return static_cast<float>(random.below(2001)) / 1000.0f - 1.0f; }

void test_products(const VectorKernels& kernels) {
  for (const size_t n : {0, 1, 3, 4, 7, 8, 21})
    for (const size_t d : {1, 15, 16, 17, 40}) {
      Random random(n + 100 * d);
      const size_t stride = d + 3;
      std::vector<float> x(n * stride), v(d), product(n), weight(n), image(d, 1.0f);
      std::vector<uint32_t> which(n);
      for (auto& value : x) value = uniform(random);
      for (auto& value : v) value = uniform(random);
      for (auto& value : weight) value = uniform(random);
      for (auto& row : which) row = random.below(static_cast<uint32_t>(n));
      kernels.times({x.data(), stride, n, d}, v.data(), product.data());
      for (size_t i = 0; i < n; ++i) {
        double wanted = 0;
        for (size_t j = 0; j < d; ++j) wanted += double{x[i * stride + j]} * v[j];
        CHECK(std::abs(product[i] - wanted) <= 1e-5 * (1 + std::abs(wanted)));
      }
      for (const bool all : {true, false}) {
        std::fill(image.begin(), image.end(), 1.0f);
        kernels.add_rows({x.data(), stride, n, d}, all ? nullptr : which.data(), n, weight.data(), image.data());
        for (size_t j = 0; j < d; ++j) {
          double wanted = 1;
          for (size_t k = 0; k < n; ++k) wanted += double{weight[k]} * x[(all ? k : which[k]) * stride + j];
          CHECK(std::abs(image[j] - wanted) <= 1e-5 * (1 + std::abs(wanted)));
        }
      }
    }
}

struct Data {
  size_t n, d;  // d: with the column of ones
  std::vector<float> rows, shift, factor, y;

  Data(size_t n_rows, size_t n_columns, uint64_t seed)
      : n(n_rows), d(n_columns), rows(n * d), shift(d - 1), factor(d - 1), y(n) {
    Random random(seed);
    for (auto& value : shift) value = 3 * uniform(random);
    for (auto& value : factor) value = 0.5f + std::abs(uniform(random));
    for (size_t i = 0; i < n; ++i) {
      double plane = 0.3 * uniform(random);
      for (size_t j = 0; j + 1 < d; ++j) {
        rows[i * d + j] = uniform(random) / factor[j] + shift[j];
        plane += scaled(i, j) * ((j % 3) - 1.0);
      }
      rows[i * d + d - 1] = 1.0f;
      y[i] = plane > 0 ? 1.0f : -1.0f;
    }
  }
  double scaled(size_t i, size_t j) const { return j + 1 < d ? (double{rows[i * d + j]} - shift[j]) * factor[j] : 1.0; }
  SvmProblem problem(double C) const { return {{rows.data(), d, n, d}, shift.data(), factor.data(), y.data(), C}; }
  std::vector<double> margins(const std::vector<float>& w) const {
    std::vector<double> out(n, 0.0);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < d; ++j) out[i] += scaled(i, j) * w[j];
    return out;
  }
};

std::vector<float> diagonal(size_t d, float value) {
  std::vector<float> out(d * d, 0.0f);
  for (size_t j = 0; j < d; ++j) out[j * d + j] = value;
  return out;
}

// The objective is convex: where its gradient is small beside what it begins with, the minimum is near.
void test_search(size_t n, size_t d, double C) {
  const Data data(n, d, n + d);
  const double typical = 1.0 / (1.0 + 2.0 * C * static_cast<double>(n) / 3.0);
  const std::vector<float> inverse = diagonal(d, static_cast<float>(typical));
  const SvmResult found = solve_squared_hinge(data.problem(C), {inverse.data(), d, d, d}, 1e-6);
  CHECK(found.end == SvmEnd::kSolved);
  const std::vector<double> margins = data.margins(found.weights);
  double objective = 0, gradient = 0;
  for (size_t j = 0; j < d; ++j) {
    double own = found.weights[j];
    for (size_t i = 0; i < n; ++i)
      own -= 2 * C * std::max(0.0, 1 - data.y[i] * margins[i]) * data.y[i] * data.scaled(i, j);
    gradient += own * own;
    objective += 0.5 * found.weights[j] * found.weights[j];
  }
  for (size_t i = 0; i < n; ++i) {
    const double slack = std::max(0.0, 1 - data.y[i] * margins[i]);
    objective += C * slack * slack;
    CHECK(std::abs(found.margins[i] - margins[i]) < 1e-3);
  }
  CHECK(gradient / 2 * typical <= 1e-4 * objective);
  CHECK(objective < C * static_cast<double>(n));  // w = 0
}

void test_searches_that_lead_nowhere() {
  const Data data(50, 4, 1);
  for (const float value : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
    const std::vector<float> inverse = diagonal(4, value);
    const SvmResult found = solve_squared_hinge(data.problem(1.0), {inverse.data(), 4, 4, 4}, 1e-5);
    CHECK(found.weights.size() == 4);
    CHECK(found.margins.size() == 50);
    CHECK(value > 0 || found.end == SvmEnd::kSlow);
  }
}

}  // namespace

int main() {
  std::printf("vector kernels: %s\n", vector_level());
  test_products(vector_kernels());
  for (const double C : {0.001, 0.01, 0.1})
    for (const size_t d : {1, 2, 9, 40}) test_search(300, d, C);
  test_searches_that_lead_nowhere();
  return testing::all_passed("svm");
}
