--- API differences between Neovim 0.10 and 0.11. No other module checks versions.

local M = {}

local methods = vim.fn.has('nvim-0.11') == 1

--- Starts a client without attaching a buffer.
---@param config vim.lsp.ClientConfig
---@return integer? id
function M.start(config)
  if methods then
    return vim.lsp.start(config, { attach = false })
  end
  ---@diagnostic disable-next-line: deprecated
  return vim.lsp.start_client(config)
end

---@param client vim.lsp.Client
---@param method string
---@param params table
---@param handler fun(err: lsp.ResponseError?, result: any)
---@return boolean sent
---@return integer? request
function M.request(client, method, params, handler)
  if methods then
    return client:request(method, params, handler)
  end
  return client.request(method, params, handler)
end

---@param client vim.lsp.Client
---@param method string
---@param params table
---@return boolean sent
function M.notify(client, method, params)
  if methods then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

---@param client vim.lsp.Client
---@param request integer
function M.cancel(client, request)
  if methods then
    client:cancel_request(request)
  else
    client.cancel_request(request)
  end
end

---@param client vim.lsp.Client
function M.stop(client)
  if methods then
    client:stop()
  else
    client.stop()
  end
end

---@param client vim.lsp.Client
---@return boolean
function M.is_stopped(client)
  if methods then
    return client:is_stopped()
  end
  return client.is_stopped()
end

return M
