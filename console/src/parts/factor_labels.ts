/** Labels of the features of a score, and what each means (docs/ranking.md). */

const LABELS: Record<string, readonly [string, string]> = {
  similarity: ["Meaning", "closeness of the passage to the question"],
  lexical: ["Shared words", "BM25 by the words of the question"],
  timely: ["Dates", "agreement of its dates with those in the question"],
  title_similarity: ["Meaning of the title", "closeness of its title to the question"],
  best_sentence: ["Closest sentence", "closeness of its best sentence, reached by a hop or not"],
  evidence: ["Closest reached sentence", "closeness of its best sentence that the hop reached"],
  rank: ["Rank of the reached sentence", "1 over the rank of that sentence in the hop"],
  share: ["Score of the reached sentence", "its share of the best score in the hop"],
  titled: ["Reached title", "activation of the entity that its title names"],
  titled_similarity: ["Reached title times meaning", "the activation times the meaning"],
  named: ["Its title in another text", "a passage from the top of the base ranking names its title"],
  names: ["Another title in its text", "it names the title of a passage from the top of the base ranking"],
  shared: ["Shared entity", "rarity of an entity that it shares with another passage"],
  shared_new: ["Shared new entity", "the same, for entities that the question does not name"],
  sided: ["Other side", "entities of the question that the other passage does not name"],
  unsaid: ["New words of the question", "words of the question that the other passage lacks"],
  gap: ["Open part of the question", "closeness to what the other passage leaves open"],
  joined: ["Fit with another", "closeness to the question together with a sentence of the other passage"],
  standing: ["Base ranking", "its probability by itself, before other passages count"],
  age: ["Age", "half-lives by which it is newer than the middle one of the found texts"],
  recall: ["Recall", "sentences that verdicts on past questions support"],
  bias: ["Baseline", "the same for every answer"],
  mass: ["Lead of the first two", "their odds against all other candidates"],
  margin: ["Margin", "score difference between two ranks"],
  covered: ["Words named", "share of the question's words that the first five name"],
  open: ["Unnamed links", "things that the question goes through without naming them"],
  compared: ["Comparison", "the question compares things that it names"],
  rival: ["Close rival", "a later passage comes close to the fifth"],
};

export interface FactorLabel {
  name: string;
  meaning: string;
}

interface Parts {
  /** The feature without its hop. */
  base: string;
  hop: string | null;
  isUntitled: boolean;
}

function partsOf(feature: string): Parts {
  const isUntitled = feature.endsWith("_untitled");
  const bare = isUntitled ? feature.slice(0, -"_untitled".length) : feature;
  const hop = /^(.*)_(\d)$/.exec(bare);
  return { base: hop?.[1] ?? bare, hop: hop?.[2] ?? null, isUntitled };
}

/** The label of a feature; one that the page does not know keeps its name. */
export function factorLabel(feature: string): FactorLabel {
  const margin = /^margin_(\d)_(\d)$/.exec(feature);
  if (margin) return { name: `Margin ${margin[1]}–${margin[2]}`, meaning: `score of rank ${margin[1]} above that of rank ${margin[2]}` };
  const { base, hop, isUntitled } = partsOf(feature);
  const [name, meaning] = LABELS[base] ?? [feature, ""];
  const details = [hop && `hop ${hop}`, isUntitled && "no candidate has a title from the question"].filter(Boolean).join(", ");
  return { name: details ? `${name}, ${details}` : name, meaning };
}

/** The label that the hops of a feature share. */
export function sharedLabel(feature: string): string {
  const { base } = partsOf(feature);
  return LABELS[base]?.[0] ?? feature;
}
