#include "label_cut.hpp"

#include <algorithm>
#include <utility>

#include "bits.hpp"

namespace ilhash {
namespace {

using Set = std::vector<uint64_t>;

// visit(i) for the members of a set, in ascending order.
template <class Visit>
void for_each_member(const Set& set, const Visit& visit) {
  for (size_t w = 0; w < set.size(); ++w)
    for (uint64_t left = set[w]; left; left &= left - 1) visit(static_cast<uint32_t>(w * kWordBits + lowest_bit(left)));
}

class BitWaves {
 public:
  explicit BitWaves(const BitNetwork& net) : net_(net), deficits_(net.n_words, 0) {}

  BlockCut run() {
    for (uint32_t i = 0; i < net_.n; ++i) {
      const int32_t x = net_.excess[i];
      (x > 0 ? surplus_ : deficit_) += x > 0 ? x : -x;
      deficits_[i / kWordBits] |= static_cast<uint64_t>(x < 0) << (i % kWordBits);
    }
    if (!settled()) cancel_one_arc_away();
    while (!settled()) {
      if (!search_from_deficits()) return BlockCut::kMixed;
      push_inwards();
    }
    // As in mincut.cpp: an empty field is all minus, and the caller keeps what it had because nothing was gained.
    return surplus_ == 0 ? BlockCut::kAllMinus : BlockCut::kAllPlus;
  }

 private:
  bool settled() const { return surplus_ == 0 || deficit_ == 0; }
  const uint64_t* arcs(uint32_t i) const { return net_.arcs + i * net_.n_words; }
  uint64_t* went_out(uint32_t i) const { return net_.went_out + i * net_.n_words; }
  uint64_t* came_in(uint32_t i) const { return net_.came_in + i * net_.n_words; }

  // One unit from i to j: what had come the other way is taken back.
  void push(uint32_t i, uint32_t j) {
    if (has_bit(came_in(i), j)) {
      clear_bit(came_in(i), j);
      clear_bit(went_out(j), i);
    } else {
      set_bit(went_out(i), j);
      set_bit(came_in(j), i);
    }
    if (net_.excess[j] < 0) {
      --surplus_;
      --deficit_;
    }
    if (++net_.excess[j] == 0) clear_bit(deficits_.data(), j);
  }

  // Pushes what i has along the arcs into `targets`, one unit each.
  int32_t push_into(uint32_t i, int32_t x, const Set& targets) {
    for (size_t w = 0; w < net_.n_words && x > 0; ++w) {
      uint64_t open = arcs(i)[w] & ~went_out(i)[w] & targets[w];
      for (; open && x > 0; open &= open - 1, --x) push(i, static_cast<uint32_t>(w * kWordBits + lowest_bit(open)));
    }
    return x;
  }

  void cancel_one_arc_away() {
    for (uint32_t i = 0; i < net_.n && deficit_ > 0; ++i)
      if (net_.excess[i] > 0) net_.excess[i] = push_into(i, net_.excess[i], deficits_);
  }

  // Fills levels_ with the points that are 0, 1, 2 ... arcs away from a deficit, as far as it takes to meet all excess.
  // False when no excess can reach a deficit: the cut is found.
  bool search_from_deficits() {
    Set wanted(net_.n_words, 0), met = deficits_;
    for (uint32_t i = 0; i < net_.n; ++i)
      wanted[i / kWordBits] |= static_cast<uint64_t>(net_.excess[i] > 0) << (i % kWordBits);
    levels_.assign(1, deficits_);
    bool reached = false, missing = true;
    while (missing) {
      Set next(net_.n_words, 0);
      bool any = false;
      for_each_member(levels_.back(), [&](uint32_t v) {
        for (size_t w = 0; w < net_.n_words; ++w) next[w] |= arcs(v)[w] & ~came_in(v)[w];
      });
      missing = false;
      for (size_t w = 0; w < net_.n_words; ++w) {
        next[w] &= ~met[w];
        met[w] |= next[w];
        any |= next[w] != 0;
        reached |= (next[w] & wanted[w]) != 0;
        missing |= (wanted[w] & ~met[w]) != 0;
      }
      if (!any) break;
      levels_.push_back(std::move(next));
    }
    return reached;
  }

  void push_inwards() {
    for (size_t level = levels_.size() - 1; level > 0; --level)
      for_each_member(levels_[level], [&](uint32_t i) {
        int32_t x = net_.excess[i], before = 0;
        if (x <= 0) return;
        do {  // a second time where a unit was taken back, and one more can go
          before = x;
          x = push_into(i, x, levels_[level - 1]);
        } while (x > 0 && x < before);
        net_.excess[i] = x;
      });
  }

  const BitNetwork& net_;
  Set deficits_;
  std::vector<Set> levels_;
  int64_t surplus_ = 0, deficit_ = 0;
};

}  // namespace

BlockCut cut_class(const BitNetwork& net) { return BitWaves(net).run(); }

}  // namespace ilhash
