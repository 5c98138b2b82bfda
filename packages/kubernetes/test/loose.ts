/** What comes from outside, where a test looks into it as it likes. */
// biome-ignore lint/suspicious/noExplicitAny: nothing but the test says what it is.
export type Loose = any;
