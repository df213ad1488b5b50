/** What the features of a score are called, and what they mean (docs/ranking.md, docs/enough.md). */

const MEANINGS: Record<string, readonly [string, string]> = {
  similarity: ["Meaning", "how near the passage's key is to the question"],
  lexical: ["Words", "BM25, by the question's terms"],
  timely: ["Days", "how well its days agree with those asked for"],
  title_similarity: ["Meaning of the title", "how near its title is to the question"],
  best_sentence: ["Nearest sentence", "how near its best sentence is, whether a hop reached it or not"],
  evidence: ["Best sentence", "how near its best sentence is to the question"],
  rank: ["Rank of it", "the reciprocal rank of that sentence"],
  share: ["Share of it", "that sentence's score over the hop's best"],
  titled: ["Title reached", "activation of the entity that its title names"],
  titled_similarity: ["Title and meaning", "the two multiplied"],
  named: ["Named by found", "a passage found first names its title"],
  names: ["Names a found", "it names the title of a passage found first"],
  shared: ["Shared entity", "rarity of what it and a passage found first both name"],
  shared_new: ["Shared bridge", "the same, of entities that the question does not name"],
  sided: ["Other side", "entities of the question that others lack"],
  unsaid: ["Words unsaid", "words of the question that others lack"],
  gap: ["Fills the gap", "near to what a passage found first leaves open"],
  joined: ["Goes along", "near to the question and a found sentence together"],
  standing: ["Standing", "its own probability after the first look"],
  recall: ["Recall", "sentences that verdicts on past questions brought in"],
  bias: ["To begin with", "the same for every answer"],
  mass: ["Two stand out", "odds of the best two among all"],
  margin: ["Margin", "by how much one place scores above another"],
  covered: ["Words covered", "share of the question's words that the first five have"],
};

export interface Meaning {
  name: string;
  says: string;
}

export function meaning(feature: string): Meaning {
  const untitled = feature.endsWith("_untitled");
  const bare = untitled ? feature.slice(0, -"_untitled".length) : feature;
  const margin = /^margin_(\d)_(\d)$/.exec(bare);
  if (margin) return { name: `Margin ${margin[1]}–${margin[2]}`, says: `by how much place ${margin[1]} scores above place ${margin[2]}` };
  const hop = /^(.*)_(\d)$/.exec(bare);
  const [name, says] = MEANINGS[hop?.[1] ?? bare] ?? [feature, ""];
  const after = [hop && `hop ${hop[2]}`, untitled && "nothing titled so"].filter(Boolean).join(", ");
  return { name: after ? `${name}, ${after}` : name, says };
}
