/** Links for an empty page: questions of the sample, where it is looked at; elsewhere titles of the collection's passages. A
 * collection of another encoder answers no question, so there it says so. */

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
  const { engram, collection, collections, may, ready } = useShared();
  const encoder = useLoaded<string | null>(async () => {
    if (!may("read") || !collections.includes(collection)) return null;
    const params = { path: { name: collection } };
    return (await read<Schemas["CollectionOut"]>(engram.api.GET("/collections/{name}", { params }))).encoder.model;
  }, [collection]);
  if (encoder.loading) return null;
  if (encoder.data && ready && encoder.data !== ready.encoder) {
    return (
      <p class="note">
        {collection} has vectors of {encoder.data}, and this service runs {ready.encoder}: it answers no question until its passages are embedded anew.
      </p>
    );
  }
  if (collection !== SAMPLE) return <Titles page={page} />;
  return <Samples page={page} lead="Ask the sample collection:" texts={QUESTIONS} />;
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
  return <Samples page={page} lead="Titles in this collection:" texts={titles.data} />;
}

function Samples({ page, lead, texts }: Props & { lead: string; texts: readonly string[] }) {
  const { collection } = useShared();
  return (
    <div class="samples">
      <p>{lead}</p>
      <ul>
        {texts.map((text) => (
          <li key={text}>
            <a class="button" href={address(page, "", { c: collection, q: text })}>
              {text}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
