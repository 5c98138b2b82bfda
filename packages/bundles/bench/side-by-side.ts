/** All of them, so many at a time. */
export async function sideBySide<Item>(
  items: readonly Item[],
  concurrency: number,
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const work = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await act(item);
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}
