// Large arrays of plain numbers that are not zeroed, and whose memory is kept for the next bit.
//
// A bit's graph takes tens of megabytes and lives for some milliseconds. Fresh from the system each time, a fifth of
// the z-step would be spent in page faults; so a thread keeps some of the blocks it gave up, 256 MiB at most, in huge
// pages where the system has them, since graphs are written in random order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ilhash {

class BlockCache {
 public:
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
  };

  static Block take(size_t bytes) {
    bytes = in_whole_pages(bytes);
    if (bytes >= kSmallestKept) {
      BlockCache& cache = mine();
      for (size_t i = 0; i < cache.n_; ++i)
        if (cache.kept_[i].bytes >= bytes && cache.kept_[i].bytes <= 2 * bytes) return cache.remove(i);
    }
    return allocate(bytes);
  }

  // Never throws: buffers are given back by destructors.
  static void give_back(Block block) noexcept {
    if (block.bytes < kSmallestKept || block.bytes > kMostBytes) return release(block);
    BlockCache& cache = mine();
    while (cache.n_ == kBlocks || cache.bytes_ + block.bytes > kMostBytes) release(cache.remove(0));
    cache.kept_[cache.n_++] = block;
    cache.bytes_ += block.bytes;
  }

  // What the calling thread keeps.
  static size_t bytes_kept() { return mine().bytes_; }

  ~BlockCache() {
    for (size_t i = 0; i < n_; ++i) release(kept_[i]);
    n_ = 0;
    bytes_ = 0;
  }

  static constexpr size_t kMostBytes = size_t{256} << 20;  // that a thread keeps

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kSmallestKept = size_t{1} << 18;
  static constexpr size_t kBlocks = 8;

  BlockCache() = default;

  static BlockCache& mine() {
    static thread_local BlockCache cache;
    return cache;
  }

  // The others keep their order: the first is the one that was kept for the longest time.
  Block remove(size_t i) {
    const Block block = kept_[i];
    std::copy(kept_ + i + 1, kept_ + n_, kept_ + i);
    --n_;
    bytes_ -= block.bytes;
    return block;
  }

  static size_t in_whole_pages(size_t bytes) {
#if defined(__linux__)
    if (bytes >= SIZE_MAX - kHugePage) throw std::bad_alloc();
    if (bytes >= kSmallestKept) return (bytes + kHugePage - 1) / kHugePage * kHugePage;
#endif
    return bytes;
  }

  static Block allocate(size_t bytes) {
#if defined(__linux__)
    if (bytes >= kSmallestKept) {
      void* const data = std::aligned_alloc(kHugePage, bytes);
      if (!data) throw std::bad_alloc();
      madvise(data, bytes, MADV_HUGEPAGE);  // only a wish: nothing depends on the answer
      return {data, bytes};
    }
#endif
    void* const data = std::malloc(bytes ? bytes : 1);
    if (!data) throw std::bad_alloc();
    return {data, bytes};
  }

  static void release(Block block) { std::free(block.data); }

  Block kept_[kBlocks];
  size_t n_ = 0, bytes_ = 0;
};

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t n) : block_(BlockCache::take(bytes_for(n))), size_(n) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (block_.data) BlockCache::give_back(block_);
  }

  T* data() { return static_cast<T*>(block_.data); }
  const T* data() const { return static_cast<const T*>(block_.data); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static size_t bytes_for(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    return n * sizeof(T);
  }
  void swap(Buffer& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
  }
  BlockCache::Block block_;
  size_t size_ = 0;
};

}  // namespace ilhash
