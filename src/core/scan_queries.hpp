// What the searches of scan.hpp share: threads, query tables, the walk over blocks.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "interruption.hpp"
#include "scan.hpp"

namespace ilhash {

constexpr size_t kMostBlockCodes = 2048;  // limits are renewed after each block, so blocks must not be long

// Codes looked at before the next queries take their turn: they stay in the first cache.
inline size_t block_codes(size_t m) {
  constexpr size_t kBlockBytes = 16 << 10;
  return std::min(kMostBlockCodes, std::max(kTile, kBlockBytes / m / kTile * kTile));
}

// Asks for a part of the block to come: the memory works while the present block is looked at.
inline void fetch(const uint8_t* from, const uint8_t* to) {
#if defined(__GNUC__)
  for (; from < to; from += 64) __builtin_prefetch(from);
#else
  (void)from, (void)to;
#endif
}

// Calls look(first, n, g) for all blocks of the codes [from, to) (from a multiple of 64) and, block by block, for all
// groups. Blocks begin small: the first limits come early, and few candidates are taken that do not stay.
template <class Look>
void walk(const CodeBase& base, size_t from, size_t to, size_t n_groups, const Look& look) {
  const size_t largest = block_codes(base.m);
  for (size_t first = from, n; first < to; first += n) {
    n = std::min({largest, std::max<size_t>(2 * kTile, (first - from) / kTile * kTile), to - first});
    const uint8_t* const next = base.tiles + (first + n) * base.m;
    const size_t next_bytes = std::min(largest, to - first - n) * base.m;
    for (size_t g = 0; g < n_groups; ++g) {
      if (n_groups > 1) fetch(next + next_bytes * g / n_groups, next + next_bytes * (g + 1) / n_groups);
      look(first, n, g);
    }
  }
}

// At least one thread, and no more than there are processors: each has memory of its own.
inline size_t sensible_threads(size_t asked) {
  constexpr size_t kAlwaysGranted = 4;
  static const size_t most = std::max<size_t>(kAlwaysGranted, std::thread::hardware_concurrency());
  return std::clamp<size_t>(asked, 1, most);
}

// Calls work(i) for i in 0 .. n-1 on several threads, this one among them; the first exception ends the work and is
// passed on. Where the system refuses a thread, or the memory for one, those that there are do the work.
template <class Thread = std::thread, class Work>
void in_parallel(size_t n, size_t n_threads, const Work& work) {
  n_threads = std::min(n_threads, n);
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::atomic<bool> failed{false};
  const auto run = [&](bool called) {
    try {
      for (size_t i; (i = next.fetch_add(1)) < n && !failed;) {
        if (called) check_interruption();
        work(i);
      }
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  std::vector<Thread> others;
  others.reserve(n_threads);
  try {
    for (size_t t = 1; t < n_threads; ++t) others.emplace_back([&run] { run(false); });
  } catch (const std::system_error&) {  // leaving here would end the process: threads are under way
  } catch (const std::bad_alloc&) {
  }
  run(true);
  for (Thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// Some queries and their tables, in groups of four, and a last one of two or one. Where three are left, the third is
// looked up twice and its twin is not listened to.
class Queries {
 public:
  Queries(const uint8_t* queries, size_t n, size_t n_bits)
      : queries_(queries), n_(n), m_((n_bits + 7) / 8), n_bits_(n_bits), tables_((n + 1) * 32 * m_) {
    const bool alone = n % kQueryGroup == 1;
    std::vector<uint8_t> even(32 * m_), odd(32 * m_);
    for (size_t q = 0; q + (alone ? 1 : 0) < n; q += 2) {
      prepare(q, even.data());
      prepare(std::min(q + 1, n - 1), odd.data());
      uint8_t* const pair = tables_.data() + q / 2 * 32 * m_;
      for (size_t i = 0; i < 32 * m_; ++i) pair[i] = static_cast<uint8_t>(even[i] | odd[i] << 4);
    }
    if (alone) prepare(n - 1, tables_.data() + (n - 1) / 2 * 32 * m_);
  }

  struct Group {
    size_t first, n, n_kernel;  // queries of the group, and what the kernels get
    const uint8_t *tables[2], *codes[kQueryGroup];
  };

  const uint8_t* code(size_t q) const { return queries_ + q * m_; }
  size_t n_groups() const { return (n_ + kQueryGroup - 1) / kQueryGroup; }

  Group group(size_t g) const {
    Group out{};
    out.first = g * kQueryGroup;
    out.n = std::min(kQueryGroup, n_ - out.first);
    out.n_kernel = out.n == 3 ? 4 : out.n;
    for (size_t p = 0; p < 2; ++p) out.tables[p] = tables_.data() + (out.first / 2 + p) * 32 * m_;
    for (size_t q = 0; q < kQueryGroup; ++q) out.codes[q] = queries_ + std::min(out.first + q, n_ - 1) * m_;
    return out;
  }

 private:
  // Padding does not count, not even in a damaged file: no distance is larger than n_bits. To that end every value of
  // the last two half bytes is looked up as if it had the padding of the query.
  void prepare(size_t q, uint8_t* table) const {
    const uint8_t* const query = queries_ + q * m_;
    scan_kernels().prepare(query, m_, table);
    const unsigned padding = (1u << (8 * m_ - n_bits_)) - 1, own = query[m_ - 1] & padding;
    uint8_t* const last = table + 32 * (m_ - 1);
    for (unsigned v = 0; v < 16; ++v) {
      last[v] = last[(v & ~padding) | (own & 15)];
      last[16 + v] = last[16 + ((v & ~(padding >> 4)) | own >> 4)];
    }
  }

  const uint8_t* queries_;
  size_t n_, m_, n_bits_;
  std::vector<uint8_t> tables_;
};

// The n smallest rows of the posting lists of some codes, in ascending order.
void append_rows(const CodeBase& base, const uint32_t* code, const uint32_t* end, size_t n, std::vector<uint32_t>& out);

}  // namespace ilhash
