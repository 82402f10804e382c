"""The table of model builders: name -> `module:function` that returns a model for the parameters of an experiment."""

from __future__ import annotations

BUILDERS: dict[str, str] = {
    "conv_net": "winml.modelkit.knowledge.experiments.convolutions:conv_net",
    "quantized_conv_net": "winml.modelkit.knowledge.experiments.convolutions:quantized_conv_net",
    "attention": "winml.modelkit.knowledge.experiments.attention:attention",
    "masked_attention": "winml.modelkit.knowledge.experiments.attention:masked_attention",
    "quantized_norm": "winml.modelkit.knowledge.experiments.device_forms:quantized_norm",
    "quantized_mean": "winml.modelkit.knowledge.experiments.device_forms:quantized_mean",
    "recorded": "winml.modelkit.knowledge.experiments.recorded:load_recorded",
}
