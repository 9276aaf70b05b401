#include "zstep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "interruption.hpp"
#include "label_zstep.hpp"
#include "mincut.hpp"
#include "random.hpp"

namespace ilhash {
namespace {

template <class Index>
struct Blocks {
  std::vector<uint32_t> of;     // block of each point
  std::vector<uint32_t> begin;  // points of block c: points[begin[c]] .. points[begin[c + 1] - 1]
  std::vector<Index> points;

  explicit Blocks(const std::vector<uint32_t>& block) : of(block), points(block.size()) {
    const uint32_t n_blocks = of.empty() ? 0 : *std::max_element(of.begin(), of.end()) + 1;
    begin.assign(n_blocks + size_t{1}, 0);
    for (const uint32_t c : of) ++begin[c + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
    for (uint32_t n = 0; n < of.size(); ++n) points[next[of[n]]++] = static_cast<Index>(n);
  }
  uint32_t count() const { return static_cast<uint32_t>(begin.size()) - 1; }
  uint32_t size(uint32_t c) const { return begin[c + 1] - begin[c]; }
  const Index* of_block(uint32_t c) const { return points.data() + begin[c]; }
};

// Attracting arcs with those that stay inside the block first: [begin, inside_end) then [inside_end, end).
template <class Index>
struct SplitArcs {
  const uint32_t* begin;
  const uint32_t* end;
  const uint32_t* inside_end;
  const Index* target;
  const double* weight;

  std::vector<uint32_t> own_inside_end;
  Buffer<Index> own_target;
  Buffer<double> own_weight;
};

template <class Index>
SplitArcs<Index> split_by_block(const SignedGraphOf<Index>& graph, const std::vector<uint32_t>& block) {
  const ArcsOf<Index>& arcs = graph.attract;
  SplitArcs<Index> split{};
  split.begin = arcs.begin.data();
  split.end = arcs.end.data();
  const size_t capacity = arcs.begin[graph.n];
  split.own_inside_end.resize(graph.n);
  split.own_target = Buffer<Index>(capacity);
  if (graph.weighted) split.own_weight = Buffer<double>(capacity);
  for (uint32_t n = 0; n < graph.n; ++n) {
    uint32_t slot = arcs.begin[n];
    for (const bool inside : {true, false}) {
      for (uint32_t a = arcs.begin[n]; a < arcs.end[n]; ++a) {
        if ((block[arcs.target[a]] == block[n]) != inside) continue;
        split.own_target[slot] = arcs.target[a];
        if (graph.weighted) split.own_weight[slot] = arcs.weight[a];
        ++slot;
      }
      if (inside) split.own_inside_end[n] = slot;
    }
  }
  split.inside_end = split.own_inside_end.data();
  split.target = split.own_target.data();
  split.weight = split.own_weight.data();
  return split;
}

// Where the graph came with its blocks, nothing needs to be moved.
template <class Index>
SplitArcs<Index> keep_as_is(const SignedGraphOf<Index>& graph) {
  SplitArcs<Index> split{};
  split.begin = graph.attract.begin.data();
  split.end = graph.attract.end.data();
  split.inside_end = graph.inside_end.empty() ? split.end : graph.inside_end.data();
  split.target = graph.attract.target.data();
  split.weight = graph.attract.weight.data();
  return split;
}

// Real couplings as integers: the finest power of two for which the sum of all of them stays below 2^61. Flows are
// then exact, the min-cut ends, and couplings that are integers (or any dyadic numbers) lose nothing.
template <class Index>
double fixed_point_unit(const SignedGraphOf<Index>& graph, const double* field) {
  double total = 0;
  for (const ArcsOf<Index>* arcs : {&graph.attract, &graph.repel})
    for (uint32_t n = 0; n < graph.n; ++n)
      for (uint32_t a = arcs->begin[n]; a < arcs->end[n]; ++a) total += graph.weighted ? arcs->weight[a] : 1.0;
  for (uint32_t n = 0; field && n < graph.n; ++n) total += std::abs(field[n]);
  const double unit = total > 0 ? std::ldexp(1.0, std::ilogb(total) - 60) : 1.0;
  return std::max(unit, std::numeric_limits<double>::min());  // a pull that is hardly a number counts as none
}

template <class Index, class Capacity, class Flow>
class Alternation {
  static constexpr bool kUnit = sizeof(Capacity) == 1, kReal = sizeof(Capacity) == 8;  // otherwise whole numbers

