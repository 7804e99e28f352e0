-- A minimal agent harness for Sightline in Lua, run by Neovim:
--
--     nvim -l agent.lua sightline FOLDER FILE
--
-- Requests the environment block, reads FILE under the access rules, creates a
-- checkpoint, edits the file, diffs and restores it. Prints one JSON object.

local program, folder, name = unpack(_G.arg, 1, 3)
folder = assert(vim.uv.fs_realpath(folder))

-- Neovim handles framing and request ids.
local server = assert(vim.lsp.rpc.start({ program, '--stdio' }, {
  server_request = function()
    return vim.NIL, nil
  end,
}))

--- Returns the result of a request. Raises errors with their stable kind.
local function ask(method, params)
  local answer
  assert(server.request(method, params or vim.empty_dict(), function(err, result)
    answer = { err = err, result = result }
  end))
  assert(vim.wait(60000, function()
    return answer
  end, 5), method .. ' timed out')
  if answer.err then
    error(('%s: %s'):format(vim.tbl_get(answer.err, 'data', 'kind') or answer.err.code, answer.err.message))
  end
  return answer.result
end

local uri = vim.uri_from_fname(folder)
local workspace = { { uri = uri, name = vim.fs.basename(folder) } }
ask('initialize', { processId = vim.NIL, rootUri = uri, workspaceFolders = workspace, capabilities = vim.empty_dict() })
server.notify('initialized', vim.empty_dict())

local block = ask('sightline/environmentDetails', { taskId = 'example', includeFiles = true }) -- add it to the prompt
local verdict = ask('sightline/checkAccess', { paths = { name }, command = 'cat ' .. name }) -- before running a tool
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
