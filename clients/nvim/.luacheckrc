std = "luajit"
globals = { "vim" }
-- StyLua formats lines. It does not break strings and annotations.
max_line_length = false
