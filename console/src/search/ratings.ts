/** Which passages the person rated in this tab, so that the page shows it when the same question is asked again. */

const RATINGS = "engram.ratings";

export interface Rating {
  /** Of the verdict, whichever answer it was on. */
  id: number;
  up: boolean;
}

interface Kept {
  person: string;
  ratings: Record<string, Rating>;
}

const kept = (): Kept => JSON.parse(sessionStorage.getItem(RATINGS) ?? '{"person":"","ratings":{}}') as Kept;
const keep = (all: Kept): void => sessionStorage.setItem(RATINGS, JSON.stringify(all));

/** Forget the ratings of anybody but this person. */
export function forgetOthers(person: string): void {
  if (kept().person !== person) keep({ person, ratings: {} });
}

export const placeOf = (collection: string, question: string, passage: string): string => JSON.stringify([collection, question, passage]);

export const ratingAt = (place: string): Rating | null => kept().ratings[place] ?? null;

export function keepRating(place: string, rating: Rating | null): void {
  const { person, ratings } = kept();
  const { [place]: _, ...others } = ratings;
  keep({ person, ratings: rating === null ? others : { ...others, [place]: rating } });
}
