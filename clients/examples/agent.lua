-- How an agent harness talks to Sightline, in Lua, with Neovim as the interpreter:
--
--     nvim -l agent.lua sightline FOLDER FILE
--
-- Asks for the block, reads FILE under the access rules, takes a checkpoint, edits
-- the file, shows what changed and goes back. Prints one JSON object.

local program, folder, name = unpack(_G.arg, 1, 3)
folder = assert(vim.uv.fs_realpath(folder))

-- Framing and ids are Neovim's; `sightline` is spoken as plain JSON-RPC.
local server = assert(vim.lsp.rpc.start({ program, '--stdio' }, {
  server_request = function()
    return vim.NIL, nil
  end,
}))

--- The result of a request; an error is raised with its stable kind.
local function ask(method, params)
  local answer
  assert(server.request(method, params or vim.empty_dict(), function(err, result)
    answer = { err = err, result = result }
  end))
  assert(vim.wait(60000, function()
    return answer
  end, 5), method .. ' was not answered')
  if answer.err then
    error(('%s: %s'):format(vim.tbl_get(answer.err, 'data', 'kind') or answer.err.code, answer.err.message))
  end
  return answer.result
end

local uri = vim.uri_from_fname(folder)
local workspace = { { uri = uri, name = vim.fs.basename(folder) } }
ask('initialize', { processId = vim.NIL, rootUri = uri, workspaceFolders = workspace, capabilities = vim.empty_dict() })
server.notify('initialized', vim.empty_dict())

local block = ask('sightline/environmentDetails', { taskId = 'example', includeFiles = true }) -- goes before the prompt
local verdict = ask('sightline/checkAccess', { paths = { name }, command = 'cat ' .. name }) -- before a tool runs
local text = ask('sightline/readFile', { path = name, taskId = 'example' }).text -- the read tool
local checkpoint = ask('sightline/createCheckpoint', { taskId = 'example', label = 'before the edit' })
local file = assert(io.open(folder .. '/' .. name, 'w')) -- the write tool
file:write(text .. 'edited by the agent\n')
file:close()
ask('sightline/trackFile', { taskId = 'example', path = name, operation = 'cline_edited' })
local changes = ask('sightline/diffCheckpoints', { from = checkpoint.id })
local preview = ask('sightline/previewRestore', { id = checkpoint.id })
local restored = ask('sightline/restoreCheckpoint', { id = checkpoint.id, token = preview.token })
ask('shutdown')
server.notify('exit')

local answers = { block = block.text, access = verdict, changes = changes.files, restored = restored.outcomes }
io.stdout:write(vim.json.encode(answers), '\n')
