#include "graph.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "distinct.hpp"
#include "random.hpp"

namespace ilhash {
namespace {

constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

template <class Index>
Index narrowed(uint32_t n) {
  return static_cast<Index>(n);
}

void refuse_too_many_arcs(uint64_t arcs) {
  if (arcs >= kNobody) throw std::length_error("a graph of one bit must have fewer than 2^32 arcs");
}

// The partners that each row chose: those of row n are chosen[begin[n]] .. chosen[begin[n + 1] - 1], distinct, not n.
template <class Index>
struct Choices {
  std::vector<uint32_t> begin;
  Buffer<Index> chosen;
};

// As draw_distinct, to `out`; stamp[m] == n says that m is taken. Branch-free in the loop: a refused draw is
// overwritten by the next.
template <class Index, class Candidate>
void draw_unstamped(uint32_t n, uint32_t k, uint32_t pool, Candidate candidate, uint32_t* stamp, Random& random,
                    Index* out) {
  draw_distinct(k, pool, random, [&](uint32_t draw) {
    const uint32_t m = candidate(draw), is_new = stamp[m] != n;
    *out = static_cast<Index>(m);
    out += is_new;
    stamp[m] = n;
    return is_new;
  });
}

// The first `k` of a random order of `items`, in place.
void partial_shuffle(std::vector<uint32_t>& items, uint32_t k, Random& random) {
  for (uint32_t i = 0; i < k; ++i) {
    const uint32_t j = i + random.below(static_cast<uint32_t>(items.size()) - i);
    std::swap(items[i], items[j]);
  }
}

// Marks the points that were met in one row after another. A byte per point, so that the marks of some ten thousand
// points stay in the first-level cache; rows are marked by a number that comes round, and then all marks are wiped.
class RowMarks {
 public:
  explicit RowMarks(uint32_t n_points) : mark_(n_points, 0) {}

  uint8_t next_row() {
    if (++row_ == 0) {
      std::fill(mark_.begin(), mark_.end(), uint8_t{0});
      row_ = 1;
    }
    return row_;
  }
  uint8_t* data() { return mark_.data(); }

