/** A graph drawn by sigma (WebGL): pages say what is in it, where it stands, and what of it shows. */

import type Graph from "graphology";
import Sigma from "sigma";
import { NodePointProgram } from "sigma/rendering";
import type { Settings } from "sigma/settings";
import type { NodeDisplayData, PartialButFor } from "sigma/types";
import { useEffect, useRef, useState } from "preact/hooks";

export type Kind = "question" | "entity" | "sentence" | "passage" | "doubted" | "value";
type Palette = Record<Kind | "ink" | "soft" | "thread" | "panel" | "accent", string>;

const MANY = 1_200;
/** Nodes, or edges, from which on a graph that is moved shows less until it rests, so that it goes on smoothly. */

const VARIABLES: Record<keyof Palette, string> = {
  question: "--node-question",
  entity: "--node-entity",
  sentence: "--node-sentence",
  passage: "--node-passage",
  value: "--node-sentence",
  doubted: "--bad",
  ink: "--ink",
  soft: "--soft",
  thread: "--thread",
  panel: "--panel",
  accent: "--accent",
};

/** Colours as the theme has them now; sigma wants them as #rrggbb, which a canvas makes of any. */
function palette(): Palette {
  const probe = document.createElement("span");
  const pen = document.createElement("canvas").getContext("2d");
  document.body.append(probe);
  const read = ([name, variable]: [string, string]) => {
    probe.style.color = `var(${variable})`;
    const colour = getComputedStyle(probe).color;
    if (pen === null) return [name, colour];
    pen.fillStyle = colour;
    return [name, pen.fillStyle];
  };
  const colours = Object.fromEntries(Object.entries(VARIABLES).map(read)) as Palette;
  probe.remove();
  return colours;
}

interface Props {
  graph: Graph;
  /** What it shows, for whoever does not see it. */
  label: string;
  height: number;
  /** Whether a node shows; all do by default. */
  shows?: (node: string) => boolean;
  selected?: string | null;
  onSelect?: (node: string | null) => void;
  settings?: Partial<Settings>;
  /** Whether the nodes have found their places. */
  settled?: boolean;
}

/** Nodes have `x`, `y`, `size`, `label` and `kind`, edges a `weight` from 0 to 1. */
export function GraphView({ graph, label, height, shows, selected, onSelect, settings, settled }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<Sigma | null>(null);
  const look = useRef({ shows, selected, onSelect, colours: {} as Palette });
  const [failed, setFailed] = useState(false);
  look.current.shows = shows;
  look.current.selected = selected;
  look.current.onSelect = onSelect;

  useEffect(() => {
    const container = place.current;
    if (container === null) return;
    look.current.colours = palette();
    let sigma: Sigma;
    try {
      sigma = make(graph, container, look.current, settings);
    } catch {
      setFailed(true); // no WebGL here: what the graph says stands beside it in words
      return;
    }
    drawn.current = sigma;
    const repaint = () => {
      look.current.colours = palette();
      sigma.setSetting("labelColor", { color: look.current.colours.ink });
      sigma.refresh();
    };
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.addEventListener("change", repaint);
    addEventListener("engram-theme", repaint);
    return () => {
      theme.removeEventListener("change", repaint);
      removeEventListener("engram-theme", repaint);
      sigma.kill();
      drawn.current = null;
    };
  }, [graph]);
  useEffect(() => void drawn.current?.refresh({ skipIndexation: true }), [shows, selected]);
  useEffect(() => {
    drawn.current?.setSetting("hideEdgesOnMove", graph.size > MANY);
    drawn.current?.setSetting("hideLabelsOnMove", graph.order > MANY);
  }, [graph, settled]);

  if (failed) return <p class="quiet">This browser draws no WebGL; the list below says the same.</p>;
  return <div class="graph" data-settled={settled} ref={place} role="img" aria-label={label} style={{ height: `${height}px` }} />;
}

interface Look {
  shows?: ((node: string) => boolean) | undefined;
  selected?: string | null | undefined;
  onSelect?: ((node: string | null) => void) | undefined;
  colours: Palette;
}

