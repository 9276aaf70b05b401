#include "label_graph.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "bits.hpp"
#include "distinct.hpp"
#include "label_kernels.hpp"
#include "random.hpp"

namespace ilhash {
namespace {

constexpr size_t kMostPoints = size_t{1} << 16;  // which are numbered and counted in 16 bits
constexpr size_t kMostClasses = 512;             // two counts of each stand beside every point

constexpr size_t kMostWords = size_t{1} << 24;  // of a table of bits: 128 MiB

// Rows of bits are read as words, rows of arcs one by one: this is where both take as long.
bool bits_suit(size_t n_bits, size_t n_chosen) { return words_for(n_bits) <= 2 * n_chosen; }

// Words that are all a power of two apart would fall into the same places of a cache.
size_t stride_for(size_t n) {
  constexpr size_t kWordsOfLine = 8;
  return words_for(n) * kWordBits + kWordsOfLine;
}

std::vector<uint32_t> begins(const std::vector<uint32_t>& sizes) {
  std::vector<uint32_t> out(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), out.begin() + 1);
  return out;
}

std::vector<uint64_t> plus_bits(const int8_t* z, size_t n) {
  std::vector<uint64_t> out(words_for(n), 0);
  for (size_t i = 0; i < n; ++i) out[i / kWordBits] |= static_cast<uint64_t>(z[i] > 0) << (i % kWordBits);
  return out;
}

// The numbers of a Random, some of them at a time.
class RandomAhead {
 public:
  explicit RandomAhead(uint64_t seed) : counter_(Random::first_counter(seed)) {}

  uint32_t below(uint32_t n) { return Random::scale(static_cast<uint32_t>(next() >> 32), n); }
  void below_twice(uint32_t n, uint32_t& first, uint32_t& second) {
    const uint64_t bits = next();
    first = Random::scale(static_cast<uint32_t>(bits >> 32), n);
    second = Random::scale(static_cast<uint32_t>(bits), n);
  }

 private:
  static constexpr size_t kAhead = 256;

  uint64_t next() {
    if (at_ == kAhead) {
      label_kernels().random_numbers(counter_, kAhead, numbers_);
      counter_ += kAhead * Random::kStep;
      at_ = 0;
    }
    return numbers_[at_++];
  }

  uint64_t counter_, numbers_[kAhead];
  size_t at_ = kAhead;
};

// Keeps draws as bits of words that are `stride` apart.
struct TakeBit {
  uint64_t* words;
  size_t stride = 1;
  uint32_t operator()(uint32_t m) const {
    uint64_t& word = words[m / kWordBits * stride];
    const uint64_t before = word, bit = bit_of(m);
    word = before | bit;
    return (before & bit) == 0;
  }
};

// Rows of bits of eight points in turn, which go to the table together: every write there is a whole cache line.
class EightRows {
 public:
  EightRows(LabelGraph& graph) : graph_(graph), n_words_(words_for(graph.n)), words_(kRows * n_words_, 0) {
    const size_t n_rows = n_words_ * kWordBits;  // also rows behind the last point, which stay empty
    for (size_t w = 0; w < n_words_; ++w)
      std::fill_n(graph.chosen_bits.data() + w * graph.stride + graph.n, n_rows - graph.n, uint64_t{0});
  }

  TakeBit row_of(uint32_t point) { return {words_.data() + point % kRows, kRows}; }

  void finish(uint32_t point) {
    if (point % kRows != kRows - 1 && point + 1 != graph_.n) return;
    const size_t first = point / kRows * kRows, n_rows = point + 1 - first;
    uint64_t* const table = graph_.chosen_bits.data() + first;
    for (size_t w = 0; w < n_words_; ++w)
      if (n_rows == kRows)
        std::memcpy(table + w * graph_.stride, words_.data() + w * kRows, kRows * sizeof(uint64_t));
      else
        std::copy_n(words_.data() + w * kRows, n_rows, table + w * graph_.stride);
    std::fill(words_.begin(), words_.end(), 0);
  }

 private:
  static constexpr size_t kRows = 8;
  LabelGraph& graph_;
  size_t n_words_;
  std::vector<uint64_t> words_;
};

}  // namespace

