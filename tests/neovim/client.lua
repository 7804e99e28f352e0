-- What the scripts of this folder share. They are started by tests/e2e/editors/neovim.rs
-- as
--   nvim --headless -u NONE -i NONE -l SCRIPT SERVER ROOT DATA OUTPUT
-- and write what they were answered to OUTPUT as JSON.

local M = { answers = {} }

local server, output
server, M.root, M.data, output = unpack(_G.arg, 1, 4)

-- Starts the server for the workspace `shop`; `more` are further fields of
-- vim.lsp.start's config.
function M.start(more)
  more = more or {}
  local config = vim.tbl_extend('force', {
    name = 'sightline',
    cmd = { server, '--stdio' },
    root_dir = M.root,
    workspace_folders = { { uri = vim.uri_from_fname(M.root), name = 'shop' } },
  }, more)
  config.init_options = vim.tbl_extend('force', { storage = { path = M.data } }, more.init_options or {})
  M.client = assert(vim.lsp.get_client_by_id(assert(vim.lsp.start(config))))
  assert(vim.wait(10000, function()
    return M.client.initialized
  end))
  return M.client
end

-- The result of a request, or `{ error = ... }`.
function M.request(method, params)
  local reply, why = M.client:request_sync('sightline/' .. method, params or {}, 10000)
  assert(reply, why)
  if reply.err then
    return { error = reply.err }
  end
  return reply.result
end

-- Opens a file of the workspace and attaches the server to it.
function M.open(name, how)
  vim.cmd((how or 'edit') .. ' ' .. vim.fn.fnameescape(M.root .. '/' .. name))
  vim.lsp.buf_attach_client(0, M.client.id)
end

-- Stops the server and waits for its end.
function M.stop()
  M.client:stop()
  return vim.wait(5000, function()
    return M.client:is_stopped()
  end, 20)
end

-- Writes the answers.
function M.finish()
  M.stop()
  local file = assert(io.open(output, 'w'))
  file:write(vim.json.encode(M.answers))
  file:close()
  vim.cmd('qall!')
end

return M
