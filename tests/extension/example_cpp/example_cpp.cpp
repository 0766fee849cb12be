// A small extension: an operator of its own, a kernel for one of PyTorch's at the dispatch key PrivateUse1, and a call.
#include <torch/library.h>
#include <ATen/ATen.h>

#include <tuple>

namespace {

at::Tensor twice(const at::Tensor& self, double scale) {
  return at::add(self, self).mul(scale);
}

// aten::_embedding_bag as the release has it that the macro names: a kernel's types are compared when it is registered.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> embedding_bag(
    const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
    bool sparse, const c10::optional<at::Tensor>& per_sample_weights, bool include_last_offset
#ifndef BEFORE_PADDING_IDX
    , int64_t padding_idx
#endif
) {
  return std::make_tuple(weight, indices, offsets, weight);
}

}  // namespace

TORCH_LIBRARY(example_cpp, m) {
  m.def("twice(Tensor self, float scale=1.0) -> Tensor");
  m.impl("twice", TORCH_FN(twice));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_embedding_bag", TORCH_FN(embedding_bag));
}