function make(graph: Graph, container: HTMLElement, look: Look, settings?: Partial<Settings>): Sigma {
  const near = (node: string) =>
    look.selected === null || look.selected === undefined || !graph.hasNode(look.selected) || node === look.selected || graph.areNeighbors(node, look.selected);
  const sigma = new Sigma(graph, container, {
    allowInvalidContainer: true,
    // Points take a third of what discs of triangles do, and lines of edges a fraction, where there is no graphics card.
    nodeProgramClasses: { circle: NodePointProgram },
    labelFont: "Inter Variable, system-ui, sans-serif",
    labelSize: 12,
    labelColor: { color: look.colours.ink },
    labelDensity: 0.7,
    labelGridCellSize: 90,
    labelRenderedSizeThreshold: 5,
    defaultDrawNodeLabel: drawLabel,
    defaultDrawNodeHover: (pen, data, how) => drawHover(pen, data, how, look.colours),
    stagePadding: 26,
    zIndex: true,
    nodeReducer: (node, data) => {
      const kind = data.kind as Kind;
      const hidden = look.shows !== undefined && !look.shows(node);
      const there = near(node);
      return {
        ...data,
        hidden,
        color: there ? look.colours[kind] : look.colours.thread,
        label: there ? data.label : "",
        zIndex: there ? 1 : 0,
        highlighted: node === look.selected,
      };
    },
    edgeReducer: (edge, data) => {
      const [from, to] = graph.extremities(edge);
      const touches = look.selected === from || look.selected === to;
      return {
        ...data,
        color: data.tone === "bad" ? look.colours.doubted : touches ? look.colours.accent : look.colours.thread,
        size: touches ? 2.2 : 0.8 + 1.6 * ((data.weight as number | undefined) ?? 0),
        zIndex: touches ? 1 : 0,
      };
    },
    ...settings,
  });
  sigma.on("clickNode", ({ node }) => look.onSelect?.(node));
  sigma.on("clickStage", () => look.onSelect?.(null));
  // What is left out while the graph moves is an empty canvas, which a browser without a graphics card would lay over the others at some cost.
  sigma.on("beforeRender", () => container.classList.toggle("moving", sigma.getSetting("hideEdgesOnMove") && moves(sigma)));
  return sigma;
}

/** As sigma itself decides whether to leave out what is to be left out on move. */
function moves(sigma: Sigma): boolean {
  const { isMoving, draggedEvents, currentWheelDirection } = sigma.getMouseCaptor();
  return sigma.getCamera().isAnimated() || isMoving || draggedEvents > 0 || currentWheelDirection !== 0;
}

type Drawn = PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color">;

const LEAST_ROOM = 60;

/** The label right of its node, cut to the room that there is. */
function drawLabel(pen: CanvasRenderingContext2D, data: Drawn, settings: Settings): void {
  const room = (data as { room?: number }).room ?? 240;
  if (!data.label || (data as { highlighted?: boolean }).highlighted || room < LEAST_ROOM) return; // a highlighted one has it on a panel
  const { labelSize, labelFont, labelColor } = settings;
  pen.font = `500 ${labelSize}px ${labelFont}`;
  pen.fillStyle = labelColor.color ?? "#000";
  pen.fillText(cut(pen, data.label, room), data.x + data.size + 4, data.y + labelSize / 3);
}

function cut(pen: CanvasRenderingContext2D, text: string, room: number): string {
  if (pen.measureText(text).width <= room) return text;
  let kept = text;
  while (kept.length > 1 && pen.measureText(`${kept}…`).width > room) kept = kept.slice(0, -2);
  return `${kept.trimEnd()}…`;
}

/** The whole label, on a panel. */
function drawHover(pen: CanvasRenderingContext2D, data: Drawn, settings: Settings, colours: Palette): void {
  if (!data.label) return;
  const { labelSize, labelFont } = settings;
  pen.font = `600 ${labelSize}px ${labelFont}`;
  const lines = wrapped(pen, data.label, 340);
  const width = Math.max(...lines.map((line) => pen.measureText(line).width)) + 14;
  const height = lines.length * (labelSize + 4) + 8;
  const right = data.x + data.size + 4 + width > pen.canvas.clientWidth;
  const x = right ? data.x - data.size - 4 - width : data.x + data.size + 4;
  const y = data.y - labelSize / 2 - 6;
  pen.fillStyle = colours.panel;
  pen.strokeStyle = colours.soft;
  pen.beginPath();
  pen.roundRect(x, y, width, height, 6);
  pen.fill();
  pen.stroke();
  pen.fillStyle = colours.ink;
  lines.forEach((line, at) => pen.fillText(line, x + 7, y + labelSize + 4 + at * (labelSize + 4)));
  pen.fillStyle = data.color;
  pen.strokeStyle = colours.ink;
  pen.beginPath();
  pen.arc(data.x, data.y, data.size + 1.5, 0, Math.PI * 2);
  pen.fill();
  pen.stroke();
}

function wrapped(pen: CanvasRenderingContext2D, text: string, room: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line && pen.measureText(`${line} ${word}`).width > room) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  return [...lines, line].slice(0, 8);
}
