--- Pickers with a preview, from plugins of the user.

local M = {}

---@class sightline.PickerOptions
---@field prompt string
---@field format fun(item: any): string Line of an item. Lines are distinct.
---@field preview fun(item: any, show: fun(lines: string[])) Calls `show` with a diff.

---@alias sightline.Picker fun(items: any[], options: sightline.PickerOptions, choose: fun(item: any))

---@param bufnr integer
---@param lines string[]
local function fill(bufnr, lines)
  if vim.api.nvim_buf_is_valid(bufnr) then
    vim.bo[bufnr].modifiable = true
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    vim.bo[bufnr].syntax = 'diff'
  end
end

---@type sightline.Picker
local function telescope(items, options, choose)
  local actions = require('telescope.actions')
  require('telescope.pickers')
    .new({}, {
      prompt_title = options.prompt,
      finder = require('telescope.finders').new_table({
        results = items,
        entry_maker = function(item)
          local line = options.format(item)
          return { value = item, display = line, ordinal = line }
        end,
      }),
      sorter = require('telescope.config').values.generic_sorter({}),
      previewer = require('telescope.previewers').new_buffer_previewer({
        define_preview = function(self, entry)
          local bufnr = self.state.bufnr
          options.preview(entry.value, function(lines)
            fill(bufnr, lines)
          end)
        end,
      }),
      attach_mappings = function(prompt)
        actions.select_default:replace(function()
          local entry = require('telescope.actions.state').get_selected_entry()
          actions.close(prompt)
          if entry then
            choose(entry.value)
          end
        end)
        return true
      end,
    })
    :find()
end

---@type sightline.Picker
local function snacks(items, options, choose)
  require('snacks').picker.pick({
    title = options.prompt,
    items = vim.tbl_map(function(item)
      return { text = options.format(item), item = item }
    end, items),
    format = 'text',
    preview = function(context)
      local shown = context.item
      context.preview:reset()
      options.preview(shown.item, function(lines)
        if context.picker:current() == shown then
          context.preview:set_lines(lines)
          context.preview:highlight({ ft = 'diff' })
        end
      end)
    end,
    confirm = function(picker, chosen)
      picker:close()
      if chosen then
        choose(chosen.item)
      end
    end,
  })
end

---@type sightline.Picker
local function fzf_lua(items, options, choose)
  local by_line = {}
  local lines = vim.tbl_map(function(item)
    by_line[options.format(item)] = item
    return options.format(item)
  end, items)
  local base = require('fzf-lua.previewer.builtin').base
  local previewer = base:extend()
  function previewer:new(...)
    previewer.super.new(self, ...)
    return setmetatable(self, previewer)
  end
  function previewer:populate_preview_buf(line)
    local bufnr = self:get_tmp_buffer()
    self:set_preview_buf(bufnr)
    options.preview(by_line[line], function(diff)
      fill(bufnr, diff)
    end)
  end
  require('fzf-lua').fzf_exec(lines, {
    prompt = options.prompt .. '> ',
    previewer = previewer,
    actions = {
      default = function(selected)
        if selected[1] then
          choose(by_line[selected[1]])
        end
      end,
    },
  })
end

local PICKERS = {
  { module = 'telescope', open = telescope },
  { module = 'snacks', open = snacks },
  { module = 'fzf-lua', open = fzf_lua },
}

--- Returns the picker of the first plugin that is installed.
---@return sightline.Picker?
function M.find()
  for _, picker in ipairs(PICKERS) do
    if pcall(require, picker.module) then
      return picker.open
    end
  end
end

return M
