/** Texts of error messages, for the user and for the log. Does not use the API of VS Code. */

import type { Search } from "./program";

/** Text of an error. */
export interface ErrorText {
  shown: string;
  logged: string;
}

/** Describes why there is no server program. The log also lists the searched folders. */
export function describeMissingProgram({ reason, folders }: Search & { program: undefined }): ErrorText {
  return {
    shown: `Cannot find the Sightline server: ${reason}.`,
    logged: [`cannot find the server: ${reason}`, ...folders.map((folder) => `  ${folder}`)].join("\n"),
  };
}

/** Describes an error. The log also contains `code`, the kind or code of an error response. */
export function describeError(error: unknown, code?: string | number): ErrorText {
  const message = error instanceof Error ? error.message : String(error);
  return { shown: `sightline: ${message}`, logged: code === undefined ? message : `${message} (${code})` };
}
