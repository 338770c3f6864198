// The data that the pages' scripts get from the builder, and what the modules hand to each other.
// `deno check` reads this file; browsers never see it. tests/test_javascript_types.py holds it together with Python.

// From site_builder/page_data.py -------------------------------------------------------------------------------

/** A recording without its numbers. */
interface Outline {
  route: string;
  equations: Equation[][];
  operations: Record<string, OperationOutline>;
  arrays: Record<string, ArrayOutline>;
  labels: Record<string, string[] | { script: string; length: number }>;
  /** List of labels → the number of its first place, where that is not 0. */
  firsts: Record<string, number>;
  /** Axis → the number of its first place for readers, where that is not 0. */
  numbered: Record<string, number>;
  /** Id → token, of those that a picture names without the whole vocabulary. */
  tokens: Record<string, string>;
  chapters: ChapterOutline[];
  /** The steps of the main line. */
  line: string[];
  /** Axis → what is chosen on it at first: the table row that the recording follows. */
  start: Record<string, number>;
  families: FamilyOutline[];
  /** Axis → the letter for its index, in equations and addresses. */
  letters: Record<string, string>;
  /** Kind → target → equations, for draws with other settings. */
  sampling: Record<string, Record<string, Equation[]>>;
  /** For the picture of the whole network at work: site_builder/stations.py. */
  stations: Stations[];
  summary: Record<string, any>;
  /** Kind → the PyTorch that computes it. */
  torch: Record<string, string>;
  /** Notation → name → symbol. */
  symbols: Record<string, Record<string, string>>;
}

interface OperationOutline {
  kind: string;
  target: string;
  /** Which of the outline's equations. */
  equations: number;
  operands: Record<string, string>;
  settings: Record<string, number>;
  is_gradient?: boolean;
  /** Which symbols its names have, where these are not those of its kind. */
  notation?: string;
}

interface ArrayOutline {
  shape: number[];
  axes: string[];
  dtype: "float32" | "float64" | "int64";
  /** Axis → name of its list of labels. */
  labels?: Record<string, string>;
  same_as?: string;
  script?: string;
  derived?: boolean;
}

interface ChapterOutline {
  id: string;
  steps: StepOutline[];
}

interface StepOutline {
  id: string;
  operations: string[];
  arrays: string[];
  /** The array that it is about. */
  main?: string;
  /** What it is and where it belongs, as the recording says; left out where it says nothing. */
  kind?: string;
  role?: string;
  direction?: string;
  pass?: string;
  split?: string;
  block?: number;
  round?: number;
  of?: string;
  /** Its number on the main line, from 0; between two numbers beside it. */
  place: number;
  at: Coordinates;
}

/** Axis → where a step stands among those that do the same: its block, round, pass, text, parameter or role. */
type Coordinates = Record<string, string | number>;

/** Steps that do the same with other numbers, the first of them on the main line. */
interface FamilyOutline {
  /** Axis → all places along it. */
  axes: Record<string, (string | number)[]>;
  steps: string[];
}

/** One pass through the network: what is recorded of its stream and of its end. */
interface Stations {
  round: number | null;
  /** Whether the parameters take a step after it. */
  updates: boolean;
  stops: { step: string; array: string; role: string; block: number | null; back: string | null; gradient: string | null }[];
  attention: { step: string; array: string; block: number }[];
  outcome: Record<string, string>;
  /** The arrays that the last norm and the head make. */
  norm: string;
  head: string;
  names: string[];
  /** What the screen shows before and after. */
  before: string;
  text: string;
  end: string;
}

/** What stands in a route's page: `<script id="page">`. */
interface PageData {
  route: string;
  /** The way from the page to the site's own folder. */
  root: string;
  words: Words;
  tour?: Stop[];
  /** Whether it is the page of experiments. */
  experiments?: boolean;
  /** What tools evaluate: by kind the equations of what it makes. */
  kinds?: Record<string, Equation[]>;
}

/** A stop of a tour: site_builder/tour.py. `say` is HTML. */
interface Stop {
  name: string;
  step: string;
  view: View | "step";
  at: Letters;
  title: string;
  say: string;
}

type Words = Record<string, string>;

// Equations, as tracer/ops/language.py writes them ---------------------------------------------------------

/** Name, letters, body. */
type Equation = [string, LetterNode[], ExpressionNode];
type LetterNode = ["letter", string];
type ExpressionNode =
  | ["number", number]
  | LetterNode
  | ["name", string]
  | ["size", LetterNode]
  | ["read", string, ExpressionNode[]]
  | ["negate", ExpressionNode]
  | ["binary", string, ExpressionNode, ExpressionNode]
  | ["compare", string, ExpressionNode, ExpressionNode]
  | ["where", ExpressionNode, ExpressionNode, ExpressionNode]
  | ["call", string, ExpressionNode]
  | ["stream", ExpressionNode, ExpressionNode]
  | ReduceNode;
type ReduceNode = ["reduce", string, LetterNode[], ExpressionNode] | RankNode;
/** "nth_largest": which place has the n-th largest value. */
type RankNode = ["reduce", string, LetterNode[], ExpressionNode, ExpressionNode];
/** Letter → its value. */
type Letters = Record<string, number>;

// Between modules -------------------------------------------------------------------------------------------

/** An operation with its equations. */
interface Operation extends Omit<OperationOutline, "equations"> {
  id: string;
  notation: string;
  equations: Equation[];
  shape: number[];
}

/** What a computation needs of an operation. */
type Computable = Pick<Operation, "equations" | "operands" | "settings" | "shape">;

/** Numbers, whoever holds them. */
interface Source {
  shape(array: string): number[];
  value(array: string, index: number[]): number;
}

type Digits = number | "all";

/** One number of an array. */
interface Place {
  array: string;
  index: number[];
}

/** What an address says. */
interface State {
  step: string | null;
  of: string | null;
  at: Letters;
  digits: Digits | null;
  /** The stop of the tour. */
  tour: string | null;
  /** From how far the step is seen; null: near. */
  view: View | null;
}

/** A picture of the whole route, or of the chapter. */
type View = "route" | "chapter";

/** What is shown at once of a number's working, and what is read for it. */
interface Frame {
  reads: Place[];
  term?: unknown;
}

type Child = Node | string | number | null | undefined | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

/** The meeting place of classic scripts and modules: static/boot.js. */
interface TwoRoutes {
  received: Map<string, any>;
  waiting: Map<string, (content: any) => void>;
  receive(name: string, content: any): void;
  map(modules: [string, string][]): void;
  start(run: () => void): void;
}

interface Window {
  twoRoutes: TwoRoutes;
}

/** Made by site_builder/functions.py. */
declare module "functions" {
  export const FUNCTIONS: Record<string, { value: (x: number) => number; text: string; python: string }>;
}

/** Made by site_builder/modules.py: the files of static/js/drawings by name. */
declare module "toolbox" {
  export const TOOLS: Record<string, { mount: import("lessons/tool").Mount }>;
}

declare module "drawings" {
  export const DRAWINGS: Record<string, import("drawing").Drawing>;
}
