// git.exe for Wine: runs the git of this machine, with the arguments, input, environment and folder that it was
// given. Wine can start programs of Linux, but cannot wait for them or pass them pipes, so input and output go
// through files, and the exit code too.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

// The folder of input and output, and the folder of the drives of Wine, which is next to that of this program.
static char folder[MAX_PATH];
static char drives[2 * MAX_PATH];

static FILE *open_file(const char *name, const char *mode) {
  char path[MAX_PATH + 32];
  snprintf(path, sizeof path, "Z:%s/%s", folder, name);
  return fopen(path, mode);
}

// Writes a word of the shell. A path of Windows, also after `=`, becomes one of Linux.
static void write_word(FILE *script, const wchar_t *word) {
  int size = WideCharToMultiByte(CP_UTF8, 0, word, -1, NULL, 0, NULL, NULL);
  char *text = malloc(size);
  WideCharToMultiByte(CP_UTF8, 0, word, -1, text, size, NULL, NULL);
  char *from = text;
  fputc('\'', script);
  char *path = strncmp(text, "\\\\?\\", 4) == 0 ? text + 4 : text;
  char *equals = strchr(text, '=');
  if (equals && strlen(equals) > 3 && equals[2] == ':') path = equals + 1;
  int is_path = ((*path | 32) >= 'a' && (*path | 32) <= 'z') && path[1] == ':' && (path[2] == '\\' || path[2] == '/');
  if (is_path) {
    if (path != text && path[-1] == '=') fprintf(script, "%.*s", (int)(path - text), text);
    if ((*path | 32) != 'z') fprintf(script, "%s/%c:", drives, *path | 32);
    from = path + 2;
    for (char *at = from; *at; at++) if (*at == '\\') *at = '/';
  }
  for (; *from; from++) {
    if (*from == '\'') fputs("'\\''", script);
    else fputc(*from, script);
  }
  fputc('\'', script);
  free(text);
}

static void copy(FILE *from, HANDLE to) {
  char buffer[65536];
  size_t length;
  DWORD written;
  while (from && (length = fread(buffer, 1, sizeof buffer, from)) > 0)
    if (!WriteFile(to, buffer, length, &written, NULL)) break;
  if (from) fclose(from);
}

int wmain(int count, wchar_t **words, wchar_t **environment) {
  snprintf(folder, sizeof folder, "/tmp/wine-git-%lu-%llx", GetCurrentProcessId(), (unsigned long long)GetTickCount64());
  char path[MAX_PATH + 8];
  snprintf(path, sizeof path, "Z:%s", folder);
  if (!CreateDirectoryA(path, NULL)) return 125;

  char program[MAX_PATH];
  GetModuleFileNameA(NULL, program, sizeof program);
  for (char *at = program; *at; at++) if (*at == '\\') *at = '/';
  strrchr(program, '/')[0] = 0;
  snprintf(drives, sizeof drives, "%s/../prefix/dosdevices", program + 2);

  char buffer[65536];
  DWORD length;
  FILE *input = open_file("input", "wb");
  HANDLE standard = GetStdHandle(STD_INPUT_HANDLE);
  while (standard && ReadFile(standard, buffer, sizeof buffer, &length, NULL) && length > 0) fwrite(buffer, 1, length, input);
  fclose(input);

  wchar_t here[4096];
  GetCurrentDirectoryW(4096, here);
  FILE *script = open_file("script", "wb");
  fputs("(cd ", script);
  write_word(script, here);
  fputs(" && env -i PATH=/usr/local/bin:/usr/bin:/bin ", script);
  for (wchar_t **variable = environment; *variable; variable++) {
    if (wcsncmp(*variable, L"GIT_", 4) && wcsncmp(*variable, L"HOME=", 5) && wcsncmp(*variable, L"LC_ALL=", 7)) continue;
    write_word(script, *variable);
    fputc(' ', script);
  }
  fputs("git", script);
  for (int at = 1; at < count; at++) {
    fputc(' ', script);
    write_word(script, words[at]);
  }
  fprintf(script, ") <%s/input >%s/output 2>%s/errors\ncode=$?\n", folder, folder, folder);
  // The path of a work tree, as git for Windows prints it.
  for (int at = 1; at < count; at++)
    if (!wcscmp(words[at], L"--show-toplevel"))
      fprintf(script, "sed -i \"s|^$(cd '%s/c:' && pwd -P)/|C:/|\" %s/output\n", drives, folder);
  fprintf(script, "echo $code >%s/code.new\nmv %s/code.new %s/code\n", folder, folder, folder);
  fclose(script);

  wchar_t line[MAX_PATH + 32];
  swprintf(line, MAX_PATH + 32, L"Z:\\bin\\sh %hs/script", folder);
  STARTUPINFOW startup = {.cb = sizeof startup};
  PROCESS_INFORMATION started;
  if (!CreateProcessW(L"Z:\\bin\\sh", line, NULL, NULL, FALSE, 0, NULL, L"Z:\\tmp", &startup, &started)) return 126;
  FILE *code;
  for (int tries = 0; !(code = open_file("code", "rb")); tries++) {
    if (tries == 60000) return 124;
    Sleep(1);
  }
  int result = 125;
  fscanf(code, "%d", &result);
  fclose(code);
  copy(open_file("output", "rb"), GetStdHandle(STD_OUTPUT_HANDLE));
  copy(open_file("errors", "rb"), GetStdHandle(STD_ERROR_HANDLE));
  const char *names[] = {"input", "script", "output", "errors", "code"};
  for (int at = 0; at < 5; at++) {
    snprintf(path, sizeof path, "Z:%s/%s", folder, names[at]);
    DeleteFileA(path);
  }
  snprintf(path, sizeof path, "Z:%s", folder);
  RemoveDirectoryA(path);
  return result;
}
