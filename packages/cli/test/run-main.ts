import { main } from "../src/main.js";

// The program from its sources, for tests that start it as a process.
await main(process.argv);
