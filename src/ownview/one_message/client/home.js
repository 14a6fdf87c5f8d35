// What a person keeps at home, in IndexedDB: the history and receipts. Nothing of it is sent.

const STORES = ["history", "receipts"];

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

class Home {
  #base;

  static async open(name = "ownview") {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => STORES.forEach((store) => request.result.createObjectStore(store));
    const home = new Home();
    home.#base = await done(request);
    return home;
  }

  #in(store, mode) {
    return this.#base.transaction(store, mode).objectStore(store);
  }

  async history() {
    return (await done(this.#in("history", "readonly").get("items"))) ?? [];
  }

  async keepHistory(items) {
    await done(this.#in("history", "readwrite").put(items, "items"));
  }

  async receipts() {
    return done(this.#in("receipts", "readonly").getAll());
  }

  // A receipt is kept before anything is sent: then whatever arrives can be taken back.
  async keepReceipt(receipt) {
    await done(this.#in("receipts", "readwrite").put(receipt, receipt.contribution));
  }

  async dropReceipt(receipt) {
    await done(this.#in("receipts", "readwrite").delete(receipt.contribution));
  }
}

export { Home };
