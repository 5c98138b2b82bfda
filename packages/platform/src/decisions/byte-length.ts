/** Whether a text has more bytes of UTF-8 than so many. A code unit has one to three of them: most texts need no count. */
export function hasMoreBytes(text: string, most: number): boolean {
  if (text.length > most) return true;
  return text.length * 3 > most && new TextEncoder().encode(text).length > most;
}
