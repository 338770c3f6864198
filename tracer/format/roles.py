"""The words of a recording's structure: what steps are for, and which arrays are found by what they are.

A kind says what is computed, a role what for: layer_norm/attention is the norm before attention.  ``FORMAT.md`` is
made from these tables, and `tracer.format.routes` holds recordings of a training and of a generation to them.
"""

from dataclasses import dataclass, replace

# The recordings of a site, each in the file of its name.  Those of a generation differ in what they start from: the
# trained model, a prompt that fills the context, and the model of an early moment of the training.
GENERATIONS = ("generation", "long", "early")
ROUTES = ("training", *GENERATIONS)
PASS = "pass"  # one pass of a small trained model, in a file of any name
KNOWN = (*ROUTES, PASS)  # what a recording must hold is said for these

# Kind of a step, or nothing where it shows several, and its role → what it is; those of the model in its order.
MODEL_STEPS = {
    ("embedding", "token"): "rows of the token table",
    ("positions", ""): "the numbers of the positions",
    ("embedding", "position"): "rows of the position table",
    ("add", "embedding"): "token and position vectors added",
    ("dropout", "embedding"): "dropout of that sum",
    ("layer_norm", "attention"): "the norm before attention",
    ("linear", "query_key_value"): "one product for queries, keys and values",
    ("split_heads", ""): "queries, keys and values head by head",
    ("split_grouped_heads", ""): "the same with fewer heads of keys and values",
    ("rotary", "query"): "queries turned by their position",
    ("rotary", "key"): "keys turned by their position",
    ("append_rows", "key"): "new keys behind those of the cache",
    ("append_rows", "value"): "new values behind those of the cache",
    ("repeat_heads", "key"): "each head of keys for its group of query heads",
    ("repeat_heads", "value"): "each head of values for its group of query heads",
    ("scaled_scores", ""): "queries times keys, scaled",
    ("causal_mask", ""): "no look at later positions",
    ("softmax", "attention"): "attention weights",
    ("dropout", "attention_weights"): "dropout of attention weights",
    ("weighted_sum", ""): "values summed by weight",
    ("concatenate_heads", ""): "heads side by side",
    ("linear", "attention_output"): "the projection after attention",
    ("dropout", "attention_output"): "dropout of what attention adds",
    ("add", "attention"): "the residual addition of attention",
    ("layer_norm", "mlp"): "the norm before the MLP",
    ("linear", "mlp_up"): "the MLP's widening product",
    ("linear", "mlp_gate"): "the product beside it that opens and closes it",
    ("gelu", ""): "the MLP's activation",
    ("linear", "mlp_down"): "the MLP's narrowing product",
    ("dropout", "mlp_output"): "dropout of what the MLP adds",
    ("add", "mlp"): "the residual addition of the MLP",
    ("layer_norm", "final"): "the norm after the last block",
    ("last_position", ""): "the last position alone",
    ("tied_head", ""): "logits",
    ("cross_entropy", ""): "the loss of each position",
    ("mean", "loss"): "the mean loss",
}
SAMPLER_STEPS = {
    ("temperature", ""): "logits divided by the temperature",
    ("top_k", ""): "the largest logits and their ids",
    ("softmax", "candidates"): "probabilities of the candidates",
    ("cumulative", ""): "their running sum",
    ("draw", ""): "the candidate that the random number falls into",
}
TEXT_STEPS = {
    ("byte_tokens", ""): "a text's bytes, and a token for each",
    ("bpe_merge", ""): "every merge of two tokens",
    ("append", "end"): "the end token behind the text",
    ("window", "pairs"): "inputs and targets, shifted by one",
}
PARAMETER_ROLES = {
    "token_table": "the table that embeds tokens, and predicts them where the head is tied to it",
    "position_table": "the table that embeds positions",
    "query_key_value_bias": "the bias of queries, keys and values, one vector",
    "matrix": "any other with two axes",
    "vector": "any other with one",
}
UPDATE_STEPS = {("adamw", role): f"AdamW's update of {what}" for role, what in PARAMETER_ROLES.items()}
RECEIPT_STEPS = {
    ("", "zero_grad"): "what stays when the gradients are cleared",
    ("predicted_change", ""): "what the gradients predict for the loss",
    ("difference", "loss"): "how the loss has changed",
}
SERIES_STEPS = {
    ("", "series_loss"): "loss and target probabilities of every update",
    ("", "series_attention"): "attention weights of every update, an array a block",
    ("", "series_rows"): "the rows in use of the token table before every update",
    ("", "series_candidates"): "the likeliest next tokens after each part of the text, at every moment",
}
ROUND_STEPS = {
    ("window", "ids"): "the ids that the round reads",
    ("append", "token"): "the drawn id behind the others",
    ("greedy", ""): "what other ways of choosing would have taken",
    ("", "bytes"): "which bytes are shown, and which wait for the rest of their character",
    ("is_end", ""): "whether the drawn id ends the text",
}
CACHED_STEPS = {
    ("kept_rows", ""): "cached rows beside those of the full pass",
    ("drop_rows", ""): "the oldest row leaves a full cache",
    ("", "embedding"): "the newest id up to the first block",
    ("", "block"): "one block for one position",
    ("", "head"): "from the last block to the logits",
    ("", "draw"): "the same draw from these logits",
    ("largest_difference", ""): "how far it is from the full pass",
}
CHANGE_STEPS = {("change", role): f"first and last values of {what}" for role, what in PARAMETER_ROLES.items()}
STEPS = {"the model, in every pass": MODEL_STEPS, "sampling": SAMPLER_STEPS, "a text": TEXT_STEPS,
         "an update": UPDATE_STEPS, "after the update": RECEIPT_STEPS, "over all updates": SERIES_STEPS,
         "a round": ROUND_STEPS, "a round with a cache": CACHED_STEPS, "two moments": CHANGE_STEPS}
