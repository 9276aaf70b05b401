// How one list of answers stands to another: what is in one alone, and what moved.

// For each id of `now`: { only: true } where `before` lacks it, else { moved: ranks up (above 0) or down }.
export function against(now, before) {
  const ranks = new Map(before.map((id, rank) => [id, rank]));
  return new Map(
    now.map((id, rank) => [
      id,
      ranks.has(id) ? { only: false, moved: ranks.get(id) - rank } : { only: true, moved: 0 },
    ]),
  );
}

export const alone = (now, before) => new Map(now.map((id) => [id, { only: !before.includes(id), moved: 0 }]));

export const gone = (now, before) => before.filter((id) => !now.includes(id));

export function words(mark, only) {
  if (!mark) return "";
  if (mark.only) return only;
  if (mark.moved === 0) return "";
  return mark.moved > 0 ? `${mark.moved} up` : `${-mark.moved} down`;
}
