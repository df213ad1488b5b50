/** Facts around entities as a graph that grows as one goes on, and which of them cannot all hold. */

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import DEFAULTS from "graphology-layout-forceatlas2/defaults.js";
import { assignLayoutChanges, graphToByteArrays } from "graphology-layout-forceatlas2/helpers.js";

import type { Schemas } from "../service";
import type { Placed, Task } from "./layout.worker";

export type Fact = Schemas["FactOut"];

/** Years from which and until which a fact holds; null: from ever, or for ever. */
export function years(fact: Fact): [number | null, number | null] {
  const year = (day: string | null) => (day === null ? null : Number(/^-?\d+/.exec(day)?.[0]));
  return [year(fact.valid_from), year(fact.held_until ?? fact.valid_to)];
}

export function holdsIn(fact: Fact, year: number): boolean {
  const [from, to] = years(fact);
  return (from === null || from <= year) && (to === null || to >= year);
}

/** First and last year that any of the facts names; null if none does. */
export function reach(facts: readonly Fact[]): [number, number] | null {
  const named = facts.flatMap(years).filter((year): year is number => year !== null);
  return named.length === 0 ? null : [Math.min(...named), Math.max(...named)];
}

/** Facts of one subject under a functional predicate whose objects differ while they would hold together. */
export function conflicts(facts: readonly Fact[], functional: ReadonlySet<string>): Set<number> {
  const groups = new Map<string, Fact[]>();
  for (const fact of facts) {
    if (!functional.has(fact.predicate) || fact.closed_at !== null) continue;
    const key = `${fact.subject.entity_id} ${fact.predicate}`;
    groups.set(key, [...(groups.get(key) ?? []), fact]);
  }
  const found = new Set<number>();
  for (const group of groups.values()) {
    for (const one of group) {
      if (group.some((other) => other.object !== one.object && overlap(one, other))) found.add(one.fact_id);
    }
  }
  return found;
}

function overlap(one: Fact, other: Fact): boolean {
  const [from, to] = years(one);
  const [otherFrom, otherTo] = years(other);
  return (otherTo === null || from === null || from < otherTo) && (to === null || otherFrom === null || otherFrom < to);
}

export const node = (entity: number): string => `entity ${entity}`;
export const objectNode = (fact: Fact): string => (fact.object_entity_id === null ? `value ${fact.object}` : node(fact.object_entity_id));

/** Adds to the graph what it lacks of the facts, near to what they are joined to, and takes away what it has beyond. */
export function fill(graph: Graph, facts: readonly Fact[], disputed: ReadonlySet<number>): void {
  const wanted = new Set(facts.map((fact) => `fact ${fact.fact_id}`));
  graph.forEachEdge((edge) => void (wanted.has(edge) || graph.dropEdge(edge)));
  for (const fact of facts) {
    const [from, to] = [node(fact.subject.entity_id), objectNode(fact)];
    place(graph, from, fact.subject.name, "entity", graph.hasNode(to) ? to : null);
    place(graph, to, fact.object, fact.object_entity_id === null ? "value" : "entity", from);
    const how = { weight: fact.belief, label: fact.predicate, tone: fact.doubted || disputed.has(fact.fact_id) ? "bad" : "" };
    if (from !== to) graph.mergeEdgeWithKey(`fact ${fact.fact_id}`, from, to, how);
  }
  graph.forEachNode((one) => void (graph.degree(one) > 0 || graph.dropNode(one)));
  const scale = Math.min(1, (FULL_SIZE / graph.order) ** 0.28);
  graph.updateEachNodeAttributes((one, given) => ({ ...given, size: scale * Math.min(4 + 1.6 * Math.sqrt(graph.degree(one)), 18) }));
}

const FULL_SIZE = 60;
/** Nodes up to which they have their full size. */

function place(graph: Graph, one: string, label: string, kind: "entity" | "value", beside: string | null): void {
  if (graph.hasNode(one)) return;
  const at = beside !== null && graph.hasNode(beside) ? graph.getNodeAttributes(beside) : { x: 0, y: 0 };
  const angle = graph.order * 2.399963; // the golden angle: neighbours do not begin on top of each other
  const far = 1 + Math.sqrt(graph.order);
  graph.addNode(one, { label, kind, size: 5, x: Number(at.x) + far * Math.cos(angle), y: Number(at.y) + far * Math.sin(angle) });
}

const ROUNDS = 260;
const ROUNDS_OF_MANY = 140;
const MANY = 800;

/** Lets the nodes find their places, which another thread works out; returns what stops it. */
export function settle(graph: Graph, done: () => void): () => void {
  if (graph.order < 2) {
    done();
    return () => undefined;
  }
  const settings = { ...DEFAULTS, ...forceAtlas2.inferSettings(graph), barnesHutOptimize: graph.order > 300, gravity: 1, scalingRatio: 12 };
  const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }: MessageEvent<Placed>) => {
    assignLayoutChanges(graph, data.nodes, null);
    if (data.done) {
      worker.terminate();
      done();
    }
  };
  const rounds = graph.order > MANY ? ROUNDS_OF_MANY : ROUNDS;
  worker.postMessage({ ...graphToByteArrays(graph, () => 1), settings, rounds } satisfies Task);
  return () => worker.terminate();
}
