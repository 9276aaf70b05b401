// A symmetric signed graph over N points: the couplings w_nm = -a_nm of the single-bit objective E(z) = z'Az.
// Attracting arcs (w > 0) want equal bits, repelling arcs (w < 0) want different ones; they are kept apart because
// the z-step treats them differently: min-cut runs on attracting arcs inside a block, everything else is a field.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "buffer.hpp"
#include "label_graph.hpp"

namespace ilhash {

// Arcs by source: those of point n are [begin[n], end[n]). Rows may have slack behind them.
template <class Index>
struct ArcsOf {
  std::vector<uint32_t> begin, end;
  Buffer<Index> target;
  Buffer<double> weight;  // |w_nm|; only in weighted graphs

  size_t count() const {
    size_t total = 0;
    for (size_t n = 0; n < end.size(); ++n) total += end[n] - begin[n];
    return total;
  }
};

template <class Index>
struct SignedGraphOf {
  uint32_t n = 0;
  bool weighted = false;  // otherwise every coupling is +1 or -1
  bool sorted = false;    // whether the arcs of each point are sorted by target (those inside its block, and the rest)
  ArcsOf<Index> attract, repel;
  std::vector<uint32_t> block;       // a partition without repelling arcs inside, when it is known from the start
  std::vector<uint32_t> inside_end;  // with it: where the attracting arcs of a point begin to leave its block
};

// Large graphs are bound by memory traffic, nearly all of it targets of arcs; so these take 16 bits each where the
// points can be numbered by that. Which of the two it is changes nothing but speed.
//
// Of a graph of labels, arcs are drawn when somebody asks for them; most z-steps do not.
class SignedGraph {
 public:
  static constexpr uint32_t kMostPointsFor16Bits = 1u << 16;

  SignedGraph(SignedGraphOf<uint16_t>&& graph) : arcs_(std::move(graph)) {}
  SignedGraph(SignedGraphOf<uint32_t>&& graph) : arcs_(std::move(graph)) {}
  explicit SignedGraph(LabelGraph&& labels) : of_labels_(std::make_unique<OfLabels>(std::move(labels))) {}

  // f(graph) with the graph as a SignedGraphOf<uint16_t> or <uint32_t>.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), of_labels_ ? drawn() : arcs_);
  }
  uint32_t n() const {
    return of_labels_ ? of_labels_->labels.n : visit([](const auto& graph) { return graph.n; });
  }
  const std::vector<uint32_t>& block() const {
    if (of_labels_) return of_labels_->labels.block;
    return visit([](const auto& graph) -> const std::vector<uint32_t>& { return graph.block; });
  }
  // The same graph without arcs, where it is one of labels and small enough.
  const LabelGraph* labels() const { return of_labels_ ? &of_labels_->labels : nullptr; }

 private:
  using Arcs = std::variant<SignedGraphOf<uint16_t>, SignedGraphOf<uint32_t>>;
  struct OfLabels {
    explicit OfLabels(LabelGraph&& graph) : labels(std::move(graph)) {}
    LabelGraph labels;
    std::once_flag once;
    Arcs arcs;
  };
  const Arcs& drawn() const;

  Arcs arcs_;
  std::unique_ptr<OfLabels> of_labels_;
};

// Points are sorted by class. Every point chooses `similar` others of its class and `dissimilar` of the other
// classes without replacement, or all of them where there are fewer; a choice by either end makes an edge.
SignedGraph graph_from_classes(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar,
                               uint64_t seed);

// Points with several labels each (rows of a CSR matrix): sharing one label makes two points similar.
SignedGraph graph_from_label_sets(const uint32_t* row_begin, const uint32_t* labels, uint32_t n, uint32_t n_labels,
                                  uint32_t similar, uint32_t dissimilar, uint64_t seed);

// Every point comes with its similar partners, in rows of k, and draws `dissimilar` others at random among the
// rest; where one end calls a pair similar, the other end's draw of it as dissimilar is dropped.
SignedGraph graph_from_neighbours(const uint32_t* neighbours, uint32_t n, uint32_t k, uint32_t dissimilar,
                                  uint64_t seed);

// A symmetric CSR matrix of real couplings with sorted columns, an empty diagonal and both halves present.
SignedGraph graph_from_couplings(const uint32_t* row_begin, const uint32_t* columns, const double* couplings,
                                 uint32_t n);

// The same without weights: couplings of +1 and -1. Its blocks are grown at once and kept with it, for z-steps that
// bring their own weights (see zstep.hpp).
SignedGraph graph_from_signs(const uint32_t* row_begin, const uint32_t* columns, const int8_t* signs, uint32_t n);

// Greedy blocks without repelling arcs inside: grow by breadth-first search over attracting arcs from the first
// point that is not taken, passing over points that repel a member (Lin et al. 2014, with search instead of one
// point's neighbours: on label graphs it recovers the classes).
std::vector<uint32_t> grow_blocks(const SignedGraph& graph);

}  // namespace ilhash
