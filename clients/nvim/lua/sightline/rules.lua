--- Hides files and folders from agents, or allows them again, with a line in `.clineignore`.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local show = require('sightline.show')

local M = {}

--- Returns the pattern that matches exactly this path, which begins with `/`.
---@param path string
---@return string
local function pattern_of(path)
  return (path:gsub('[\\*?%[]', '\\%0'):gsub(' (/?)$', '\\ %1'))
end

--- Changes the rules for a pattern. Returns the lines.
---@param lines string[]
---@param pattern string
---@param is_hidden boolean
---@return string[]
local function with_rule(lines, pattern, is_hidden)
  local allowed = '!' .. pattern
  local kept = vim.tbl_filter(function(line)
    return line ~= pattern and line ~= allowed
  end, lines)
  if is_hidden or not vim.tbl_contains(lines, pattern) then
    table.insert(kept, is_hidden and pattern or allowed)
  end
  return kept
end

--- Says that agents may see a path again, or which other rule still hides it.
---@param path string
---@param name string
---@param pattern string
---@param root string
local function say_allowed(path, name, pattern, root)
  api.check_access({ paths = { path } }, function(err, result)
    if not result then
      return show.failed(err)
    end
    local verdict = result.paths[1]
    local rule = verdict.access == 'denied' and verdict.rule
    if rule and rule.pattern ~= pattern then
      local by = ('%s:%d `%s`'):format(rule.source, rule.line, rule.pattern)
      return show.say(('%s is still hidden from agents by %s'):format(name, by), vim.log.levels.WARN)
    end
    show.say(('agents may see %s'):format(name))
  end, { root = root })
end

--- Writes the rule for a path, or for the current file.
---@param path? string
---@param is_hidden boolean
function M.set(path, is_hidden)
  if not path then
    local bufnr = vim.api.nvim_get_current_buf()
    if not buffers.is_file(bufnr) then
      return show.say('not a file buffer; give a path', vim.log.levels.WARN)
    end
    path = buffers.path(bufnr)
  end
  path = path:gsub('/$', '')
  local root = buffers.root_of(path)
  if not root or not buffers.is_below(path, root) or path == root then
    return show.say(('cannot write a rule for %s: it is not in a workspace folder'):format(path), vim.log.levels.ERROR)
  elseif path:find('\n', 1, true) then
    return show.say('cannot write a rule for a name with a line break', vim.log.levels.ERROR)
  end
  local name = path:sub(#root + 1)
  local pattern = pattern_of(vim.fn.isdirectory(path) == 1 and name .. '/' or name)
  local bufnr = vim.fn.bufadd(root .. '/.clineignore')
  vim.fn.bufload(bufnr)
  if vim.bo[bufnr].modified then
    return show.say('cannot change .clineignore: it has unsaved changes; write it first', vim.log.levels.ERROR)
  end
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  if #lines == 1 and lines[1] == '' then
    lines = {}
  end
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, with_rule(lines, pattern, is_hidden))
  local written, problem = pcall(vim.api.nvim_buf_call, bufnr, function()
    vim.cmd('silent write')
  end)
  if not written then
    return show.say(('cannot write .clineignore: %s'):format(problem), vim.log.levels.ERROR)
  end
  name = name:sub(2)
  if is_hidden then
    return show.say(('%s is hidden from agents by .clineignore'):format(name))
  end
  say_allowed(path, name, pattern, root)
end

return M
