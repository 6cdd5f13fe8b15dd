// How German counts: a number with the word for one or for several. Used by all files of texts.

export const many = (count, one, several) => `${count.toLocaleString("de")} ${count === 1 ? one : several}`;
