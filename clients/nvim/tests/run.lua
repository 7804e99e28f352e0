-- Runs the tests of the plugin:
--   nvim -l clients/nvim/tests/run.lua [NAME]
-- Needs a clone of the repository, and `sightline` on the PATH. With NAME, runs only the
-- tests whose names contain it.

local here = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)))
package.path = here .. '/?.lua;' .. package.path
local editor = require('editor')

for _, file in ipairs(vim.fn.sort(vim.fn.glob(here .. '/*_test.lua', false, true))) do
  dofile(file)
end
os.exit(editor.run(_G.arg[1]) and 0 or 1)
