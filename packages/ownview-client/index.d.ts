/** What everybody has agreed on; see docs/one-message.md. */
export interface Terms {
  format: 1;
  method: "fedease" | "counts" | "fednext";
  items: string[];
  table: number[];
  beyond?: number;
  next: { past: number[][]; future: number[]; weights: number[]; length: number; rank?: number; vectors?: Int16Array; unit?: number; down?: number } | null;
  budget: { epsilon: number; delta: number; clip: number; exponent: number; releases: number } | null;
  /** Zero bits of a proof of work. */
  work: number;
  fewest: number;
  name: Uint8Array;
  keys: { a: Uint8Array; b: Uint8Array };
  urls: { a: string; b: string };
  place: Map<string, number>;
}
/** What was begun: kept before it is sent, so that it can be finished. */
export interface Pending { operation: 1 | 2 | 3; name: string; key: string; before: string[] }
/** Kept at home: who has it can change the contribution, or take it out. */
export interface Receipt { agreement: string; contribution: string; secret: string; history: string[]; sent: string; out: boolean; pending: Pending | null }
export interface Prepared { receipt: Receipt; messages: { a: Uint8Array; b: Uint8Array } }
export interface Status { share: "b"; agreement: string; fewest: number; contributions: number; waiting: number; batches: number }
/** How much of what is sent is about each two of the person's items, from 0 to 1. */
export interface Picture { items: string[]; cells: number[][]; numbers: number; size: number }
export interface Weights { format: 1; agreement: string; contributions: number; ids: string[]; form: object; rule: string }
export interface ImportedRow { title: string; maker: string; when: number }
type Ids = readonly (string | number)[];

export function readAgreement(content: Uint8Array): Promise<Terms>;
/** Numbers of a contribution. */
export function size(terms: Terms): number;
/** The numbers of places of items, oldest first. */
export function summand(terms: Terms, history: readonly number[]): Uint32Array;
/** An export of Goodreads, Letterboxd, Netflix or Trakt, or a table with a column title; oldest first. */
export function readExport(text: string): { service: string; rows: ImportedRow[] };
/** Which title each row is; place -1 for none. */
export function matched(read: { service: string; rows: ImportedRow[] }, titles: readonly string[]): { service: string; rows: { title: string; maker: string; place: number }[] };

/** What a receipt is again after a server refused its message; null where nothing was added: drop it then. */
export function withdrawn(receipt: Receipt): Receipt | null;

export class Contributor {
  readonly terms: Terms;
  constructor(terms: Terms, options?: { fetch?: typeof fetch; retries?: number });
  static join(url: string, options?: { expected?: string | null; fetch?: typeof fetch; retries?: number }): Promise<Contributor>;
  numbers(history: Ids): Uint32Array;
  picture(history: Ids): Picture;
  prepare(history: Ids): Promise<Prepared>;
  prepareChange(receipt: Receipt, history: Ids): Promise<Prepared>;
  prepareTakeOut(receipt: Receipt): Promise<Prepared>;
  /** The same messages again, of a receipt that is pending. */
  resume(receipt: Receipt): Promise<Prepared>;
  /** The receipt as it is to be kept from then on. An error with `refused` says that a server does not take the message: see `withdrawn`. */
  send(prepared: Prepared): Promise<Receipt>;
  status(): Promise<Status>;
  weights(): Promise<Weights | null>;
}
/** History and receipts in IndexedDB. */
export class Home {
  static open(name?: string): Promise<Home>;
  history(): Promise<string[]>;
  keepHistory(items: string[]): Promise<void>;
  receipts(): Promise<Receipt[]>;
  keepReceipt(receipt: Receipt): Promise<void>;
  dropReceipt(receipt: Receipt): Promise<void>;
}
