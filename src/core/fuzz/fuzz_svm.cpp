// Linear SVMs of any numbers under any preconditioner: a search ends, and stays inside its arrays.
#include "input.hpp"
#include "svm.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

// Small numbers mostly, now and then any bytes.
std::vector<float> numbers(Input& in, size_t n) {
  if (in.flag()) return in.many<float>(n);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(in.take<int8_t>()) / 16.0f;
  return values;
}

void solve(Input& in) {
  const size_t n = in.below(40), d = in.below(24), stride = d + in.below(4);
  const std::vector<float> rows = numbers(in, n * stride);
  std::vector<float> shift = numbers(in, d ? d - 1 : 0), factor = numbers(in, d ? d - 1 : 0), y(n);
  for (float& target : y) target = in.flag() ? 1.0f : -1.0f;
  in.spoil(shift);
  in.spoil(factor);
  in.spoil(y);
  const double C = in.flag() ? in.take<double>() : 0.1;
  std::vector<float> inverse = numbers(in, d * d);
  if (in.flag())
    for (size_t i = 0; i < d; ++i)
      for (size_t j = 0; j < d; ++j) inverse[i * d + j] = i == j ? 0.2f : 0.0f;
  check_svm(n, d, shift.size(), factor.size(), span(y), C, {inverse.data(), d, d});
  const SvmProblem problem{{rows.data(), stride, n, d}, shift.data(), factor.data(), y.data(), C};
  const SvmResult found = solve_squared_hinge(problem, {inverse.data(), d, d, d}, in.flag() ? in.take<double>() : 1e-5);
  expect(found.weights.size() == d && found.margins.size() == n, "a weight per column, a margin per row");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] { solve(in); });
}
