// Nothing of the standard library is instantiated here: an inline function compiled for a newer instruction set
// could be the copy that the linker keeps for everybody.
#include "vector.hpp"

namespace ilhash::avx512 {
namespace {
#include "vector_kernels.inc"
}  // namespace

const VectorKernels& table() { return kernels; }

}  // namespace ilhash::avx512
