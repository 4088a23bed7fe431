"""Which setting a key of a configuration or an option means. Both sides use it: no other value is ever kept.

Keys are compared in small letters, words joined by underscores: `dataLoader.numWorkers` is `data_loader.num_workers`.
"""

import re

TRAIN, EVAL = "train", "eval"
LARGEST = 1 << 20  # bytes of a configuration file: what is larger is data

# setting -> the last components of keys that mean it, once words that say train or evaluation are taken out
_KEYS = {
    "num_workers": (
        "num_workers",
        "workers",
        "n_workers",
        "nworkers",
        "num_worker",
        "nr_workers",
        "number_of_workers",
        "worker_num",
        "workers_per_gpu",
        "num_workers_per_gpu",
        "dataloader_num_workers",
        "dataloader_workers",
        "data_workers",
        "loader_workers",
        "loader_num_workers",
        "num_data_workers",
    ),
    "batch_size": (
        "batch_size",
        "batchsize",
        "batch",
        "bs",
        "bsz",
        "samples_per_gpu",
        "batch_size_per_gpu",
        "batch_size_per_device",
        "per_device_batch_size",
        "per_gpu_batch_size",
        "micro_batch_size",
        "micro_batch_size_per_gpu",
        "images_per_batch",
        "ims_per_batch",
        "imgs_per_batch",
    ),
    "prefetch_factor": ("prefetch_factor", "dataloader_prefetch_factor", "prefetch_batches"),
    "persistent_workers": ("persistent_workers", "dataloader_persistent_workers"),
    "pin_memory": ("pin_memory", "pin_mem", "dataloader_pin_memory"),
    "drop_last": ("drop_last", "dataloader_drop_last"),
    "shuffle": ("shuffle",),
    "cudnn.benchmark": ("cudnn_benchmark", "cudnn_bench", "use_cudnn_benchmark"),
    "cudnn.deterministic": ("deterministic", "cudnn_deterministic", "use_deterministic"),
    "matmul.allow_tf32": ("tf32", "allow_tf32", "use_tf32", "enable_tf32"),
    "float32_matmul_precision": ("float32_matmul_precision", "matmul_precision"),
    "autocast": (
        "amp",
        "use_amp",
        "enable_amp",
        "amp_enabled",
        "autocast",
        "mixed_precision",
        "use_mixed_precision",
        "precision",
        "amp_dtype",
        "amp_precision",
        "autocast_dtype",
        "fp16",
        "use_fp16",
        "float16",
        "half",
        "half_precision",
        "bf16",
        "use_bf16",
        "bfloat16",
    ),
    "torch.compile": ("compile", "use_compile", "torch_compile", "torchcompile", "compile_model", "use_torch_compile"),
    "channels_last": ("channels_last", "use_channels_last"),
    "accumulation": (
        "accumulate",
        "accumulation",
        "accumulation_steps",
        "accumulate_steps",
        "accum_steps",
        "accum_iter",
        "grad_accum",
        "grad_accum_steps",
        "grad_accumulation",
        "grad_accumulation_steps",
        "gradient_accumulation",
        "gradient_accumulation_steps",
        "accumulate_grad_batches",
    ),
    "epochs": (
        "epochs",
        "epoch",
        "max_epochs",
        "num_epochs",
        "n_epochs",
        "nepochs",
        "total_epochs",
        "number_of_epochs",
    ),
    "max_steps": (
        "steps",
        "max_steps",
        "num_steps",
        "n_steps",
        "total_steps",
        "iterations",
        "max_iterations",
        "num_iterations",
        "total_iterations",
        "iters",
        "max_iters",
        "num_iters",
        "total_iters",
        "max_iter",
        "total_iter",
    ),
    "optimizer.lr": ("lr", "lr0", "learning_rate", "base_lr", "init_lr", "initial_lr", "max_lr"),
    "optimizer.fused": ("fused", "use_fused", "fused_optimizer"),
    "optimizer.foreach": ("foreach",),
    "anomaly_detection": ("detect_anomaly", "anomaly_detection", "set_detect_anomaly"),
    "ddp.find_unused_parameters": ("find_unused_parameters", "ddp_find_unused_parameters", "find_unused_params"),
    "ddp.static_graph": ("static_graph", "ddp_static_graph"),
    "ddp.gradient_as_bucket_view": ("gradient_as_bucket_view",),
    "ddp.bucket_cap_mb": ("bucket_cap_mb", "ddp_bucket_cap_mb"),
    "threads": ("torch_num_threads", "torch_threads"),
    "cv2_threads": ("opencv_num_threads", "cv2_num_threads", "cv_num_threads"),
}
_MEANING = {key: setting for setting, keys in _KEYS.items() for key in keys}
# The same word means many things; below one of these parents it means this.
_BELOW = {
    "benchmark": ("cudnn.benchmark", ("cudnn", "backends", "trainer")),
    "bench": ("cudnn.benchmark", ("cudnn", "backends")),
}
# `amp: {enabled: true}` declares amp.
_SAYS_ONLY_ON = ("enabled", "enable", "use", "on", "active")
_TRAIN_WORDS = frozenset(("train", "training", "trn"))
_EVAL_WORDS = frozenset(
    ("val", "valid", "validation", "validate", "test", "testing", "eval", "evaluation", "evaluate")
    + ("infer", "inference", "predict", "prediction")
)
# Below these, settings are of something that does not train here.
# How long the job is; below these words, how long something else is.
_LENGTHS = ("epochs", "max_steps")
_NOT_OF_THE_JOB = frozenset(
    (
        "lr",
        "scheduler",
        "schedule",
        "sched",
        "warmup",
        "optimizer",
        "optim",
        "ema",
        "model",
        "diffusion",
        "sampler",
        "loss",
    )
)
_ELSEWHERE = frozenset(("export", "serve", "server", "serving", "deploy", "sweep", "search", "tune", "wandb", "slurm"))
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def meaning(key):
    """(setting, TRAIN or EVAL, last component of the key) that a dotted key declares; None if it is no setting."""
    parts = [_HUMP.sub("_", part).lower().replace("-", "_").replace(" ", "_") for part in key.split(".")]
    if len(parts) > 1 and parts[-1] in _SAYS_ONLY_ON:
        parts.pop()
    *parents, last = parts
    words = {word for parent in parents for word in parent.split("_")}
    if words & _ELSEWHERE:
        return None
    own = last.split("_")
    name = "_".join(word for word in own if word not in _TRAIN_WORDS and word not in _EVAL_WORDS)
    setting = _MEANING.get(name)
    if setting is None and name in _BELOW and words & set(_BELOW[name][1]):
        setting = _BELOW[name][0]
    if setting is None:
        return None
    if setting in _LENGTHS and words & _NOT_OF_THE_JOB:
        return None
    nearest = next((found for found in map(_scope, (last, *reversed(parents))) if found), TRAIN)
    return setting, nearest, name


def _scope(part):
    words = set(part.split("_"))
    return EVAL if words & _EVAL_WORDS else TRAIN if words & _TRAIN_WORDS else None
