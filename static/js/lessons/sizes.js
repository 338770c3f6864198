// How large a model is, counted from its shape: the same as tracer/format/sizes.py and tracer/format/memory.py count,
// to which a test holds it.

/** @typedef {Record<string, number | string | boolean>} Shape */
/** `part`: what the areas colour alike; `multiplies`: whether more is done with it than looking a row up. @typedef {{ name: string, each: number, times: number, part: string, multiplies: boolean }} Part */
/** What may be chosen: name → kinds, each with its word; of a norm its parameters a feature; of an activation whether it is gated; of both what autograd keeps of a token: numbers a feature, numbers beside, null where nobody has counted. @typedef {Record<string, { value: string | boolean, word: string, count?: number, gated?: boolean, kept?: [number, number] | null }[]>} Choices */

export const FLOAT = 4; // bytes of a float32

/** The sizes by their letters, and the kinds that were chosen. @param {Shape} shape @param {Choices} choices */
function read(shape, choices) {
  const [V, C, D, L, H] = ["vocabulary", "context", "width", "blocks", "heads"].map((name) => Number(shape[name]));
  const K = Number(shape.kv_heads) || H;
  const chosen = (/** @type {string} */ name) => choices[name].find(({ value }) => value === shape[name]);
  const gated = chosen("activation")?.gated ?? false;
  return { V, C, D, L, H, K, F: Number(shape.hidden) || 4 * D, head: D / H, gated, norm: chosen("norm"), activation: chosen("activation") };
}

/**
 * Every part that has parameters, in the order of the model.
 * @param {Shape} shape
 * @param {Choices} choices
 * @returns {Part[]}
 */
export function partsOf(shape, choices) {
  const { V, C, D, L, H, K, F, head, gated, norm } = read(shape, choices);
  const linear = (/** @type {number} */ a, /** @type {number} */ b) => a * b + b * Number(shape.bias);
  const part = (/** @type {string} */ name, /** @type {string} */ of, /** @type {number} */ each, times = L, multiplies = true) => ({ name, each, times, part: of, multiplies });
  const ofNorm = (norm?.count ?? 1) * D;
  return [
    part("token table", "table", V * D, 1, Boolean(shape.tied)),
    ...(shape.position === "learned" ? [part("position table", "table", C * D, 1, false)] : []),
    part("block: norm 1", "norm", ofNorm),
    part("block: attention, Q K V", "attention", linear(D, (H + 2 * K) * head)),
    part("block: attention, output", "attention", linear(D, D)),
    part("block: norm 2", "norm", ofNorm),
    ...(gated ? [part("block: MLP, gate", "mlp", linear(D, F))] : []),
    part("block: MLP, up", "mlp", linear(D, F)),
    part("block: MLP, down", "mlp", linear(F, D)),
    part("final norm", "norm", ofNorm, 1),
    ...(shape.tied ? [] : [part("head", "table", V * D, 1)]),
  ];
}

/** @param {Part[]} parts */
export function total(parts) {
  return parts.reduce((sum, { each, times }) => sum + each * times, 0);
}

/** Numbers of keys and values that a cache holds of one token. @param {Shape} shape @param {Choices} choices */
export function cached(shape, choices) {
  const { L, K, head } = read(shape, choices);
  return 2 * L * K * head;
}

/** Operations of training for one token within attention's own products: of scores, and of weights with values. @param {Shape} shape @param {Choices} choices */
export function scoring(shape, choices) {
  const { L, D, C } = read(shape, choices);
  return 12 * L * D * C;
}

/**
 * Numbers that training holds at once, without dropout; those of the activations and of the backward are null where
 * nobody has counted what a kind keeps.
 * @param {Shape} shape
 * @param {Choices} choices
 * @param {number} batch sequences as long as the context
 */
export function held(shape, choices, batch) {
  const sizes = read(shape, choices);
  const { V, C, D, L, H, K, F, head, gated, norm, activation } = sizes;
  const parameters = total(partsOf(shape, choices));
  const own = { parameters, gradients: parameters, moments: 2 * parameters };
  if (!norm?.kept || !activation?.kept) return { ...own, activations: null, backward: null };
  const rotary = shape.position === "rotary";
  const keeps = (/** @type {[number, number]} */ [feature, beside], /** @type {number} */ width) => feature * width + beside;
  const tokens = batch * C;
  const ofNorm = keeps(norm.kept, D);
  const block = 3 * D + F + (H + 2 * K) * head + (rotary ? (H + K) * head : 0) + H + 2 * ofNorm + keeps(activation.kept, F);
  const activations = tokens * (L * block + ofNorm + D + V) + (rotary ? 2 * C * head : 0);
  // What there is beside it at each moment of the backward that may be the largest.
  const [logits, table] = [tokens * V, V * D];
  const [waiting, apart] = shape.tied ? [table, 0] : [0, table];
  const mlp = activations + waiting + apart + tokens * (F - ofNorm) + D * F;
  const arrays = gated || shape.activation === "gelu_tanh" ? 2 : 1;
  const most = Math.max(activations + 3 * logits, activations + logits + tokens * D + table, mlp,
    mlp - D * F + tokens * (arrays - 1) * F, logits + 2 * waiting + table);
  return { ...own, activations, backward: most - activations };
}
