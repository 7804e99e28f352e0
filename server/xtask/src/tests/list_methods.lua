-- Loads the generated module given as the first argument and prints its method
-- names, one per line. Run by generated_files.rs.
local protocol = dofile(arg[1])
assert(type(protocol.PROTOCOL_VERSION) == "number", "no PROTOCOL_VERSION")
for _, kind in ipairs({ "methods", "notifications", "server_requests", "server_notifications" }) do
  for _, name in pairs(protocol[kind]) do
    io.stdout:write(name, "\n")
  end
end
