#include "label_zstep.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "bits.hpp"
#include "interruption.hpp"
#include "label_cut.hpp"
#include "label_kernels.hpp"
#include "random.hpp"

namespace ilhash {
namespace {

enum class Outcome : uint8_t { kStays, kChanges, kMixed };

class ClassAlternation {
 public:
  ClassAlternation(const LabelGraph& graph, const ZStepOptions& options, const int8_t* z)
      : graph_(graph), options_(options), z_(z), tally_(graph, z), field_(graph.n, 0), degree_(graph.n),
        inside_(graph.n), field_when_cut_(graph.n), flowed_out_(graph.n, 0), excess_(graph.n),
        went_out_(graph.attract.size()), came_in_(graph.attract.size()), side_(graph.n_classes(), 0),
        was_cut_(graph.n_classes(), 0), disagreement_(graph.n_classes(), 0) {
    std::fill_n(went_out_.data(), went_out_.size(), uint64_t{0});
    std::fill_n(came_in_.data(), came_in_.size(), uint64_t{0});
    for (uint32_t c = 0; c < graph.n_classes(); ++c) {
      add_pull_of(c, -1);
      count_inside(c);
    }
    field_when_cut_ = field_;
  }

  // False where a cut is mixed.
  bool run(ZStepResult& result) {
    const uint32_t n_classes = graph_.n_classes();
    result.n_blocks = n_classes;
    double energy = initial_energy();
    result.energies.push_back(energy);
    std::vector<uint32_t> order(n_classes);
    std::iota(order.begin(), order.end(), 0);
    Random random(options_.seed);
    while (!result.converged && result.energies.size() <= options_.max_sweeps) {
      check_interruption();
      if (options_.shuffle_blocks)
        for (uint32_t k = n_classes; k > 1; --k) std::swap(order[k - 1], order[random.below(k)]);
      bool changed = false;
      for (const uint32_t c : order) {
        const Outcome outcome = improve(c);
        if (outcome == Outcome::kMixed) return false;
        changed |= outcome == Outcome::kChanges;
        energy -= 2.0 * static_cast<double>(gain_);
      }
      result.energies.push_back(energy);
      result.converged = !changed;
    }
    return true;
  }

  void write(int8_t* z) const {
    for (uint32_t i = 0; i < graph_.n; ++i)
      if (const int8_t side = side_[graph_.block[i]]) z[i] = side;
  }

 private:
  // The sum of z over the neighbours of point i in class c.
  int32_t sum_in(uint32_t i, uint32_t c) const {
    const size_t at = size_t{i} * graph_.n_classes() + c;
    const int32_t count = tally_.count[at];
    return side_[c] ? side_[c] * count : 2 * tally_.n_plus[at] - count;
  }

  // What class c adds to the field of all points, `times` so often.
  void add_pull_of(uint32_t c, int32_t times) {
    for (uint32_t i = 0; i < graph_.n; ++i) field_[i] += times * sum_in(i, c);
  }

  // Neighbours in a point's own class, and the sum of z over them.
  void count_inside(uint32_t c) {
    const uint32_t first = graph_.class_begin[c], n = graph_.size(c);
    std::vector<uint64_t> plus(graph_.n_words_of(c), 0);
    for (uint32_t i = 0; i < n; ++i) plus[i / kWordBits] |= static_cast<uint64_t>(z_[first + i] > 0) << (i % kWordBits);
    std::vector<uint32_t> n_plus(n);
    label_kernels().count_rows(graph_.attract.data() + graph_.rows_begin[c], n, plus.size(), plus.data(),
                               degree_.data() + first, n_plus.data());
    for (uint32_t i = 0; i < n; ++i) {
      const auto degree = static_cast<int32_t>(degree_[first + i]);
      inside_[first + i] = 2 * static_cast<int32_t>(n_plus[i]) - degree;
      disagreement_[c] += degree - inside_[first + i] * z_[first + i];
    }
    disagreement_[c] /= 2;  // every pair was seen from both ends
  }

  double initial_energy() const {
    double energy = 0;
    for (uint32_t i = 0; i < graph_.n; ++i) energy -= static_cast<double>(field_[i] + inside_[i]) * z_[i];
    return energy;
  }

  int32_t bit(uint32_t i) const { return side_[graph_.block[i]] ? side_[graph_.block[i]] : z_[i]; }

  // As Alternation::improve of zstep.cpp; gain_ is what was gained.
  Outcome improve(uint32_t c) {
    const uint32_t first = graph_.class_begin[c], last = graph_.class_begin[c + 1];
    gain_ = 0;
    const auto own_field = field_.begin() + first;
    if (was_cut_[c] && std::equal(own_field, field_.begin() + last, field_when_cut_.begin() + first))
      return Outcome::kStays;  // the last cut is still exact
    was_cut_[c] = 1;
    for (uint32_t i = first; i < last; ++i) excess_[i] = field_[i] - flowed_out_[i];
    const size_t rows = graph_.rows_begin[c];
    const BlockCut cut = cut_class({graph_.size(c), graph_.n_words_of(c), graph_.attract.data() + rows,
                                    went_out_.data() + rows, came_in_.data() + rows, excess_.data() + first});
    if (cut == BlockCut::kMixed) return Outcome::kMixed;
    const int32_t side = cut == BlockCut::kAllPlus ? 1 : -1;
    int64_t left_over = 0, pull_before = 0, pull_after = 0;
    for (uint32_t i = first; i < last; ++i) {
      field_when_cut_[i] = field_[i];
      flowed_out_[i] = field_[i] - excess_[i];
      // A point that nothing pulls and that is joined to nobody in its class stays as it is.
      if (field_[i] == 0 && degree_[i] == 0 && bit(i) != side) return Outcome::kMixed;
      left_over += excess_[i] < 0 ? -excess_[i] : excess_[i];
      pull_before += static_cast<int64_t>(field_[i]) * bit(i);
      pull_after += static_cast<int64_t>(field_[i]) * side;
    }
    gain_ = left_over - pull_before + disagreement_[c];
    if (gain_ <= 0) {
      gain_ = 0;
      return Outcome::kStays;
    }
    disagreement_[c] = pull_after - left_over;
    add_pull_of(c, 1);
    side_[c] = static_cast<int8_t>(side);
    add_pull_of(c, -1);
    return Outcome::kChanges;
  }

  const LabelGraph& graph_;
  const ZStepOptions& options_;
  const int8_t* z_;  // the start
  ClassTally tally_;
  std::vector<int32_t> field_;  // the pull on each point from outside of its class
  std::vector<uint32_t> degree_;
  std::vector<int32_t> inside_, field_when_cut_, flowed_out_, excess_;
  Buffer<uint64_t> went_out_, came_in_;
  std::vector<int8_t> side_;  // of each class; 0: its points are as they were at the start
  std::vector<uint8_t> was_cut_;
  std::vector<int64_t> disagreement_;  // by class: pairs inside between points that differ
  int64_t gain_ = 0;
};

}  // namespace

std::optional<ZStepResult> alternate_classes(const LabelGraph& graph, const ZStepOptions& options, int8_t* z) {
  ClassAlternation alternation(graph, options, z);
  ZStepResult result;
  if (!alternation.run(result)) return std::nullopt;
  alternation.write(z);
  return result;
}

}  // namespace ilhash
