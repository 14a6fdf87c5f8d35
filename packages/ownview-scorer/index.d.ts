export interface Reason { item: string; title: string; share: number }
export interface Listed { item: string; title: string; score: number; because?: Reason[] }
export interface Recommended { recommendations: Listed[]; unknown: string[] }
export interface Wishes {
  /** Items of the list; 10 unless given. */
  k?: number;
  exclude?: readonly (string | number)[];
  only?: readonly (string | number)[] | null;
  /** Whether items of the history may be listed. */
  again?: boolean;
  /** Weight of maximal marginal relevance, 0 to 1. */
  diversity?: number;
  explain?: boolean;
}
export class Recommender {
  readonly ids: string[];
  readonly titles: string[];
  /** What model.json, or the page, says of the model. */
  readonly about: Record<string, unknown>;
  /** Of a folder that `ownview export` wrote; `read` gives a file of it by name. */
  static fromFolder(read: (name: string) => ArrayBuffer | Promise<ArrayBuffer>): Promise<Recommender>;
  /** Of the JSON in a page's element "model". */
  static fromPage(model: Record<string, unknown>): Promise<Recommender>;
  /** Of all items, in the order of `ids`, for a history of ids, oldest first. */
  scores(history: readonly (string | number)[]): Float64Array;
  /** The best items for a history of ids, oldest first; unknown ids are skipped and named. */
  recommend(history: readonly (string | number)[], wishes?: Wishes): Recommended;
  /** Items by what a person types of a title. */
  items(prefix: string, k?: number): { item: string; title: string }[];
}
