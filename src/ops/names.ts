/** Names in the audit trail, where people must not mistake one for another. */

/** Begins the names of bearers of an OpenID provider, and no other. */
export const OIDC_PREFIX = 'oidc:';

/** Controls, line separators, what reverses or joins the text beside it, what is not seen, and lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}\p{Default_Ignorable_Code_Point}]/u;

/** Whether a text can be read in a log and on a screen as what it is: one line, without blanks at its ends. */
export function isPlainName(text: string): boolean {
  return text !== '' && text === text.trim() && !UNPRINTABLE.test(text);
}