 private:
  std::vector<uint8_t> mark_;
  uint8_t row_ = 0;
};

// The union of everybody's choices as symmetric arcs, in one pass: when row n is reached it already holds the
// m < n that chose n, so a second mention is seen there. Pairs that are arcs of `exclude` are left out.
template <class Index>
ArcsOf<Index> symmetrise(const Choices<Index>& choices, uint32_t n_points, const ArcsOf<Index>* exclude) {
  ArcsOf<Index> arcs;
  std::vector<uint32_t> chosen_by(n_points, 0);
  const size_t n_choices = choices.begin[n_points];
  for (size_t i = 0; i < n_choices; ++i) ++chosen_by[choices.chosen[i]];
  uint64_t total = 0;
  arcs.begin.resize(n_points + size_t{1});
  for (uint32_t n = 0; n < n_points; ++n) {
    arcs.begin[n] = static_cast<uint32_t>(total);
    total += uint64_t{chosen_by[n]} + (choices.begin[n + 1] - choices.begin[n]);
    refuse_too_many_arcs(total);
  }
  arcs.begin[n_points] = static_cast<uint32_t>(total);
  arcs.end.assign(arcs.begin.begin(), arcs.begin.end() - 1);
  arcs.target = Buffer<Index>(total);

  RowMarks marks(n_points);
  uint8_t* const seen = marks.data();
  uint32_t* const end = arcs.end.data();
  Index* const target = arcs.target.data();
  const Index* const chosen = choices.chosen.data();
  for (uint32_t n = 0; n < n_points; ++n) {
    const uint8_t here = marks.next_row();
    uint32_t own_end = end[n];
    for (uint32_t a = arcs.begin[n]; a < own_end; ++a) seen[target[a]] = here;
    if (exclude)
      for (uint32_t a = exclude->begin[n]; a < exclude->end[n]; ++a) seen[exclude->target[a]] = here;
    // No branch on what is new: a tenth of them would be mispredicted. A second mention writes into the slot that it
    // was given room for, and leaves it free.
    const uint32_t last = choices.begin[n + 1];
    for (uint32_t i = choices.begin[n]; i < last; ++i) {
      const uint32_t m = chosen[i], back = end[m];
      const uint32_t is_new = seen[m] != here;
      target[own_end] = static_cast<Index>(m);
      target[back] = static_cast<Index>(n);
      own_end += is_new;
      end[m] = back + is_new;
    }
    end[n] = own_end;
  }
  return arcs;
}

template <class Index>
SignedGraphOf<Index> graph_from_choices(const Choices<Index>& similar, const Choices<Index>& dissimilar, uint32_t n,
                                        bool may_conflict) {
  SignedGraphOf<Index> graph;
  graph.n = n;
  graph.attract = symmetrise<Index>(similar, n, nullptr);
  graph.repel = symmetrise<Index>(dissimilar, n, may_conflict ? &graph.attract : nullptr);
  return graph;
}

template <class Index>
void open_row(Choices<Index>& choices, uint64_t& total, uint32_t k) {
  choices.begin.push_back(static_cast<uint32_t>(total));
  total += k;
  refuse_too_many_arcs(total);
}

template <class Index>
SignedGraphOf<Index> draw_from_classes(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar,
                                       uint64_t seed) {
  const uint32_t n_points = std::accumulate(class_sizes.begin(), class_sizes.end(), uint32_t{0});
  Choices<Index> same, other;
  uint64_t same_total = 0, other_total = 0;
  std::vector<uint32_t> block;
  block.reserve(n_points);
  for (uint32_t c = 0; c < class_sizes.size(); ++c)
    for (uint32_t i = 0; i < class_sizes[c]; ++i) {
      open_row(same, same_total, std::min(similar, class_sizes[c] - 1));
      open_row(other, other_total, std::min(dissimilar, n_points - class_sizes[c]));
      block.push_back(c);
    }
  open_row(same, same_total, 0);
  open_row(other, other_total, 0);
  same.chosen = Buffer<Index>(same_total);
  other.chosen = Buffer<Index>(other_total);

  Random random(seed);
  std::vector<uint32_t> stamp(n_points, kNobody);
  uint32_t first = 0;
  for (const uint32_t size : class_sizes) {
    const auto own = [first](uint32_t draw) { return first + draw; };
    const auto outside = [first, size](uint32_t draw) { return draw + size * (draw >= first); };
    for (uint32_t n = first; n < first + size; ++n) {
      stamp[n] = n;
      draw_unstamped(n, same.begin[n + 1] - same.begin[n], size, own, stamp.data(), random,
                     same.chosen.data() + same.begin[n]);
      draw_unstamped(n, other.begin[n + 1] - other.begin[n], n_points - size, outside, stamp.data(), random,
                     other.chosen.data() + other.begin[n]);
    }
    first += size;
  }
  SignedGraphOf<Index> graph = graph_from_choices(same, other, n_points, false);
  graph.block = std::move(block);
  return graph;
}

template <class Index>
SignedGraphOf<Index> draw_from_label_sets(const uint32_t* row_begin, const uint32_t* labels, uint32_t n,
                                          uint32_t n_labels, uint32_t similar, uint32_t dissimilar, uint64_t seed) {
  std::vector<std::vector<uint32_t>> members(n_labels);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t a = row_begin[i]; a < row_begin[i + 1]; ++a) members[labels[a]].push_back(i);

  Random random(seed);
  Choices<Index> same, other;
  std::vector<Index> same_chosen, other_chosen;
  std::vector<uint32_t> stamp(n, kNobody), sharing, apart;
  uint64_t same_total = 0, other_total = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sharing.clear();
    apart.clear();
    stamp[i] = i;
    for (uint32_t a = row_begin[i]; a < row_begin[i + 1]; ++a)
      for (const uint32_t m : members[labels[a]])
        if (stamp[m] != i) {
          stamp[m] = i;
          sharing.push_back(m);
        }
    for (uint32_t m = 0; m < n; ++m)
      if (stamp[m] != i) apart.push_back(m);
    const uint32_t n_same = std::min<uint32_t>(similar, static_cast<uint32_t>(sharing.size()));
    const uint32_t n_other = std::min<uint32_t>(dissimilar, static_cast<uint32_t>(apart.size()));
    partial_shuffle(sharing, n_same, random);
    partial_shuffle(apart, n_other, random);
    open_row(same, same_total, n_same);
    open_row(other, other_total, n_other);
    std::transform(sharing.begin(), sharing.begin() + n_same, std::back_inserter(same_chosen), narrowed<Index>);
    std::transform(apart.begin(), apart.begin() + n_other, std::back_inserter(other_chosen), narrowed<Index>);
  }
  open_row(same, same_total, 0);
  open_row(other, other_total, 0);
  same.chosen = Buffer<Index>(same_total);
  other.chosen = Buffer<Index>(other_total);
  std::copy(same_chosen.begin(), same_chosen.end(), same.chosen.data());
  std::copy(other_chosen.begin(), other_chosen.end(), other.chosen.data());
  return graph_from_choices(same, other, n, false);
}

