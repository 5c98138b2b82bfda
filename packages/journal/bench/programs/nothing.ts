import { tell, wallMs } from "../program.js";

// How long Node takes to come to a program's first line.
tell({ at: wallMs() });
