// An option is found as it is written: `--static`. The search takes a dash before a word for "without this word".
//
// Not a search of its own: what is typed stays as it is, and only what the theme hands to its worker loses the dashes.
const QUERY = 2; // the theme's SearchMessageType
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...others) {
  const asks = message && message.type === QUERY && typeof message.data === "string";
  const said = asks ? { ...message, data: message.data.replace(/(^|\s)-+(?=[^\s-])/g, "$1") } : message;
  return post.call(this, said, ...others);
};
