-- Compares each answer to the byte: `wrk … -s exact.lua URL -- DUE AT-ONCE [CONTENT-TYPE BODY]`; DUE and BODY are
-- files. AT-ONCE requests are sent in one piece, and the next ones when all of them are answered.
local threads = {}

local function read(name)
   local file = assert(io.open(name, "rb"))
   local content = file:read("*a")
   file:close()
   return content
end

function setup(thread)
   table.insert(threads, thread)
end

function init(args)
   wrong, first, due = 0, "", read(args[1])
   if args[3] then
      wrk.method = "POST"
      wrk.headers["Content-Type"] = args[3]
      wrk.body = read(args[4])
   end
   local at_once = tonumber(args[2])
   if at_once > 1 then
      local piece = string.rep(wrk.format(), at_once)
      request = function() return piece end
   end
end

function response(status, headers, body)
   if status ~= 200 or body ~= due then
      if wrong == 0 then
         first = string.format("status %d with %d bytes", status, #body)
      end
      wrong = wrong + 1
   end
end

function done(summary, latency, requests)
   for _, thread in ipairs(threads) do
      if thread:get("wrong") > 0 then
         print(string.format("Wrong answers: %d, the first: %s", thread:get("wrong"), thread:get("first")))
      end
   end
end
