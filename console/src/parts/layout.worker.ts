/** Finds places for nodes beside the page, which goes on drawing meanwhile. */

import iterate from "graphology-layout-forceatlas2/iterate.js";

export interface Task {
  nodes: Float32Array;
  edges: Float32Array;
  settings: object;
  rounds: number;
}

export interface Placed {
  nodes: Float32Array;
  done: boolean;
}

const TOLD_EVERY_MS = 160;

onmessage = ({ data: { nodes, edges, settings, rounds } }: MessageEvent<Task>) => {
  let told = performance.now();
  for (let round = 1; round <= rounds; round += 1) {
    iterate(settings, nodes, edges);
    const done = round === rounds;
    if (done || performance.now() - told > TOLD_EVERY_MS) {
      postMessage({ nodes, done } satisfies Placed);
      told = performance.now();
    }
  }
};