ROLES = {role for steps in STEPS.values() for _, role in steps}


@dataclass(frozen=True)
class Spec:
    """What an array of a role must be.  `made_by`: kind and target of its operation, any of several; "" for none,
    nothing for any.  `derived`: it need not be held.  `always`: every recording of the kind has it.
    """

    what: str
    axes: str = ""
    made_by: tuple[str, ...] = ("",)
    dtype: str = "float32"
    derived: bool = False
    always: bool = True


def _ids(what: str, axes: str, *made_by: str, always: bool = True) -> Spec:
    return Spec(what, axes, made_by or ("",), "int64", always=always)


TEXT_ARRAYS = {
    "bytes": _ids("the text in UTF-8", "byte"),
    "byte_tokens": _ids("a token for every byte", "token", "byte_tokens.out"),
    "ids": _ids("the text's tokens", "token", "bpe_merge.out", "window.out"),
}
TRAINED_TEXT_ARRAYS = TEXT_ARRAYS | {
    "end": _ids("the end token", ""),
    "with_end": _ids("the tokens and the end", "token", "append.out"),
}
_LOGITS = Spec("logits", "position vocabulary", (), derived=True)
LOSS_PASS_ARRAYS = {
    "ids": _ids("what the model reads", "position", "window.out"),
    "targets": _ids("what it is to predict", "position", "window.out"),
    "logits": _LOGITS,
    "losses": Spec("loss of each position", "position", ("cross_entropy.out",)),
    "target_probability": Spec("probability of each target", "position", ("cross_entropy.target_probability",)),
    "loss": Spec("their mean", "", ("mean.out",)),
}
FIRST_PASS_ARRAYS = LOSS_PASS_ARRAYS | {
    "logits_gradient": Spec("gradient of the loss by the logits", "position vocabulary", ("cross_entropy.d_logits",)),
}
_DRAW_ARRAYS = {
    "uniform": Spec("the random number", ""),
    "scaled_logits": Spec("logits over temperature", "position vocabulary", ("temperature.out",), derived=True),
    "candidates": _ids("ids of the largest logits", "candidate", "top_k.ids"),
    "kept": Spec("their scaled logits", "candidate", ("top_k.kept",)),
    "probabilities": Spec("their probabilities", "candidate", ("softmax.out",)),
    "cumulative": Spec("running sum of these", "candidate", ("cumulative.out",)),
    "choice": _ids("which candidate was drawn", "", "draw.choice"),
    "token": _ids("the drawn id", "", "draw.token"),
}
ROUND_ARRAYS = {
    "ids": _ids("what the model reads", "position", "window.out"),
    "last": Spec("what goes to the head", "position feature", ("last_position.out",)),
    "logits": _LOGITS, **_DRAW_ARRAYS,
    "multinomial": _ids("what torch's own sampling takes", ""),
    "greedy": _ids("the id of the largest logit", "", "greedy.out"),
    "next_ids": _ids("all ids after the round", "token", "append.out"),
    "is_end": _ids("1 where the drawn id is the end", "", "is_end.out"),
    "bytes": _ids("bytes held back and bytes of the drawn id", "byte", "", "join_bytes.out", always=False),
    "new_bytes": _ids("those of the drawn id, where some were held back", "byte", always=False),
    "complete": _ids("how many of the bytes are whole characters", "", "complete_bytes.out", always=False),
    "held": _ids("the rest, where there is one", "byte", "window.out", always=False),
}
CACHED_ARRAYS = {
    "ids": _ids("the newest id", "position", "window.out"),
    "last": Spec("what goes to the head", "position feature", ("last_position.out",)),
    "logits": _LOGITS, **_DRAW_ARRAYS,
    "difference": Spec("the largest difference from the full pass, in `last`", "", ("largest_difference.out",)),
}
SINGLE_PASS_ARRAYS = FIRST_PASS_ARRAYS | {
    "ids": _ids("what the model reads", "position"),
    "targets": _ids("what it is to predict", "position"),
    "last": Spec("what goes to the head, where there are no targets", "position feature", ("last_position.out",)),
}
SINGLE_PASS_ARRAYS |= {role: replace(SINGLE_PASS_ARRAYS[role], always=False) for role in SINGLE_PASS_ARRAYS
                       if role not in ("ids", "logits")}