 public:
  Alternation(const SignedGraphOf<Index>& graph, const Blocks<Index>& blocks, SplitArcs<Index> arcs,
              const ZStepOptions& options, int8_t* z)
      : graph_(graph), blocks_(blocks), attract_(std::move(arcs)), options_(options), z_(z) {
    if constexpr (kReal) {
      unit_ = fixed_point_unit(graph, options.field);
      rounded_attract_ = quantised(attract_.begin, attract_.end, attract_.weight);
      rounded_repel_ = quantised(graph.repel.begin.data(), graph.repel.end.data(), graph.repel.weight.data());
      attract_weight_ = rounded_attract_.data();
      repel_weight_ = rounded_repel_.data();
    } else if constexpr (!kUnit) {
      attract_weight_ = options.attract_weight;
      repel_weight_ = options.repel_weight;
    }
    net_ = {attract_.begin, attract_.inside_end, attract_.target, nullptr, graph.sorted, {}, {}, {}, {}};
    const size_t n_arcs = graph.attract.begin[graph.n];
    net_.residual = Buffer<Capacity>(n_arcs);
    if constexpr (kUnit) {
      std::fill_n(net_.residual.data(), n_arcs, Capacity{1});
    } else {
      std::copy_n(attract_weight_, n_arcs, net_.residual.data());
      net_.weight = attract_weight_;
    }
    net_.excess.resize(graph.n);
    net_.to_deficit.resize(graph.n);
    net_.queue.resize(graph.n);
    flowed_out_.assign(graph.n, 0);
    was_cut_.assign(blocks.count(), 0);
    compute_field();
    field_when_cut_ = field_;
  }

  ZStepResult run() {
    ZStepResult result;
    result.n_blocks = blocks_.count();
    double energy = initial_energy();
    result.energies.push_back(energy);
    std::vector<uint32_t> order(blocks_.count());
    std::iota(order.begin(), order.end(), 0);
    Random random(options_.seed);
    while (!result.converged && result.energies.size() <= options_.max_sweeps) {
      check_interruption();
      if (options_.shuffle_blocks)
        for (uint32_t k = blocks_.count(); k > 1; --k) std::swap(order[k - 1], order[random.below(k)]);
      bool changed = false;
      for (const uint32_t c : order) {
        const int64_t gain = improve(c);
        changed |= gain > 0;
        energy -= 2.0 * static_cast<double>(gain) * unit_;
      }
      result.energies.push_back(energy);
      result.converged = !changed;
    }
    return result;
  }

 private:
  Buffer<Capacity> quantised(const uint32_t* begin, const uint32_t* end, const double* weight) const {
    Buffer<Capacity> out(begin[graph_.n]);
    for (uint32_t n = 0; n < graph_.n; ++n)
      for (uint32_t a = begin[n]; a < end[n]; ++a)
        out[a] = static_cast<Capacity>(std::llround((weight ? weight[a] : 1.0) / unit_));
    return out;
  }
  Flow attract(uint32_t arc) const {
    if constexpr (kUnit)
      return 1;
    else
      return attract_weight_[arc];
  }
  Flow repel(uint32_t arc) const {
    if constexpr (kUnit)
      return 1;
    else
      return repel_weight_[arc];
  }

  // field_[n]: the pull on z_n from everything outside its block.
  void compute_field() {
    field_.resize(graph_.n);
    for (uint32_t n = 0; n < graph_.n; ++n) {
      Flow pull = options_.field ? static_cast<Flow>(std::llround(options_.field[n] / unit_)) : 0;
      for (uint32_t a = attract_.inside_end[n]; a < attract_.end[n]; ++a) pull += attract(a) * z_[attract_.target[a]];
      for (uint32_t a = graph_.repel.begin[n]; a < graph_.repel.end[n]; ++a)
        pull -= repel(a) * z_[graph_.repel.target[a]];
      field_[n] = pull;
    }
  }

  // Also fills disagreement_.
  double initial_energy() {
    disagreement_.assign(blocks_.count(), 0);
    double energy = 0;
    for (uint32_t n = 0; n < graph_.n; ++n) {
      Flow inside = 0, total = 0;
      for (uint32_t a = attract_.begin[n]; a < attract_.inside_end[n]; ++a) {
        inside += attract(a) * z_[attract_.target[a]];
        total += attract(a);
      }
      disagreement_[blocks_.of[n]] += total - inside * z_[n];
      // The unary term counts twice, as a coupling does that is seen from both of its ends.
      const Flow own = options_.field ? static_cast<Flow>(std::llround(options_.field[n] / unit_)) : 0;
      energy -= (static_cast<double>(field_[n]) + static_cast<double>(inside) + static_cast<double>(own)) * z_[n];
    }
    for (int64_t& twice : disagreement_) twice /= 2;  // every pair was seen from both ends
    return energy * unit_;
  }

