/** Links for an empty page: questions of the sample, where it is looked at; elsewhere titles of the collection's passages. */

import { read, type Schemas } from "../service";
import { address, SAMPLE, useLoaded, useShared } from "../state";

/** Questions of the sample collection, word for word. */
export const QUESTIONS: readonly string[] = [
  "Which timepiece was first built by the discoverer of the moon of Saturn that has lakes of methane?",
  "In which city did the discoverer of the moon with icy jets near its south pole play the organ?",
  "By what trade had the man who found the largest companion of Neptune made his fortune?",
  "On which hill stands the observatory that hired the man whose ashes travel aboard the first craft to fly past Pluto?",
];
const TITLES = 5;

interface Props {
  /** The page that a question opens, which reads it from `q`. */
  page: "ask" | "sessions";
}

export function SampleQuestions({ page }: Props) {
  const { collection } = useShared();
  if (collection !== SAMPLE) return <Titles page={page} />;
  return (
    <div class="samples">
      <p>Ask the sample collection:</p>
      <ul>
        {QUESTIONS.map((question) => (
          <li key={question}>
            <a class="button" href={address(page, "", { c: SAMPLE, q: question })}>
              {question}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The first titles of a collection that has no sample questions. */
function Titles({ page }: Props) {
  const { engram, collection, collections, may } = useShared();
  const titles = useLoaded<string[]>(async () => {
    if (!may("read") || !collections.includes(collection)) return [];
    const params = { path: { name: collection }, query: { limit: TITLES } };
    const passages = await read<Schemas["PassagesOut"]>(engram.api.GET("/collections/{name}/passages", { params }));
    return [...new Set(passages.passages.map((one) => one.title).filter((title) => title !== null))];
  }, [collection]);
  if (titles.data === undefined || titles.data.length === 0) return null;
  return (
    <div class="samples">
      <p>Titles in this collection:</p>
      <ul>
        {titles.data.map((title) => (
          <li key={title}>
            <a class="button" href={address(page, "", { q: title })}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
