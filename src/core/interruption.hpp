// Long work asks now and then whether it is to end. How that is found out, and what is thrown then, is for those to say
// who call the core: the bindings ask Python for signals.
#pragma once
#include <atomic>
#include <chrono>

namespace ilhash {

inline std::atomic<void (*)()> interruption_check{nullptr};

// To be called by the thread that was asked to do the work, between pieces of it; looks at the clock, hardly ever more.
inline void check_interruption() {
  constexpr std::chrono::milliseconds kBetween{50};
  static thread_local std::chrono::steady_clock::time_point next{};
  const auto check = interruption_check.load(std::memory_order_relaxed);
  if (!check) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next) return;
  next = now + kBetween;
  check();
}

}  // namespace ilhash
