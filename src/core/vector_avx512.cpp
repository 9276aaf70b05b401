// Nothing of the standard library is instantiated here: an inline function compiled for a newer instruction set
// could be the copy that the linker keeps for everybody.
#include "label_kernels.hpp"
#include "scan_kernels.hpp"
#include "tree_kernels.hpp"
#include "vector.hpp"

namespace ilhash::avx512 {
namespace {
#include "label_kernels.inc"
#include "scan_kernels.inc"
#include "vector_kernels.inc"
// What it has is used by the next.
#include "tree_kernels.inc"
}  // namespace

const VectorKernels& table() { return kernels; }
const ScanKernels& scan_table() { return scanning; }
const LabelKernels& label_table() { return labelling; }
const TreeKernels& tree_table() { return planting; }

}  // namespace ilhash::avx512
