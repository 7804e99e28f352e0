-- Defines the command. All other modules are loaded on use.
if vim.g.loaded_sightline then
  return
end
vim.g.loaded_sightline = true

vim.api.nvim_create_user_command('Sightline', function(command)
  local range = command.range > 0 and { command.line1, command.line2 } or nil
  require('sightline.commands').run(command.args, command.fargs, range)
end, {
  nargs = '*',
  range = true,
  desc = 'Environment block, checkpoints, access checks and tasks',
  complete = function(lead, line, position)
    return require('sightline.commands').complete(lead, line, position)
  end,
})

-- For mappings of the user.
for _, name in ipairs({
  'accept',
  'blame',
  'checkpoint',
  'diff',
  'environment',
  'pause',
  'reject',
  'restore',
  'send',
  'signs',
  'turns',
  'undo',
}) do
  local modes = name == 'send' and { 'n', 'x' } or 'n'
  vim.keymap.set(
    modes,
    ('<Plug>(sightline-%s)'):format(name),
    ('<Cmd>Sightline %s<CR>'):format(name),
    { desc = ':Sightline ' .. name }
  )
end