  // Cuts block c and takes the new bits if they are strictly better; returns half of what E gained, in units.
  //
  // Half of the block's part of E is F(z) = -sum d_n z_n - sum_{n<m} w z z. When the cut is found, excess is left only
  // on the side of +1, deficits only on that of -1, and all arcs between are full; so no F is smaller
  // than -sum |excess_n| - sum w, and no arc has to be looked at to know what was gained.
  int64_t improve(uint32_t c) {
    const Index* const points = blocks_.of_block(c);
    const uint32_t n = blocks_.size(c);
    bool moved = false;
    for (uint32_t k = 0; k < n; ++k) {
      const uint32_t i = points[k];
      moved |= field_[i] != field_when_cut_[i];
      net_.excess[i] = field_[i] - flowed_out_[i];
    }
    if (!moved && was_cut_[c]) return 0;  // the last cut is still exact
    was_cut_[c] = 1;
    const BlockCut cut = cut_block(net_, points, n);
    int64_t left_over = 0, pull_before = 0, pull_after = 0;
    for (uint32_t k = 0; k < n; ++k) {
      const uint32_t i = points[k];
      field_when_cut_[i] = field_[i];
      flowed_out_[i] = field_[i] - net_.excess[i];
      // A point that nothing pulls and that is joined to nobody in its block stays as it is.
      const bool free = field_[i] == 0 && attract_.begin[i] == attract_.inside_end[i];
      const bool plus = free                      ? z_[i] > 0
                        : cut == BlockCut::kMixed ? net_.to_deficit[i] == kCutOff
                                                  : cut == BlockCut::kAllPlus;
      net_.to_deficit[i] = plus ? 1 : -1;  // from here on: the proposed bit
      left_over += net_.excess[i] < 0 ? -net_.excess[i] : net_.excess[i];
      pull_before += static_cast<int64_t>(field_[i]) * z_[i];
      pull_after += static_cast<int64_t>(field_[i]) * net_.to_deficit[i];
    }
    const int64_t gain = left_over - pull_before + disagreement_[c];
    if (gain <= 0) return 0;
    disagreement_[c] = pull_after - left_over;
    for (uint32_t k = 0; k < n; ++k)
      if (z_[points[k]] != net_.to_deficit[points[k]]) flip(points[k]);
    return gain;
  }

  void flip(uint32_t i) {
    z_[i] = static_cast<int8_t>(-z_[i]);
    const Flow change = 2 * static_cast<Flow>(z_[i]);
    for (uint32_t a = attract_.inside_end[i]; a < attract_.end[i]; ++a)
      field_[attract_.target[a]] += change * attract(a);
    for (uint32_t a = graph_.repel.begin[i]; a < graph_.repel.end[i]; ++a)
      field_[graph_.repel.target[a]] -= change * repel(a);
  }

  const SignedGraphOf<Index>& graph_;
  const Blocks<Index>& blocks_;
  SplitArcs<Index> attract_;
  const ZStepOptions& options_;
  int8_t* z_;
  double unit_ = 1.0;
  const Capacity* attract_weight_ = nullptr;  // none for unit weights
  const Capacity* repel_weight_ = nullptr;
  Buffer<Capacity> rounded_attract_, rounded_repel_;  // of real weights
  FlowNetwork<Index, Capacity, Flow> net_;
  std::vector<Flow> field_, field_when_cut_, flowed_out_;
  std::vector<uint8_t> was_cut_;
  std::vector<int64_t> disagreement_;  // by block: twice the weight inside between points that differ, each pair once
};

template <class Index>
ZStepResult alternate_over(const SignedGraphOf<Index>& graph, const std::vector<uint32_t>& block,
                           const ZStepOptions& options, int8_t* z) {
  const Blocks<Index> blocks(block);
  SplitArcs<Index> arcs = block == graph.block ? keep_as_is(graph) : split_by_block(graph, block);
  if (options.attract_weight)
    return Alternation<Index, int32_t, int64_t>(graph, blocks, std::move(arcs), options, z).run();
  if (graph.weighted || options.field)
    return Alternation<Index, int64_t, int64_t>(graph, blocks, std::move(arcs), options, z).run();
  return Alternation<Index, int8_t, int32_t>(graph, blocks, std::move(arcs), options, z).run();
}

}  // namespace

ZStepResult alternate(const SignedGraph& graph, const std::vector<uint32_t>& block, const ZStepOptions& options,
                      int8_t* z) {
  const LabelGraph* const labels = graph.labels();
  if (labels && !options.field && !options.attract_weight && block == labels->block)
    if (std::optional<ZStepResult> result = alternate_classes(*labels, options, z)) return std::move(*result);
  return graph.visit([&](const auto& of_index) { return alternate_over(of_index, block, options, z); });
}

}  // namespace ilhash
