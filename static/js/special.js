// Functions that the language of operations has and JavaScript lacks.

const MULTIPLIER = 1132489760n;
const MODULUS = 2147483647n;

/**
 * The n-th number, in [0, 1), of the stream MCG31m1 that starts from a 32-bit word (tracer/ops/mcg31m1.py).
 * @param {number} word
 * @param {number} n
 */
export function mcg31m1(word, n) {
  const start = BigInt(word) % MODULUS || 1n;
  return Number((start * power(BigInt(n))) % MODULUS) / Number(MODULUS);
}

/** @param {bigint} exponent */
function power(exponent) {
  let result = 1n;
  let base = MULTIPLIER;
  for (let n = exponent; n > 0n; n >>= 1n) {
    if (n & 1n) result = (result * base) % MODULUS;
    base = (base * base) % MODULUS;
  }
  return result;
}

const WORDS = 624;

/**
 * The n-th number (from 1) that torch.rand(()) gives after manual_seed(seed): 24 bits of MT19937
 * (Matsumoto and Nishimura 1998), as a number in [0, 1).
 * @param {number} seed
 * @param {number} n
 */
export function uniformNumber(seed, n) {
  const state = new Uint32Array(WORDS);
  state[0] = Number(BigInt.asUintN(32, BigInt(seed)));
  for (let i = 1; i < WORDS; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  for (let drawn = 0; drawn < n; drawn += WORDS) twist(state);
  return (temper(state[(n - 1) % WORDS]) & 0xffffff) / 2 ** 24;
}

/** @param {Uint32Array} state */
function twist(state) {
  for (let i = 0; i < WORDS; i++) {
    const joined = (state[i] & 0x80000000) | (state[(i + 1) % WORDS] & 0x7fffffff);
    state[i] = state[(i + 397) % WORDS] ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0);
  }
}

/** @param {number} number */
function temper(number) {
  let word = number;
  word ^= word >>> 11;
  word ^= (word << 7) & 0x9d2c5680;
  word ^= (word << 15) & 0xefc60000;
  return word ^ (word >>> 18);
}