bool LabelGraph::suits(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar) {
  const size_t n = std::accumulate(class_sizes.begin(), class_sizes.end(), size_t{0});
  if (n == 0 || n > kMostPoints || class_sizes.size() > kMostClasses || dissimilar == 0) return false;
  const uint32_t largest = *std::max_element(class_sizes.begin(), class_sizes.end());
  return bits_suit(largest, similar) && n * words_for(largest) <= kMostWords;
}

size_t LabelGraph::n_words_of(uint32_t c) const { return words_for(size(c)); }

LabelGraph::LabelGraph(const std::vector<uint32_t>& sizes, uint32_t similar_to_draw, uint32_t dissimilar_to_draw,
                       uint64_t seed_of_draws)
    : similar(similar_to_draw), dissimilar(dissimilar_to_draw), seed(seed_of_draws), class_sizes(sizes),
      class_begin(begins(sizes)) {
  n = class_begin.back();
  size_t total = 0;
  for (uint32_t c = 0; c < n_classes(); ++c) {
    block.insert(block.end(), size(c), c);
    rows_begin.push_back(total);
    total += size(c) * n_words_of(c);
  }
  attract = Buffer<uint64_t>(total);
  std::fill_n(attract.data(), total, uint64_t{0});
  const bool in_bits = bits_suit(n, dissimilar) && words_for(n) * stride_for(n) <= kMostWords;
  if (in_bits) {
    stride = stride_for(n);
    chosen_bits = Buffer<uint64_t>(words_for(n) * stride);
  } else {
    chosen_begin.push_back(0);
    for (uint32_t i = 0; i < n; ++i)
      chosen_begin.push_back(chosen_begin.back() + std::min(dissimilar, n - size(block[i])));
    chosen = Buffer<uint16_t>(size_t{chosen_begin.back()} + 1);  // a refused draw is written behind the last one
  }

  RandomAhead random(seed);
  std::optional<EightRows> rows;
  if (in_bits) rows.emplace(*this);
  std::vector<uint32_t> stamp(in_bits ? 0 : n, n);
  for (uint32_t c = 0; c < n_classes(); ++c) {
    const uint32_t first = class_begin[c], n_own = size(c), n_others = n - n_own;
    const uint32_t n_same = std::min(similar, n_own - 1), n_apart = std::min(dissimilar, n_others);
    const auto outside = [first, n_own](uint32_t draw) { return draw + n_own * (draw >= first); };
    for (uint32_t i = 0; i < n_own; ++i) {
      uint64_t* const same = attract.data() + rows_begin[c] + i * n_words_of(c);
      set_bit(same, i);
      draw_distinct(n_same, n_own, random, TakeBit{same});
      clear_bit(same, i);
      const uint32_t point = first + i;
      if (in_bits) {
        const TakeBit take = rows->row_of(point);
        draw_distinct(n_apart, n_others, random, [&](uint32_t draw) { return take(outside(draw)); });
        rows->finish(point);
        continue;
      }
      uint16_t* next = chosen.data() + chosen_begin[point];
      draw_distinct(n_apart, n_others, random, [&](uint32_t draw) {
        const uint32_t m = outside(draw), is_new = stamp[m] != point;
        *next = static_cast<uint16_t>(m);
        next += is_new;
        stamp[m] = point;
        return is_new;
      });
    }
    label_kernels().symmetrise(attract.data() + rows_begin[c], n_own, n_words_of(c));
  }
}

namespace {

// Points in turn count whom they chose, by class and side; what they are to those is added up for as long as their
// class lasts. A pair that chose each other counts once, for the one that comes first.
class ListTally {
 public:
  ListTally(const LabelGraph& graph, const int8_t* z, uint16_t* count, uint16_t* n_plus)
      : graph_(graph), z_(z), count_(count), n_plus_(n_plus), seen_(graph.n), chosen_(graph.n),
        counts_(size_t{kInTurn} * 2 * graph.n_classes(), 0) {
    for (uint32_t i = 0; i < graph.n; ++i)
      seen_[i].counter = static_cast<uint16_t>(kInTurn * (2 * graph.block[i] + (z[i] > 0)));
    make_room();
  }

  void run() {
    for (uint32_t c = 0; c < graph_.n_classes(); ++c) {
      for (uint32_t i = graph_.class_begin[c]; i < graph_.class_begin[c + 1]; ++i) {
        look_at(i);
        write_own(i);
      }
      write_chosen_by(c);
    }
  }

 private:
  static constexpr uint32_t kInTurn = 4;  // counters of each class and side, so that none waits for the one before
  static constexpr uint32_t kSide = 16;   // where in a word those on the side of +1 are counted

