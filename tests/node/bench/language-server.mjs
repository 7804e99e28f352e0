// The smallest language server on `vscode-languageserver`: answers `bench/echo`
// with its params, and a hover with nothing.

import { createConnection, TextDocumentSyncKind } from 'vscode-languageserver/node';

const connection = createConnection(process.stdin, process.stdout);
connection.onInitialize(() => ({
  capabilities: { textDocumentSync: TextDocumentSyncKind.Incremental, hoverProvider: true },
}));
connection.onHover(() => null);
connection.onRequest('bench/echo', (params) => params);
connection.listen();
