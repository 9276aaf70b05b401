// Distinct draws, by rejection.
#pragma once
#include <cstdint>

namespace ilhash {

// `k` distinct draws out of 0 .. pool - 1, of which there must be so many: take(draw) keeps a draw and says, as 0 or 1,
// whether it was new.
template <class Source, class Take>
void draw_distinct(uint32_t k, uint32_t pool, Source& random, const Take& take) {
  uint32_t taken = 0, first, second;
  // NOLINTBEGIN(bugprone-infinite-loop): `take` says what was taken
  while (taken + 1 < k) {
    random.below_twice(pool, first, second);
    taken += take(first);
    taken += take(second);
  }
  while (taken < k) taken += take(random.below(pool));
  // NOLINTEND(bugprone-infinite-loop)
}

}  // namespace ilhash
