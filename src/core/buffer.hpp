// Large arrays of plain numbers that are not zeroed, and whose memory is kept for the next bit.
//
// A bit's graph takes tens of megabytes and lives for some milliseconds. Fresh from the system each time, a fifth of
// the z-step would be spent in page faults; so a thread keeps the blocks it gave up, in huge pages where the system has
// them, since graphs are written in random order.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

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
    if (bytes >= kSmallestKept)
      for (Block& kept : mine().kept_)
        if (kept.bytes >= bytes && kept.bytes <= 2 * bytes) {
          const Block block = kept;
          kept = mine().kept_.back();
          mine().kept_.pop_back();
          return block;
        }
    return allocate(bytes);
  }

  static void give_back(Block block) {
    BlockCache& cache = mine();
    if (block.bytes < kSmallestKept || block.bytes > kLargestKept) return release(block);
    if (cache.kept_.size() == kBlocks) {
      release(cache.kept_.front());
      cache.kept_.erase(cache.kept_.begin());
    }
    cache.kept_.push_back(block);
  }

  ~BlockCache() {
    for (const Block& block : kept_) release(block);
  }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kSmallestKept = size_t{1} << 18;
  static constexpr size_t kLargestKept = size_t{128} << 20;
  static constexpr size_t kBlocks = 8;

  BlockCache() { kept_.reserve(kBlocks); }

  static BlockCache& mine() {
    static thread_local BlockCache cache;
    return cache;
  }

  static size_t in_whole_pages(size_t bytes) {
#if defined(__linux__)
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

  std::vector<Block> kept_;
};

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t n) : block_(BlockCache::take(n * sizeof(T))), size_(n) {}
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
  void swap(Buffer& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
  }
  BlockCache::Block block_;
  size_t size_ = 0;
};

}  // namespace ilhash
