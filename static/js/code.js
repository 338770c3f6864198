// Lines of Python that make one number again, from the equations of its operation and the downloaded recording.

import { FUNCTIONS } from "functions";

const HEADER = `import base64, json, math
from functools import cache
import numpy as np

trace = json.load(open("{file}"))  # with the folder arrays/ beside it
ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

def array(name):
    a = trace["arrays"][name]
    a = trace["arrays"][a.get("same_as", name)]
    if "file" in a:
        raw = base64.b64decode(json.load(open(a["file"]))["base64"])
        return np.frombuffer(raw, a["dtype"]).reshape(a["shape"])
    values = list(a["values"])
    for i, word in a.get("nonfinite", {}).items():
        values[int(i)] = ODD[word]
    return np.array(values, a["dtype"]).reshape(a["shape"]).astype(float if a["dtype"] != "int64" else int)
`;
const STREAM = `
def mcg31m1(word, n):  # the stream of dropout masks
    return (word % (2**31 - 1) or 1) * pow(1132489760, n, 2**31 - 1) % (2**31 - 1) / (2**31 - 1)
`;
/** @type {Record<string, string>} */
const CONSTANTS = { inf: "math.inf", pi: "math.pi" };
const RESERVED = new Set(["array", "trace", "lambda", "sum", "max", "len", "id"]);

/** What a Python name stands for: an array, or a function. @typedef {{ text: string, call: boolean }} Name */
/** @typedef {{ names: Map<string, Name>, sizes: Letters, settings: Record<string, number> }} Scope */

/**
 * A whole program that prints the number recomputed and, where it is stored, as recorded.
 * @param {import("store").Store} store
 * @param {string} array
 * @param {number[]} index
 */
export function numpyCode(store, array, index) {
  const writer = new Writer(store);
  const name = writer.operation(array);
  const at = index.join(", ");
  const lines = [HEADER.replace("{file}", `${store.outline.route}.json`)];
  if (writer.usesStream) lines.push(STREAM);
  const recorded = store.isDerived(array) ? "" : `, array("${array}")[${index.length ? at : "()"}]`;
  return [...lines, ...writer.lines, `print(${name}(${at})${recorded})`].join("\n");
}

class Writer {
  /** @param {import("store").Store} store */
  constructor(store) {
    this.store = store;
    /** @type {string[]} */
    this.lines = [];
    /** @type {Map<string, Name>} */
    this.names = new Map(); // array → the Python name that holds it or computes it
    /** @type {Set<string>} */
    this.taken = new Set();
    this.usesStream = false;
  }

  /** @param {string} wanted */
  unique(wanted) {
    let name = RESERVED.has(wanted) ? `${wanted}_` : wanted;
    for (let n = 2; this.taken.has(name); n++) name = `${wanted}_${n}`;
    this.taken.add(name);
    return name;
  }

  /**
   * Functions for an operation's equations; returns the name of the one for the target.
   * @param {string} array
   * @returns {string}
   */
  operation(array) {
    const { operands, equations, settings } = this.store.made(array);
    const { sizes } = this.store.computation(array);
    /** @type {Map<string, Name>} */
    const names = new Map();
    for (const [operand, source] of Object.entries(operands)) names.set(operand, this.operand(operand, source));
    for (const [name] of equations) names.set(name, { text: this.unique(name), call: true });
    let last = "";
    for (const [name, index, body] of equations) {
      last = named(names, name).text;
      const letters = index.map((item) => item[1]).join(", ");
      this.lines.push("@cache", `def ${last}(${letters}):`, `    return ${this.write(body, { names, sizes, settings })}`);
    }
    return last;
  }

  /**
   * An operand: loaded when it is stored, computed like the number itself when it is derived.
   * @param {string} operand
   * @param {string} source
   * @returns {Name}
   */
  operand(operand, source) {
    const known = this.names.get(source);
    if (known) return known;
    const name = this.store.isDerived(source) ? { text: this.operation(source), call: true }
      : { text: this.unique(operand), call: false };
    if (!name.call) this.lines.push(`${name.text} = array("${source}")`);
    this.names.set(source, name);
    return name;
  }

  /**
   * @param {ExpressionNode} node
   * @param {Scope} scope
   * @returns {string}
   */
  write(node, scope) {
    const w = (/** @type {ExpressionNode} */ part) => this.write(part, scope);
    switch (node[0]) {
      case "number": return String(node[1]);
      case "letter": return node[1];
      case "name": return CONSTANTS[node[1]] ?? String(scope.settings[node[1]]);
      case "size": return String(scope.sizes[node[1][1]]);
      case "read": return this.read(node, scope);
      case "negate": return `-(${w(node[1])})`;
      case "binary": return `(${w(node[2])} ${node[1]} ${w(node[3])})`;
      case "compare": return `int(${w(node[2])} ${node[1]} ${w(node[3])})`;
      case "where": return `(${w(node[2])} if ${w(node[1])} else ${w(node[3])})`;
      case "call": return FUNCTIONS[node[1]].python.replaceAll("%", () => w(node[2]));
      case "stream": this.usesStream = true; return `mcg31m1(int(${w(node[1])}), ${w(node[2])})`;
      case "reduce": return this.reduce(node, scope);
    }
    throw new Error(`unknown node ${node[0]}`);
  }

  /**
   * @param {Extract<ExpressionNode, ["read", ...unknown[]]>} node
   * @param {Scope} scope
   */
  read([, name, items], scope) {
    const { text, call } = named(scope.names, name);
    const index = items.map((item) => this.index(item, scope)).join(", ");
    if (call) return `${text}(${index})`;
    return `${text}[${index || "()"}]`;
  }

  /**
   * @param {ExpressionNode} item
   * @param {Scope} scope
   */
  index(item, scope) {
    const text = this.write(item, scope);
    return item[0] === "letter" || item[0] === "number" ? text : `int(${text})`;
  }

  /**
   * @param {ReduceNode} node
   * @param {Scope} scope
   */
  reduce(node, scope) {
    const [, kind, over] = node;
    const loops = over.map(([, letter]) => `for ${letter} in range(${scope.sizes[letter]})`).join(" ");
    const body = this.write(node[3], scope);
    if (node.length !== 5) return `${kind}(${body} ${loops})`;
    const [[, letter]] = over;
    return `sorted(range(${scope.sizes[letter]}), key=lambda ${letter}: (-${body}, ${letter}))[int(${this.write(node[4], scope)})]`;
  }
}

/**
 * @param {Map<string, Name>} names
 * @param {string} name
 */
function named(names, name) {
  return /** @type {Name} */ (names.get(name));
}
