import { main } from "../src/main.js";

// The program from its sources: what bin/osbert.js is once it is built.

await main(process.argv);