PASS_ARRAYS = {"single": SINGLE_PASS_ARRAYS, "first": FIRST_PASS_ARRAYS, "again": LOSS_PASS_ARRAYS,
               "evaluation": LOSS_PASS_ARRAYS, "round": ROUND_ARRAYS, "cached": CACHED_ARRAYS}
# Kind and role of a module and what it makes → the role of that array in its pass.
PASS_OUTPUTS = {
    ("tied_head", "", "out"): "logits", ("cross_entropy", "", "out"): "losses",
    ("cross_entropy", "", "target_probability"): "target_probability", ("mean", "loss", "out"): "loss",
    ("last_position", "", "out"): "last", ("temperature", "", "out"): "scaled_logits",
    ("top_k", "", "ids"): "candidates", ("top_k", "", "kept"): "kept",
    ("softmax", "candidates", "out"): "probabilities", ("cumulative", "", "out"): "cumulative",
    ("draw", "", "choice"): "choice", ("draw", "", "token"): "token",
}
# Axes of a parameter are its own: they are nowhere prescribed but for the token table.
TRAINING_PARAMETER_ARRAYS = {
    "initial": "its first values", "gradient": "its gradient in the first update", "m": "first moment after it",
    "v": "second moment after it", "updated": "its values after it", "trained": "its values after the training",
}
USED_ROWS = {name: Spec(f"rows in use of {name[:-5]}", "used_row feature", ("embedding.out",))
             for name in ("m_used", "v_used", "updated_used")}
GENERATION_PARAMETER_ARRAYS = {"trained": "its values after the training"}
LOSS_PARAMETER_ARRAYS = GENERATION_PARAMETER_ARRAYS | {"gradient": "the gradient of the loss by these"}
CHANGE_PARAMETER_ARRAYS = GENERATION_PARAMETER_ARRAYS | {
    "initial": "its first values", "change": "the difference of the two"}
MADE_BY = {"initial": "", "trained": "", "m": "adamw.m", "v": "adamw.v", "updated": "adamw.after",
           "change": "change.out"}
MOMENTS = ("moment", "position", "candidate")
_MOMENTS = " ".join(MOMENTS)
CANDIDATE_ROLES = {  # all of them, or none
    "series_candidates": _ids("the likeliest next ids after so many updates", _MOMENTS, always=False),
    "series_candidate_logits": Spec("their logits", _MOMENTS, always=False),
    "series_log_sum_exp": Spec("logarithm of the sum of exp over all logits", "moment position", always=False),
    "series_candidate_probability": Spec("their probabilities among all tokens", _MOMENTS,
                                         ("token_probability.out",), always=False),
}
TRAINING_ROLES = {
    "byte_table": _ids("the token of every byte", "byte"),
    "used_ids": _ids("ids of the rows in use", "used_row"),
    "predicted_change": Spec("what the gradients predict for the loss", "",
                             ("predicted_change.first", "predicted_change.running")),
    "loss_change": Spec("how it changed", "", ("difference.out",)),
    "series_loss": Spec("loss of every update", "update"),
    "series_probability": Spec("probability of each target in every update", "update position"),
    "series_rows": Spec("the rows in use before every update", "update used_row feature"),
} | CANDIDATE_ROLES
GENERATION_ROLES = {"byte_table": TRAINING_ROLES["byte_table"], "end": _ids("the end token", "")}
