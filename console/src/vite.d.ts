declare module "*.svg" {
  const address: string;
  export default address;
}
declare module "*.css";

// The layout's own parts, which its package does not describe.
declare module "graphology-layout-forceatlas2/defaults.js" {
  const settings: Record<string, number | boolean>;
  export default settings;
}
declare module "graphology-layout-forceatlas2/helpers.js" {
  import type Graph from "graphology";
  interface Matrices {
    nodes: Float32Array;
    edges: Float32Array;
  }
  export function graphToByteArrays(graph: Graph, weight: () => number): Matrices;
  export function assignLayoutChanges(graph: Graph, nodes: Float32Array, reducer: null): void;
}
declare module "graphology-layout-forceatlas2/iterate.js" {
  export default function iterate(settings: object, nodes: Float32Array, edges: Float32Array): object;
}
