#include "svm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ilhash {
namespace {

constexpr unsigned kMostSteps = 40;
constexpr unsigned kPatience = 6;       // steps before the rate is judged
constexpr double kStepsForTenth = 4.0;  // each so many steps must bring the distance to a tenth
constexpr size_t kPartOfRows = 4;       // up to a quarter of the rows are looked up one by one; else all are read

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  return sum;
}

class Search {
 public:
  Search(const SvmProblem& problem, Rows<const float> inverse)
      : problem_(problem), inverse_(inverse), kernels_(vector_kernels()), n_(problem.rows.n_rows),
        d_(problem.rows.n_columns), shift_(d_ - 1), w_(d_), gradient_(d_), direction_(d_), change_(d_), along_(n_),
        conditioned_(d_), before_(d_), unfolded_(d_), image_(d_), margins_(n_), slack_(n_), pull_(n_), weight_(n_),
        active_(n_), was_active_(n_) {
    for (size_t j = 0; j + 1 < d_; ++j) shift_[j] = problem.shift[j] * problem.factor[j];
  }

  SvmResult run(double tolerance) {
    SvmResult result;
    look_at_margins();
    read_gradient();
    double steepest = 1.0;  // the longest step: a hint at how much the preconditioner overrates the Hessian
    double size_before = 0.0;
    for (; result.steps < kMostSteps; ++result.steps) {
      kernels_.times(inverse_, gradient_.data(), conditioned_.data());
      const double size = dot(gradient_, conditioned_), missing = 0.5 * size * steepest;
      const bool vanishes = std::all_of(gradient_.begin(), gradient_.end(), [](float g) { return g == 0.0f; });
      if (vanishes || (size > 0.0 && missing <= tolerance * objective_)) {
        result.end = SvmEnd::kSolved;
        break;
      }
      if (!(size > 0.0)) break;  // not a number, or not positive definite in single precision
      if (result.steps >= kPatience &&
          missing > objective_ * std::pow(10.0, -static_cast<double>(result.steps) / kStepsForTenth))
        break;
      turn(size, size_before);
      size_before = size;
      const double t = advance(steepest);
      if (!std::isfinite(t)) break;
      move_gradient(t);
    }
    result.weights = std::move(w_);
    result.margins = std::move(margins_);
    return result;
  }

 private:
  // The next direction: conjugate to the one before as far as nothing entered or left the loss (Polak and Ribiere).
  void turn(double size, double size_before) {
    double keep = 0.0;
    if (size_before > 0.0) keep = std::max(0.0, (size - dot(gradient_, before_)) / size_before);
    for (size_t j = 0; j < d_; ++j) direction_[j] = static_cast<float>(keep) * direction_[j] - conditioned_[j];
    std::swap(before_, conditioned_);
  }

  // Goes to the lowest point along the direction, and returns how far that is.
  double advance(double& steepest) {
    unfold(direction_);
    const double twice = 2.0 * problem_.C;
    for (size_t i = 0; i < n_; ++i) weight_[i] = active_[i] ? static_cast<float>(twice) : 0.0f;
    kernels_.gram_times(problem_.rows, unfolded_.data(), weight_.data(), along_.data(), image_.data());
    std::fill(change_.begin(), change_.end(), 0.0f);
    fold_image_into(change_);
    for (size_t j = 0; j < d_; ++j) change_[j] += direction_[j];
    const double whole = -dot(gradient_, direction_) / dot(direction_, change_);
    if (!std::isfinite(whole)) return whole;
    steepest = std::max(steepest, whole);
    const double t = lowest_along(whole);
    for (size_t j = 0; j < d_; ++j) w_[j] += static_cast<float>(t) * direction_[j];
    for (size_t i = 0; i < n_; ++i) margins_[i] += static_cast<float>(t) * along_[i];
    return t;
  }

  double lowest_along(double t) const {
    constexpr int kMost = 20;
    constexpr double kClose = 1e-3;
    const double w_p = dot(w_, direction_), p_p = dot(direction_, direction_), twice = 2.0 * problem_.C;
    for (int round = 0; round < kMost; ++round) {
      double slope = 0, curvature = 0;
      kernels_.hinge_slope(slack_.data(), problem_.y, along_.data(), n_, static_cast<float>(t), &slope, &curvature);
      const double change = (w_p + t * p_p + twice * slope) / (p_p + twice * curvature);
      t -= change;
      if (!(std::abs(change) > kClose * std::abs(t))) break;
    }
    return t;
  }

  // The gradient at the new point: that of the same quadratic piece, and the rows that entered or left the loss.
  void move_gradient(double t) {
    std::swap(active_, was_active_);
    look_at_margins();
    changed_.clear();
    corrections_.clear();
    for (size_t i = 0; i < n_; ++i)
      if (active_[i] != was_active_[i]) {
        changed_.push_back(static_cast<uint32_t>(i));
        corrections_.push_back((active_[i] ? -problem_.y[i] : problem_.y[i]) * slack_[i]);
      }
    if (changed_.size() * kPartOfRows > n_) return read_gradient();
    for (size_t j = 0; j < d_; ++j) gradient_[j] += static_cast<float>(t) * change_[j];
    add_image_of(changed_.data(), changed_.size(), corrections_.data());
  }

  void look_at_margins() {
    const double loss = kernels_.hinge(margins_.data(), problem_.y, n_, slack_.data(), pull_.data(), active_.data());
    objective_ = 0.5 * dot(w_, w_) + problem_.C * loss;
  }

  void read_gradient() {
    gradient_ = w_;
    add_image_of(nullptr, n_, pull_.data());
  }

  // gradient += 2 C X' weight, over some of the rows.
  void add_image_of(const uint32_t* which, size_t n, const float* weight) {
    std::fill(image_.begin(), image_.end(), 0.0f);
    kernels_.add_rows(problem_.rows, which, n, weight, image_.data());
    const auto twice = static_cast<float>(2.0 * problem_.C);
    for (float& value : image_) value *= twice;
    fold_image_into(gradient_);
  }

  // unfolded: what rows as they are must be multiplied by in place of v and standardised rows.
  void unfold(const std::vector<float>& v) {
    double shifted = 0;
    for (size_t j = 0; j + 1 < d_; ++j) {
      unfolded_[j] = problem_.factor[j] * v[j];
      shifted += static_cast<double>(shift_[j]) * static_cast<double>(v[j]);
    }
    unfolded_[d_ - 1] = static_cast<float>(static_cast<double>(v[d_ - 1]) - shifted);
  }

  // out += what standardised rows would have added up to.
  void fold_image_into(std::vector<float>& out) const {
    const float total = image_[d_ - 1];
    for (size_t j = 0; j + 1 < d_; ++j) out[j] += problem_.factor[j] * image_[j] - shift_[j] * total;
    out[d_ - 1] += total;
  }

  const SvmProblem& problem_;
  Rows<const float> inverse_;
  const VectorKernels& kernels_;
  size_t n_, d_;
  std::vector<float> shift_;                              // of standardised columns
  std::vector<float> w_, gradient_, direction_, change_;  // change: of the gradient, along the direction
  std::vector<float> along_;                              // of the margins, along the direction
  std::vector<float> conditioned_, before_, unfolded_, image_;
  std::vector<float> margins_, slack_, pull_, weight_;
  std::vector<uint8_t> active_, was_active_;
  std::vector<uint32_t> changed_;
  std::vector<float> corrections_;
  double objective_ = 0;
};

}  // namespace

SvmResult solve_squared_hinge(const SvmProblem& problem, Rows<const float> inverse, double tolerance) {
  return Search(problem, inverse).run(tolerance);
}

}  // namespace ilhash
