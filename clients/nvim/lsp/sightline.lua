-- Configuration of `vim.lsp.enable('sightline')`, for Neovim 0.11 or later. `setup` is not
-- needed for the server alone, but sends windows, tabs and terminals.
local buffers = require('sightline.buffers')
local server = require('sightline.server')

local config = server.client_config()
config.root_dir = function(bufnr, on_dir)
  if buffers.is_file(bufnr) and not buffers.is_large(bufnr) then
    on_dir(buffers.root_of(buffers.path(bufnr)))
  end
end
return config
