// A browser tab as a whole client of a federated recommender; docs/one-message.md has every byte.

export { Contributor, readAgreement, withdrawn } from "./contributor.js";
export { Home } from "./home.js";
export { matched, readExport } from "./imports.js";
export { size, summand } from "./numbers.js";