  // What is looked up of a point that was chosen: in one place what is read, and in one what is written.
  struct Seen {
    uint16_t counter = 0;  // the first of its class and side
    uint16_t by = 0xFFFF;  // for whom the pair was counted already
  };
  struct Chosen {
    uint32_t begin = 0, end = 0;  // in before_: those before it that chose it, as far as points were looked at
    uint32_t by_class = 0;        // choices of points of the class at hand
  };

  void make_room() {
    for (uint32_t i = 0; i < graph_.n; ++i)
      for (uint32_t a = graph_.chosen_begin[i]; a < graph_.chosen_begin[i + 1]; ++a)
        chosen_[graph_.chosen[a]].end += graph_.chosen[a] > i;
    uint32_t next = 0;
    for (Chosen& point : chosen_) {
      point.begin = next;
      next += point.end + 1;  // one place for what does not count
      point.end = point.begin;
    }
    before_ = Buffer<uint16_t>(next);
  }

  void look_at(uint32_t i) {
    const auto here = static_cast<uint16_t>(i);
    Seen* const seen = seen_.data();
    Chosen* const chosen = chosen_.data();
    uint16_t* const before = before_.data();
    uint32_t* const counts = counts_.data();
    for (uint32_t a = chosen[i].begin; a < chosen[i].end; ++a) seen[before[a]].by = here;
    const uint32_t own = 1 | static_cast<uint32_t>(z_[i] > 0) << kSide;
    const uint16_t* const own_choices = graph_.chosen.data() + graph_.chosen_begin[i];
    const uint32_t n_own = graph_.chosen_begin[i + 1] - graph_.chosen_begin[i];
    for (uint32_t a = 0; a < n_own; ++a) {
      const uint32_t m = own_choices[a], is_new = seen[m].by != here;
      counts[seen[m].counter + a % kInTurn] += is_new;
      Chosen& other = chosen[m];
      other.by_class += own & (0 - is_new);
      before[other.end] = here;  // without a branch
      other.end += m > i;
    }
  }

  void write_own(uint32_t i) {
    const size_t n_classes = graph_.n_classes();
    for (size_t c = 0; c < n_classes; ++c) {
      uint32_t minus = 0, plus = 0;
      for (uint32_t turn = 0; turn < kInTurn; ++turn) {
        minus += counts_[2 * c * kInTurn + turn];
        plus += counts_[(2 * c + 1) * kInTurn + turn];
      }
      count_[i * n_classes + c] = static_cast<uint16_t>(count_[i * n_classes + c] + minus + plus);
      n_plus_[i * n_classes + c] = static_cast<uint16_t>(n_plus_[i * n_classes + c] + plus);
    }
    std::fill(counts_.begin(), counts_.end(), 0);
  }

  void write_chosen_by(uint32_t c) {
    const size_t n_classes = graph_.n_classes();
    for (uint32_t m = 0; m < graph_.n; ++m) {
      uint16_t &all = count_[m * n_classes + c], &plus = n_plus_[m * n_classes + c];
      all = static_cast<uint16_t>(all + chosen_[m].by_class);
      plus = static_cast<uint16_t>(plus + (chosen_[m].by_class >> kSide));
      chosen_[m].by_class = 0;
    }
  }

  const LabelGraph& graph_;
  const int8_t* z_;
  uint16_t *count_, *n_plus_;
  std::vector<Seen> seen_;
  std::vector<Chosen> chosen_;
  std::vector<uint32_t> counts_;
  Buffer<uint16_t> before_;
};

}  // namespace

ClassTally::ClassTally(const LabelGraph& graph, const int8_t* z)
    : count(size_t{graph.n} * graph.n_classes()), n_plus(count.size()) {
  std::fill_n(count.data(), count.size(), uint16_t{0});
  std::fill_n(n_plus.data(), n_plus.size(), uint16_t{0});
  if (graph.chosen_bits.empty()) {
    ListTally(graph, z, count.data(), n_plus.data()).run();
    return;
  }
  const std::vector<uint64_t> plus = plus_bits(z, graph.n);
  label_kernels().tally(graph.chosen_bits.data(), graph.n, graph.stride, plus.data(), graph.class_begin.data(),
                        graph.n_classes(), count.data(), n_plus.data());
}

}  // namespace ilhash
