// What an extension of the year 2020 did: it registers its kernel together with the whole schema, here the one of torch 1.4.
#include <ATen/core/op_registration/op_registration.h>
#include <torch/script.h>

#include <tuple>

#ifdef KEY_OF_1_4
#define KEY c10::TensorTypeId::MSNPUTensorId
#else
#define KEY c10::DispatchKey::MSNPUTensorId
#endif

static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> embedding_bag(
    const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
    bool sparse, const c10::optional<at::Tensor>& per_sample_weights) {
  return std::make_tuple(weight, indices, offsets, weight);
}

static auto registry = c10::RegisterOperators().op(
    c10::RegisterOperators::options()
        .schema("aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
                "bool sparse=False, Tensor? per_sample_weights=None) -> (Tensor, Tensor, Tensor, Tensor)")
        .kernel<decltype(embedding_bag), &embedding_bag>(KEY)
        .aliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA));
