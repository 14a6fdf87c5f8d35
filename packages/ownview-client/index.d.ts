/** What everybody has agreed on; see docs/one-message.md. */
export interface Terms {
  format: 1;
  method: "fedease" | "counts";
  items: string[];
  table?: number[];
  beyond?: number;
  fewest: number;
  name: Uint8Array;
  keys: { a: Uint8Array; b: Uint8Array };
  urls: { a: string; b: string };
  place: Map<string, number>;
}
/** Kept at home: whoever has it can change the contribution, or take it out. */
export interface Receipt { agreement: string; contribution: string; secret: string; history: string[]; sent: string }
export interface Prepared { receipt: Receipt; messages: { a: Uint8Array; b: Uint8Array } }
export interface Status { share: "b"; agreement: string; fewest: number; contributions: number; waiting: number; batches: number }
type Ids = readonly (string | number)[];

export function readAgreement(content: Uint8Array): Promise<Terms>;
/** Numbers of a contribution. */
export function size(terms: Terms): number;
/** The numbers of places of items, oldest first. */
export function summand(terms: Terms, history: readonly number[]): Uint32Array;

export class Contributor {
  readonly terms: Terms;
  constructor(terms: Terms, options?: { fetch?: typeof fetch; retries?: number });
  static join(url: string, options?: { expected?: string | null; fetch?: typeof fetch; retries?: number }): Promise<Contributor>;
  numbers(history: Ids): Uint32Array;
  prepare(history: Ids): Promise<Prepared>;
  prepareChange(receipt: Receipt, history: Ids): Promise<Prepared>;
  prepareTakeOut(receipt: Receipt): Promise<Prepared>;
  send(prepared: Pick<Prepared, "messages">): Promise<void>;
  status(): Promise<Status>;
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
