/** The way from a question to its passages as a graph, hop by hop, in columns. */

import Graph from "graphology";

import type { Schemas } from "../service";
import type { Kind } from "./graph";

export interface Path {
  graph: Graph;
  /** Steps of growth: 0 the question, then each hop, at last the passages. */
  steps: number;
}

interface Column {
  nodes: string[];
  kind: Kind;
}

/** Nodes carry `step`, from which on they show. Height and width are in pixels. */
export function path(query: Schemas["QueryOut"], trace: Schemas["TraceOut"], width: number, height: number): Path {
  const graph = new Graph({ type: "directed" });
  const columns: Column[] = [];
  const last = trace.hops.length + 1;
  const column = (kind: Kind): Column => {
    const made: Column = { kind, nodes: [] };
    columns.push(made);
    return made;
  };
  const add = (into: Column, node: string, label: string, step: number, size: number) => {
    if (graph.hasNode(node)) return;
    graph.addNode(node, { label, kind: into.kind, step, size, x: 0, y: 0 });
    into.nodes.push(node);
  };
  const join = (from: string, to: string, weight: number) => {
    if (from !== to && graph.hasNode(from) && graph.hasNode(to) && !graph.hasEdge(from, to)) graph.addEdge(from, to, { weight });
  };

  add(column("question"), "question", query.query, 0, 10);
  let before: Schemas["HopOut"] | null = null;
  for (const hop of trace.hops) {
    const strongest = Math.max(...Object.values(hop.entities), 1e-9);
    const entities = column("entity");
    for (const [name, activation] of Object.entries(hop.entities).slice(0, MOST)) {
      add(entities, `entity ${name}`, name, hop.hop, 4 + 4 * (activation / strongest));
      if (before === null) join("question", `entity ${name}`, activation / strongest);
      else for (const sentence of leading(before, name, activation)) join(`sentence ${sentence}`, `entity ${name}`, activation / strongest);
    }
    const sentences = column("sentence");
    const best = Math.max(...hop.sentences.map((one) => one.score), 1e-9);
    for (const one of hop.sentences.slice(0, MOST)) {
      add(sentences, `sentence ${one.sentence_id}`, one.text, hop.hop, 4 + 4 * (one.score / best));
      for (const name of one.activated_by) join(`entity ${name}`, `sentence ${one.sentence_id}`, one.score / best);
      if (one.recall_probability > 0) join("question", `sentence ${one.sentence_id}`, one.recall_probability);
    }
    before = hop;
  }
  const passages = column("passage");
  query.passages.forEach((passage, at) => {
    const node = `passage ${passage.passage_id}`;
    add(passages, node, `${at + 1}  ${passage.title ?? passage.passage_id}`, last, 9 - at * 0.4);
    for (const sentence of passage.sentences) join(`sentence ${sentence.sentence_id}`, node, sentence.score ?? 0);
  });
  arrange(graph, columns.filter((one) => one.nodes.length > 0), width, height);
  return { graph, steps: last };
}

const MOST = 60;
/** Of a column; what is weaker is left out of the picture, not of the list. */

/** Sentences of the hop before that lead to the entity: they name it, or it took its activation from them. */
function leading(before: Schemas["HopOut"], name: string, activation: number): number[] {
  const named = before.sentences.filter((one) => one.text.toLowerCase().includes(name.toLowerCase()));
  const found = named.length ? named : before.sentences.filter((one) => Math.abs(one.score - activation) < 1e-9);
  return found.map((one) => one.sentence_id);
}

/** Room that a column's labels take, against the others'. */
const ROOM: Record<Kind, number> = { question: 0.3, entity: 1, sentence: 1.35, passage: 1.5, doubted: 1, value: 1 };

function arrange(graph: Graph, columns: Column[], width: number, height: number): void {
  const whole = columns.reduce((sum, one) => sum + ROOM[one.kind], 0);
  let x = 0;
  for (const { kind, nodes } of columns) {
    const room = (ROOM[kind] / whole) * width;
    nodes.forEach((node, at) => {
      graph.mergeNodeAttributes(node, { x, y: height - ((at + 0.5) / nodes.length) * height, room: room - 34 });
    });
    x += room;
  }
  graph.mergeNodeAttributes("question", { room: columns.length > 1 ? (ROOM.question / whole) * width - 34 : width });
  // Two corners hold the frame, so that what shows does not jump as more of it does.
  for (const [node, at] of [["corner a", 0], ["corner b", 1]] as const) {
    graph.addNode(node, { x: at * width, y: at * height, size: 0.01, label: "", kind: "entity", step: 1e9 });
  }
}
