/** What a passage repeats of the one before it: passages of imported documents begin with a heading, a table's columns or last sentences. */

/** Lines that a passage may begin with before what it shares. */
const LEADS = 2;

export interface Repeated {
  /** Characters of the lines at the start of the later text that stand in the earlier one. */
  lead: number;
  /** Characters after them that the earlier text ends with. */
  shared: number;
}

export function findRepeated(earlier: string, later: string): Repeated {
  const lines = new Set(earlier.split("\n"));
  const leads = [0];
  for (const line of later.split("\n").slice(0, LEADS)) {
    if (!lines.has(line)) break;
    leads.push((leads.at(-1) ?? 0) + line.length + 1);
  }
  const found = leads.map((lead) => ({ lead, shared: countShared(earlier, later.slice(lead)) }));
  return found.reduce((best, one) => (one.shared >= best.shared && (one.shared > 0 || best.shared === 0) ? one : best));
}

/** The most whole sentences or lines, in characters, that one text ends with and the other begins with. */
function countShared(earlier: string, later: string): number {
  for (let length = Math.min(earlier.length, later.length); length > 0; length--) {
    const start = later.slice(0, length);
    if (!earlier.endsWith(start)) continue;
    const begins = /^$|[\s。！？]/.test(earlier.slice(0, -length).slice(-1));
    if (begins && (later[length] === "\n" || /[.!?:;…。！？：；)"”»]$/.test(start))) return length;
  }
  return 0;
}
