/** Something that the author of a bundle has to change. The message tells it whole. */
export class AuthorError extends Error {
  override readonly name = "AuthorError";
}