template <class Index>
SignedGraphOf<Index> draw_from_neighbours(const uint32_t* neighbours, uint32_t n, uint32_t k, uint32_t dissimilar,
                                          uint64_t seed) {
  Choices<Index> same, other;
  uint64_t same_total = 0, other_total = 0;
  const uint32_t n_other = std::min(dissimilar, n - 1 - k);
  for (uint32_t i = 0; i < n; ++i) {
    open_row(same, same_total, k);
    open_row(other, other_total, n_other);
  }
  open_row(same, same_total, 0);
  open_row(other, other_total, 0);
  same.chosen = Buffer<Index>(same_total);
  other.chosen = Buffer<Index>(other_total);
  std::transform(neighbours, neighbours + same_total, same.chosen.data(), narrowed<Index>);

  Random random(seed);
  std::vector<uint32_t> stamp(n, kNobody);
  for (uint32_t i = 0; i < n; ++i) {
    stamp[i] = i;
    for (uint32_t a = same.begin[i]; a < same.begin[i + 1]; ++a) stamp[same.chosen[a]] = i;
    draw_unstamped(
        i, n_other, n, [](uint32_t draw) { return draw; }, stamp.data(), random, other.chosen.data() + other.begin[i]);
  }
  return graph_from_choices(same, other, n, true);
}

template <class Index, class Coupling>
SignedGraphOf<Index> split_by_sign(const uint32_t* row_begin, const uint32_t* columns, const Coupling* couplings,
                                   uint32_t n) {
  SignedGraphOf<Index> graph;
  graph.n = n;
  graph.weighted = std::is_same_v<Coupling, double>;
  graph.sorted = true;
  const uint32_t n_arcs = row_begin[n];
  const size_t n_attract = std::count_if(couplings, couplings + n_arcs, [](Coupling w) { return w > 0; });
  const size_t counts[2] = {n_attract, n_arcs - n_attract};
  ArcsOf<Index>* const sides[2] = {&graph.attract, &graph.repel};
  for (int s = 0; s < 2; ++s) {
    sides[s]->begin.resize(n + size_t{1});
    sides[s]->end.resize(n);
    sides[s]->target = Buffer<Index>(counts[s]);
    if (graph.weighted) sides[s]->weight = Buffer<double>(counts[s]);
  }

  uint32_t filled[2] = {0, 0};
  for (uint32_t i = 0; i < n; ++i) {
    for (int s = 0; s < 2; ++s) sides[s]->begin[i] = filled[s];
    for (uint32_t a = row_begin[i]; a < row_begin[i + 1]; ++a) {
      const int s = couplings[a] > 0 ? 0 : 1;
      sides[s]->target[filled[s]] = static_cast<Index>(columns[a]);
      if (graph.weighted) sides[s]->weight[filled[s]] = std::abs(static_cast<double>(couplings[a]));
      ++filled[s];
    }
    for (int s = 0; s < 2; ++s) sides[s]->end[i] = filled[s];
  }
  for (int s = 0; s < 2; ++s) sides[s]->begin[n] = filled[s];
  return graph;
}

