// Lines of Python that make one number again, from the equations of its step and the downloaded recording.

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
const RESERVED = new Set(["array", "trace", "lambda", "sum", "max", "len", "id"]);

/** A whole program that prints the number recomputed and, where it is stored, as recorded. */
export function numpyCode(store, array, index) {
  const writer = new Writer(store);
  const name = writer.step(array);
  const at = index.join(", ");
  const lines = [HEADER.replace("{file}", `${store.outline.route}.json`)];
  if (writer.usesStream) lines.push(STREAM);
  const recorded = store.isDerived(array) ? "" : `, array("${array}")[${index.length ? at : "()"}]`;
  return [...lines, ...writer.lines, `print(${name}(${at})${recorded})`].join("\n");
}

class Writer {
  constructor(store) {
    this.store = store;
    this.lines = [];
    this.names = new Map(); // array → the Python name that holds it or computes it
    this.taken = new Set();
    this.usesStream = false;
  }

  unique(wanted) {
    let name = RESERVED.has(wanted) ? `${wanted}_` : wanted;
    for (let n = 2; this.taken.has(name); n++) name = `${wanted}_${n}`;
    this.taken.add(name);
    return name;
  }

  /** Functions for a step's equations; returns the name of the one for the target. */
  step(array) {
    const step = this.store.step(array);
    const { sizes } = this.store.computation(array);
    const names = new Map();
    for (const [operand, source] of Object.entries(step.operands)) names.set(operand, this.operand(operand, source));
    for (const equation of step.equations) names.set(equation[0], { text: this.unique(equation[0]), call: true });
    const scope = { names, sizes, attributes: step.attributes };
    for (const [name, index, body] of step.equations) {
      const letters = index.map((item) => item[1]).join(", ");
      this.lines.push("@cache", `def ${names.get(name).text}(${letters}):`, `    return ${this.write(body, scope)}`);
    }
    return names.get(step.target).text;
  }

  /** An operand: loaded when it is stored, computed like the number itself when it is derived. */
  operand(operand, source) {
    if (!this.names.has(source)) {
      if (this.store.isDerived(source)) this.names.set(source, { text: this.step(source), call: true });
      else {
        const text = this.unique(operand);
        this.lines.push(`${text} = array("${source}")`);
        this.names.set(source, { text, call: false });
      }
    }
    return this.names.get(source);
  }

  write(node, scope) {
    const w = (part) => this.write(part, scope);
    switch (node[0]) {
      case "number": return String(node[1]);
      case "letter": return node[1];
      case "name": return { inf: "math.inf", pi: "math.pi" }[node[1]] ?? String(scope.attributes[node[1]]);
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

  read(node, scope) {
    const { text, call } = scope.names.get(node[1]);
    const index = node[2].map((item) => this.index(item, scope)).join(", ");
    if (call) return `${text}(${index})`;
    return `${text}[${index || "()"}]`;
  }

  index(item, scope) {
    const text = this.write(item, scope);
    return item[0] === "letter" || item[0] === "number" ? text : `int(${text})`;
  }

  reduce(node, scope) {
    const loops = node[2].map((item) => `for ${item[1]} in range(${scope.sizes[item[1]]})`).join(" ");
    const body = this.write(node[3], scope);
    if (node[1] !== "nth_largest") return `${node[1]}(${body} ${loops})`;
    const letter = node[2][0][1];
    return `sorted(range(${scope.sizes[letter]}), key=lambda ${letter}: (-${body}, ${letter}))[int(${this.write(node[4], scope)})]`;
  }
}
