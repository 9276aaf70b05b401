#include "mincut.hpp"

#include <algorithm>

namespace ilhash {
namespace {

// The place of `value` in [first, last), which holds it. The rows of drawn graphs are not sorted, and looking through
// them is half of a cut: so many compares go between two branches that compilers make vector instructions of them.
template <class Index>
const Index* find_unsorted(const Index* first, const Index* last, Index value) {
  constexpr int kBetweenBranches = 32;
  for (; last - first > kBetweenBranches; first += kBetweenBranches) {
    Index found = 0;
    for (int i = 0; i < kBetweenBranches; ++i) found |= static_cast<Index>(first[i] == value);
    if (found) break;
  }
  return std::find(first, last, value);
}

struct Balance {
  int64_t surplus = 0, deficit = 0;

  bool settled() const { return surplus == 0 || deficit == 0; }
  void cancel(int64_t amount) {
    surplus -= amount;
    deficit -= amount;
  }
  // With no deficit left nobody is pulled to -1, and the other way round; an empty field keeps -1, and the caller
  // keeps the old z because nothing was gained.
  BlockCut cut() const { return surplus == 0 ? BlockCut::kAllMinus : BlockCut::kAllPlus; }
};

template <class Index, class Capacity, class Flow>
class Waves {
 public:
  Waves(FlowNetwork<Index, Capacity, Flow>& net, const Index* points, uint32_t n)
      : net_(net), points_(points), n_(n), excess_(net.excess.data()), residual_(net.residual.data()) {}

  BlockCut run() {
    for (uint32_t k = 0; k < n_; ++k) {
      const Flow x = excess_[points_[k]];
      (x > 0 ? balance_.surplus : balance_.deficit) += x > 0 ? x : -x;
    }
    if (!balance_.settled()) cancel_one_arc_away();
    while (!balance_.settled()) {
      if (!search_from_deficits()) return BlockCut::kMixed;
      push_inwards();
    }
    return balance_.cut();
  }

 private:
  void move(uint32_t from, uint32_t to, uint32_t arc, Flow amount) {
    residual_[arc] = static_cast<Capacity>(residual_[arc] - amount);
    const Index* const first = net_.target + net_.begin[to];
    const Index* const last = net_.target + net_.end[to];
    const Index* const found = net_.sorted ? std::lower_bound(first, last, static_cast<Index>(from))
                                           : find_unsorted(first, last, static_cast<Index>(from));
    Capacity& back = residual_[found - net_.target];
    back = static_cast<Capacity>(back + amount);
  }

  void cancel_one_arc_away() {
    for (uint32_t k = 0; k < n_ && balance_.deficit > 0; ++k) {
      const uint32_t i = points_[k];
      Flow x = excess_[i];
      if (x <= 0) continue;
      for (uint32_t a = net_.begin[i]; a < net_.end[i] && x > 0; ++a) {
        const uint32_t j = net_.target[a];
        const Flow y = excess_[j];
        if (y >= 0 || residual_[a] <= 0) continue;
        const Flow amount = std::min({static_cast<Flow>(residual_[a]), x, static_cast<Flow>(-y)});
        move(i, j, a, amount);
        excess_[j] = y + amount;
        x -= amount;
        balance_.cancel(amount);
      }
      excess_[i] = x;
    }
  }

  // Can flow still go from the arc's target back to its source?
  bool open_backwards(uint32_t arc) const {
    if constexpr (sizeof(Capacity) == 1)
      return residual_[arc] < 2;
    else
      return residual_[arc] < 2 * net_.weight[arc];
  }

  // False when no excess can reach a deficit: the cut is found.
  bool search_from_deficits() {
    int32_t* const distance = net_.to_deficit.data();
    Index* const queue = net_.queue.data();
    uint32_t head = 0, wanted = 0, reached = 0;
    tail_ = 0;
    for (uint32_t k = 0; k < n_; ++k) {
      const uint32_t i = points_[k];
      const bool is_deficit = excess_[i] < 0;
      distance[i] = is_deficit ? 0 : kCutOff;
      if (is_deficit) queue[tail_++] = static_cast<Index>(i);
      wanted += excess_[i] > 0;
    }
    while (head < tail_ && reached < wanted) {
      const uint32_t v = queue[head++];
      for (uint32_t a = net_.begin[v]; a < net_.end[v]; ++a) {
        const uint32_t u = net_.target[a];
        if (distance[u] != kCutOff || !open_backwards(a)) continue;
        distance[u] = distance[v] + 1;
        queue[tail_++] = static_cast<Index>(u);
        reached += excess_[u] > 0;
      }
    }
    return reached > 0;
  }

  void push_inwards() {
    const int32_t* const distance = net_.to_deficit.data();
    for (uint32_t k = tail_; k-- > 0;) {
      const uint32_t u = net_.queue[k];
      Flow x = excess_[u];
      if (x <= 0 || distance[u] == 0) continue;  // a deficit that was overfilled waits for the next search
      for (uint32_t a = net_.begin[u]; a < net_.end[u] && x > 0; ++a) {
        const uint32_t v = net_.target[a];
        if (distance[v] != distance[u] - 1 || residual_[a] <= 0) continue;
        const Flow amount = std::min(static_cast<Flow>(residual_[a]), x);
        const Flow y = excess_[v];
        move(u, v, a, amount);
        if (y < 0) balance_.cancel(std::min(amount, static_cast<Flow>(-y)));
        excess_[v] = y + amount;
        x -= amount;
      }
      excess_[u] = x;
    }
  }

  FlowNetwork<Index, Capacity, Flow>& net_;
  const Index* points_;
  uint32_t n_;
  Flow* excess_;
  Capacity* residual_;
  Balance balance_;
  uint32_t tail_ = 0;
};

}  // namespace

template <class Index, class Capacity, class Flow>
BlockCut cut_block(FlowNetwork<Index, Capacity, Flow>& net, const Index* points, uint32_t n_points) {
  return Waves<Index, Capacity, Flow>(net, points, n_points).run();
}

template BlockCut cut_block(FlowNetwork<uint16_t, int8_t, int32_t>&, const uint16_t*, uint32_t);
template BlockCut cut_block(FlowNetwork<uint16_t, int32_t, int64_t>&, const uint16_t*, uint32_t);
template BlockCut cut_block(FlowNetwork<uint16_t, int64_t, int64_t>&, const uint16_t*, uint32_t);
template BlockCut cut_block(FlowNetwork<uint32_t, int8_t, int32_t>&, const uint32_t*, uint32_t);
template BlockCut cut_block(FlowNetwork<uint32_t, int32_t, int64_t>&, const uint32_t*, uint32_t);
template BlockCut cut_block(FlowNetwork<uint32_t, int64_t, int64_t>&, const uint32_t*, uint32_t);

}  // namespace ilhash