template <class Index>
std::vector<uint32_t> grow_blocks_over(const SignedGraphOf<Index>& graph) {
  std::vector<uint32_t> block(graph.n, kNobody), repelled_by(graph.n, kNobody), queue(graph.n);
  uint32_t current = 0;
  for (uint32_t start = 0; start < graph.n; ++start) {
    if (block[start] != kNobody) continue;
    uint32_t head = 0, tail = 0;
    const auto join = [&](uint32_t i) {
      block[i] = current;
      queue[tail++] = i;
      for (uint32_t a = graph.repel.begin[i]; a < graph.repel.end[i]; ++a) repelled_by[graph.repel.target[a]] = current;
    };
    join(start);
    while (head < tail) {
      const uint32_t i = queue[head++];
      for (uint32_t a = graph.attract.begin[i]; a < graph.attract.end[i]; ++a) {
        const uint32_t j = graph.attract.target[a];
        if (block[j] == kNobody && repelled_by[j] != current) join(j);
      }
    }
    ++current;
  }
  return block;
}

// Moves the attracting arcs that stay inside their block to the front of each point's arcs; both parts stay sorted.
template <class Index>
void keep_blocks(SignedGraphOf<Index>& graph) {
  graph.block = grow_blocks_over(graph);
  graph.inside_end.resize(graph.n);
  for (uint32_t n = 0; n < graph.n; ++n) {
    Index* const targets = graph.attract.target.data();
    const auto inside = [&](Index m) { return graph.block[m] == graph.block[n]; };
    const Index* const middle =
        std::stable_partition(targets + graph.attract.begin[n], targets + graph.attract.end[n], inside);
    graph.inside_end[n] = static_cast<uint32_t>(middle - targets);
  }
}

// build(an index of the type to use) for a graph of n points.
template <class Build>
SignedGraph with_index_for(uint32_t n, Build build) {
  if (n <= SignedGraph::kMostPointsFor16Bits) return build(uint16_t{});
  return build(uint32_t{});
}

}  // namespace

const SignedGraph::Arcs& SignedGraph::drawn() const {
  std::call_once(of_labels_->once, [&] {
    const LabelGraph& of = of_labels_->labels;  // of 65,536 points at most
    of_labels_->arcs = draw_from_classes<uint16_t>(of.class_sizes, of.similar, of.dissimilar, of.seed);
  });
  return of_labels_->arcs;
}

SignedGraph graph_from_classes(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar,
                               uint64_t seed) {
  if (LabelGraph::suits(class_sizes, similar, dissimilar))
    return SignedGraph(LabelGraph(class_sizes, similar, dissimilar, seed));
  const uint32_t n = std::accumulate(class_sizes.begin(), class_sizes.end(), uint32_t{0});
  return with_index_for(n, [&](auto index) -> SignedGraph {
    return draw_from_classes<decltype(index)>(class_sizes, similar, dissimilar, seed);
  });
}

SignedGraph graph_from_label_sets(const uint32_t* row_begin, const uint32_t* labels, uint32_t n, uint32_t n_labels,
                                  uint32_t similar, uint32_t dissimilar, uint64_t seed) {
  return with_index_for(n, [&](auto index) -> SignedGraph {
    return draw_from_label_sets<decltype(index)>(row_begin, labels, n, n_labels, similar, dissimilar, seed);
  });
}

SignedGraph graph_from_neighbours(const uint32_t* neighbours, uint32_t n, uint32_t k, uint32_t dissimilar,
                                  uint64_t seed) {
  return with_index_for(n, [&](auto index) -> SignedGraph {
    return draw_from_neighbours<decltype(index)>(neighbours, n, k, dissimilar, seed);
  });
}

SignedGraph graph_from_couplings(const uint32_t* row_begin, const uint32_t* columns, const double* couplings,
                                 uint32_t n) {
  return with_index_for(
      n, [&](auto index) -> SignedGraph { return split_by_sign<decltype(index)>(row_begin, columns, couplings, n); });
}

SignedGraph graph_from_signs(const uint32_t* row_begin, const uint32_t* columns, const int8_t* signs, uint32_t n) {
  return with_index_for(n, [&](auto index) -> SignedGraph {
    auto graph = split_by_sign<decltype(index)>(row_begin, columns, signs, n);
    keep_blocks(graph);
    return graph;
  });
}

std::vector<uint32_t> grow_blocks(const SignedGraph& graph) {
  return graph.visit([](const auto& of_index) { return grow_blocks_over(of_index); });
}

}  // namespace ilhash
