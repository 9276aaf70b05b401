// Linear SVMs under a preconditioner.
#include "../svm.hpp"

#include <utility>

#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

nb::tuple solve(Matrix<float> rows, Vector<float> shift, Vector<float> factor, Vector<float> y, double C,
                Table<float> inverse, double tolerance) {
  const SvmProblem problem{as_rows<const float>(rows), shift.data(), factor.data(), y.data(), C};
  SvmResult result;
  {
    const GilReleased released;
    check_svm(problem.rows.n_rows, problem.rows.n_columns, shift.shape(0), factor.shape(0), span(y), C, grid(inverse));
    result =
        solve_squared_hinge(problem, {inverse.data(), inverse.shape(1), inverse.shape(0), inverse.shape(1)}, tolerance);
  }
  return nb::make_tuple(to_numpy(std::move(result.weights)), to_numpy(std::move(result.margins)), result.steps,
                        result.end == SvmEnd::kSolved);
}

}  // namespace

void bind_svm(nb::module_& m) {
  m.def("solve_squared_hinge", &solve, "rows"_a.noconvert(), "shift"_a, "factor"_a, "y"_a, "C"_a, "inverse"_a,
        "tolerance"_a, "Linear SVM: (weights of standardised columns, margins, steps, whether they are enough).");
}

}  // namespace ilhash::bindings
